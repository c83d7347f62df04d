package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const (
	ddText     = "dd"
	iozoneText = "iozone"
	bonnieText = "bonnie++"
	iorText    = "ior"
	radosText  = "rados-bench"
)

var (
	// dd speaks the language of its user: the numbers and the form are what it keeps.
	ddTotal = lazyregexp.New(`^(\d+) ?[^\d\s(（][^\d(（,，、]*(?:[(（].+[)）])?.*?[,，、] ?([\d.,]+(?:e[+-]?\d+)?) ?` +
		`(?:s\w*|с\p{L}*|秒)[,，、] *([\d.,]+) ?\S+/\S+$`)
	ddPlain   = lazyregexp.New(`^(\d+) bytes (?:transferred|copied),? (?:in )?([\d.]+) (?:secs?|s|seconds)\b`)
	ddRecords = lazyregexp.New(`^(?:记录了)?(\d+)\+(\d+) \S`)
	ddWrong   = lazyregexp.New(`^(?:\S*/)?dd: (.+)$`)
	// ddNoTotals are errors before anything is copied, of which no totals follow.
	ddNoTotals = lazyregexp.New(`failed to open|can't open|No such file|Permission denied|[Ii]nvalid |unrecogni[sz]ed |unknown `)

	// ddAlone is the last line of one, of which a script kept no other.
	ddAlone = lazyregexp.New(`(?m)^\d+ bytes (?:\([^)\n]*B\) )?(?:copied|transferred),? (?:in )?[\d.]+ s(?:ecs?)?\b.*/s(?:ec\))?\r?$`)

	ddAny = lazyregexp.New(`(?m)^(?:记录了)?\d+\+\d+ \S.*\r?\n(?:记录了)?\d+\+\d+ \S.*\r?\n(?:.*\n)?\d+ ?[^\d\s]`)

	iozoneAny   = lazyregexp.New(`(?m)^\s*Iozone: Performance Test of File I/O|^\s+(?:kB|KB) +reclen +write +rewrite`)
	iozoneHead  = lazyregexp.New(`^\s+(?:kB|KB) +reclen +(\S.*)$`)
	iozoneRow   = lazyregexp.New(`^\s*(\d+)\s+(\d+)((?:\s+\d+)+)\s*$`)
	iozoneCall  = lazyregexp.New(`^\s*Command line used: (.+)$`)
	iozoneAsks  = lazyregexp.New(`\s-i ?(\d+)`)
	iozoneVer   = lazyregexp.New(`Version \$Revision: (\S+) \$`)
	iozoneRun   = lazyregexp.New(`^\s*Run began: (.+)$`)
	iozoneEach  = lazyregexp.New(`^\s*Each process writes a (\d+) kByte file in (\d+) kByte records`)
	iozoneSees  = lazyregexp.New(`^\s*Children see throughput for +(\d+) (.+?)\s*= *([\d.]+) (?:[kK][bB](?:ytes)?|(ops))/sec`)
	iozoneOps   = lazyregexp.New(`(?i)^\s*(?:OPS Mode|.*Output is in ops/sec)`)
	iozoneTimes = lazyregexp.New(`(?i)^\s*.*Output is in microseconds`)
	iozoneWrong = lazyregexp.New(`(?i)^\s*(?:Error (?:writing|reading|opening|in )|Can ?not open|iozone: interrupted|exiting iozone)`)
	iozoneEnded = lazyregexp.New(`^\s*iozone test complete`)

	bonnieWrong = lazyregexp.New(`^(?:Can't \w+|Bonnie: drastic I/O error)`)

	// bonnieOld is the line of 1.03, which begins with the machine and its size.
	bonnieOld = lazyregexp.New(`(?m)^[^,\n]+,\d+[MG](?::\d+k?)?(?:,[\d.+]*){25}\r?$`)
	bonnieAny = lazyregexp.New(`(?m)^(?:1\.9[67]|1\.98|2\.\d\d[a-z]?),\d[^,]*,[^,]+,\d+,\d+,`)

	iorAny   = lazyregexp.New(`(?m)^IOR-\d|^access +bw\(MiB/s\) `)
	iorVer   = lazyregexp.New(`^(IOR-[^\s:]+)`)
	iorHead  = lazyregexp.New(`^access +bw\(MiB/s\) `)
	iorRow   = lazyregexp.New(`^(write|read|remove) +[\d.-]`)
	iorWrong = lazyregexp.New(`(?m)^(?:ior )?ERROR: .*|^WARNING: Incorrect data on .*`)
	iorWarns = lazyregexp.New(`^WARNING: (.+?)\.?$`)
	iorBegan = lazyregexp.New(`^(?:Began|Run began) *: (.+)$`)
	iorAsked = lazyregexp.New(`^\s*(api|access|ordering inter file|tasks|clients|nodes|xfersize|transfersize|blocksize|` +
		`aggregate filesize|ordering in a file|segments|repetitions|stonewallingTime) +[:=] +(\S.*)$`)
	iorCall    = lazyregexp.New(`^Command line *: (.+)$`)
	iorSummary = lazyregexp.New(`^(?:Max (?:Write|Read):|Summary of all tests:|Finished)`)

	radosAny = lazyregexp.New(`(?m)^(?:\d{4}-\d\d-\d\d[ T][\d:.+-]+)? *(?:Total time run: +[\d.]+|Maintaining \d+ concurrent |` +
		`sec +Cur ops +started +finished +avg MB/s)`)
	radosAsked  = lazyregexp.New(`^(?:\d{4}-\d\d-\d\d[ T][\d:.+-]+)? *Maintaining (\d+) concurrent (\S+) of (\d+) bytes`)
	radosRow    = lazyregexp.New(`^(?:\d{4}-\d\d-\d\d[ T][\d:.+-]+ )? *(\d+) +(\d+) +(\d+) +(\d+) +([\d.]+) +([\d.-]+) +(\S+) +(\S+)$`)
	radosWrong  = lazyregexp.New(`(?m)^error during benchmark.*|^(?:read|write) got -\d+|^WARNING: There were \d+ total errors.*|^.* is not correct!$`)
	radosFigure = lazyregexp.New(`^(?:\d{4}-\d\d-\d\d[ T][\d:.+-]+)? *([A-Z][\w /()]+?): +([\d.]+)$`)
)

func fileToolReaders() []reader {
	return []reader{{
		name: radosText, holds: "what rados bench prints: write, seq, rand", book: true, recognise: radosAny.Match,
	}, {
		name: iorText, holds: "what IOR 3 and 4 prints", book: true, recognise: iorAny.Match,
	}, {
		name: iozoneText, holds: "iozone's tables (-a, -i) and its throughput mode (-t)", book: true,
		recognise: iozoneAny.Match,
	}, {
		name: bonnieText, holds: "the line of values of bonnie++ 1.03, 1.96 and later, with anything around it", book: true,
		recognise: func(head []byte) bool { return bonnieAny.Match(head) || bonnieOld.Match(head) },
	}, {
		name: ddText, holds: "what dd says in the end, in any language, of GNU, BSD and busybox", book: true,
		recognise: func(head []byte) bool { return ddAny.Match(head) || ddAlone.Match(head) },
	}}
}

// readDD reads what one dd after another said. Its records are those that it wrote.
func readDD(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "dd"}
	var records []float64
	var alone []ddCopy // totals, or what it said on its way, that no records stand before
	wrong := ""
	err := eachLine(r, func(n int, line []byte) error {
		text := strings.TrimSpace(lastReturn(strings.ToValidUTF8(string(line), "?")))
		if m := ddRecords.FindStringSubmatch(text); m != nil {
			records, alone = append(records, decimal(m[1], "")+decimal(m[2], "")), nil
			return nil
		}
		if m := ddWrong.FindStringSubmatch(text); m != nil && !strings.HasPrefix(m[1], "warning:") {
			if ddNoTotals.MatchString(text) {
				b.lost = cmp.Or(b.lost, oneLine(text))
			} else {
				wrong = oneLine(text)
			}
			return nil
		}
		m := ddTotal.FindStringSubmatch(text)
		if m == nil {
			m = ddPlain.FindStringSubmatch(text)
		}
		if m == nil {
			return nil
		}
		if len(records) < 2 {
			if seconds, err := quantity(strings.ReplaceAll(m[2], ",", ".")); err == nil && len(alone) < mostStretches {
				alone = append(alone, ddCopy{decimal(m[1], ""), seconds,
					bytes.ContainsRune(bytes.TrimRight(line, "\r"), '\r')})
			}
			return nil
		}
		seconds, err := strconv.ParseFloat(strings.ReplaceAll(m[2], ",", "."), 64)
		if length := inSeconds(seconds); err != nil || length == 0 {
			b.skip(n, "%.40q is no time", m[2])
		} else {
			t := newTally("dd", length)
			if t.failure, wrong = wrong, ""; t.failure != "" {
				t.report.Errors = 1
			}
			op := result.Operation{Name: "copy", Noun: "records"}
			t.did(op, records[len(records)-1], decimal(m[1], ""), 0)
			if copied := decimal(m[1], ""); records[len(records)-1] > 0 {
				t.asked("block size", fmt.Sprintf("%.0f bytes", copied/records[len(records)-1]))
			}
			t.notes = append(t.notes, "dd does not say what it read and what it wrote; records are those that it wrote out")
			if n := len(b.stretches); n > 0 && b.stretches[n-1].length < length &&
				b.stretches[n-1].reports[0].Ops[0].Ops < t.report.Ops[0].Ops {
				t.notes = append(t.notes, "it copied more in more time than the one before: if that was one dd that was asked how "+
					"far it was (USR1), its last figures are its result")
			}
			b.stretches = append(b.stretches, t.done())
		}
		records = nil
		return nil
	})
	if wrong == "" && len(records) > 0 {
		wrong = "it ends before the totals of dd: the file is cut short"
	}
	for i, one := range alone {
		if one.progress || i > 0 && one.after(alone[i-1]) || i+1 < len(alone) && alone[i+1].after(one) {
			wrong = cmp.Or(wrong, "it says how far dd was, and not that it ended: it, or the file, is cut short")
		} else if one.seconds > 0 {
			b.stretches = append(b.stretches, one.stretch())
		}
	}
	b.lost = cmp.Or(b.lost, wrong)
	return b, err
}

// ddCopy holds what one dd copied, or had by then.
type ddCopy struct {
	bytes, seconds float64
	progress       bool // it was written over what dd said before
}

// after reports whether it is how far the same dd was when about a second was over.
func (c ddCopy) after(before ddCopy) bool {
	return c.bytes > before.bytes && c.seconds > before.seconds && c.seconds < before.seconds+1.5
}

// stretch is a copy of which the records are not known.
func (c ddCopy) stretch() stretch {
	t := newTally("dd", inSeconds(c.seconds))
	t.unfailing = true
	t.figure(result.Measure{Name: "bandwidth", Unit: "bytes/s", Better: result.Higher, Kind: result.Level},
		c.bytes/c.seconds)
	t.asked("bytes", fmt.Sprintf("%.0f", c.bytes))
	t.notes = append(t.notes, "only the last line of dd is there: how many records it copied, and whether it met errors, is "+
		"not known")
	return t.done()
}

// iozoneTests are the columns of iozone's table by the number of -i that asks for them, in their order.
var iozoneTests = [][]string{{"write", "rewrite"}, {"read", "reread"}, {"random read", "random write"}, {"bkwd read"},
	{"record rewrite"}, {"stride read"}, {"fwrite", "frewrite"}, {"fread", "freread"}}

// iozoneColumns are the columns that a command line asks for: all unless it names some.
func iozoneColumns(call string) (out []string) {
	named := iozoneAsks.FindAllStringSubmatch(call, 20)
	for i, tests := range iozoneTests {
		if named == nil || slices.ContainsFunc(named, func(m []string) bool { return m[1] == strconv.Itoa(i) }) {
			out = append(out, tests...)
		}
	}
	return out
}

func readIozone(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "iozone"}
	columns, asks, inTable := iozoneColumns(""), false, false
	var each, record float64
	var began time.Time
	other, from, ended, ops, cache := "", 0, false, false, ""
	end := func() {
		if !ended && len(b.stretches) > from {
			b.broke(from, "it does not say that iozone came to its end: the run, or the file, is cut short")
		}
		from, ended, ops, inTable, columns, asks = len(b.stretches), false, false, false, iozoneColumns(""), false
		cache = ""
	}
	add := func(test string, bytes, size, rate, processes float64) {
		length := inSeconds(bytes / 1024 / rate)
		if rate <= 0 || length == 0 {
			return
		}
		t := newTally(fmt.Sprintf("iozone %s, %.0f KiB in %.0f KiB", test, bytes/1024/processes, size/1024), length)
		op := someReads
		switch {
		case strings.Contains(test, "mix"): // of both, which it does not tell apart
			op = result.Operation{Name: "mixed", Noun: "records"}
		case strings.Contains(test, "writ"):
			op = someWrites
		}
		t.unfailing = true
		t.did(op, bytes/size, bytes, 0)
		t.concurrency = processes
		t.asked("test", test)
		t.asked("record", fmt.Sprintf("%.0f bytes", size))
		t.asked("file size", fmt.Sprintf("%.0f bytes", bytes/processes))
		t.asked("page cache", cache)
		t.notes = append(t.notes, "how long it took is worked out from the bytes and iozone's rate, which it gives in KiB/s or, "+
			"with -O, in operations")
		if !began.IsZero() && len(b.stretches) == 0 {
			t.start = began
		}
		if len(b.stretches) < mostStretches {
			b.stretches = append(b.stretches, t.done())
		} else {
			b.failure = fmt.Sprintf("more than %d tests: the others are left out, split the file", mostStretches)
		}
	}
	err := eachLine(r, func(at int, line []byte) error {
		text := lineText(line)
		if strings.HasPrefix(strings.TrimSpace(text), "Iozone: Performance Test") {
			end()
		} else if iozoneWrong.MatchString(text) {
			b.broke(from, oneLine(text))
		} else if m := iozoneVer.FindStringSubmatch(text); m != nil {
			b.tool = "iozone " + m[1]
		} else if m := iozoneRun.FindStringSubmatch(text); m != nil {
			if t, ok := localDate(m[1]); ok {
				began = t
				b.note(noZone)
			}
		} else if m := iozoneCall.FindStringSubmatch(text); m != nil {
			columns, asks = iozoneColumns(m[1]), strings.Contains(m[1], "-i")
			cache = "used"
			if slices.Contains(strings.Fields(m[1]), "-I") {
				cache = "bypassed"
			}
		} else if iozoneOps.MatchString(text) {
			ops = true
		} else if m := iozoneTimes.FindStringSubmatch(text); m != nil {
			other = strings.TrimSpace(m[0])
		} else if m := iozoneHead.FindStringSubmatch(text); m != nil {
			inTable = true
		} else if m := iozoneEach.FindStringSubmatch(text); m != nil {
			each, record = decimal(m[1], "")*1024, decimal(m[2], "")*1024
		} else if m := iozoneSees.FindStringSubmatch(text); m != nil && record > 0 {
			n, rate := decimal(m[1], ""), decimal(m[3], "")
			if m[4] != "" {
				rate *= record / 1024
			}
			add(m[2], n*each, record, rate, n)
		} else if m := iozoneRow.FindStringSubmatch(text); m != nil && inTable && other == "" {
			// Tests that were not asked for are blank; the first ones need no command line to be told.
			cells := strings.Fields(m[3])
			if n := len(cells); n > len(columns) || n < len(columns) && n != 2 && n != 4 && n != 6 ||
				n < len(columns) && asks {
				b.skip(at, "which of iozone's tests its %d values are of cannot be told", n)
				return nil
			}
			for i, v := range cells {
				rate, size := decimal(v, ""), decimal(m[2], "")
				if ops {
					rate *= size
				}
				add(columns[i], decimal(m[1], "")*1024, size*1024, rate, 1)
			}
		}
		ended = ended || iozoneEnded.MatchString(text)
		return nil
	})
	end()
	if other != "" && len(b.stretches) == 0 {
		b.failure = "iozone's output is not in KiB/s (" + other + "), which is not read: run it without -N"
	}
	return b, err
}

// bonnieCells is how many values the line of bonnie++ has at least.
const bonnieCells = 48

// bonnieRates are the fields of bonnie++'s line of values that are rates, in KiB/s or operations per second.
var bonnieRates = []struct {
	at    int
	name  string
	op    result.Operation
	bytes bool
}{
	{7, "writes, a character at a time", someWrites, true}, {9, "block writes", someWrites, true},
	{11, "rewrites", someWrites, true}, {13, "reads, a character at a time", someReads, true},
	{15, "block reads", someReads, true}, {17, "seeks", someReads, false},
}

func readBonnie(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "bonnie++"}
	err := eachLine(r, func(n int, line []byte) error {
		text := strings.TrimSpace(strings.ToValidUTF8(string(line), "?"))
		for part := range strings.SplitSeq(text, "...") { // it says what it does, and in the same line what went wrong
			if bonnieWrong.MatchString(part) {
				b.lost = cmp.Or(b.lost, "bonnie++ says: "+oneLine(part))
			}
		}
		cells := strings.Split(text, ",")
		old := bonnieOld.MatchString(text)
		if old {
			cells = slices.Concat([]string{"1.03", "1.03", cells[0], "1", "", cells[1], ""}, cells[2:])
		} else if !bonnieAny.MatchString(text) {
			return nil
		}
		if len(cells) < 20 {
			b.skip(n, "%d values, and bonnie++ writes %d", len(cells), bonnieCells)
			return nil
		}
		if len(cells) < bonnieCells && !old {
			b.failure = fmt.Sprintf("its line of values has %d, and bonnie++ writes %d: the file is cut short", len(cells),
				bonnieCells)
		}
		b.tool = "bonnie++ " + oneLine(cells[1])
		size := float64(0)
		if i := strings.IndexFunc(cells[5], func(r rune) bool { return r < '0' || r > '9' }); i > 0 {
			size = binary(cells[5][:i], strings.ToUpper(cells[5][i:i+1]))
		} else {
			size = binary(cells[5], "M")
		}
		shift := 0
		if form, _ := strconv.ParseFloat(cells[0], 64); form >= 1.98 {
			shift = 2 // how it seeks comes before
		}
		for i, f := range bonnieRates {
			if f.at += shift; f.at+1 >= len(cells) {
				break
			}
			rate, err := strconv.ParseFloat(cells[f.at], 64)
			if err != nil || !(rate > 0) { // too short to tell (+++++), or left out
				continue
			}
			t := newTally("bonnie++ "+f.name, 0)
			t.unfailing = true
			if f.bytes { // in calls of which it says neither the number nor the size
				t.length = inSeconds(size / 1024 / rate)
				t.figure(result.Measure{Name: "bandwidth", Unit: "bytes/s", Better: result.Higher, Kind: result.Level},
					rate*1024)
			} else {
				const seeks = 8192
				t.length = inSeconds(seeks / rate)
				t.did(f.op, seeks, 0, 0)
			}
			t.report.Elapsed = t.length
			t.notes = append(t.notes, "how long it took is worked out from bonnie++'s rate")
			t.concurrency = decimal(cells[3], "")
			t.asked("size", cells[5])
			if cpu, err := strconv.ParseFloat(cells[f.at+1], 64); err == nil {
				t.figure(level("process_cpu", "%"), cpu) // of one processor
			}
			if most, err := time.ParseDuration(cells[max(len(cells)-12+i, 0)]); err == nil &&
				len(cells) >= bonnieCells { // the last 12 are latencies
				t.figure(single(f.op.Name+"_max", "us"), float64(most)/1e3)
			}
			b.stretches = append(b.stretches, t.done())
		}
		return nil
	})
	return b, err
}

func readIOR(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "ior"}
	var columns []string
	var began time.Time
	facts := map[string]string{}
	from, ended, call := 0, false, ""
	var rows []string // what was reported, in turn
	end := func() {
		begun := len(facts) > 0 || len(b.stretches) > from
		if begun && !ended && !iorReported(rows, call, facts["repetitions"]) {
			b.broke(from, "it does not say that IOR came to its end: the run, or the file, is cut short")
		}
		from, ended, call, rows, columns, began = len(b.stretches), false, "", nil, nil, time.Time{}
		clear(facts)
	}
	err := eachLine(r, func(n int, line []byte) error {
		text := lineText(line)
		if m := iorVer.FindStringSubmatch(text); m != nil {
			end()
			b.tool = oneLine(m[1])
		} else if m := iorBegan.FindStringSubmatch(text); m != nil {
			if at, ok := localDate(m[1]); ok {
				began = at
				b.note(noZone)
			}
		} else if m := iorCall.FindStringSubmatch(text); m != nil {
			call = m[1]
		} else if m := iorAsked.FindStringSubmatch(text); m != nil {
			facts[m[1]] = m[2]
		} else if iorHead.MatchString(text) {
			columns = strings.Fields(text)
		} else if iorRow.MatchString(text) && columns != nil {
			cells := strings.Fields(text)
			row := figures{}
			for i, c := range cells {
				if v, err := quantity(c); err == nil && i < len(columns) {
					row[columns[i]] = v
				}
			}
			s, ok := iorTest(cells[0], row, facts)
			if !ok {
				return nil
			}
			if !began.IsZero() {
				s.start, began = began, time.Time{}
			}
			b.stretches, rows = append(b.stretches, s), append(rows, cells[0])
		} else if iorWrong.MatchString(text) {
			b.broke(from, oneLine(text))
		} else if m := iorWarns.FindStringSubmatch(text); m != nil && len(b.notes) < mostSkipped {
			b.note("IOR warns: " + oneLine(m[1]))
		} else if iorSummary.MatchString(text) {
			ended, columns = true, nil // its rows are of all repetitions, under other columns
		}
		return nil
	})
	end()
	return b, err
}

// iorReported reports whether all that a command line of IOR asks for was reported: as a library (IO500's) it prints no
// summary.
func iorReported(rows []string, call, repetitions string) bool {
	asks := map[string]bool{}
	for _, option := range strings.Fields(call) {
		switch option {
		case "-w":
			asks["write"] = true
		case "-r":
			asks["read"] = true
		}
	}
	for access := range asks {
		n := 0
		for _, row := range rows {
			if row == access {
				n++
			}
		}
		if strconv.Itoa(n) != repetitions {
			return false
		}
	}
	return len(asks) > 0
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// end makes a stretch of a bench that came to its totals.
func (o *radosBench) end(b *book) error {
	total := o.total
	seconds := total.or("Total time run")
	if o.kind == "" && total.has("Total writes made") {
		o.kind = "write"
	}
	ops, noun := total.or("Total reads made"), someReads
	if o.kind == "write" {
		ops, noun = total.or("Total writes made"), someWrites
	}
	size := max(total.or("Write size"), total.or("Read size"))
	if size == 0 {
		size = total.or("Object size")
	}
	if seconds == 0 {
		if len(o.rows) > 0 || o.wrong != "" {
			b.lost = cmp.Or(b.lost, o.wrong, "it ends before the totals of a bench, which is left out")
		}
		return nil
	}
	t := newTally("rados bench "+cmp.Or(o.kind, "read"), inSeconds(seconds))
	t.failure = o.wrong
	t.did(noun, ops, ops*size, total.or("Average Latency"))
	t.concurrency = o.concurrency
	t.asked("test", cmp.Or(o.kind, "read"))
	t.asked("block size", fmt.Sprintf("%.0f bytes", size))
	for _, f := range []struct{ name, of string }{{noun.Name + "_max", "Max latency"},
		{noun.Name + "_min", "Min latency"}} {
		if total.has(f.of) {
			t.figure(single(f.name, "s"), total[f.of])
		}
	}
	if !total.has("Min latency") {
		t.failure = cmp.Or(t.failure, "it ends within the totals of a bench: the file is cut short")
	}
	s := t.done()
	for _, row := range o.rows {
		if row.Elapsed < s.length && row.Ops[0].Ops <= s.reports[0].Ops[0].Ops {
			row.Ops[0].Bytes = row.Ops[0].Ops * whole(size)
			row.Values = gaps(len(s.measures))
			s.reports = slices.Insert(s.reports, len(s.reports)-1, row)
		}
	}
	b.stretches = append(b.stretches, s)
	return b.tooMany("benches")
}

// readRados reads one bench after another, with its course.
func readRados(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "rados bench"}
	one := &radosBench{total: figures{}}
	end := func() error {
		err := one.end(b)
		one = &radosBench{total: figures{}}
		return err
	}
	err := eachLine(r, func(_ int, line []byte) error {
		text := lineText(line)
		over := one.total.has("Total time run")
		if radosWrong.MatchString(text) {
			one.wrong = cmp.Or(one.wrong, "rados bench says: "+oneLine(text))
		}
		if m := radosAsked.FindStringSubmatch(text); m != nil {
			err := end()
			one.kind, one.concurrency = map[string]string{"writes": "write"}[m[2]], decimal(m[1], "")
			return err
		}
		if over && strings.HasPrefix(strings.TrimSpace(text), "hints = ") {
			return end()
		}
		if m := radosRow.FindStringSubmatch(text); m != nil {
			if over {
				if err := end(); err != nil {
					return err
				}
			}
			one.moment(inSeconds(decimal(m[1], "")), whole(decimal(m[4], "")))
		} else if m := radosFigure.FindStringSubmatch(text); m != nil {
			if over && m[1] == "Total time run" {
				if err := end(); err != nil {
					return err
				}
			}
			if v, err := quantity(m[2]); err == nil {
				one.total[strings.TrimSuffix(m[1], "(s)")] = v // in seconds with and, before Jewel, without saying so
			}
		}
		return nil
	})
	return b, errors.Join(err, end())
}
