// Package plausibility asks whether the figures are possible: by the fastest media, the links between device and
// socket, the data sheet of the device, what the storage says of its data reduction. It gives view.Checks to package
// analysis, and the Ratings of a data sheet to those who read one. Where no fact names a limit nothing is compared.
package plausibility

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// Limits of what is believed.
const (
	overCeiling = 1.02  // a link cannot carry more than its ceiling; the rest is rounding
	nearCeiling = 0.85  // from here on the link explains the figure
	overSheet   = 1.05  // a data sheet is sometimes modest
	memorySpeed = 8e-6  // seconds; no medium answers a read through the operating system faster than about 10 µs
	reduced     = 1.3   // data reduction above which content was not what was meant
	smallBytes  = 32e3  // mean size of operations up to which a data sheet's IOPS are the ones to compare with
	largeBytes  = 100e3 // and from which its MB/s are
)

// TooFast finds reads answered faster than any medium can.
var TooFast = view.Check{Name: "too-fast", Rank: 310, Run: tooFast}

func tooFast(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		w := l.Whole()
		if w == nil {
			continue
		}
		reads := view.BlockTotals(w, result.BlockRead)
		if len(reads) != 1 {
			continue
		}
		o := reads[0]
		p50, low, high, ok := view.Quantile(o.Hist, 0.5)
		if !ok || o.Hist.Count() < view.FewOperations {
			continue
		}
		f := result.Finding{
			Check: "too-fast", Subject: l.Name, Metric: "median of the reads", Unit: "s", Value: &p50, Low: &low,
			High: &high, N: int(min(o.Hist.Count(), math.MaxInt)), Limit: view.Ptr(memorySpeed), Basis: l.Basis(),
			Evidence: []result.Evidence{
				{Name: "median of the reads", Value: p50, Unit: "s"},
				{Name: "fastest media", Value: 10e-6, Unit: "s"},
			},
		}
		if high < memorySpeed {
			f.Severity, f.Warnings = result.Invalid, []string{view.Independent}
			f.Sentence = fmt.Sprintf("Read p50 of %s: %s; the fastest media need about %s. Memory answered.", l.Name,
				view.SayMicro(p50), view.SayMicro(10e-6))
		} else {
			f.Severity = result.Passed
			f.Sentence = fmt.Sprintf("Read p50 of %s: %s, plausible for a storage device.", l.Name,
				view.SayDuration(p50))
		}
		out = append(out, f)
	}
	return out
}

// moved tells what one node did with blocks while one workload ran on it, all workloads together: bytes and operations
// per second. On one host all nodes are one.
type moved struct {
	bytes, ops map[result.Block]float64
	who        string
}

// size is the mean size of an operation of a kind in bytes.
func (m moved) size(op result.Block) float64 { return m.bytes[op] / m.ops[op] }

// busiest returns what the node did that moved most by a measure.
func busiest(v *view.Run, measure func(moved) float64) (best moved, found bool) {
	for _, l := range v.Loads {
		times := l.Times()
		places := map[int]bool{}
		for _, p := range l.Parts {
			places[v.Place(p.Node)] = !p.Merged()
		}
		for _, place := range slices.Sorted(maps.Keys(places)) {
			if !places[place] || view.Length(times) == 0 {
				continue
			}
			if m := during(v, place, times); measure(m) > 0 && (!found || measure(m) > measure(best)) {
				best, found = m, true
			}
		}
	}
	return best, found
}

// during returns what a node did on average in some spans; a workload that ran for a part of the time counts for that
// part.
func during(v *view.Run, place int, times []result.Span) moved {
	m := moved{bytes: map[result.Block]float64{}, ops: map[result.Block]float64{}, who: "the host"}
	for _, l := range v.Loads {
		for _, p := range l.Parts {
			s := view.Seconds(p)
			if s == 0 || p.Merged() || v.Place(p.Node) != place {
				continue
			}
			beside := view.Overlap(p.Times(), times)
			if beside <= 0 {
				continue
			}
			if name := v.Nodes[p.Node].Name; name != "" && !v.OneHost {
				m.who = name
			}
			share := beside / view.Length(times) / s
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

// BusLimit walks the path from device to socket as far as facts name it, and compares its narrowest part with what was
// moved. The larger of the two directions counts: these links carry both at once.
var BusLimit = view.Check{Name: "bus-limit", Rank: 350, Run: busLimit}

func busLimit(v *view.Run) []result.Finding {
	narrowest, name := math.Inf(1), ""
	var path []result.Evidence
	beside := map[string]float64{} // the narrowest part of the way to each storage, where disks lie on several
	for _, f := range result.Find(v.Manifest.Environment, result.StorageSize) {
		beside[f.Group] = math.Inf(1)
	}
	for _, f := range result.Find(v.Manifest.Environment, result.LinkCeiling) {
		if !(f.Number > 0) || !view.IsFinite(f.Number) {
			continue
		}
		path = append(path, result.Evidence{Name: f.Name + " (" + f.Value + ")", Value: f.Number, Unit: "bytes/s"})
		if of, ok := beside[f.Group]; ok && len(beside) > 1 {
			beside[f.Group] = min(of, f.Number)
			continue
		}
		if f.Number < narrowest {
			narrowest, name = f.Number, f.Name+", "+f.Value
		}
	}
	if len(beside) > 1 { // their links carry side by side; one that is not known bounds nothing
		sum := 0.0
		for _, ceiling := range beside {
			sum += ceiling
		}
		if sum < narrowest {
			narrowest, name = sum, fmt.Sprintf("the links to %d storages together", len(beside))
		}
		if math.IsInf(narrowest, 1) {
			return nil
		}
	}
	if len(path) == 0 {
		return nil
	}
	direction := func(m moved) float64 { return max(m.bytes[result.BlockRead], m.bytes[result.BlockWrite]) }
	m, ok := busiest(v, direction)
	if !ok {
		return nil
	}
	got := direction(m)
	share := got / narrowest
	f := result.Finding{
		Check: "bus-limit", Subject: "run", Metric: "share of the narrowest link", Unit: "%",
		Value: view.Ptr(100 * share), N: len(path), Limit: view.Ptr(100 * nearCeiling),
		NoInterval: "a mean over the measured time against a theoretical ceiling", Basis: "bytes of the generators on " + m.who + ", the larger direction; ceilings from the links' published rates",
		Evidence: append(path, result.Evidence{Name: "moved", Value: got, Unit: "bytes/s"}),
	}
	both := fmt.Sprintf("%s/s on %s, the narrowest link (%s) carries %s/s", view.SayDecimal(got), m.who, name,
		view.SayDecimal(narrowest))
	switch {
	case share > overCeiling:
		f.Severity = result.Invalid
		f.Sentence = "The load generators report " + both + ". The rest came from a cache in front of it."
	case share > nearCeiling:
		f.Severity = result.Info
		f.Sentence = fmt.Sprintf("Transferred %s: the link is the limit (%s), not the devices behind it.", both,
			view.Percent(share))
	default:
		f.Severity = result.Passed
		f.Sentence = fmt.Sprintf("Transferred %s (%s): the link was not the limit.", both, view.Percent(share))
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

// moved returns what of a node's doing a rating is about: operations if they were small, bytes if they were large, else
// nothing.
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

// DataSheet compares with what the maker of the device promises: bandwidth for large operations, operations for small
// ones.
var DataSheet = view.Check{Name: "data-sheet", Rank: 360, Run: dataSheet}

func dataSheet(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, s := range Ratings {
		facts := result.Find(v.Manifest.Environment, s.Kind)
		if len(facts) == 0 || !(facts[0].Number > 0) || !view.IsFinite(facts[0].Number) {
			continue
		}
		promised := facts[0].Number
		m, ok := busiest(v, s.moved)
		if s.Bandwidth { // more than was promised is more at any size
			if any, has := busiest(v, func(m moved) float64 { return m.bytes[s.Op] }); has &&
				any.bytes[s.Op] > overSheet*promised {
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
			Check: "data-sheet", Subject: s.Name, Metric: "share of the rated figure", Unit: "%",
			Value: view.Ptr(100 * share),
			N:     1, Limit: view.Ptr(100 * overSheet),
			NoInterval: "a mean over the measured time against a rated figure",
			Basis:      "operations of the generators on " + m.who + ", of " + view.SayBytes(size) + " on average",
			Evidence: []result.Evidence{
				{Name: "measured", Value: got, Unit: u},
				{Name: "rated", Value: promised, Unit: u},
			},
		}
		say := func(v float64) string { return view.SayCount(v) + " IOPS" }
		if s.Bandwidth {
			say = func(v float64) string { return view.SayDecimal(v) + "/s" }
		}
		both := fmt.Sprintf("%s: %s measured, %s rated (%s)", s.Name, say(got), say(promised), view.Percent(share))
		switch {
		case share > overSheet:
			f.Severity, f.Sentence = result.Warning, view.Capital(
				both)+": more than one such device can do: there were several, or a cache answered."
		case share < 0.5:
			f.Severity, f.Sentence = result.Info, view.Capital(both)+": the device was not the limit of this run."
		default:
			f.Severity, f.Sentence = result.Passed, view.Capital(both)+"."
		}
		out = append(out, f)
	}
	return out
}

// Reduction tells of data that takes less room than was written: what the storage says of it, and what the content
// allows.
var Reduction = view.Check{Name: "data-reduction", Rank: 370, Run: reduction}

func reduction(v *view.Run) []result.Finding {
	return slices.Concat(reported(v), reducible(v))
}

// reported reads what the storage says of its data reduction: written data that shrinks is not what most applications
// write.
func reported(v *view.Run) []result.Finding {
	if !v.MovesBlocks() {
		return nil
	}
	var out []result.Finding
	for _, fact := range result.Find(v.Manifest.Environment, result.DataReduction) {
		x := fact.Number
		if !(x > 0) || !view.IsFinite(x) {
			continue
		}
		f := result.Finding{
			Check: "data-reduction", Subject: fact.Name, Severity: result.Passed, Metric: fact.Name, Unit: "ratio",
			Value: &x, N: 1, Limit: view.Ptr(reduced), NoInterval: "one reading",
			Basis:    "environment facts of the storage",
			Evidence: []result.Evidence{{Name: fact.Name, Value: x, Unit: "ratio"}},
			Sentence: fmt.Sprintf("The storage reports a %s of %s: it stored about as much as was written.", fact.Name,
				view.SayCount(x)),
		}
		if x > reduced {
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf(
				"The storage reports a %s of %s: it stored less than was written. Zeros, repeated or compressible blocks made this load lighter than real data.",
				fact.Name, view.SayCount(x))
		}
		out = append(out, f)
	}
	return out
}

// reducible tells of content that storage can make smaller, by what the job files say of it. Zeros are another finding.
func reducible(v *view.Run) []result.Finding {
	var out []result.Finding
	for _, l := range v.Loads {
		most := 0.0
		for _, p := range l.Parts {
			for _, stream := range p.Streams {
				if p.MovesBlocks() && stream.Writes && !stream.ZeroData && view.IsFinite(stream.Reducible) {
					most = max(most, stream.Reducible)
				}
			}
		}
		if most <= 1-1/reduced {
			continue
		}
		f := result.Finding{
			Check: "data-reduction", Subject: l.Name, Severity: result.Info,
			Metric: "reducible share of what is written", Unit: "%", Value: view.Ptr(100 * most), N: len(l.Parts),
			Limit:      view.Ptr(100 * (1 - 1/reduced)),
			NoInterval: "compared from job files, not sampled", Basis: "what the job files say of the content of blocks, the most reducible section",
			Evidence: []result.Evidence{{Name: "reducible", Value: 100 * most, Unit: "%"}},
			Sentence: fmt.Sprintf(
				"Compression and deduplication can remove %[2]s of what %[1]s writes: on storage that reduces data the figures hold for such data only.",
				l.Name, view.Percent(most)),
		}
		if most >= 1 {
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf(
				"%s writes one pattern over and over: storage that compresses or deduplicates stores almost nothing of it.",
				l.Name)
		}
		out = append(out, f)
	}
	return out
}
