package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

var (
	elbenchoCall  = lazyregexp.New(`^COMMAND LINE: (.*)$`)
	elbenchoWords = lazyregexp.New(`"((?:[^"\\]|\\.)*)"`)
)

// elbenchoAsks are the options of a command line that say what was asked, by the names of facts.
var elbenchoAsks = map[string][]string{"threads": {"-t", "--threads"}, "IO depth": {"--iodepth"},
	"block size": {"-b", "--block"}, "file size": {"-s", "--size"}, "hosts": {"--hosts"}}

// elbenchoAsked reads what a command line asks for, and how many I/Os are at work at once by it, 0 where it does not
// say how many machines there are.
func elbenchoAskedBy(call string) (facts []result.Fact, concurrency float64) {
	said := map[string]string{"threads": "1", "IO depth": "1"} // what they are where a call does not say
	flags := map[string]string{"--direct": "direct IO", "--rand": "random"}
	words := elbenchoWords.FindAllStringSubmatch(call, mostColumns)
	for i, w := range words {
		word, value, inOne := strings.Cut(w[1], "=")
		if !inOne && i+1 < len(words) {
			value = words[i+1][1]
		}
		if name := flags[word]; name != "" {
			said[name] = "1"
		}
		for name, options := range elbenchoAsks {
			if slices.Contains(options, word) {
				said[name] = value
			}
		}
		if word == "--hostsfile" || word == "-c" || word == "--configfile" {
			return nil, 0
		}
	}
	concurrency = decimal(said["threads"], "") * max(1, decimal(said["IO depth"], ""))
	if hosts := said["hosts"]; hosts != "" {
		concurrency *= float64(1 + strings.Count(hosts, ","))
		if strings.ContainsAny(hosts, "[]") { // a range of names
			concurrency = 0
		}
	}
	for _, name := range elbenchoAsked {
		if v := said[name]; v != "" && name != "hosts" {
			facts = append(facts, asked(name, v))
		}
	}
	return facts, concurrency
}

// elbenchoElapsed reads a time as the table has it: in milliseconds, or like 1m39.973s.
func elbenchoElapsed(what, text string) (time.Duration, error) {
	if strings.HasSuffix(what, " ms") {
		v, err := quantity(text)
		return milliseconds(v), err
	}
	d, err := time.ParseDuration(strings.ReplaceAll(text, ":", ""))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%.40q is no time", text)
	}
	return d, nil
}

// elbenchoMicroseconds reads a latency, which newer versions print with a unit.
func elbenchoMicroseconds(text string) float64 {
	if v, err := quantity(text); err == nil {
		return v
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return float64(d) / float64(time.Microsecond)
	}
	return math.NaN()
}

// readElbenchoText reads tables of results.
func readElbenchoText(_ format, r io.Reader) (*book, error) {
	b := &elbenchoBook{}
	var p *elbenchoPhase
	var start time.Time
	var rates, readRates float64
	var facts []result.Fact // of the call whose phases follow
	concurrency, lines := 0.0, false
	finish := func() error {
		if p != nil {
			seconds := p.length.Seconds()
			if !positive(p.main.ios) {
				p.main.ios = rates * seconds
			}
			if !positive(p.read.ios) {
				p.read.ios = readRates * seconds
			}
		}
		err := b.add(p)
		p, rates, readRates = nil, math.NaN(), math.NaN()
		return err
	}
	err := eachLine(r, func(n int, raw []byte) error {
		text := strings.TrimRight(string(bytes.ToValidUTF8(raw, []byte("?"))), " \t\r")
		if m := elbenchoDate.FindStringSubmatch(text); m != nil {
			if at, zoned, _ := isoDate(m[1]); !at.IsZero() {
				if start = at; !zoned {
					b.book.note(elbenchoLocal)
				}
			}
			return nil
		}
		if m := elbenchoCall.FindStringSubmatch(text); m != nil {
			facts, concurrency = elbenchoAskedBy(m[1])
			return nil
		}
		lines = lines || strings.HasPrefix(text, "---")
		if head := strings.HasPrefix(text, "OPERATION "); head || strings.HasPrefix(text, "---") {
			n, open := len(b.book.stretches), p != nil
			if err := finish(); err != nil || !head || !open {
				return err
			}
			b.book.broke(n, "no line (---) ends a phase: it, or what was written of it, was cut short")
			return nil
		}
		if elbenchoWrong.MatchString(text) {
			b.book.broke(len(b.book.stretches), "elbencho says: "+oneLine(text))
			return nil
		}
		if m := elbenchoLat.FindStringSubmatch(text); m != nil && p != nil {
			l := p.latency(m[1], m[2])
			l.min, l.avg, l.max = elbenchoMicroseconds(m[3]), elbenchoMicroseconds(m[4]), elbenchoMicroseconds(m[5])
			return nil
		}
		if m := elbenchoPct.FindStringSubmatch(text); m != nil && p != nil {
			l := p.latency(m[1], m[2])
			for _, q := range elbenchoOne.FindAllStringSubmatch(m[3], 12) {
				if l.stated == nil {
					l.stated = map[string]float64{}
				}
				l.stated[q[1]] = number(q[2])
			}
			return nil
		}
		m := elbenchoRow.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		what := m[2]
		if strings.HasPrefix(what, "Elapsed") && m[1] != "" {
			if err := finish(); err != nil {
				return err
			}
			p = newElbenchoPhase()
			p.name, p.start, p.facts, p.concurrency = m[1], start, facts, concurrency
			start = time.Time{}
			first, err := elbenchoElapsed(what, m[3])
			last, err2 := elbenchoElapsed(what, m[4])
			if err := errors.Join(err, err2); err != nil {
				b.book.skip(n, "%v", err)
				p = nil
				return nil
			}
			p.first, p.length = first, last
			return nil
		}
		if p == nil || m[1] != "" {
			return nil
		}
		first, err := quantity(m[3])
		last, err2 := quantity(m[4])
		if err := errors.Join(err, err2); err != nil {
			if !strings.HasSuffix(what, "each") {
				b.book.skip(n, "%v, in %q", err, what)
			}
			return nil
		}
		switch what {
		case "IOPS", "IOPS write":
			rates, p.main.firstRate = last, first
		case "IOPS read":
			readRates, p.read.firstRate = last, first
		case "IOs total", "IOs write":
			p.main.ios = last
		case "IOs read":
			p.read.ios = last
		case "Total MiB", "MiB write":
			p.main.bytes = last * (1 << 20)
		case "MiB read":
			p.read.bytes = last * (1 << 20)
		case "Files total", "Dirs total", "Objects total", "Buckets total", "Files write", "Objects write",
			"Entries total", "Total files", "Total dirs":
			if !positive(p.main.entries) {
				p.main.entries = last
			}
		case "Files/s", "Dirs/s", "Objects/s", "Buckets/s", "Entries/s", "Files/s write", "Objects/s write":
			p.main.entryRate = last
		case "Files read", "Objects read":
			p.read.entries = last
		case "CPU util %":
			p.cpu = last
		}
		return nil
	})
	open := p != nil
	err = errors.Join(err, finish())
	if n := len(b.book.stretches); open && n > 0 && lines {
		b.book.failure = "no line (---) ends its last phase, as one ends the others: it, or the file, is cut short"
	} else if open && n > 0 {
		s := &b.book.stretches[n-1]
		s.notes = append(s.notes, "no line (---) ends it: if the file was cut there, what followed is missing")
	}
	return b.done(err)
}

// latency is where the table's times of I/Os or of entries go.
func (p *elbenchoPhase) latency(what, side string) *elbenchoLatency {
	s := &p.main
	if strings.TrimSpace(side) == "rd" {
		s = &p.read
	}
	if what == "IO" {
		return &s.io
	}
	return &s.entry
}
