package importer

import (
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
	"plimsoll/result"
)

// stretch is a part of a file that stands for itself: a run definition of vdbench, a phase of elbencho, a test of
// HammerDB. Each becomes a workload of its own, for they had the machine one after another.
type stretch struct {
	workload    string
	operations  []result.Operation
	measures    []result.Measure
	concurrency float64           // how many were at work at once, 0 when the file does not say
	start       time.Time         // zero when the file does not say
	length      time.Duration     //
	reports     []workload.Report // by the time since the stretch began
	notes       []string
	unseen      []string
	latency     string // what its times are; "" for service times
	facts       []result.Fact
	unfailing   bool   // it does not tell operations that failed
	failure     string // what the tool says of an error that ended its work, or spoilt it
	beside      bool   // it is of the same time as the one before
	again       bool   // what it did is counted in another one too
	streams     []result.Stream
}

// book is all that a file of stretches holds.
type book struct {
	tool      string
	dated     string // by what clock, when not the tool's own
	stretches []stretch
	notes     []string // of the file as a whole
	failure   string   // of the file as a whole, such as its being cut short
	lost      string   // what it says of a test that failed and left no figures
	skipped   []string // lines that could not be read, with what stood in the way
}

// mostStretches and mostRows bound what a file of stretches is kept as.
const (
	mostStretches = 256
	mostRows      = 300_000
	mostSkipped   = 20
)

// tooMany objects to a file of more stretches than are kept, which its tool calls so.
func (b *book) tooMany(what string) error {
	if len(b.stretches) > mostStretches {
		return fmt.Errorf("more than %d %s: split the file", mostStretches, what)
	}
	return nil
}

// broke says of what the file holds up to here that it failed: of the last stretch since from, or, where none came of
// it, of the file.
func (b *book) broke(from int, why string) {
	if n := len(b.stretches); n > from {
		b.stretches[n-1].failure = cmp.Or(b.stretches[n-1].failure, why)
	} else {
		b.lost = cmp.Or(b.lost, why)
	}
}

// loses says of a file, with the last reading of it, that a test in it failed and left no figures.
func (d *Reading) loses(why string) {
	if d.Lost = why; why != "" {
		d.Notes = append(d.Notes, "another test in it left no figures: "+why)
	}
}

// skip notes a line that could not be read.
func (b *book) skip(line int, format string, args ...any) {
	if len(b.skipped) < mostSkipped {
		b.skipped = append(b.skipped, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
	} else if len(b.skipped) == mostSkipped {
		b.skipped = append(b.skipped, "further lines that cannot be read are not listed")
	}
}

// readings say how each stretch of a book is read.
func (b *book) readings(r reader, g *given, f format) ([]*Reading, error) {
	if len(b.stretches) > mostStretches {
		return nil, fmt.Errorf("it holds %d runs, more than %d: split it", len(b.stretches), mostStretches)
	}
	for i := range b.stretches {
		if length := g.lengths[strings.TrimSuffix(b.stretches[i].workload, histogramSuffix)]; r.name == vdbenchHist &&
			length > 0 {
			b.stretches[i].lasted(length)
		}
	}
	dated, err := b.date(g.modified)
	if err != nil {
		return nil, err
	}
	if dated == noClock && g.beside {
		dated = "the clock of the files beside it"
	}
	used := map[string]int{}
	var out []*Reading
	for i, s := range b.stretches {
		f.Part = i
		if f.Length = 0; r.name == vdbenchHist {
			f.Length = s.length.Seconds()
		}
		name := s.workload
		if used[name]++; used[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, used[name])
		}
		d := &Reading{As: r.name, Tool: b.tool, Workload: name, Engine: Name, Dated: dated,
			Latency: cmp.Or(s.latency, "service time"),
			Start:   s.start.UTC(), End: s.start.Add(s.length).UTC(), Reports: len(s.reports),
			Concurrency: s.concurrency, Streams: s.streams,
			Notes: slices.Concat(b.notes, b.skipped, s.notes), Unseen: s.unseen,
			Facts: s.facts, Unfailing: s.unfailing, Again: s.again, Failure: s.failure}
		if i == len(b.stretches)-1 {
			if d.Failure != "" && b.failure != "" {
				d.Failure += "; "
			}
			d.Failure += b.failure
			d.loses(b.lost)
		}
		d.Declared = workload.Declared{Operations: s.operations, Measures: s.measures, Format: f.json()}
		if len(s.reports) == 1 {
			d.Unseen = append(d.Unseen, wholeOnly)
		}
		if year := d.Start.Year(); year < 1990 || year > 2200 {
			return nil, fmt.Errorf("its times lead to the year %d", year)
		}
		out = append(out, d)
	}
	return out, nil
}

// date finds when each stretch began: by its own time, else after the one before, else so that the last ends when the
// file was changed last.
func (b *book) date(modified time.Time) (dated string, err error) {
	known := slices.IndexFunc(b.stretches, func(s stretch) bool { return !s.start.IsZero() })
	for i := range b.stretches {
		if b.stretches[i].length <= 0 {
			return "", fmt.Errorf("%s: it does not say over what time it was measured", b.stretches[i].workload)
		}
	}
	at := modified
	from := len(b.stretches)
	if dated = cmp.Or(b.dated, ownClock); known >= 0 {
		from, at = known, b.stretches[known].start
	} else {
		dated = noClock
		var all time.Duration
		for i, s := range b.stretches {
			if i+1 == from || !b.stretches[i+1].beside {
				all += s.length
			}
		}
		at = wholeSecond(modified, all).Add(all)
	}
	for i := from - 1; i >= 0; i-- {
		if i+1 < len(b.stretches) && b.stretches[i+1].beside {
			b.stretches[i].start = b.stretches[i+1].start
			continue
		}
		at = at.Add(-b.stretches[i].length)
		b.stretches[i].start = at
	}
	for i := range b.stretches {
		if s := &b.stretches[i]; s.start.IsZero() {
			if s.start = b.stretches[i-1].start; !s.beside {
				s.start = s.start.Add(b.stretches[i-1].length)
			}
		}
	}
	return dated, nil
}

// books are the readers of files of stretches, by name.
func books() map[string]func(format, io.Reader) (*book, error) {
	return map[string]func(format, io.Reader) (*book, error){
		vdbench: readVdbench, vdbenchFlat: readVdbench, vdbenchHist: readVdbench,
		hammerdb: readHammerText, hammerdbTcount: readHammerText, hammerdbProfile: readHammerText,
		hammerdbJSON: readHammerJSON, pgbenchText: readPgbench,
		elbencho: readElbenchoText, elbenchoCSV: readElbenchoCSV, elbenchoJSON: readElbenchoJSON,
		elbenchoLive: readElbenchoLive, diskspdXML: readDiskspdXML, diskspdText: readDiskspdText,
		sysbenchText: readSysbench,
		fioText:      readFioText, fioTerse: readFioTerse, ddText: readDD, iozoneText: readIozone,
		bonnieText: readBonnie, iorText: readIOR,
		radosText: readRados, k6Text: readK6Text, k6JSON: readK6JSON, k6Rows: readK6Rows, k6CSV: readK6CSV,
		iorJSON: readIORJSON, iorCSV: readIORCSV, radosJSON: readRadosJSON, benchBase: readBenchBase,
		goTPC: readGoTPC, tpccMySQL: readTPCCMySQL, wrkText: readWrk, ycsbText: readYCSB, ycsbJSON: readYCSBJSON,
		mdtestText: readMdtest,
		abText:     readAB, heyText: readHey, ohaJSON: readOhaJSON, vegetaJSON: readVegetaJSON, vegetaText: readVegeta,
		jmeterCSV: readJMeter, jmeterXML: readJMeterXML, benchBaseRaw: readBenchBaseRaw,
		heyCSV: readHeyCSV, vegetaCSV: readVegetaCSV, vegetaRows: readVegetaRows,
		redisText: readRedis, slapText: readSlap, locustStats: readLocust, locustHistory: readLocustHistory,
		memtierText: readMemtier, memtierJSON: readMemtierJSON,
	}
}

// prepareBook reads a file of stretches and says how each is read.
func prepareBook(r reader, g *given) ([]*Reading, error) {
	in, err := g.rewound()
	if err != nil {
		return nil, err
	}
	f := format{Reader: r.name, Seconds: g.interval.Seconds()}
	b, err := books()[r.name](f, in)
	switch {
	case err != nil && (b == nil || len(b.stretches) == 0):
		return nil, err
	case err != nil:
		b.failure = cmp.Or(b.failure, oneLine(err.Error()))
	case len(b.stretches) == 0 && len(b.skipped) > 0:
		return nil, fmt.Errorf("it holds no figures that can be read: %s", b.skipped[0])
	case len(b.stretches) == 0:
		return nil, errors.New(cmp.Or(b.failure, b.lost, "it holds no figures"))
	}
	return b.readings(r, g, f)
}

// parseBook replays one stretch of a file.
func parseBook(f format, d workload.Declared, r io.Reader, sink workload.Sink) error {
	b, err := books()[f.Reader](f, r)
	if b == nil || f.Part < 0 || f.Part >= len(b.stretches) {
		return errors.Join(err, fmt.Errorf("there is no part %d in it", f.Part+1))
	}
	s := b.stretches[f.Part]
	if len(s.operations) != len(d.Operations) || len(s.measures) != len(d.Measures) {
		return fmt.Errorf("part %d is not what it was when it was imported", f.Part+1)
	}
	for _, rep := range s.reports {
		sink.Report(rep)
	}
	return err
}

const (
	ownClock  = "the tool's own clock"
	noClock   = "the file's time of change, for the tool printed no clock"
	wholeOnly = "the course over time: the file holds one report, of the whole"
)

// quantity reads a figure that cannot be negative nor without end.
func quantity(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v < 1e15) {
		return 0, fmt.Errorf("%.40q is no figure", text)
	}
	return v, nil
}

// figures are numbers by name, NaN where a row has none.
type figures map[string]float64

// has reports whether a figure is there.
func (f figures) has(name string) bool {
	v, ok := f[name]
	return ok && !math.IsNaN(v)
}

// or is a figure, 0 where there is none.
func (f figures) or(name string) float64 {
	if v := f[name]; !math.IsNaN(v) {
		return v
	}
	return 0
}

// whole is a count made of a rate.
func whole(v float64) uint64 {
	if math.IsNaN(v) {
		return 0
	}
	return uint64(math.Round(min(max(v, 0), 1<<62)))
}

// single declares a figure of the tool's own making, which is combined with nothing.
func single(name, unit string) result.Measure {
	return result.Measure{Name: name, Unit: unit, Better: result.Lower, Kind: result.Single}
}

// oneLine is a text of a file as part of a name: short and on one line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}
