package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/analysis/resample"
	"plimsoll/result"
	"plimsoll/unit"
)

// Limits of what is believed.
const (
	countersAgree = 0.05  // relative difference between what a generator and a device count
	overCeiling   = 1.02  // a link cannot carry more than its ceiling; the rest is rounding
	nearCeiling   = 0.85  // from here on the link explains the figure
	overSheet     = 1.05  // a data sheet is sometimes modest
	memorySpeed   = 8e-6  // seconds; no medium answers a read through the operating system faster than about 10 µs
	reduced       = 1.3   // data reduction above which content was not what was meant
	smallBytes    = 32e3  // mean size of operations up to which a data sheet's IOPS are the ones to compare with
	largeBytes    = 100e3 // and from which its MB/s are
)

// plausible compares claims with what devices, links and memory can do.
func plausible(v *view) []result.Finding {
	var out []result.Finding
	for _, check := range []func(*view) []result.Finding{inMemory, tooFast, deviceCounters, deviceBytes, uncounted, busLimit, dataSheet, reduction, reducible} {
		out = append(out, check(v)...)
	}
	return out
}

// inMemory finds disks whose files have no medium under them.
func inMemory(v *view) []result.Finding {
	if !v.movesBlocks() {
		return nil
	}
	media := result.Find(v.m.Environment, result.StorageMedia)
	if !slices.ContainsFunc(media, func(f result.Fact) bool { return f.Number == 0 }) {
		return nil
	}
	return []result.Finding{{
		Check: "in-memory", Severity: result.Blocker, Subject: "run", Metric: "media under the disks", Unit: "count", Value: ptr(0), N: 1, Limit: ptr(1),
		Sentence:   "The disks are files in memory: these numbers are memory's, not any storage's.",
		NoInterval: "a fact, not a measurement", Basis: "environment facts recorded before the run",
	}}
}

// tooFast finds reads answered faster than any medium can.
func tooFast(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		w := l.whole()
		if w == nil {
			continue
		}
		reads := blockTotals(w, result.BlockRead)
		if len(reads) != 1 {
			continue
		}
		o := reads[0]
		p50, low, high, ok := quantile(o.Hist, 0.5)
		if !ok || o.Hist.Count() < fewOperations {
			continue
		}
		f := result.Finding{
			Check: "too-fast", Subject: l.name, Metric: "median of the reads", Unit: "s", Value: &p50, Low: &low, High: &high, N: int(min(o.Hist.Count(), math.MaxInt)), Limit: ptr(memorySpeed), Basis: l.basis(),
			Evidence: []result.Evidence{{Name: "median of the reads", Value: p50, Unit: "s"}, {Name: "fastest media", Value: 10e-6, Unit: "s"}},
		}
		if high < memorySpeed {
			f.Severity, f.Warnings = result.Blocker, []string{independent}
			f.Sentence = fmt.Sprintf("Half of the reads of %s took %s or less; the fastest media need about %s. They were answered from memory.", l.name, sayMicro(p50), sayMicro(10e-6))
		} else {
			f.Severity = result.Fine
			f.Sentence = fmt.Sprintf("The reads of %s took %s in the median, which a storage device can do.", l.name, sayDuration(p50))
		}
		out = append(out, f)
	}
	return out
}

// deviceCounters compares the rate that generators claim with what the disks of the same VMs counted.
func deviceCounters(v *view) []result.Finding {
	if v.derived() {
		return nil
	}
	var out []result.Finding
	for i := range v.d.Panels {
		p := &v.d.Panels[i]
		group, ok := strings.CutPrefix(p.Group, "VMGroupResult_")
		if !ok || p.Kind != "vm_group" || strings.ToLower(p.Type) != "iops" || len(p.Series) == 0 {
			continue
		}
		claimed := v.groupTrack(group, "")
		if !v.groupBlocks(group) || claimed == nil || len(p.Series) != 1 && len(p.Series) != v.vmsOf(group) {
			continue // an aggregate that is no sum, or a view of a part
		}
		counted := &track{origin: v.d.Start, start: p.Series[0].Start, step: p.Series[0].Step,
			ops: gaps(len(p.Series[0].Values))}
		if !(counted.step > 0) || !isFinite(counted.step) || len(p.Series) == 1 && v.vmsOf(group) > 1 && !strings.Contains(p.Query, "sum by (vm_group)") {
			continue
		}
		for k := range p.Series {
			counted.add(counted.ops, &p.Series[k], nil)
		}
		if f, ok := agreement(group, claimed, counted); ok {
			out = append(out, f)
		}
	}
	return out
}

// derived reports whether the counters of the VMs' disks are the generators' own counts under another name, which agree with themselves.
func (v *view) derived() bool {
	return v.m.DiskCounters != "" && v.m.DiskCounters != result.CountersExported
}

// groupBlocks reports whether all that the VMs of a group do is block I/O.
func (v *view) groupBlocks(group string) bool {
	return !slices.ContainsFunc(v.loads, func(l *load) bool { return l.group == group && !l.blocksOnly() })
}

func (v *view) vmsOf(group string) (n int) {
	for _, vm := range v.d.VMs {
		if vm.Group == group {
			n++
		}
	}
	return n
}

// agreement compares the two over the points at which both counted and neither changes by much from point to point, so that
// the ends of a load do not weigh: medians over the middle of the time.
func agreement(group string, claimed, counted *track) (result.Finding, bool) {
	from, to := claimed.at(0), claimed.at(len(claimed.ops)-1)
	counted = counted.between(from, to)
	var a, b []float64
	for i, x := range counted.ops {
		at := int(math.Round(counted.at(i).Sub(claimed.start).Seconds() / claimed.step))
		if isFinite(x) && at >= 0 && at < len(claimed.ops) && isFinite(claimed.ops[at]) && claimed.ops[at] > 0 {
			a, b = append(a, claimed.ops[at]), append(b, x)
		}
	}
	if len(a) < 20 {
		return result.Finding{}, false
	}
	said, seen := resample.Median(a), resample.Median(b)
	if !(said > 0) {
		return result.Finding{}, false
	}
	r := seen / said
	f := result.Finding{
		Check: "device-counters", Subject: group, Metric: "device ÷ generator", Unit: "ratio", Value: &r, N: len(a), Limit: ptr(1 - countersAgree),
		NoInterval: "two counts of the same operations", Basis: fmt.Sprintf("medians over %d points at which both counted", len(a)),
		Evidence: []result.Evidence{{Name: "the generators claim", Value: said, Unit: "ops/s"}, {Name: "the disks counted", Value: seen, Unit: "ops/s"}},
	}
	both := fmt.Sprintf("the generators of %s claim %s operations per second, their disks counted %s", group, sayCount(said), sayCount(seen))
	switch {
	case r < 1-countersAgree:
		f.Severity = result.Blocker
		f.Sentence = capital(both) + ". What is missing never reached a disk: it was answered from a cache, or was never done."
	case r > 1+countersAgree:
		f.Severity = result.Caution
		f.Sentence = capital(both) + ". The disks were split requests or had other work as well."
	default:
		f.Severity = result.Fine
		f.Sentence = capital(both) + ": they agree."
	}
	return f, true
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// moved is what one node did with blocks while one workload ran on it, all workloads together: bytes and operations
// per second. On one host all nodes are one.
type moved struct {
	bytes, ops map[result.Block]float64
	who        string
}

// size is the mean size of an operation of a kind in bytes.
func (m moved) size(op result.Block) float64 { return m.bytes[op] / m.ops[op] }

// busiest is what the node did that moved most by a measure.
func (v *view) busiest(measure func(moved) float64) (best moved, found bool) {
	for _, l := range v.loads {
		times := l.times()
		places := map[int]bool{}
		for _, p := range l.parts {
			places[v.place(p.Node)] = p.VM != ""
		}
		for _, place := range slices.Sorted(maps.Keys(places)) {
			if !places[place] || length(times) == 0 {
				continue
			}
			if m := v.during(place, times); measure(m) > 0 && (!found || measure(m) > measure(best)) {
				best, found = m, true
			}
		}
	}
	return best, found
}

// during is what a node did on average in some spans; a workload that ran for a part of the time counts for that part.
func (v *view) during(place int, times []result.Span) moved {
	m := moved{bytes: map[result.Block]float64{}, ops: map[result.Block]float64{}, who: "the host"}
	for _, l := range v.loads {
		for _, p := range l.parts {
			s := seconds(p)
			if s == 0 || p.VM == "" || v.place(p.Node) != place {
				continue
			}
			beside := overlap(p.Times(), times)
			if beside <= 0 {
				continue
			}
			if name := v.nodes[p.Node].Name; name != "" && !v.host {
				m.who = name
			}
			share := beside / length(times) / s
			for _, o := range p.Ops {
				if block := p.Block(o.Op); block != "" {
					m.bytes[block] += float64(o.Bytes) * share
					m.ops[block] += float64(o.Count) * share
				}
			}
		}
	}
	return m
}

// busLimit walks the path from device to socket as far as facts name it, and compares its narrowest part with what was moved. The larger
// of the two directions counts: these links carry both at once.
func busLimit(v *view) []result.Finding {
	narrowest, name := math.Inf(1), ""
	var path []result.Evidence
	for _, f := range result.Find(v.m.Environment, result.LinkCeiling) {
		if !(f.Number > 0) || !isFinite(f.Number) {
			continue
		}
		path = append(path, result.Evidence{Name: f.Name + " (" + f.Value + ")", Value: f.Number, Unit: "bytes/s"})
		if f.Number < narrowest {
			narrowest, name = f.Number, f.Name+", "+f.Value
		}
	}
	direction := func(m moved) float64 { return max(m.bytes[result.BlockRead], m.bytes[result.BlockWrite]) }
	m, ok := v.busiest(direction)
	if len(path) == 0 || !ok {
		return nil
	}
	got := direction(m)
	share := got / narrowest
	f := result.Finding{
		Check: "bus-limit", Subject: "run", Metric: "share of the narrowest link", Unit: "%", Value: ptr(100 * share), N: len(path), Limit: ptr(100 * nearCeiling),
		NoInterval: "a mean over the measured windows against a theoretical ceiling", Basis: "bytes of the generators on " + m.who + ", the larger direction; ceilings from the links' published rates",
		Evidence: append(path, result.Evidence{Name: "moved", Value: got, Unit: "bytes/s"}),
	}
	both := fmt.Sprintf("%s per second on %s against %s of the narrowest part of its path (%s)", sayDecimal(got), m.who, sayDecimal(narrowest), name)
	switch {
	case share > overCeiling:
		f.Severity = result.Blocker
		f.Sentence = "The generators claim " + both + ". More cannot have crossed it: the rest was answered before, from a cache."
	case share > nearCeiling:
		f.Severity = result.Notice
		f.Sentence = fmt.Sprintf("It moved %s: the link is the limit (%s), the devices will go no faster behind it.", both, percent(share))
	default:
		f.Severity = result.Fine
		f.Sentence = fmt.Sprintf("It moved %s (%s): the link was not the limit.", both, percent(share))
	}
	return []result.Finding{f}
}

// Rating is one line of a data sheet that is compared with what was measured.
type Rating struct {
	Name      string
	Kind      result.FactKind
	Op        result.Block
	Bandwidth bool // bytes per second; else operations per second
}

// Ratings are what of a data sheet is compared.
var Ratings = []Rating{
	{"sequential read", result.RatedReadBandwidth, result.BlockRead, true},
	{"sequential write", result.RatedWriteBandwidth, result.BlockWrite, true},
	{"random read", result.RatedReadRate, result.BlockRead, false},
	{"random write", result.RatedWriteRate, result.BlockWrite, false},
}

// Fact is the rating as a fact of a run's environment, and an objection to a value that is none.
func (p Rating) Fact(value string) (result.Fact, error) {
	f := result.Fact{Group: sheetGroup, Name: p.Name, Value: value, Kind: p.Kind}
	if p.Bandwidth {
		b, err := unit.ParseBandwidth(value)
		f.Number = float64(b)
		return f, err
	}
	r, err := unit.ParseRate(value)
	f.Number = float64(r)
	return f, err
}

// RatedDevice is the fact that names the device of a data sheet.
func RatedDevice(name string) result.Fact {
	return result.Fact{Group: sheetGroup, Name: "device", Value: name, Kind: result.RatedDevice}
}

const sheetGroup = "data sheet"

// AgainstSheet compares a run with the data sheet in its manifest's environment alone, as Run does among the rest.
func AgainstSheet(m result.Manifest, d *result.Data) []result.Finding {
	if d == nil {
		return nil
	}
	var out []result.Finding
	for _, f := range dataSheet(newView(m, d)) {
		out = append(out, sound(f))
	}
	return out
}

// moved is what of a node's doing a rating is about: operations if they were small, bytes if they were large, else nothing.
func (p Rating) moved(m moved) float64 {
	switch {
	case m.ops[p.Op] == 0:
		return 0
	case p.Bandwidth && m.size(p.Op) >= largeBytes:
		return m.bytes[p.Op]
	case !p.Bandwidth && m.size(p.Op) <= smallBytes:
		return m.ops[p.Op]
	}
	return 0
}

// dataSheet compares with what the maker of the device promises: bandwidth for large operations, operations for small ones.
func dataSheet(v *view) []result.Finding {
	var out []result.Finding
	for _, s := range Ratings {
		facts := result.Find(v.m.Environment, s.Kind)
		if len(facts) == 0 || !(facts[0].Number > 0) || !isFinite(facts[0].Number) {
			continue
		}
		promised := facts[0].Number
		m, ok := v.busiest(s.moved)
		if s.Bandwidth { // more than was promised is more at any size
			if any, has := v.busiest(func(m moved) float64 { return m.bytes[s.Op] }); has && any.bytes[s.Op] > overSheet*promised {
				m, ok = any, true
			}
		}
		if !ok {
			continue
		}
		got, u, size := m.ops[s.Op], "ops/s", m.size(s.Op)
		if s.Bandwidth {
			got, u = m.bytes[s.Op], "bytes/s"
		}
		share := got / promised
		f := result.Finding{
			Check: "data-sheet", Subject: s.Name, Metric: "share of the rated figure", Unit: "%", Value: ptr(100 * share),
			N: 1, Limit: ptr(100 * overSheet),
			NoInterval: "a mean over the measured windows against a promise", Basis: "operations of the generators on " + m.who + ", of " + sayBytes(size) + " on average",
			Evidence: []result.Evidence{{Name: "measured", Value: got, Unit: u}, {Name: "rated", Value: promised, Unit: u}},
		}
		say := sayCount
		if s.Bandwidth {
			say = sayDecimal
		}
		both := fmt.Sprintf("%s: %s per second measured, %s rated (%s)", s.Name, say(got), say(promised), percent(share))
		switch {
		case share > overSheet:
			f.Severity, f.Sentence = result.Caution, capital(both)+". One device does not do that: there were several, or a cache answered."
		case share < 0.5:
			f.Severity, f.Sentence = result.Notice, capital(both)+": the device was not what limited this run."
		default:
			f.Severity, f.Sentence = result.Fine, capital(both)+"."
		}
		out = append(out, f)
	}
	return out
}

// reduction reads what the storage says of its data reduction: written data that shrinks is not what most applications write.
func reduction(v *view) []result.Finding {
	if !v.movesBlocks() {
		return nil
	}
	var out []result.Finding
	for _, fact := range result.Find(v.m.Environment, result.DataReduction) {
		x := fact.Number
		if !(x > 0) || !isFinite(x) {
			continue
		}
		f := result.Finding{
			Check: "data-reduction", Subject: fact.Name, Severity: result.Fine, Metric: fact.Name, Unit: "ratio", Value: &x, N: 1, Limit: ptr(reduced), NoInterval: "one reading", Basis: "environment facts of the storage",
			Evidence: []result.Evidence{{Name: fact.Name, Value: x, Unit: "ratio"}},
			Sentence: fmt.Sprintf("The storage reports a %s of %s: it stored about what was written.", fact.Name, sayCount(x)),
		}
		if x > reduced {
			f.Severity = result.Caution
			f.Sentence = fmt.Sprintf("The storage reports a %s of %s: it stored less than was written, so zeros, repeated or compressible blocks made this load lighter than real data.", fact.Name, sayCount(x))
		}
		out = append(out, f)
	}
	return out
}

// reducible tells of content that storage can make smaller, by what the job files say of it. Zeros are another finding.
func reducible(v *view) []result.Finding {
	var out []result.Finding
	for _, l := range v.loads {
		most := 0.0
		for _, p := range l.parts {
			for _, lane := range p.Lanes {
				if p.MovesBlocks() && lane.Writes && !lane.ZeroData && isFinite(lane.Reducible) {
					most = max(most, lane.Reducible)
				}
			}
		}
		if most <= 1-1/reduced {
			continue
		}
		f := result.Finding{
			Check: "data-reduction", Subject: l.name, Severity: result.Notice, Metric: "reducible share of what is written", Unit: "%", Value: ptr(100 * most), N: len(l.parts), Limit: ptr(100 * (1 - 1/reduced)),
			NoInterval: "compared from job files, not sampled", Basis: "what the job files say of the content of blocks, the most reducible section",
			Evidence: []result.Evidence{{Name: "reducible", Value: 100 * most, Unit: "%"}},
			Sentence: fmt.Sprintf("Of what %s writes, compression and deduplication can take away %s: storage that reduces data stores less than was written, and its figures hold for data like these.", l.name, percent(most)),
		}
		if most >= 1 {
			f.Severity = result.Caution
			f.Sentence = fmt.Sprintf("%s writes one pattern over and over: storage that compresses or deduplicates stores next to nothing of it.", l.name)
		}
		out = append(out, f)
	}
	return out
}
