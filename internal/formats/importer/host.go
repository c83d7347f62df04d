package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

// The readers of counters of machines.
const (
	vmstat = "vmstat"
	iostat = "iostat"
	sar    = "sar"
	sadf   = "sadf"

	iostatJSON = "iostat-json"
	sadfJSON   = "sadf-json"
)

// mostColumns bounds the figures of one file: a machine of a hundred disks has two thousand.
const mostColumns = 4000

var (
	sysstatHead = lazyregexp.New(`(?m)^(?:\S+ \S+[\t ]+)?Linux \S+ \([^)]*\)\s`)
	iostatHead  = lazyregexp.New(`(?m)^(?:\S+ \S+[\t ]+)?(?:avg-cpu: |Device:? +(?:tps|rrqm/s|r/s))`)
	sarHead     = lazyregexp.New(
		`(?m)^\d\d:\d\d:\d\d(?: [AP]M)? +(?:[A-Za-z%][\w/%.-]*)(?: +[\w/%.-]*[A-Za-z%][\w/%.-]*)+[ \r]*$`)
	vmstatHead = lazyregexp.New(`(?m)^(?:\S+ \S+[\t ]+)? *r +b +swpd +free `)
	sadfHead   = lazyregexp.New(`(?m)^# hostname;interval;timestamp;`)
	// stamped is a line in front of which another program (ts, awk) has put the time.
	stamped = lazyregexp.New(
		`^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)(?:\t| (?: |\S))`)
)

func hostReaders() []reader {
	host := func(name, holds string, recognise func([]byte) bool) reader {
		return reader{name: name, holds: holds, host: true, recognise: recognise,
			prepare: func(d *Reading, g *given) error { return prepareHost(d, g, name) }}
	}
	return []reader{
		host(sadf, "sadf -d of sar's data", sadfHead.Match),
		host(vmstat, "vmstat, best with -t", vmstatHead.Match),
		host(iostat, "iostat, best with -xt", iostatHead.Match),
		host(iostatJSON, "iostat -o JSON, best with -xt", func(head []byte) bool {
			return isSysstat(head) && bytes.Contains(head, []byte(`"avg-cpu"`)) ||
				isSysstat(head) && bytes.Contains(head, []byte(`"disk_device"`))
		}),
		host(sadfJSON, "sadf -j of sar's data, mpstat -o JSON", isSysstat),
		host(sar, "sar's text", func(head []byte) bool { return sysstatHead.Match(head) && sarHead.Match(head) }),
	}
}

// isSysstat reports whether a file is JSON of iostat or sadf.
func isSysstat(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) && bytes.Contains(head, []byte(`"sysstat"`))
}

// moment holds what a machine's counters were at one time.
type moment struct {
	at     time.Time // zero when the file has none
	values map[string]float64
}

// hostParser goes through a file line by line and hands on moments; each is complete when the next begins.
type hostParser struct {
	emit  func(moment) error
	now   moment
	names []string // of columns, as the newest header has them
	date  time.Time
	day   time.Duration // times of sar are within a day
	order string        // of day and month where a date has slashes
	local bool          // some time had no zone

	moments int
	calls   int // of the tool, as far as they can be told apart
	rows    int // of vmstat, below its newest header
	block   int // of vmstat, below the header before
	last    time.Time
	step    time.Duration // of vmstat, between the last two rows
	damage  string        // where JSON breaks off
}

func newHostParser(emit func(moment) error) *hostParser {
	return &hostParser{emit: emit}
}

func (p *hostParser) put(name, cell string) error {
	v, err := strconv.ParseFloat(strings.Replace(cell, ",", ".", 1), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil // "-" and the like: no value
	}
	if p.now.values == nil {
		p.now.values = map[string]float64{}
	}
	if _, there := p.now.values[name]; !there && len(p.now.values) >= mostColumns {
		return fmt.Errorf("more than %d figures at one moment", mostColumns)
	}
	p.now.values[name] = v
	return nil
}

// flush hands on the moment, if it holds anything.
func (p *hostParser) flush() error {
	if len(p.now.values) == 0 {
		return nil
	}
	m := p.now
	p.moments++
	p.now = moment{at: m.at}
	return p.emit(m)
}

// parse goes through a file of one tool.
func (p *hostParser) parse(tool string, r io.Reader) error {
	if tool == iostatJSON || tool == sadfJSON {
		err := errors.Join(p.json(r), p.flush())
		if err != nil && p.moments > 0 {
			p.damage, err = err.Error(), nil // what came before counts
		}
		return err
	}
	line := map[string]func(string) error{vmstat: p.vmstat, iostat: p.iostat, sar: p.sar, sadf: p.sadf}[tool]
	err := eachLine(r, func(_ int, b []byte) error {
		text := string(bytes.ToValidUTF8(b, []byte("?")))
		if m := stamped.FindStringSubmatch(text); m != nil && tool != sadf {
			at, _ := p.clock(m[1])
			if text = strings.TrimLeft(text[len(m[1]):], "\t"); tool == vmstat {
				p.now.at = at
			} else if len(p.now.values) == 0 {
				p.now.at = at // of a block, its first line
			}
		}
		return line(strings.TrimRight(text, " \t\r"))
	})
	return errors.Join(err, p.flush())
}

// clock reads a date with a time as iostat, vmstat and others write them.
func (p *hostParser) clock(text string) (time.Time, bool) {
	text = strings.Replace(strings.TrimSpace(text), ",", ".", 1)
	for _, layout := range []string{"2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07:00",
		"2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	layouts := []string{"2006-01-02 15:04:05 MST", "2006-01-02T15:04:05", "2006-01-02 15:04:05",
		"01/02/2006 15:04:05", "01/02/06 15:04:05", "01/02/2006 03:04:05 PM", "01/02/06 03:04:05 PM",
		"02/01/2006 15:04:05", "02/01/06 15:04:05", "02.01.2006 15:04:05"}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			p.local = p.local || !strings.HasSuffix(text, "UTC")
			if strings.Contains(layout, "/") {
				p.order = "month/day"
				if strings.HasPrefix(layout, "02/") {
					p.order = "day/month"
				}
			}
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// vmstat takes a line of vmstat: two lines of header, which may come again, and rows of numbers.
func (p *hostParser) vmstat(text string) error {
	cells := strings.Fields(text)
	if len(cells) > 1 && cells[0] == "r" && cells[1] == "b" {
		p.names, p.block, p.rows = cells, p.rows, 0
		for i, name := range cells {
			if name == "st" || name == "gu" {
				p.names = cells[:i+1] // a time zone follows with -t
			}
		}
		return nil
	}
	if p.names == nil || len(cells) < len(p.names) || cells[0] == "procs" || strings.HasPrefix(cells[0], "--") {
		return nil
	}
	if _, err := strconv.ParseUint(cells[0], 10, 32); err != nil {
		return nil
	}
	if more := cells[len(p.names):]; len(more) >= 2 {
		if at, ok := p.clock(more[0] + " " + more[1]); ok {
			p.now.at = at
		}
	}
	for i, name := range p.names {
		if err := p.put(name, cells[i]); err != nil {
			return err
		}
	}
	gap := p.now.at.Sub(p.last)
	if p.calls == 0 || p.rows == 0 && p.block > 0 && p.block < vmstatBlock &&
		(p.now.at.IsZero() || p.step == 0 || gap != p.step) {
		p.calls++
	}
	p.rows++
	p.last, p.step = p.now.at, gap
	return p.flush()
}

// vmstatBlock is how many rows vmstat prints at least before it repeats its header: fewer are of a call that ended.
const vmstatBlock = 21

// iostat takes a line of iostat: blocks of CPU and devices, each with its header, maybe a time in front.
func (p *hostParser) iostat(text string) error {
	cells := strings.Fields(text)
	switch {
	case len(cells) == 0:
		return nil
	case cells[0] == "Linux":
		err := p.flush()
		p.calls++
		p.names, p.now.at = nil, time.Time{}
		return err
	case cells[0] == "avg-cpu:":
		p.names = append([]string{"cpu"}, cells[1:]...)
		return p.flush()
	case cells[0] == "Device" || cells[0] == "Device:":
		p.names = append([]string{"device"}, cells[1:]...)
		for name := range p.now.values {
			if !strings.HasPrefix(name, "cpu_") {
				return p.flush() // devices without CPUs in front: a block of their own
			}
		}
		return nil
	}
	if at, ok := p.clock(text); ok {
		err := p.flush()
		p.now.at = at
		return err
	}
	switch {
	case len(p.names) == 0:
	case p.names[0] == "cpu" && len(cells) == len(p.names)-1:
		for i, name := range p.names[1:] {
			if err := p.put("cpu_"+name, cells[i]); err != nil {
				return err
			}
		}
	case p.names[0] == "device" && len(cells) == len(p.names):
		for i, name := range p.names[1:] {
			if err := p.put(cells[0]+"_"+name, cells[i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	sarTime = lazyregexp.New(`^(\d\d:\d\d:\d\d(?: [AP]M)?) +(.*)$`)
	sarDate = lazyregexp.New(`\s(\d{4}-\d\d-\d\d|\d\d/\d\d/\d{2,4})\s`)
)

// sarKeys are the columns of sar that name what a row is of.
var sarKeys = []string{
	"CPU",
	"DEV",
	"IFACE",
	"TTY",
	"FAN",
	"TEMP",
	"BUS",
	"FILESYSTEM",
	"MOUNTPOINT",
	"INTR",
	"TC",
	"iface",
}

// sar takes a line of sar's text: a date once, then blocks of header and rows, each row with the time of day.
func (p *hostParser) sar(text string) error {
	if strings.HasPrefix(text, "Linux ") {
		if m := sarDate.FindStringSubmatch(text); m != nil {
			p.dated(m[1])
		}
		return nil
	}
	m := sarTime.FindStringSubmatch(text)
	if m == nil {
		p.names = nil // an empty line, Average:, LINUX RESTART
		return nil
	}
	cells := strings.Fields(m[2])
	clock, err := clockTime(m[1])
	if err != nil {
		return err
	}
	if p.names == nil {
		p.names = cells
		return nil
	}
	if len(cells) != len(p.names) || p.date.IsZero() {
		return nil
	}
	return p.row(p.on(clock), p.names, cells)
}

// dated takes the date of the times of day that follow.
func (p *hostParser) dated(date string) {
	if at, ok := p.clock(date + " 00:00:00"); ok {
		p.date, p.day = at, 0
	}
}

// clockTime is how long after midnight a clock showed that.
func clockTime(text string) (time.Duration, error) {
	layout := "15:04:05"
	if strings.HasSuffix(text, "M") {
		layout = "03:04:05 PM"
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day", text)
	}
	return t.Sub(t.Truncate(24 * time.Hour)), nil
}

// on is a time of the day, or of the next once midnight has passed.
func (p *hostParser) on(clock time.Duration) time.Time {
	if clock < p.day-12*time.Hour {
		p.date = p.date.AddDate(0, 0, 1)
	}
	p.day = clock
	return p.date.Add(clock)
}

// row puts the figures of a row with its time; what names the row stands in its first column.
func (p *hostParser) row(at time.Time, names, cells []string) error {
	if !p.now.at.IsZero() && !p.now.at.Equal(at) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.now.at = at
	key := ""
	if slices.Contains(sarKeys, names[0]) {
		key = cells[0] + "_"
		if names[0] == "CPU" {
			key = "cpu" + cells[0] + "_"
			if cells[0] == "all" || cells[0] == "-1" {
				key = "cpu_"
			}
		}
		names, cells = names[1:], cells[1:]
	}
	for i, name := range names {
		if err := p.put(key+name, cells[i]); err != nil {
			return err
		}
	}
	return nil
}

// sadf takes a line of sadf -d: sections, each with a header, of rows with host, interval and time. A section is of all
// times, so moments of later sections come again: they are joined by the caller.
func (p *hostParser) sadf(text string) error {
	if head, ok := strings.CutPrefix(text, "# "); ok {
		p.names = strings.Split(head, ";")
		return p.flush()
	}
	cells := strings.Split(text, ";")
	if len(cells) != len(p.names) || len(cells) < 4 {
		return nil // LINUX-RESTART, and a comment
	}
	at, ok := p.clock(cells[2])
	if !ok {
		sec, err := strconv.ParseInt(cells[2], 10, 64)
		if err != nil || sec < 0 || sec > 1<<33 {
			return fmt.Errorf("%.40q is no time", cells[2])
		}
		at = time.Unix(sec, 0).UTC()
	}
	return p.row(at, p.names[3:], cells[3:])
}

// hostUnit is the unit of a column, as far as its name tells.
func hostUnit(tool, name string) string {
	column := name[strings.LastIndex(name, "_")+1:]
	if strings.HasSuffix(name, "_await") {
		column = "await"
	}
	switch {
	case strings.Contains(column, "%"):
		return "%"
	case tool == vmstat && slices.Contains([]string{"r", "b"}, column):
		return "processes"
	case tool == vmstat && slices.Contains([]string{"in", "cs"}, column):
		return "/s"
	case tool == vmstat && slices.Contains([]string{"bi", "bo"}, column):
		return "KiB/s" // blocks of 1024 bytes, whatever -S says
	case tool == vmstat && slices.Contains([]string{"si", "so"}, column):
		return "units of -S a second"
	case tool == vmstat && slices.Contains([]string{"swpd", "free", "buff", "cache", "inact", "active"}, column):
		return "units of -S"
	case column == "aqu-sz" || column == "avgqu-sz":
		return "requests"
	case column == "avgrq-sz":
		return "sectors"
	case strings.HasSuffix(column, "areq-sz") || strings.HasSuffix(column, "wareq-sz") || strings.HasSuffix(column,
		"dareq-sz"):
		return "KiB"
	case tool == vmstat && slices.Contains([]string{"us", "sy", "id", "wa", "st", "gu"}, column):
		return "%"
	case column == "await" || column == "svctm":
		return "ms"
	case strings.HasPrefix(column, "rkB") || strings.HasPrefix(column, "wkB") || strings.HasPrefix(column, "dkB"):
		return "KiB/s"
	case strings.HasPrefix(column, "rMB") || strings.HasPrefix(column, "wMB") || strings.HasPrefix(column, "dMB"):
		return "MiB/s"
	case strings.HasSuffix(column, "/s") || column == "tps":
		return "/s"
	}
	return ""
}

// hostMoments reads all of a file into moments in time order. What is the average since the machine was started, the
// first of vmstat and iostat, is left out.
func hostMoments(tool string, r io.Reader, take func(moment) error) (p *hostParser, err error) {
	boot, call := sinceBoot(tool), 0
	joined := map[time.Time]int{}
	var all []moment
	cells := 0
	p = newHostParser(func(m moment) error {
		if boot && (call == 0 || p.calls > call) {
			call = max(p.calls, 1)
			return nil
		}
		if tool != sadf && tool != sar && tool != sadfJSON {
			return take(m)
		}
		// Sections repeat the times of those before: what is of one time belongs together.
		i, there := joined[m.at]
		if !there {
			i = len(all)
			joined[m.at] = i
			all = append(all, moment{at: m.at, values: map[string]float64{}})
		}
		for name, v := range m.values {
			all[i].values[name] = v
		}
		if cells += len(m.values); cells > mostCells {
			return fmt.Errorf("more than %d figures: give sadf a part of the time or fewer options", mostCells)
		}
		return nil
	})
	if err = p.parse(tool, r); err != nil {
		return p, err
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, m := range all {
		if err := take(m); err != nil {
			return p, err
		}
	}
	return p, nil
}

// sinceBoot reports whether a tool's first sample is the average since the machine was started.
func sinceBoot(tool string) bool { return tool == vmstat || tool == iostat || tool == iostatJSON }

// mostCells bounds what sar's and sadf's sections hold together in memory.
const mostCells = 5_000_000

func prepareHost(d *Reading, g *given, tool string) error {
	r, err := g.rewound()
	if err != nil {
		return err
	}
	d.Tool, d.Latency = strings.TrimSuffix(tool, "-json"), overTime
	d.Workload = d.Tool
	moves := map[string]bool{} // whether a figure is ever other than zero
	timeless, n := 0, 0
	p, err := hostMoments(tool, r, func(m moment) error {
		if n++; m.at.IsZero() {
			timeless++
		}
		for name, v := range m.values {
			moves[name] = moves[name] || v != 0
		}
		if len(moves) > mostColumns {
			return fmt.Errorf("more than %d different figures", mostColumns)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.New("it holds no samples after the first, which is the average since the machine was started")
	case timeless > 0 && g.interval <= 0:
		return fmt.Errorf("%d of its %d samples have no time: say the interval with --interval, or let %s", timeless, n,
			cmp.Or(map[string]string{vmstat: "vmstat print times (-t)", sadfJSON: "sadf print dates"}[tool],
				"iostat print times (-t)"))
	}
	idle := 0
	for name, moved := range moves {
		if moved {
			d.Declared.Measures = append(d.Declared.Measures, level(name, hostUnit(tool, name)))
		} else {
			idle++
		}
	}
	slices.SortFunc(d.Declared.Measures, func(a, b result.Measure) int { return strings.Compare(a.Name, b.Name) })
	if len(d.Declared.Measures) == 0 {
		return errors.New("every figure in it is 0")
	}
	f := format{Reader: tool}
	if timeless > 0 {
		f.Seconds = g.interval.Seconds()
		d.Notes = append(d.Notes,
			fmt.Sprintf("its samples have no time; they are taken to be %v apart, as was said", g.interval))
	}
	d.Declared.Format = f.json()
	if idle > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d figures that are 0 throughout are left out", idle))
	}
	if p.damage != "" {
		d.Notes = append(d.Notes, "the file breaks off: "+p.damage)
	}
	if sinceBoot(tool) {
		d.Notes = append(d.Notes, "the first sample is left out: it is the average since the machine was started")
	}
	if sinceBoot(tool) && p.calls > 1 {
		d.Notes = append(d.Notes, fmt.Sprintf("it holds %d calls of %s, one after another: the first sample of each is left out",
			p.calls, d.Tool))
	}
	if p.local {
		d.Notes = append(d.Notes, "its times have no time zone and are read as UTC")
	}
	if p.order != "" {
		d.Notes = append(d.Notes, "its dates are read as "+p.order)
	}
	d.Unseen = []string{"latency and operations of a load: the file holds counters of a machine"}
	return nil
}

// parseHost replays a file of counters.
func parseHost(f format, d workload.Declared, r io.Reader, sink workload.Sink) error {
	at := map[string]int{}
	for i, m := range d.Measures {
		at[m.Name] = i
	}
	var zero time.Time
	var elapsed, gap time.Duration
	var held *workload.Report
	back := 0
	_, err := hostMoments(f.Reader, r, func(m moment) error {
		rep := workload.Report{Time: m.at, Values: gaps(len(d.Measures))}
		for name, v := range m.values {
			if i, ok := at[name]; ok {
				rep.Values[i] = v
			}
		}
		if f.Seconds > 0 {
			elapsed += time.Duration(f.Seconds * float64(time.Second))
			rep.Time, rep.Elapsed = time.Time{}, elapsed
			sink.Report(rep)
			return nil
		}
		switch {
		case m.at.IsZero():
			back++
			return nil
		case held == nil && zero.IsZero():
			zero, held = m.at, &rep
			return nil
		case held != nil: // the first sample is as long as the time to the second
			if gap = m.at.Sub(zero); gap <= 0 {
				back++
				return nil
			}
			zero = zero.Add(-gap)
			held.Elapsed = gap
			sink.Report(*held)
			held = nil
		}
		if rep.Elapsed = m.at.Sub(zero); rep.Elapsed <= elapsed {
			back++
			return nil
		}
		elapsed = rep.Elapsed
		sink.Report(rep)
		return nil
	})
	if held != nil {
		held.Elapsed = time.Second
		sink.Report(*held)
	}
	if back > 0 {
		sink.Warn(
			fmt.Sprintf("%s output: samples without a time, or whose time goes back, are left out: %d", f.Reader, back))
	}
	return err
}

// HostTable is a file of counters as columns: the first "time" where it has one, in seconds since 1970. Gaps are NaN.
func HostTable(content io.ReadSeeker, name string) (names []string, rows [][]float64, tool string, err error) {
	head, err := io.ReadAll(io.LimitReader(content, HeadBytes))
	if err != nil {
		return nil, nil, "", err
	}
	g := &given{name: name, content: content, head: plainHead(head), interval: time.Second}
	r, err := choose(g, "")
	if err != nil {
		return nil, nil, "", err
	}
	d := &Reading{As: r.name}
	if err := r.prepare(d, g); err != nil {
		return nil, nil, "", fmt.Errorf("%s: %w", r.name, err)
	}
	var f format
	in, err := g.rewound()
	if err != nil {
		return nil, nil, "", err
	}
	timed := !bytes.Contains(d.Declared.Format, []byte("interval_seconds"))
	if timed {
		names = append(names, "time")
	}
	for _, m := range d.Declared.Measures {
		names = append(names, m.Name)
	}
	f.Reader = r.name
	if !timed {
		f.Seconds = 1
	}
	sink := rowSink(func(rep workload.Report) {
		var row []float64
		if timed {
			row = append(row, float64(rep.Time.UnixMilli())/1e3)
		}
		rows = append(rows, append(row, rep.Values...))
	})
	return names, rows, r.name, parseHost(f, d.Declared, in, sink)
}

// rowSink takes reports as rows.
type rowSink func(workload.Report)

// Report implements workload.Sink.
func (s rowSink) Report(r workload.Report) { s(r) }

// Warn implements workload.Sink.
func (rowSink) Warn(string) {}
