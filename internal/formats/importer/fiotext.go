package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
)

const (
	fioText    = "fio-text"
	allClients = "All clients" // the sum that fio's client prints after its hosts
)

var (
	fioTextCall  = lazyregexp.New(`^ *(fio-[23]\.\d[\w.-]*|2\.0\.\d+)$`)
	fioTextAsked = lazyregexp.New(`^ *(?:<[^>]*> *)?(.+?): \(g=(\d+)\): rw=(\w+), bs=(.+?), ioengine=([^,]+), iodepth=(\d+)`)
	fioTextJob   = lazyregexp.New(`^ *(?:<[^>]*> *)?(.+?): \(groupid=(\d+), jobs=(\d+)\): err= *(\d+)[^:]*(?::.*?)?: pid=(\d+)(?:: *(.*))?$`)
	fioTextDir   = lazyregexp.New(`^ +(read|write|trim|mixed) *: *(?:io=([\d.]+)([KMGTP]?)B?, .*runt= *(\d+)msec|` +
		`IOPS=.*\(([\d.]+)([kKMGTP]?i?B?)/(\d+)msec\))`)
	fioTextLat   = lazyregexp.New(`^ +(clat|lat|sync) \(([num]?sec)\): min= *([\d.]+)([kKMG]?), max= *([\d.]+)([kKMG]?), avg= *([\d.]+)([kKMG]?)`)
	fioTextPct   = lazyregexp.New(`^ +(clat|lat|sync) percentiles \(([num]?sec)\):`)
	fioTextRank  = lazyregexp.New(`([\d.]+)th=\[[> =]*(\d+)\]`)
	fioTextFatal = lazyregexp.New(`^fio: .*(?:err=|terminating on signal)`)
	fioTextCPU   = lazyregexp.New(`^ +cpu +: usr=([\d.]+)%, sys=([\d.]+)%`)
	fioTextIOs   = lazyregexp.New(`^ +issued *(?:rwts?: total=(\d+),(\d+),(\d+)(?:,(\d+))?|: total=r=(\d+)/w=(\d+)/d=(\d+))`)
	fioTextErrs  = lazyregexp.New(`^ +errors +: total= *(\d+), first_error=`)
	fioTextSize  = lazyregexp.New(`([\d.]+)([kKMG]?i?B?)-([\d.]+)([kKMG]?i?B?)\b`)
)

// fioTextTimes are the times of one direction, in microseconds.
type fioTextTimes struct {
	min, max, avg float64
	ranks         [][2]string // of fio's own, in the unit that follows
	unit          float64
}

// fioTextEntry holds what fio tells of a job, or of those reported together.
type fioTextEntry struct {
	name, group string
	pid         string
	jobs        float64
	code        uint64
	mixed       bool   // reads and writes stand together
	only        string // "reads", "writes" or "trims", where the others stand apart
	errors      float64
	ended       time.Time
	bytes, ms   [3]float64
	last        [3]float64 // what the last digit of bytes stands for
	issued      [3]float64
	flushes     float64
	clat, lat   [3]*fioTextTimes
	sync        *fioTextTimes
	cpu         float64 // per cent of one CPU for each process, NaN when not told
}

// fioTextRequest holds what the line says by which a job introduces itself.
type fioTextRequest struct {
	rw, bs, engine string
	depth          float64
	blocks         [3]float64 // of reads, writes, trims; 0 where there is more than one
}

// fioTextParser goes through what fio prints for people. A file may hold several calls.
type fioTextParser struct {
	book     book
	requests map[string]fioTextRequest
	entries  []*fioTextEntry
	e        *fioTextEntry
	dir      int // -1: none; 3: syncs
	times    *fioTextTimes
	whole    bool // the call came to its summary
	fatal    string
	terse    bool   // entries are of terse rows
	foreign  string // what stands before fio's lines and is none of its words
}

var fioTextOperations = []string{"read", "write", "trim"}

func readFioText(_ format, r io.Reader) (*book, error) {
	p := &fioTextParser{requests: map[string]fioTextRequest{}, dir: -1}
	p.book.tool = "fio"
	err := eachLine(r, func(_ int, line []byte) error {
		p.line(strings.TrimRight(lastReturn(strings.ToValidUTF8(string(line), "?")), " \t"))
		return nil
	})
	p.end()
	if p.foreign != "" && len(p.book.stretches) == 0 {
		p.book.failure = fmt.Sprintf("something stands before each of fio's lines (%q): take it away", p.foreign)
	}
	return &p.book, err
}

func (p *fioTextParser) line(text string) {
	if m := fioTextCall.FindStringSubmatch(text); m != nil {
		if len(p.entries) > 0 {
			p.end()
		}
		p.book.tool = "fio-" + strings.TrimPrefix(m[1], "fio-")
		return
	}
	if i := strings.Index(text, "Run status group"); i >= 0 {
		if p.whole, p.e = true, nil; strings.TrimSpace(text[:i]) != "" && p.foreign == "" {
			p.foreign = oneLine(text[:i])
		}
		return
	}
	if m := fioTextAsked.FindStringSubmatch(text); m != nil {
		if len(p.entries) > 0 { // of a further call, whose version line is missing
			p.end()
		}
		q := fioTextRequest{rw: m[3], engine: m[5]}
		q.depth, _ = strconv.ParseFloat(m[6], 64) // digits
		var means []float64                       // of reads, writes, trims
		for i, b := range fioTextSize.FindAllStringSubmatch(m[4], 3) {
			low, high := blockOf(b[1], b[2]), blockOf(b[3], b[4])
			means = append(means, (low+high)/2)
			if low == high {
				q.blocks[i] = low
			}
		}
		if len(means) >= 2 {
			reads := !strings.HasSuffix(q.rw, "write") && !strings.HasSuffix(q.rw, "trim")
			q.bs = fio.BlockSize(reads, strings.HasSuffix(q.rw, "rw") || !reads, means[0], means[1])
		}
		p.requests[m[1]+" "+m[2]] = q
		return
	}
	if m := fioTextJob.FindStringSubmatch(text); m != nil {
		e := &fioTextEntry{name: m[1], group: m[2], pid: m[5], cpu: math.NaN()}
		e.jobs, _ = strconv.ParseFloat(m[3], 64)
		e.code, _ = strconv.ParseUint(m[4], 10, 32)
		if at, ok := localDate(m[6]); ok {
			e.ended = at
		}
		p.e, p.dir, p.whole = e, -1, p.whole && e.name == allClients
		if i := slices.IndexFunc(p.entries, e.again); i >= 0 { // a later report of the same job (--status-interval)
			p.entries[i] = e
		} else {
			p.entries = append(p.entries, e)
		}
		return
	}
	if fioTextFatal.MatchString(text) && p.fatal == "" {
		p.fatal = oneLine(text)
	}
	if p.e != nil {
		p.of(p.e, text)
	}
}

// again reports whether an entry is of the same job as another, in the same call.
func (e *fioTextEntry) again(o *fioTextEntry) bool {
	return e.pid != "0" && e.pid == o.pid && e.name == o.name && e.group == o.group
}

// of takes a line of an entry.
func (p *fioTextParser) of(e *fioTextEntry, text string) {
	if m := fioTextDir.FindStringSubmatch(text); m != nil {
		if p.dir = slices.Index(fioTextOperations, m[1]); p.dir < 0 && e.ms != [3]float64{} {
			return // what stands apart already (unified_rw_reporting=both)
		} else if p.dir < 0 {
			p.dir, e.mixed = 0, true
		}
		e.bytes[p.dir], e.last[p.dir] = binary(m[2], m[3]), binary(lastDigit(m[2]), m[3])
		if m[5] != "" {
			e.bytes[p.dir], e.last[p.dir] = printed(m[5], m[6]), printed(lastDigit(m[5]), m[6])
		}
		e.ms[p.dir], _ = strconv.ParseFloat(cmp.Or(m[4], m[7]), 64)
		return
	}
	if m := fioTextLat.FindStringSubmatch(text); m != nil {
		t := &fioTextTimes{unit: microsecondsIn(m[2])}
		t.min, t.max, t.avg = decimal(m[3], m[4])*t.unit, decimal(m[5], m[6])*t.unit, decimal(m[7], m[8])*t.unit
		switch {
		case m[1] == "sync":
			e.sync = t
		case p.dir < 0:
		case m[1] == "clat":
			e.clat[p.dir] = t
		default:
			e.lat[p.dir] = t
		}
		return
	}
	if m := fioTextPct.FindStringSubmatch(text); m != nil {
		switch p.times = nil; {
		case m[1] == "sync":
			p.times = e.sync
		case p.dir < 0:
		case m[1] == "clat":
			p.times = e.clat[p.dir]
		default:
			p.times = e.lat[p.dir]
		}
		if p.times != nil {
			p.times.unit = microsecondsIn(m[2])
		}
		return
	}
	if strings.HasPrefix(strings.TrimSpace(text), "|") && p.times != nil {
		for _, m := range fioTextRank.FindAllStringSubmatch(text, 32) {
			p.times.ranks = append(p.times.ranks, [2]string{m[1], m[2]})
		}
		return
	}
	p.times = nil
	if m := fioTextCPU.FindStringSubmatch(text); m != nil {
		e.cpu = decimal(m[1], "") + decimal(m[2], "")
	} else if m := fioTextIOs.FindStringSubmatch(text); m != nil {
		for i := range e.issued {
			e.issued[i] = decimal(cmp.Or(m[1+i], m[5+i]), "")
		}
		e.flushes = decimal(m[4], "")
	} else if m := fioTextErrs.FindStringSubmatch(text); m != nil {
		e.errors = decimal(m[1], "")
	}
}

// end makes stretches of a call: of each group of jobs one, for groups ran one after another.
func (p *fioTextParser) end() {
	if sum := func(e *fioTextEntry) bool { return e.name == allClients }; len(p.entries) > 1 {
		p.entries = slices.DeleteFunc(p.entries, sum)
	}
	var kinds [][2]string
	var groups []string
	longest := map[string]float64{}
	of := map[[2]string][]*fioTextEntry{}
	p.entries = unlikeTimes(p.entries)
	for _, e := range p.entries {
		q := p.requests[e.name+" "+e.group]
		k := [2]string{e.group, q.rw + " " + q.bs + " " + e.only}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], e)
		if !slices.Contains(groups, e.group) {
			groups = append(groups, e.group)
		}
		longest[e.group] = max(longest[e.group], e.ms[0], e.ms[1], e.ms[2])
	}
	for _, k := range kinds {
		s, ok := p.stretch(of[k], len(kinds) == 1)
		if !ok {
			p.book.failure = cmp.Or(s.failure, p.book.failure)
			continue
		}
		for _, g := range groups[slices.Index(groups, k[0])+1:] { // all are printed when the last has ended
			if !s.start.IsZero() {
				s.start = s.start.Add(-milliseconds(longest[g]))
			}
		}
		p.book.stretches = append(p.book.stretches, s)
	}
	if len(groups) > 1 {
		p.book.note("groups of jobs are taken as if they ran one after another: fio's text does not say when each began")
	}
	if len(p.entries) > 0 && !p.whole && p.book.failure == "" {
		p.book.failure = "the file ends before fio's summary of all jobs"
	}
	if len(p.entries) == 0 || strings.Contains(p.fatal, " on signal ") { // else the entry tells of it
		p.book.failure = cmp.Or(p.book.failure, p.fatal)
	}
	p.entries, p.e, p.whole, p.fatal, p.requests = nil, nil, false, "", map[string]fioTextRequest{}
}

// unlikeTimes has the operations of an entry stand by themselves where they lasted unlike times.
func unlikeTimes(entries []*fioTextEntry) (out []*fioTextEntry) {
	for _, e := range entries {
		longest, unlike := slices.Max(e.ms[:]), false
		for _, ms := range e.ms {
			unlike = unlike || ms > 0 && fio.Unlike(uint64(ms), uint64(longest)) && !e.mixed
		}
		if !unlike {
			out = append(out, e)
			continue
		}
		for i, ms := range e.ms {
			if ms == 0 {
				continue
			}
			one := *e
			one.only = fio.Alone[i]
			for other := range e.ms {
				if other != i {
					one.ms[other], one.bytes[other], one.issued[other] = 0, 0, 0
					one.clat[other], one.lat[other] = nil, nil
				}
			}
			if i != 1 {
				one.sync = nil
			}
			out = append(out, &one)
		}
	}
	return out
}

// stretch returns what the jobs of a group measured, which ran at the same time.
func (p *fioTextParser) stretch(of []*fioTextEntry, alone bool) (stretch, bool) {
	var names []string
	var longest, processes float64
	for _, e := range of {
		longest = max(longest, e.ms[0], e.ms[1], e.ms[2])
		if !slices.Contains(names, e.name) {
			names = append(names, e.name)
		}
	}
	name := "fio"
	if !alone {
		name = strings.TrimSpace(oneLine(strings.Join(names, ", ")) + " " + of[0].only)
	}
	t := newTally(name, milliseconds(longest))
	t.operations = result.BlockOperations()
	if of[0].mixed {
		t.operations = []result.Operation{{Name: "io", Noun: "I/Os", Bytes: true, Block: result.BlockMixed}}
	}
	t.report.Ops = make(workload.Counts, len(t.operations))
	for n, e := range of {
		if e.bytes != [3]float64{} && e.issued == [3]float64{} {
			p.book.skipped = append(p.book.skipped,
				"job "+oneLine(e.name)+" is left out: the file ends before its counts")
			continue
		}
		p.add(t, e, n, len(of) > 1)
		processes += max(e.jobs, 1)
	}
	t.asked("processes", strconv.FormatFloat(processes, 'g', -1, 64))
	if len(of) > 1 {
		t.notes = append(t.notes, fmt.Sprintf("its %d entries are taken as of the same time, for fio's text says nothing of "+
			"startdelay and wait_for: figures of the whole are sums over %s", len(of), oneLine(strings.Join(names, ", "))))
	}
	t.notes = append(append(t.notes, p.notesOfForm()...),
		"service times are of completion (clat) where fio measured it, else of the whole (lat); with lat_percentiles they "+
			"are of the whole")
	if of[0].only != "" {
		t.notes = append(t.notes, unlikeLengths)
	}
	for _, e := range of {
		if e.code != 0 && e.errors == 0 && !slices.Contains(t.notes, fioUncounted) {
			t.notes = append(t.notes, fioUncounted)
		}
	}
	if p.terse && of[0].code != 0 {
		t.notes = append(t.notes, "its IOPS are of what was issued, with what failed")
	}
	if !of[0].ended.IsZero() {
		t.start = of[0].ended.Add(-t.length)
		p.book.note(noZone)
	}
	return t.done(), longest > 0 && t.report.Ops.Total() > 0
}

// add adds an entry to the sums of its group.
func (p *fioTextParser) add(t *tally, e *fioTextEntry, n int, several bool) {
	q, asked := p.requests[e.name+" "+e.group]
	prefix := ""
	if several {
		prefix = fmt.Sprintf("%s %d ", e.name, n+1)
	}
	figures := func(word string, times *fioTextTimes) {
		for _, r := range times.ranks {
			v, _ := strconv.ParseFloat(r[0], 64)
			t.figure(single(prefix+word+"_p"+strconv.FormatFloat(v, 'f', -1, 64), "us"), decimal(r[1], "")*times.unit)
		}
		t.figure(single(prefix+word+"_max", "us"), times.max)
	}
	if e.mixed {
		e.issued[0] += e.issued[1] + e.issued[2]
		if q.blocks[0] != q.blocks[1] {
			q.blocks[0] = 0
		}
	}
	for i := range t.operations {
		word := t.operations[i].Name
		times := e.clat[i]
		if l := e.lat[i]; times == nil || l != nil && len(l.ranks) > 0 {
			times = l
		}
		c := &t.report.Ops[i]
		n, bytes := e.issued[i], e.bytes[i]
		switch exact := q.blocks[i] * n; {
		case exact == 0:
		case math.Abs(exact-bytes) <= e.last[i]:
			bytes = exact // what is printed is rounded
		case exact > bytes && e.errors+float64(e.code) > 0: // what failed is issued, too
			n = math.Round(bytes / q.blocks[i])
		}
		c.Ops += whole(n)
		c.Bytes += whole(bytes)
		if times != nil {
			c.Seconds += times.avg / 1e6 * n
			figures(word, times)
		}
	}
	if e.sync != nil {
		if e.flushes > 0 {
			t.figure(result.Measure{Name: prefix + "sync_count", Unit: "count", Kind: result.Single, Aside: true},
				e.flushes)
		}
		t.figure(single(prefix+"sync_mean", "us"), e.sync.avg)
		figures("sync", e.sync)
	}
	if !math.IsNaN(e.cpu) {
		t.report.CPUSeconds += e.cpu / 100 * e.jobs * max(e.ms[0], e.ms[1], e.ms[2]) / 1e3
	}
	t.report.Errors += whole(e.errors)
	if t.failure = cmp.Or(t.failure, e.errorOf()); e.code != 0 {
		t.report.Errors = max(t.report.Errors, 1)
	}
	if asked {
		t.concurrency += max(q.depth, 1) * max(e.jobs, 1)
		for _, f := range [][2]string{{"pattern", q.rw}, {"block size", q.bs}, {"ioengine", q.engine},
			{"iodepth", strconv.FormatFloat(q.depth, 'g', -1, 64)}} {
			t.asked(f[0], f[1])
		}
	}
}

// binary is a number of bytes as fio prints it, in powers of 1024 whatever it calls them.
func binary(text, prefix string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v * math.Pow(1024, float64(strings.Index(" KMGTP", cmp.Or(prefix, " "))))
}

// printed is a size as fio 3 prints it: in powers of 1024 where the unit has an i, else of 1000 (kb_base=1000).
func printed(text, unit string) float64 {
	prefix := strings.TrimSuffix(unit, "B")
	if i, ok := strings.CutSuffix(prefix, "i"); ok || prefix == unit {
		return binary(text, strings.ToUpper(i))
	}
	return decimal(text, prefix)
}

// blockOf is a size of blocks as fio prints it, of which those in thousands are rounded.
func blockOf(text, unit string) float64 {
	if v := printed(text, unit); strings.HasPrefix(unit, "k") {
		return 512 * math.Round(v/512)
	}
	return printed(text, unit)
}

// lastDigit is 1 at the last place of a number: 0.01 for 3.89.
func lastDigit(text string) string {
	_, fraction, _ := strings.Cut(text, ".")
	return strconv.FormatFloat(math.Pow10(-len(fraction)), 'f', -1, 64)
}

// decimal is a number that may be in thousands.
func decimal(text, prefix string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	switch prefix {
	case "k", "K":
		v *= 1e3
	case "M":
		v *= 1e6
	case "G":
		v *= 1e9
	case "T":
		v *= 1e12
	}
	return v
}

// microsecondsIn returns what a unit of fio's is in microseconds.
func microsecondsIn(unit string) float64 {
	switch unit {
	case "nsec":
		return 1e-3
	case "msec":
		return 1e3
	case "sec":
		return 1e6
	}
	return 1
}

const fioTerse = "fio-terse"

var fioTerseRow = lazyregexp.New(`(?m)^[3-5];fio-\d[^;\n]*;[^;\n]*;\d+;\d+;`)

// The columns of one direction of a terse row, from its first: sums, times of submission and of completion, fio's
// percentiles, times of the whole. What comes after is of bandwidth, and in version 5 of IOPS, too.
const (
	terseKiB, terseIOPS, terseTime    = 0, 2, 3
	terseClat, terseRanks, terseTotal = 8, 12, 32
	terseRankCount                    = 20
	terseWidth, terseWidth5           = 41, 47
)

// readFioTerse reads rows of fio's terse form. A row is a job, or several that were reported together; which of them
// ran at the same time no row says, so each stands by itself.
func readFioTerse(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "fio"}
	err := eachLine(r, func(n int, line []byte) error {
		if !fioTerseRow.Match(line) {
			return nil
		}
		cells := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(line), "?")), ";")
		width, sides := terseWidth, 3
		switch cells[0] {
		case "3":
			sides = 2
		case "5":
			width = terseWidth5
		}
		const head, cpu = 5, 2
		if len(cells) < head+width*sides+cpu {
			b.failure = "a row of it ends early: the file is cut short"
			b.skip(n, "%d values, and such a row has %d at least", len(cells), head+width*sides+cpu)
			return nil
		}
		b.tool = oneLine(cells[1])
		e := &fioTextEntry{name: cells[2], group: cells[3], jobs: 1, cpu: math.NaN()}
		e.code, _ = strconv.ParseUint(cells[4], 10, 32)
		for side := range sides {
			e.terseSide(side, cells[head+side*width:][:width])
		}
		after := cells[head+sides*width:]
		e.cpu = decimal(strings.TrimSuffix(after[0], "%"), "") + decimal(strings.TrimSuffix(after[1], "%"), "")
		p := fioTextParser{terse: true}
		for _, one := range unlikeTimes([]*fioTextEntry{e}) {
			s, ok := p.stretch([]*fioTextEntry{one}, false)
			switch {
			case ok && len(b.stretches) < mostStretches:
				b.stretches = append(b.stretches, s)
			case ok:
				b.failure = "it holds more rows than are read: split the file"
			case s.failure != "":
				b.failure = s.failure
			case sides == 2:
				b.lost = "a row holds no figures: of version 3 they tell no trims (--terse-version=4 does)"
			}
		}
		return nil
	})
	return b, err
}

// terseSide takes the values of reads, writes or trims. Operations are not counted in such a row, but for their rate; a
// block size that fits it tells their number.
func (e *fioTextEntry) terseSide(side int, v []string) {
	e.bytes[side] = decimal(v[terseKiB], "") * 1024
	e.ms[side] = decimal(v[terseTime], "")
	n := decimal(v[terseIOPS], "") * e.ms[side] / 1e3
	if n > 0 {
		block := math.Pow(2, math.Round(math.Log2(e.bytes[side]/n)))
		if rounded := e.ms[side]/1e3 + 1024/block + 1; e.code == 0 && math.Abs(e.bytes[side]/block-n) < rounded {
			n = e.bytes[side] / block
		}
	}
	e.issued[side] = math.Round(n)
	times := func(at int) *fioTextTimes {
		t := &fioTextTimes{unit: 1, min: decimal(v[at], ""), max: decimal(v[at+1], ""), avg: decimal(v[at+2], "")}
		if t.max == 0 && t.avg == 0 {
			return nil
		}
		return t
	}
	e.clat[side], e.lat[side] = times(terseClat), times(terseTotal)
	if e.clat[side] == nil {
		return
	}
	for _, rank := range v[terseRanks:][:terseRankCount] {
		if of, value, ok := strings.Cut(rank, "%="); ok && decimal(of, "") > 0 {
			e.clat[side].ranks = append(e.clat[side].ranks, [2]string{of, value})
		}
	}
}

// terseNotes are of what a row does not say.
var terseNotes = []string{"it is fio's terse form: its JSON tells the course, depths and histograms",
	"percentiles are of completion, or of the whole with lat_percentiles: no row says which",
	"operations are counted by their bytes where a block size fits fio's whole IOPS, else by those IOPS",
	"which of its rows ran at the same time no row says: each stands by itself",
	"with unified_rw_reporting=1 all that was done stands as reads: no row says it"}

// fioTerseAlone reports whether a file is of terse rows alone: with fio's text beside them that says more.
func fioTerseAlone(head []byte) bool {
	return fioTerseRow.Match(head) && !fioNormal.Match(head) && !bytes.Contains(head, []byte(`"fio version"`))
}

// notesOfForm are the notes of fio's text, or of its terse form.
func (p *fioTextParser) notesOfForm() []string {
	if p.terse {
		return terseNotes
	}
	return []string{"it is fio's text for people: its JSON tells the course, exact bytes and histograms"}
}

// errorOf returns what a job's error is told as, "" for none.
func (e *fioTextEntry) errorOf() string {
	if e.code == 0 {
		return ""
	}
	return "job " + oneLine(e.name) + " ended with error " + fio.ErrorText(e.code)
}
