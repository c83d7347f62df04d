package vdbench

import (
	"math"
	"slices"
	"strings"

	"plimsoll/internal/formats/convert/load"
)

// merged is a definition with what the loops of a run have chosen in the place of its own.
func merged(s *section, rd *section, c choice, names map[string]string) *section {
	m := &section{kind: s.kind, name: s.name, at: s.at, params: slices.Clone(s.params)}
	for loop, key := range names {
		if w, ok := c[loop]; ok {
			p, _ := rd.get("for"+loop, loop)
			p.key, p.words = key, []word{w}
			m.params = append(m.params, p)
		}
	}
	return m
}

// stream returns what one workload does on one SD.
func (f *reader) stream(rd, wd, sd *section, c choice) (load.Stream, bool) {
	before := f.Err()
	wd = merged(wd, rd, c, map[string]string{"xfersize": "xfersize", "rdpct": "rdpct", "rhpct": "rhpct",
		"whpct": "whpct", "seekpct": "seekpct"})
	sd = merged(sd, rd, c, map[string]string{"threads": "threads", "hitarea": "hitarea"})
	s := load.Stream{Threads: 1, Reads: 100, Random: 100, At: wd.at, Asks: map[string]load.Ask{},
		Data: load.Data{Kind: load.Unique}}
	target := f.target(sd)
	s.Targets = []load.Target{target}
	depth, ask := f.number(sd, 8, 1, 1e5, "threads")
	s.Depth, s.Asks["Depth"] = int(depth), ask
	if p, ok := wd.get("threads"); ok {
		f.Refuse(p.ask(), "without concatenatesds=yes threads belong to SDs, and to run definitions")
	}
	if p, ok := wd.get("streams"); ok {
		f.Refuse(p.ask(), "several sequential streams in one workload: write a workload for each, with range=")
	}
	f.mix(&s, wd)
	s.Sizes, s.Asks["Sizes"] = f.sizes(&s, wd, "xfersize")
	f.seek(&s, wd)
	align, ask := f.number(sd, 0, 0, 1<<40, "align")
	if s.Align == 0 {
		s.Align = int64(align)
		s.Asks["Align"] = ask
	}
	f.open(&s, sd, wd, rd)
	f.where(&s, sd, wd)
	f.hits(&s, sd, wd)
	f.data(&s, sd, rd, c)
	if target.Raw() {
		f.Note(load.Ask{Text: "lun=" + target.Name, At: sd.at}, "all of it is used",
			"vdbench never touches the first block of a device, fio does")
	}
	after := f.Err()
	return s, before == nil && after == nil
}

// target is where an SD lies.
func (f *reader) target(sd *section) load.Target {
	t := load.Target{Alias: sd.name}
	luns := 0
	for _, p := range sd.params {
		switch p.key {
		case "lun":
			luns++
			if t.Name = p.words[0].text; luns > 1 || len(p.words) > 1 {
				f.Refuse(p.ask(), "%s", otherHosts)
			}
		case "host", "hd":
			if p.words[0].text != "localhost" && p.words[0].text != "*" {
				f.Note(p.ask(), "", "the load runs where the job is started")
			}
		}
	}
	if t.Name == "" {
		f.Object(sd.at, "sd=%s: no lun= says where it is", sd.name)
	}
	p, ok := sd.get("size")
	if !ok {
		return t
	}
	n, ok := f.numbers(p)
	if !ok {
		return t
	}
	size := n[0]
	if len(n) == 2 && n[1] >= 1 {
		size /= math.Floor(n[1])
	}
	if len(n) > 2 || size < 1 || size >= 1<<62 {
		f.Refuse(p.ask(), "it takes a size above 0")
		return t
	}
	t.Bytes = int64(size)
	return t
}

// mix is the share of reads.
func (f *reader) mix(s *load.Stream, wd *section) {
	for _, p := range slices.Backward(wd.params) {
		if !slices.Contains([]string{"rdpct", "readpct", "wrpct", "writepct"}, p.key) {
			continue
		}
		n, ok := f.numbers(p)
		if !ok {
			return
		}
		if len(n) != 1 || n[0] < 0 || n[0] > 100 {
			f.Refuse(p.ask(), "it takes one percentage")
			return
		}
		s.Asks["Reads"] = p.ask()
		if s.Reads = n[0]; p.key[0] == 'w' {
			s.Reads = 100 - n[0]
		}
		return
	}
}

// sizes are the sizes of operations: one, pairs of a size and its percentage, or all between two.
func (f *reader) sizes(s *load.Stream, wd *section, name string) ([]load.Share, load.Ask) {
	p, ok := wd.get(name)
	if !ok {
		return []load.Share{{Bytes: 4096, Percent: 100}}, load.Ask{Text: "xfersize=4k (the default)", At: wd.at}
	}
	ask := p.ask()
	n, ok := f.numbers(p)
	if !ok {
		return nil, ask
	}
	for i, v := range n {
		if (i%2 == 0 || len(n) == 3) && (v < 512 || v > 1<<30 || math.Mod(v, 512) != 0) {
			f.Refuse(ask, "%s is no multiple of 512 bytes, up to 1g", load.Number(v))
			return nil, ask
		}
	}
	switch {
	case len(n) == 1:
		return []load.Share{{Bytes: int64(n[0]), Percent: 100}}, ask
	case len(n) == 3:
		return f.between(s, ask, int64(n[0]), int64(n[1]), int64(n[2])), ask
	case len(n)%2 != 0:
		f.Refuse(ask, "it takes one size, sizes each with its percentage, or (smallest,largest,multiple of)")
		return nil, ask
	}
	return f.shares(ask, n), ask
}

// shares are pairs of a size and a percentage, which add up to 100.
func (f *reader) shares(ask load.Ask, n []float64) (all []load.Share) {
	var sum float64
	for i := 0; i < len(n); i += 2 {
		if n[i+1] < 0 || n[i] >= 1<<62 || n[i] < 1 {
			f.Refuse(ask, "%s,%s is no size and its percentage", load.Number(n[i]), load.Number(n[i+1]))
			return nil
		}
		all = append(all, load.Share{Bytes: int64(n[i]), Percent: n[i+1]})
		sum += n[i+1]
	}
	if math.Round(sum) != 100 {
		f.Refuse(ask, "the percentages add up to %s, not 100", load.Number(sum))
		return nil
	}
	return all
}

// mostSizes is how many sizes fio takes in one bssplit.
const mostSizes = 64

// between are all multiples of a number of bytes from one size to another, as often each.
func (f *reader) between(s *load.Stream, ask load.Ask, low, high, by int64) (all []load.Share) {
	if low >= high {
		f.Refuse(ask, "the first size is not below the second")
		return nil
	}
	first := (low + by - 1) / by * by
	if n := (high-first)/by + 1; n > mostSizes || n < 1 {
		f.Refuse(
			ask,
			"%d sizes are too many or too few: fio takes up to %d; take a larger multiple",
			max(n, 0),
			mostSizes,
		)
		return nil
	}
	count := (high-first)/by + 1
	for b := first; b <= high; b += by {
		all = append(all, load.Share{Bytes: b, Percent: 100 / float64(count)})
	}
	s.Align = by
	s.Asks["Align"] = ask
	return all
}

// seek is how random places are.
func (f *reader) seek(s *load.Stream, wd *section) {
	p, ok := wd.get("seekpct")
	if !ok {
		return
	}
	ask := p.ask()
	s.Asks["Random"] = ask
	w := p.words[0]
	begins := func(name string) bool { return len(w.text) > 0 && strings.HasPrefix(name, strings.ToLower(w.text)) }
	switch {
	case len(p.words) == 1 && w.is && w.number >= 0 && w.number <= 100:
		s.Random = w.number
	case begins("random"):
		s.Random = 100
	case begins("sequential"):
		s.Random = 0
	case len(p.words) == 1 && (w.is && w.number == -1 || strings.EqualFold(w.text, "eof")):
		s.Random = 0
		f.Note(ask, "sequential, again from the beginning at the end",
			"vdbench's run is over at the end of the target when that comes before elapsed=")
	case strings.EqualFold(w.text, "seqnz") || strings.EqualFold(w.text, "sequentialnz"):
		s.Random = 0
		f.Note(ask, "sequential from the beginning", "vdbench begins at a random place")
	case begins("poisson"):
		f.Refuse(ask, "fio has no such distribution of places; random_distribution=zipf or pareto in fio comes near")
	default:
		f.Refuse(ask, "it is a percentage, random, sequential or eof")
	}
	stride, ok := wd.get("stride")
	if !ok {
		return
	}
	n, ok := f.numbers(stride)
	if !ok {
		return
	}
	if len(n) != 2 || n[0] != n[1] || n[0] < 1 || n[0] >= 1<<40 || s.Random != 100 {
		f.Refuse(
			stride.ask(),
			"only one distance between all operations can be had, as stride=(8k,8k) with seekpct=100",
		)
		return
	}
	s.Random, s.Skip, s.Asks["Skip"] = 0, int64(n[0]), stride.ask()
}

// open is how the target is opened: a run definition goes before a workload, and that before an SD.
func (f *reader) open(s *load.Stream, from ...*section) {
	var p param
	ok := false
	for _, d := range slices.Backward(from) { // the run definition is last
		if p, ok = d.get("openflags"); ok {
			break
		}
	}
	s.Asks["Direct"] = load.Ask{Text: "no openflags=o_direct", At: s.At}
	if ok {
		s.Asks["Direct"], s.Asks["Sync"] = p.ask(), p.ask()
	}
	for _, w := range p.words {
		switch strings.ToLower(w.text) {
		case "o_direct", "directio":
			s.Direct = true
		case "o_sync":
			s.Sync = "sync"
		case "o_dsync":
			s.Sync = "dsync"
		case "none":
		case "fsync":
			f.Note(p.ask(), "", "vdbench flushes when it closes a file, after what it measures")
		default:
			f.Refuse(p.ask(), "%q is not known here; o_direct, directio, o_sync, o_dsync and fsync are", w.text)
		}
	}
	if !s.Direct {
		f.Note(s.Asks["Direct"], "through the page cache", "what is read and written may never reach the device")
	}
}

// where is the part of the target that is used.
func (f *reader) where(s *load.Stream, sd, wd *section) {
	offset, ask := f.number(sd, 0, 0, 1<<62, "offset")
	s.From, s.Asks["From"] = load.Extent{Bytes: int64(offset)}, ask
	if math.Mod(offset, 512) != 0 {
		f.Refuse(ask, "it is no multiple of 512")
	}
	p, ok := wd.get("range", "hotband")
	if !ok {
		p, ok = sd.get("range")
	}
	if !ok {
		return
	}
	n, ok := f.numbers(p)
	if !ok {
		return
	}
	switch {
	case len(n) != 2 || n[0] < 0 || n[1] <= n[0] || n[1] >= 1<<62:
		f.Refuse(p.ask(), "it takes where to begin and where to end")
		return
	case offset > 0:
		f.Refuse(p.ask(), "together with offset= it cannot be had; count the offset in")
		return
	case n[1] > 100 && n[1] <= 200:
		f.Refuse(
			p.ask(),
			"a range around the end of the target cannot be had; write a workload for each of its two parts",
		)
		return
	case n[1] <= 100:
		s.From, s.Span = load.Extent{Percent: n[0]}, load.Extent{Percent: n[1] - n[0]}
		if bytes := s.Targets[0].Bytes; bytes > 0 {
			block := max(s.Largest(), 512)
			s.From = load.Extent{Bytes: int64(float64(bytes)*n[0]/100) / block * block}
			s.Span = load.Extent{Bytes: max(int64(float64(bytes)*(n[1]-n[0])/100)/block*block, block)}
		}
	default:
		s.From, s.Span = load.Extent{Bytes: int64(n[0])}, load.Extent{Bytes: int64(n[1]) - int64(n[0])}
	}
	s.Asks["From"], s.Asks["Span"] = p.ask(), p.ask()
	if p.key == "hotband" {
		for i := range 10 {
			s.Zones = append(s.Zones, load.Zone{Percent: float64(19 - 2*i), Span: load.Extent{Percent: 10}})
		}
		s.Asks["Zones"] = p.ask()
		f.Note(p.ask(), "ten zones of the range, each used less than the one before: 19, 17, ... 1 % of operations",
			"the shape of vdbench's own fall towards the end of the range is not published")
	}
}

// hits are operations on the first part of the target, which is to be in a cache.
func (f *reader) hits(s *load.Stream, sd, wd *section) {
	reads, readAsk := f.number(wd, 0, 0, 100, "rhpct")
	writes, writeAsk := f.number(wd, 0, 0, 100, "whpct")
	if reads == 0 && writes == 0 {
		return
	}
	ask := readAsk
	if reads == 0 {
		ask = writeAsk
	}
	area, _ := f.number(sd, 1<<20, 512, 1<<50, "hitarea")
	size := s.Span.Bytes
	if size == 0 {
		size = s.Targets[0].Bytes - s.From.Bytes
	}
	switch {
	case reads != writes && s.Reads > 0 && s.Reads < 100:
		f.Refuse(ask, "reads and writes that hit differently cannot be had; write a workload for each")
		return
	case s.Reads == 0:
		reads = writes
	case len(s.Zones) > 0:
		f.Refuse(ask, "together with hotband= it cannot be had")
		return
	}
	if reads == 0 {
		return
	}
	if s.Random != 100 {
		f.Refuse(ask, "only places that are all random can hit; say seekpct=100")
		return
	}
	if size <= int64(area) {
		f.Refuse(ask, "say size= of the SD, larger than its hitarea= (1m unless said)")
		return
	}
	s.Zones = []load.Zone{{Percent: reads, Span: load.Extent{Bytes: int64(area)}},
		{Percent: 100 - reads, Span: load.Extent{Bytes: size - int64(area)}}}
	s.Asks["Zones"] = ask
}

// data reads which content the stream writes.
func (f *reader) data(s *load.Stream, sd, rd *section, c choice) {
	g := &f.general
	if m := merged(g, rd, c, map[string]string{"compratio": "compratio", "compression": "compression"}); true {
		g = m
	}
	for _, p := range slices.Backward(g.params) {
		if p.key != "compratio" && p.key != "compression" {
			continue
		}
		n, ok := f.numbers(p)
		if !ok {
			return
		}
		v := n[0]
		if p.key == "compression" {
			v = 100 / max(v, 1e-9)
		}
		if len(n) != 1 || v < 1 || v > 1000 {
			f.Refuse(p.ask(), "it takes a ratio of 1 or more (compression= takes the percentage that is left)")
			return
		}
		s.Data.Compressed, s.Asks["Compressed"] = 100*(1-1/v), p.ask()
		break
	}
	from := &section{params: append(slices.Clone(f.general.params), sd.params...), at: sd.at}
	ratio, ask := f.number(from, 1, 1, 1000, "dedupratio")
	if ratio > 1 {
		s.Data.Duplicate, s.Asks["Duplicate"] = 100*(1-1/ratio), ask
	}
	unit, _ := f.number(from, 128<<10, 512, 1<<30, "dedupunit")
	s.Data.Unit = int64(unit)
	if _, ok := from.get("dedupunit"); !ok || ratio == 1 {
		s.Data.Unit = 0
	}
	for _, name := range []string{"dedupsets", "deduphotsets", "dedupflipflop", "dedup"} {
		p, ok := from.get(name)
		switch {
		case !ok:
		case name == "dedup":
			f.Refuse(p.ask(), "write its parts as dedupratio=, dedupunit=, ...")
		default:
			f.Note(p.ask(), "", "which blocks are copies of which is left to fio; only their share is kept")
		}
	}
}
