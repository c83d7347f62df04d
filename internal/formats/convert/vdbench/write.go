package vdbench

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// writer is a load on its way to a parameter file.
type writer struct {
	*load.Teller
	general, sds, wds, rds []string
	alias                  map[string]string // the name of each SD, by what it says
	names                  map[string]int    // how often a name was asked for
}

// Write writes a load as a parameter file. The error holds all objections at once; the notes say what vdbench does
// differently.
func Write(l load.Load) (string, []load.Note, error) {
	w := &writer{Teller: &load.Teller{}, alias: map[string]string{}, names: map[string]int{}}
	w.data(l)
	for i := range l.Stages {
		w.stage(&l.Stages[i])
	}
	w.lunsOnce(l)
	lines := slices.Concat(w.general, w.sds, w.wds, w.rds)
	return strings.Join(lines, "\n") + "\n", w.Notes, w.Err()
}

var notInName = regexp.MustCompile(`[^\pL\pN_.]+`)

// name is a name of its own, made of one that was given.
func (w *writer) name(kind, given, missing string) string {
	name := strings.Trim(notInName.ReplaceAllString(given, "_"), "_.")
	if len(name) > 60 {
		name = strings.ToValidUTF8(name[:60], "")
	}
	if name == "" || name == "default" || name == "single" || name == "concat" {
		name = missing
	}
	w.names[kind+name]++
	if n := w.names[kind+name]; n > 1 {
		return w.name(kind, fmt.Sprintf("%s_%d", name, n), missing)
	}
	return name
}

// value puts a text into quotes where it needs them.
func value(text string) string {
	if strings.ContainsAny(text, " ,=()-") {
		return `"` + text + `"`
	}
	return text
}

// list is one value, or several in parentheses.
func list(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return "(" + strings.Join(values, ",") + ")"
}

// data are the general parameters: what is written is the same everywhere.
func (w *writer) data(l load.Load) {
	var first *load.Stream
	for i := range l.Stages {
		for j := range l.Stages[i].Streams {
			s := &l.Stages[i].Streams[j]
			if s.Reads == 100 {
				continue
			}
			switch s.Data.Kind {
			case load.Zeros:
				w.Refuse(
					s.Asked("Data", "zeros"),
					"vdbench writes no zeros; leave the option out for data that do not compress",
				)
			case load.Repeated:
				w.Refuse(s.Asked("Data", "a pattern"), "vdbench takes patterns from files of its own only")
			}
			if first == nil {
				first = s
				continue
			}
			if first.Data != s.Data {
				w.Refuse(
					s.Asked("Compressed", "data of "+s.Name),
					"vdbench writes the same kind of data everywhere, and that of "+
						"%s is another",
					first.Name,
				)
			}
		}
	}
	if first == nil {
		return
	}
	if c := first.Data.Compressed; c >= 100 {
		w.Refuse(first.Asked("Compressed", "100 %"), "a ratio without end; say 99 at most")
	} else if c > 0 {
		w.general = append(w.general, "compratio="+load.Number(math.Round(1e6/(1-c/100))/1e6))
	}
	if d := first.Data.Duplicate; d >= 100 {
		w.Refuse(first.Asked("Duplicate", "100 %"), "a ratio without end; say 99 at most")
	} else if d > 0 {
		unit := first.Data.Unit
		if unit == 0 {
			unit = first.Sizes[0].Bytes
		}
		w.general = append(w.general, fmt.Sprintf("dedupratio=%s,dedupunit=%s",
			load.Number(math.Round(1e6/(1-d/100))/1e6), load.Size(unit)))
	}
}

// stage is a run definition with its workloads.
func (w *writer) stage(st *load.Stage) {
	var wds []string
	rated, rate, weights, open := 0, 0.0, 0.0, 0
	rates := make([]float64, len(st.Streams))
	for i := range st.Streams {
		s := &st.Streams[i]
		rates[i] = s.Rate
		if s.Bytes > 0 {
			byBytes := float64(s.Bytes) / s.Mean()
			w.Note(
				s.Asked("Bytes", "a rate in bytes"),
				fmt.Sprintf("%s operations a second", load.Number(math.Round(byBytes))),
				"vdbench counts operations; their mean size makes the same rate",
			)
			if rates[i] == 0 || byBytes < rates[i] {
				rates[i] = byBytes
			}
		}
		if weights += s.Weight; rates[i] > 0 {
			rated, rate = rated+1, rate+rates[i]
			if !s.Even {
				open++
			}
		}
	}
	all := rated == len(st.Streams)
	parts := slices.Clone(rates)
	if !all {
		for i, s := range st.Streams {
			parts[i] = s.Weight
		}
	}
	skews := skews(parts)
	for i := range st.Streams {
		s := &st.Streams[i]
		share := ""
		switch {
		case len(st.Streams) == 1:
		case all:
			share = skews[i]
		case rates[i] > 0:
			share = fmt.Sprintf(",iorate=%s,priority=%d", load.Number(math.Round(rates[i]*1e6)/1e6), i+1)
		case rated > 0:
			share = fmt.Sprintf(",priority=%d", i+1)
		case s.Weight > 0 && weights > 0:
			share = skews[i]
		}
		wds = append(wds, w.workload(s, st, share))
	}
	if weights > 0 && slices.ContainsFunc(st.Streams, func(s load.Stream) bool { return s.Weight == 0 }) {
		w.Object(st.At, "%s: streams with and without a share of the whole (flow) cannot be had together", st.Name)
	}
	rd := fmt.Sprintf("rd=%s,wd=%s,iorate=max", w.name("rd=", st.Name, "run"), list(wds))
	if all {
		rd = strings.TrimSuffix(rd, "max") + load.Number(math.Round(rate*1e6)/1e6)
	}
	switch {
	case rated > 0 && open == 0:
		rd += ",distribution=deterministic"
	case rated > open:
		w.Note(
			load.Ask{Text: "operations evenly apart", At: st.At},
			"at random moments",
			"vdbench has one way for a whole run",
		)
	}
	switch sequential := !slices.ContainsFunc(st.Streams, func(s load.Stream) bool { return s.Random > 0 }); {
	case st.Runtime > 0:
		if st.Runtime == 1 {
			w.Note(load.Ask{Text: st.Name + " for 1 s", At: st.At}, "elapsed=2", "vdbench wants two intervals or more")
		}
		rd += fmt.Sprintf(",elapsed=%d", max(st.Runtime, 2))
	case sequential:
		rd += ",elapsed=1000000"
	case onceThrough(st) > 0:
		amount := fmt.Sprintf("maxdata=%d", onceThrough(st))
		w.Note(load.Ask{Text: st.Name + " until all was gone through once", At: st.At}, amount,
			"it ends after as many bytes of all streams together")
		rd += ",elapsed=1000000," + amount
	default:
		w.Object(st.At, "%s: random places until all were used once cannot be had; give it a runtime", st.Name)
	}
	if st.Warmup > 0 {
		rd += fmt.Sprintf(",warmup=%d", st.Warmup)
	} else {
		w.Note(load.Ask{Text: st.Name + " without a warm-up", At: st.At}, "all of the time runs",
			"vdbench leaves the first second out of its totals")
	}
	if st.Pause > 0 {
		rd += fmt.Sprintf(",pause=%d", st.Pause)
	}
	w.rds = append(w.rds, rd+",interval=1")
}

// onceThrough is how many bytes a stage without a time reads and writes: every thread goes through its targets once. 0
// where a size is not known.
func onceThrough(st *load.Stage) (total int64) {
	for _, s := range st.Streams {
		for _, t := range s.Targets {
			of := s.Span.Bytes
			if of == 0 {
				of = t.Bytes - s.From.Bytes
			}
			if of <= 0 || of > 1<<50 || t.Files != nil || s.Span.Percent != 0 || s.From.Percent != 0 {
				return 0
			}
			total += of * int64(max(s.Threads, 1))
		}
	}
	return total
}

// skews are the shares of workloads, which add up to 100. Where all are alike vdbench needs none.
func skews(parts []float64) []string {
	out := make([]string, len(parts))
	sum, alike := 0.0, true
	for _, p := range parts {
		sum, alike = sum+p, alike && p == parts[0]
	}
	left := 100.0
	for i, p := range parts {
		share := math.Round(p/sum*1e12) / 1e10
		if i == len(parts)-1 {
			share = math.Round(left*1e10) / 1e10
		}
		if left -= share; !alike {
			out[i] = ",skew=" + load.Number(share)
		}
	}
	return out
}

// workload is a workload definition, and the SDs that it works on.
func (w *writer) workload(s *load.Stream, st *load.Stage, share string) string {
	name := w.name("wd=", s.Name, "wd")
	line := "wd=" + name
	var sds []string
	for _, t := range s.Targets {
		sds = append(sds, w.storage(s, t, st))
	}
	line += ",sd=" + list(sds) + ",xfersize=" + w.sizes(s) + ",rdpct=" + load.Number(s.Reads)
	w.foreign(s)
	switch {
	case s.Skip > 0 && s.Random == 0:
		line += fmt.Sprintf(",seekpct=100,stride=(%d,%d)", s.Skip, s.Skip)
	case s.Random == 0 && st.Runtime == 0:
		line += ",seekpct=eof"
	case s.Random == 0:
		line += ",seekpct=0"
	default:
		line += ",seekpct=" + load.Number(s.Random)
	}
	line += w.zones(s) + w.where(s) + share
	w.wds = append(w.wds, line)
	return name
}

// foreign tells of what vdbench does not have.
func (w *writer) foreign(s *load.Stream) {
	threads := fmt.Sprintf("threads=%d", s.Threads*s.Depth)
	if s.Threads > 1 && (s.Random < 100 || s.Spread > 0) {
		w.Note(s.Asked("Threads", fmt.Sprintf("%d threads", s.Threads)), threads,
			"all threads of vdbench go on from one position; here each had its own")
	}
	if n := len(s.Targets); n > 1 {
		w.Note(s.Asked("Targets", fmt.Sprintf("%d targets", n)), "as many threads on each, together as many as asked",
			"vdbench keeps a fixed number of operations in flight on each target")
	}
	switch {
	case s.Skew != "":
		w.Refuse(s.Asked("Skew", s.Skew), "vdbench has no such distribution of places; a hotband= or rhpct= comes near")
	case s.Once && s.Random > 0:
		w.Note(s.Asked("Random", "each random place once"), "seekpct="+load.Number(s.Random),
			"a place may come again before all were used, and some never come")
	}
	if s.Burst > 0 || s.Think > 0 {
		w.Refuse(s.Asked("Think", "pauses between operations"), "vdbench has none")
	}
	if s.Mapped {
		w.Refuse(s.Asked("Mapped", "memory-mapped I/O"), "vdbench has none")
	}
	if s.Seed != 0 {
		w.Note(s.Asked("Seed", "a seed"), "", "vdbench's random places are others in every run")
	}
	if len(s.CPUs) > 0 {
		w.Note(s.Asked("CPUs", "processors"), "", "vdbench runs on any; bind it from outside")
	}
	if s.Targets[0].Files != nil {
		w.Refuse(s.Asked("Targets", "files of a folder"), "only a single file or device is written as an SD")
	}
	if s.Targets[0].Raw() {
		w.Note(
			s.Asked("Targets", s.Targets[0].Name),
			"all but the first block",
			"vdbench never touches the first block of a "+
				"device",
		)
	}
	if mod := func(n int64) bool { return n%512 != 0 }; mod(s.Align) || slices.ContainsFunc(s.Sizes,
		func(share load.Share) bool { return mod(share.Bytes) }) {
		w.Refuse(s.Asked("Sizes", "sizes"), "vdbench takes multiples of 512 bytes")
	}
}

// storage is the SD of a target, one for each way in which it is used. Workloads that use it together have its threads
// together.
func (w *writer) storage(s *load.Stream, t load.Target, st *load.Stage) string {
	line, threads := w.attributes(s, t), 0
	quiet := &writer{Teller: &load.Teller{}}
	for i := range st.Streams {
		other := &st.Streams[i]
		for _, of := range other.Targets {
			if of.Name == t.Name && quiet.attributes(other, of) == line {
				threads += max(other.Threads*other.Depth/len(other.Targets), 1)
			}
		}
	}
	line += fmt.Sprintf(",threads=%d", threads)
	if name, ok := w.alias[line]; ok {
		return name
	}
	name := w.name("sd=", t.Alias, fmt.Sprintf("sd%d", len(w.sds)+1))
	w.alias[line] = name
	w.sds = append(w.sds, "sd="+name+line)
	return name
}

// attributes are what an SD says but for its threads.
func (w *writer) attributes(s *load.Stream, t load.Target) string {
	line := ",lun=" + value(t.Name)
	if strings.ContainsAny(t.Name, "\"$!\n") || strings.HasPrefix(t.Name, "#host") {
		w.Object(s.At, "%.80q cannot stand in a parameter file", t.Name)
	}
	if t.Bytes > 0 {
		line += ",size=" + load.Size(t.Bytes)
	}
	var flags []string
	if s.Direct {
		flags = append(flags, "o_direct")
	}
	if s.Sync != "" {
		flags = append(flags, "o_"+s.Sync)
	}
	if len(flags) > 0 {
		line += ",openflags=" + list(flags)
	}
	if s.From.Bytes > 0 && s.Span.Zero() {
		if s.From.Bytes%512 != 0 {
			w.Refuse(s.Asked("From", "an offset"), "vdbench takes multiples of 512 bytes")
		}
		line += ",offset=" + load.Size(s.From.Bytes)
	}
	if s.Align > 0 {
		line += ",align=" + load.Size(s.Align)
	}
	if area, _, ok := hit(s); ok {
		line += ",hitarea=" + load.Size(area)
	}
	return line
}

// lunsOnce notes luns that have several SDs.
func (w *writer) lunsOnce(l load.Load) {
	lines := map[string]int{}
	for line := range w.alias {
		lun, _, _ := strings.Cut(line[1:]+",size=", ",size=")
		lun, _, _ = strings.Cut(lun, ",threads=")
		lines[lun]++
	}
	for i := range l.Stages {
		for j := range l.Stages[i].Streams {
			s := &l.Stages[i].Streams[j]
			for _, t := range s.Targets {
				if lun := "lun=" + value(t.Name); lines[lun] > 1 {
					w.Note(
						load.Ask{Text: t.Name, At: l.Stages[0].At},
						fmt.Sprintf("%d SDs", lines[lun]),
						"it is used in ways that one SD cannot say; when vdbench objects to that, write a file for each stage",
					)
				}
			}
		}
	}
}

func (w *writer) sizes(s *load.Stream) string {
	if len(s.Sizes) == 1 {
		return load.Size(s.Sizes[0].Bytes)
	}
	multiples := s.Align > 0
	for i, share := range s.Sizes {
		multiples = multiples && share.Bytes == s.Sizes[0].Bytes+int64(i)*s.Align && share.Bytes%s.Align == 0 &&
			math.Abs(share.Percent-100/float64(len(s.Sizes))) < 1e-9
	}
	if multiples {
		return fmt.Sprintf("(%s,%s,%s)", load.Size(s.Sizes[0].Bytes), load.Size(s.Largest()), load.Size(s.Align))
	}
	parts := make([]string, len(s.Sizes))
	for i, share := range s.Sizes {
		parts[i] = load.Size(share.Bytes) + "," + load.Number(share.Percent)
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// hit is the part of the target that rhpct= and whpct= use, of zones that are two.
func hit(s *load.Stream) (area int64, percent float64, ok bool) {
	if len(s.Zones) != 2 || s.Zones[0].Span.Percent > 0 || s.Random != 100 {
		return 0, 0, false
	}
	return s.Zones[0].Span.Bytes, s.Zones[0].Percent, true
}

// band reports whether zones are those that a hotband is read as.
func band(zones []load.Zone) bool {
	for i, z := range zones {
		if z.Percent != float64(19-2*i) || z.Span.Percent != 10 {
			return false
		}
	}
	return len(zones) == 10
}

func (w *writer) zones(s *load.Stream) string {
	if len(s.Zones) == 0 || band(s.Zones) {
		return ""
	}
	if _, percent, ok := hit(s); ok {
		w.Note(s.Asked("Zones", "two zones"), "a hit area of "+load.Number(percent)+" %",
			"operations outside of it go to all the rest of the target")
		return fmt.Sprintf(",rhpct=%s,whpct=%s", load.Number(percent), load.Number(percent))
	}
	w.Refuse(s.Asked("Zones", "zones"), "vdbench has one zone at the beginning (rhpct= with hitarea=) or all alike")
	return ""
}

// where is the range of a workload.
func (w *writer) where(s *load.Stream) string {
	key := "range"
	if band(s.Zones) {
		key = "hotband"
	}
	total := s.Targets[0].Bytes
	switch {
	case s.Span.Percent > 0 && s.From.Bytes == 0:
		return fmt.Sprintf(",%s=(%s,%s)", key, load.Number(s.From.Percent), load.Number(s.From.Percent+s.Span.Percent))
	case s.Span.Percent > 0 || s.From.Percent > 0:
		w.Refuse(
			s.Asked("From", "a part of the target"),
			"write both its begin and its size as bytes, or both as percentages",
		)
	case s.Span.Bytes > 0:
		if s.From.Bytes+s.Span.Bytes <= 200 {
			w.Refuse(s.Asked("Span", "a part of the target"), "vdbench takes a range below 200 bytes for percentages")
		}
		return fmt.Sprintf(",%s=(%d,%d)", key, s.From.Bytes, s.From.Bytes+s.Span.Bytes)
	case key == "hotband" && total > 0:
		return fmt.Sprintf(",hotband=(%d,%d)", s.From.Bytes, total)
	case key == "hotband":
		return ",hotband=(0,100)"
	}
	return ""
}
