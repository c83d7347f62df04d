// Package importer reads what other tools left (fio, sysbench, pgbench, vmstat, iostat, sar and more) and makes run
// folders of it, so that reports, analyses and comparisons of such files are those of any run.
//
// It stands before the run folder: a file goes in, and a folder comes out that holds it as raw output with the
// description by which the same engine reads it again. What a tool left is recognised by its content; a user may say
// what it is. Nothing is guessed in silence: a file of no known form is refused with the forms there are, a form that
// holds too little is refused with what to do, and what a file cannot show is listed.
//
// Percentiles that a tool printed stay that tool's figures: they are combined with nothing. Histograms are merged. All
// files are read as streams, bounded in the length of lines, in the number of columns and in memory.
package importer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/command"
	"plimsoll/internal/workloads/fio"
	"plimsoll/internal/workloads/pgbench"
	"plimsoll/result"
)

// HeadBytes is how much of a file Recognise needs at most.
const HeadBytes = 256 << 10

// reader reads one form of file. Its name is what a user forces it by.
type reader struct {
	name      string
	holds     string                 // in a sentence, for lists
	host      bool                   // counters of a machine, not of a load
	recognise func(head []byte) bool // nil: only when it is forced
	prepare   func(*Reading, *given) error
	book      bool // it may hold several runs, one after another; prepare is nil then
	// parts says of a form of which a file may hold several how each is read; each is prepared.
	parts func(reader, *given) ([]*Reading, error)
	// advice says, of a form that holds too little or is not read, what to do instead; prepare is nil then.
	advice string
}

// readers are all there are; the first that recognises a file reads it.
func readers() []reader {
	return slices.Concat(wrapped(), fioReaders(), sysbenchReaders(), pgbenchReaders(), hostReaders(), diskReaders(),
		vdbenchReaders(), hammerReaders(), elbenchoReaders(), summaryReaders(), tpccReaders(), fileToolReaders(),
		k6Readers(), requestReaders(), webReaders(), requestLogReaders(),
		loadTableReaders(),
		refusedReaders())
}

// given is a file while it is looked at.
type given struct {
	name     string
	content  io.ReadSeeker
	head     []byte
	modified time.Time
	interval time.Duration
	beside   bool // modified is by the clock of the files beside it
	lengths  map[string]time.Duration
}

// Options are what a user may say of a file.
type Options struct {
	As       string        // name of a reader; "" to recognise it
	Interval time.Duration // between the samples of a file that does not say it; 0 when not known
	Ended    time.Time     // of a file without a clock: when it ended, as those beside it say; zero when not known
	// Lengths are how long the workloads of the files beside it were measured, by their names.
	Lengths map[string]time.Duration
}

// Reading says what a file is and how it is read.
type Reading struct {
	As       string // the reader
	Tool     string // and its version, as far as the file says
	Workload string
	Engine   string
	Declared workload.Declared
	Latency  string
	Start    time.Time
	End      time.Time
	Dated    string // by what clock
	Reports  int
	Host     bool // it holds counters of a machine
	// Concurrency is how many were at work at once, as far as the file says; 0 where it does not.
	Concurrency float64
	Streams     []result.Stream // what its jobs did, as far as the file says
	Apart       bool            // its reports tell the streams apart
	Notes       []string        // what a reader must know
	Unseen      []string        // what such a file cannot show
	Failure     string          // what the tool says of an error that ended its work
	Lost        string          // what the tool says of a test in the file that failed and left no figures
	Unfailing   bool            // the file does not tell operations that failed
	Again       bool            // what it did is counted in another workload as well
	Facts       []result.Fact   // what was asked of the tool, as far as the file says: unlike ones are not compared

	dated string // a date that the file itself gives its end
}

// Form describes one kind of file that an import reads.
type Form struct {
	Name  string // for --as
	Holds string
}

// Forms lists what is read.
func Forms() []Form {
	var out []Form
	for _, r := range readers() {
		if r.advice == "" {
			out = append(out, Form{r.name, r.holds})
		}
	}
	return out
}

func names() string {
	var out []string
	for _, f := range Forms() {
		out = append(out, f.Name)
	}
	return strings.Join(out, ", ")
}

// ErrEmpty is of a file that holds nothing, as fio's logs of what its engine does not measure.
var ErrEmpty = errors.New("it is empty")

// ErrUnknown is of a file that is of no known form.
var ErrUnknown = errors.New("it is no output of a tool that is known here")

// Recognise says by which reader a file that begins so would be read, and whether it holds counters of a machine rather
// than a load. known is false when it is of no form; a form that is known and not read has an advice.
func Recognise(head []byte) (name string, host, known bool, advice string) {
	r, known := recognised(plainHead(head))
	return r.name, r.host, known, r.advice
}

// lately are the heads that were looked at last, by their sums: a command asks of the same file several times, and to
// see that a large head is of no form every pattern has to go through it.
var lately struct {
	sync.Mutex
	of map[[sha256.Size]byte]recognition
}

type recognition struct {
	reader
	known bool
}

const mostLately = 64

// recognised is the first reader that recognises a head.
func recognised(head []byte) (reader, bool) {
	sum := sha256.Sum256(head)
	lately.Lock()
	was, there := lately.of[sum]
	lately.Unlock()
	if there {
		return was.reader, was.known
	}
	var now recognition
	for _, r := range readers() {
		if r.recognise != nil && r.recognise(head) {
			now = recognition{r, true}
			break
		}
	}
	lately.Lock()
	defer lately.Unlock()
	if lately.of == nil || len(lately.of) >= mostLately {
		lately.of = map[[sha256.Size]byte]recognition{}
	}
	lately.of[sum] = now
	return now.reader, now.known
}

// End is the end of a text that is longer than what Recognise looks at, from the begin of a line: a job's own words may
// stand before what the tool printed. It is nil where there is none.
func End(content io.ReadSeeker) []byte {
	size, err := content.Seek(0, io.SeekEnd)
	if err != nil || size <= HeadBytes {
		return nil
	}
	if _, err := content.Seek(-HeadBytes, io.SeekEnd); err != nil {
		return nil
	}
	end, err := io.ReadAll(io.LimitReader(content, HeadBytes))
	at := bytes.IndexByte(end, '\n')
	if err != nil || at < 0 || bytes.IndexByte(end, 0) >= 0 {
		return nil
	}
	return end[at+1:]
}

func plainHead(head []byte) []byte {
	return bytes.TrimPrefix(head[:min(len(head), HeadBytes)], []byte("\ufeff"))
}

// Prepare looks through a file and says how it is read: as one run, or, of a tool that does several one after another,
// as several. The name is used for messages and, of fio's logs, for the kind of log, which their content does not say;
// modified dates what has no clock of its own.
func Prepare(name string, content io.ReadSeeker, modified time.Time, o Options) ([]*Reading, error) {
	g := &given{name: name, content: content, modified: modified, interval: o.Interval,
		lengths: o.Lengths}
	if !o.Ended.IsZero() {
		g.modified, g.beside = o.Ended, true
	}
	beginning, err := g.rewound()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	head, err := io.ReadAll(io.LimitReader(beginning, HeadBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if g.head = plainHead(head); len(bytes.TrimSpace(g.head)) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrEmpty)
	}
	r, err := choose(g, o.As)
	if end := End(content); errors.Is(err, ErrUnknown) && end != nil {
		head := g.head
		g.head = end
		if at, known := choose(g, ""); known == nil {
			r, err = at, nil
		} else {
			g.head = head
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := r.readings(g)
	switch {
	case err != nil && strings.HasSuffix(err.Error(), "unexpected EOF"): // as decoders say it
		said := strings.TrimSuffix(strings.TrimSuffix(err.Error(), "unexpected EOF"), "ends early: ")
		if !strings.HasSuffix(said, "JSON ") {
			said += "it "
		}
		return nil, fmt.Errorf("%s: %s: %sends early: the file is cut short", name, r.name, said)
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", name, r.name, err)
	}
	if broken, err := g.endsWithin(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	} else if last := out[len(out)-1]; broken && last.Failure == "" {
		last.Notes = append(last.Notes, "its last line has no end: if the file was cut there, what followed is missing")
	}
	return out, nil
}

// endsWithin reports whether a text ends within a line, as tools' texts do not. Of JSON and XML it says nothing: what
// is cut there cannot be read.
func (g *given) endsWithin() (bool, error) {
	if treeAny.Match(g.head) {
		return false, nil
	}
	if _, err := g.content.Seek(-1, io.SeekEnd); err != nil {
		return false, err
	}
	var last [1]byte
	_, err := io.ReadFull(g.content, last[:])
	return last[0] != '\n' && last[0] != '\r', err
}

// treeAny is the beginning of JSON and of XML.
var treeAny = lazyregexp.New(`^\s*(?:[{\[]|<\?xml|<Results>|<testResults )`)

// readings are how a file is read.
func (r reader) readings(g *given) ([]*Reading, error) {
	appended, err := g.appended(r)
	if err != nil {
		return nil, err
	}
	if r.book || appended {
		return prepareBook(r, g)
	}
	if r.parts != nil {
		return r.parts(r, g)
	}
	out := &Reading{As: r.name, Workload: r.name, Host: r.host, Latency: "service time", Engine: Name}
	if err := r.prepare(out, g); err != nil {
		return nil, err
	}
	return []*Reading{out}, out.date(g)
}

// appended reports whether a file holds several tests of a tool whose reader takes one.
func (g *given) appended(r reader) (bool, error) {
	if r.name != sysbenchText {
		return false, nil
	}
	in, err := g.rewound()
	if err != nil {
		return false, err
	}
	n := 0
	err = eachLine(in, func(_ int, line []byte) error {
		if sysbenchHead.Match(line) {
			n++
		}
		return nil
	})
	return n > 1 && err == nil, nil // what cannot be read is said by the one who reads it
}

func choose(g *given, as string) (reader, error) {
	if as != "" {
		all := readers()
		i := slices.IndexFunc(all, func(r reader) bool { return r.name == as && r.advice == "" })
		if i < 0 {
			return reader{}, fmt.Errorf("no tool %q is known; there are: %s", as, names())
		}
		return all[i], nil
	}
	if r, known := recognised(g.head); known && r.advice != "" {
		return reader{}, fmt.Errorf("it is %s: %s", r.holds, r.advice)
	} else if known {
		return r, nil
	}
	if like := resembles(g.head); like != "" {
		return reader{}, fmt.Errorf("%w: it looks like %s", ErrUnknown, like)
	}
	return reader{}, fmt.Errorf("%w; what is known: %s (--as says which one it is)", ErrUnknown, names())
}

// rewound is the file from its beginning.
func (g *given) rewound() (io.Reader, error) {
	_, err := g.content.Seek(0, io.SeekStart)
	return g.content, err
}

// Engines are those that read what an import can hold.
func Engines() map[string]workload.Engine {
	return map[string]workload.Engine{"fio": fio.Engine{}, command.Name: command.Engine{},
		pgbench.Name: pgbench.Engine{},
		Name:         Engine{}}
}

var parsing = lazyregexp.New(`^parse: (?:[a-z0-9 ]+ output: |fio (?:histogram )?log: )?`)

// unparsed says why a file could not be read, beside the name of its tool.
func unparsed(err error) string {
	text := err.Error()
	return text[len(parsing.FindString(text)):]
}

// date reads the file once from end to end and finds when it was measured.
func (d *Reading) date(g *given) error {
	r, err := g.rewound()
	if err != nil {
		return err
	}
	p := probe{}
	outcome, err := Engines()[d.Engine].Parse(d.Declared, r, &p)
	switch {
	case err != nil && p.reports == 0:
		return errors.New(unparsed(err))
	case err != nil:
		d.Notes = append(d.Notes, unparsed(err))
	case p.reports == 0:
		return errors.New("it holds no figures")
	}
	d.Failure = cmp.Or(outcome.Failure, d.Failure)
	if said := strings.TrimSpace(fioPreamble.ReplaceAllString(outcome.Message, "")); said != "" && d.Engine == "fio" {
		d.Notes = append(d.Notes, "fio says: "+workload.FirstLines(said, 3))
	}
	d.Reports = p.reports
	if p.reports == 1 && !d.Host {
		d.Unseen = append(d.Unseen, wholeOnly)
	}
	told := slices.ContainsFunc(d.Unseen, func(u string) bool { return strings.HasPrefix(u, "percentiles") })
	if !p.histograms && !told && !d.Host && len(d.Declared.Operations) > 0 {
		d.Unseen = append(d.Unseen,
			"percentiles of latency but those that the tool printed: the file holds no histogram")
	}
	if !p.first.IsZero() {
		d.Start, d.End, d.Dated = p.first.Add(-p.firstElapsed), p.last, cmp.Or(d.Dated, ownClock)
	} else {
		d.Start = wholeSecond(g.modified, p.elapsed)
		d.End = d.Start.Add(p.elapsed)
		d.Dated = cmp.Or(d.dated, noClock)
	}
	d.Start, d.End = d.Start.UTC(), d.End.UTC()
	if !d.End.After(d.Start) {
		return errors.New("it does not say over what time it was measured")
	}
	if year := d.Start.Year(); year < 1990 || year > 2200 {
		return fmt.Errorf("its times lead to the year %d", year)
	}
	return nil
}

// wholeSecond is when something began that ended at a time that only its file's date tells. It is a whole second: what
// is made of the same file has the same figures second by second, whenever the file was copied.
func wholeSecond(ended time.Time, lasted time.Duration) time.Time {
	return ended.Add(-lasted).Round(time.Second)
}

// asked is a fact of what was asked of a tool.
func asked(name, value string) result.Fact {
	return result.Fact{Name: name, Value: value, Across: result.MustAgree}
}

// probe notes what a file spans.
type probe struct {
	reports      int
	first, last  time.Time
	firstElapsed time.Duration
	elapsed      time.Duration
	histograms   bool
}

// Report implements workload.Sink.
func (p *probe) Report(r workload.Report) {
	if p.reports++; p.reports == 1 {
		p.first, p.firstElapsed = r.Time, r.Elapsed
	}
	if r.Time.After(p.last) {
		p.last = r.Time
	}
	p.elapsed = max(p.elapsed, r.Elapsed)
	for _, c := range r.Ops {
		p.histograms = p.histograms || c.Hist != nil
	}
}

// Warn implements workload.Sink. What is skipped is said when the folder is collected.
func (p *probe) Warn(string) {}

// gaps is a report's values before any is known.
func gaps(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// level declares what held over the time since the report before: a window has its mean weighted by time.
func level(name, unit string) result.Measure {
	return result.Measure{Name: name, Unit: unit, Kind: result.Level}
}

// overTime stands in the place of a kind of latency where a file has none.
const overTime = "means over time"
