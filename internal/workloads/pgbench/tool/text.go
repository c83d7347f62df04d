package pgbench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/kit/lazyregexp"
)

var (
	progressLine = lazyregexp.New(`^progress: ([0-9.]+) s, ([0-9.]+) tps, lat ([0-9.]+|NaN|nan|-nan) ms`)
	failedPart   = lazyregexp.New(`, (\d+) failed`)
	headLine     = lazyregexp.New(`^pgbench \(([\w.]+)`)
	tpsLine      = lazyregexp.New(`^tps = ([0-9.]+) \((\w+ \w+)`)
	lagLine      = lazyregexp.New(`^rate limit schedule lag: avg ([0-9.]+) \(max ([0-9.]+)\) ms`)
	figureLine   = lazyregexp.New(`^([a-z][a-z ]+?)(?: above the [0-9.]+ ms latency limit)?(?: =|:) ([0-9.]+)(?:[ /].*)?$`)
	statements   = lazyregexp.New(`statement latencies in milliseconds(.*):$`)
	scriptLine   = lazyregexp.New(`^SQL script (\d+): (.{0,200})`)
	scriptCount  = lazyregexp.New(`^ - (\d+) transactions \([0-9.]+% of total(?:, tps = ([0-9.]+))?\)`)
	scriptDone   = lazyregexp.New(`^ - number of transactions actually processed: (\d+) \(tps = ([0-9.]+)\)`)
	scriptFigure = lazyregexp.New(`^ - (weight|latency average|number of failed transactions)(?: =|:) ([0-9.]+)`)
	troubleLine  = lazyregexp.New(`^(?:pgbench: )?(?:error|fatal): |^(?:ERROR|FATAL|PANIC): |^client \d+ .*\b(?:aborted|failed)\b|` +
		`^[Cc]onnection to database .* failed`)
	abortedLine  = lazyregexp.New(`\bclient \d+ .{0,200}\baborted\b`)
	scriptNumber = lazyregexp.New(`\bclient \d+ script (\d+)\b`)
	statement    = lazyregexp.New(`^\s+([0-9.]+)((?:\s+\d+){0,2})\s+(\S.*)$`)
)

// firstEpoch tells the two forms of progress apart: no benchmark lasts for thirty years.
const firstEpoch = 1e9

// Progress is a line that -P prints.
type Progress struct {
	Elapsed time.Duration // since the start; 0 with --progress-timestamp
	Time    time.Time     // with --progress-timestamp
	TPS     float64       // since the line before
	MeanMS  float64       // of the same time; NaN where nothing was done
	Failed  uint64        // of the same time
}

// Statement is a line of -r.
type Statement struct {
	Script int // from 0
	MeanMS float64
	Text   string // its first line
}

// ScriptTotals are what pgbench prints of one of several scripts. What it does not say is NaN.
type ScriptTotals struct {
	Name      string // as pgbench calls it: "<builtin: select only>", or the file's
	Weight    float64
	Processed float64
	Failed    float64
	MeanMS    float64
	TPS       float64
}

// Totals are what pgbench prints at its end. What it does not say is NaN, or "".
type Totals struct {
	Version    string
	Seconds    float64 // with -T
	Scale      float64
	Processed  float64
	Failed     float64
	Late       float64 // above --latency-limit
	Skipped    float64
	Retried    float64
	Retries    float64
	MeanMS     float64
	LagMS      float64 // behind the schedule of --rate
	LagMaxMS   float64
	ConnectMS  float64 // of all connections at the beginning (14 and later)
	TPS        float64 // without the time to connect
	TPSWith    float64 // with it
	Reconnects bool    // -C of 14 and later, which prints TPSWith alone
	Incomplete bool    // the run was aborted
	Statements []Statement
	Scripts    []ScriptTotals // of several
	Clients    float64
	PerClient  float64 // transactions of each client, with -t
	Type       string  // of transactions: the script's name, or "multiple scripts"
	Mode       string  // of queries
	Trouble    string  // the first line that says what went wrong
	Aborted    int     // clients that gave up, by lines that say so
}

// Text reads the lines that pgbench prints, whatever its version, standard output and error in any order.
type Text struct {
	totals  Totals
	began   bool
	figures map[string]*float64
	script  int
	within  bool // among statements
	counts  int  // of columns after a statement's time
}

func (t *Text) begin() {
	if t.began {
		return
	}
	t.began = true
	o := &t.totals
	t.figures = map[string]*float64{"duration": &o.Seconds, "scaling factor": &o.Scale,
		"number of transactions actually processed": &o.Processed, "number of failed transactions": &o.Failed,
		"number of transactions": &o.Late, "number of transactions skipped": &o.Skipped,
		"number of transactions retried": &o.Retried, "total number of retries": &o.Retries,
		"latency average": &o.MeanMS, "initial connection time": &o.ConnectMS, "number of clients": &o.Clients,
		"number of transactions per client": &o.PerClient}
	for _, f := range t.figures {
		*f = math.NaN()
	}
	o.LagMS, o.LagMaxMS, o.TPS, o.TPSWith = math.NaN(), math.NaN(), math.NaN(), math.NaN()
}

// Line takes a line without its end, and says whether it was one of progress.
func (t *Text) Line(line string) (Progress, bool) {
	t.begin()
	o := &t.totals
	if abortedLine.MatchString(line) {
		o.Aborted++
	}
	switch {
	case strings.HasPrefix(line, "progress: "):
		return progress(line)
	case strings.HasPrefix(line, "SQL script "):
		t.within = false
		if m := scriptLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1]) // digits; out of range stays large
			t.script = max(n-1, 0)
			if t.script == len(o.Scripts) && t.script < mostScripts {
				nan := math.NaN()
				o.Scripts = append(o.Scripts, ScriptTotals{strings.TrimSpace(m[2]), nan, nan, nan, nan, nan})
			}
		}
	case strings.HasPrefix(line, " - ") && !strings.Contains(line, "statement latencies"):
		t.ofScript(line)
	case strings.HasPrefix(line, "transaction type: "):
		o.Type = strings.TrimSpace(strings.TrimPrefix(line, "transaction type: "))
	case strings.HasPrefix(line, "query mode: "):
		o.Mode = strings.TrimSpace(strings.TrimPrefix(line, "query mode: "))
	case strings.HasPrefix(line, "tps = "):
		if m := tpsLine.FindStringSubmatch(line); m != nil {
			switch m[2] {
			case "excluding connections", "without initial":
				o.TPS = figure(m[1])
			case "including connections":
				o.TPSWith = figure(m[1])
			case "including reconnection":
				o.TPSWith, o.Reconnects = figure(m[1]), true
			}
		}
	case strings.HasPrefix(line, "rate limit schedule lag"):
		if m := lagLine.FindStringSubmatch(line); m != nil {
			o.LagMS, o.LagMaxMS = figure(m[1]), figure(m[2])
		}
	case strings.HasPrefix(line, "pgbench ("):
		if m := headLine.FindStringSubmatch(line); m != nil {
			o.Version = m[1]
		}
	case strings.HasPrefix(strings.ToLower(line), "run was aborted"), strings.Contains(line, ": Run was aborted"):
		o.Incomplete = true
	case o.Trouble == "" && troubleLine.MatchString(line):
		o.Trouble = line
	case strings.Contains(line, "statement latencies in milliseconds"):
		if m := statements.FindStringSubmatch(line); m != nil {
			t.within = true
			t.counts = strings.Count(m[1], "failures") + strings.Count(m[1], "retries")
		}
	case t.within && len(line) > 0 && (line[0] == ' ' || line[0] == '\t'):
		t.statement(line)
	default:
		if m := figureLine.FindStringSubmatch(line); m != nil && t.figures[m[1]] != nil {
			*t.figures[m[1]] = figure(m[2])
		}
	}
	return Progress{}, false
}

// Rate is the transactions per second that pgbench ends with, NaN where that line is missing.
func (t Totals) Rate() float64 {
	if t.Reconnects {
		return t.TPSWith
	}
	return t.TPS
}

// mostStatements and mostScripts bound what is kept of them.
const (
	mostStatements = 1000
	mostScripts    = 128 // as many as pgbench takes
)

// ofScript takes a figure of one of several scripts.
func (t *Text) ofScript(line string) {
	if t.script >= len(t.totals.Scripts) {
		return
	}
	s := &t.totals.Scripts[t.script]
	if m := scriptDone.FindStringSubmatch(line); m != nil { // where the line before counts those that failed, too
		s.Processed, s.TPS = figure(m[1]), figure(m[2])
		return
	}
	if m := scriptCount.FindStringSubmatch(line); m != nil {
		if s.Processed = figure(m[1]); m[2] != "" {
			s.TPS = figure(m[2])
		}
		return
	}
	if m := scriptFigure.FindStringSubmatch(line); m != nil {
		*map[string]*float64{"weight": &s.Weight, "latency average": &s.MeanMS,
			"number of failed transactions": &s.Failed}[m[1]] = figure(m[2])
	}
}

func (t *Text) statement(line string) {
	fields := strings.Fields(line)
	if len(fields) < 2+t.counts || len(t.totals.Statements) >= mostStatements {
		return
	}
	m := statement.FindStringSubmatch(line)
	if m == nil {
		return
	}
	text := strings.TrimSpace(line)
	for range 1 + t.counts {
		_, text, _ = strings.Cut(text, fields[0])
		text, fields = strings.TrimSpace(text), fields[1:]
	}
	t.totals.Statements = append(t.totals.Statements, Statement{t.script, figure(m[1]), text})
}

func progress(line string) (Progress, bool) {
	m := progressLine.FindStringSubmatch(line)
	if m == nil {
		return Progress{}, false
	}
	p := Progress{TPS: figure(m[2]), MeanMS: figure(m[3])}
	at := figure(m[1])
	if math.IsNaN(at) || math.IsNaN(p.TPS) || at > 1<<33 {
		return Progress{}, false
	}
	if at >= firstEpoch {
		p.Time = time.UnixMilli(int64(math.Round(at * 1e3))).UTC()
	} else {
		p.Elapsed = time.Duration(math.Round(at*1e3)) * time.Millisecond
	}
	if f := failedPart.FindStringSubmatch(line); f != nil {
		p.Failed, _ = strconv.ParseUint(f[1], 10, 48) // digits; too many are none
	}
	return p, true
}

// Failure says that clients gave up, how many of them and why the first did, "" where the run was not aborted.
func (t Totals) Failure() string {
	if !t.Incomplete && t.Aborted == 0 {
		return ""
	}
	said := "the run was aborted: what it counted is incomplete"
	if t.Aborted > 0 {
		of := ""
		if t.Clients >= float64(t.Aborted) {
			of = fmt.Sprintf(" of %.0f", t.Clients)
		}
		said = fmt.Sprintf("aborted clients: %d%s, and what was counted is incomplete", t.Aborted, of)
	}
	if t.Trouble != "" {
		said += "; the first error: " + t.named(t.Trouble)
	}
	return said
}

// named has an error name the script of which pgbench gives the number.
func (t Totals) named(trouble string) string {
	m := scriptNumber.FindStringSubmatch(trouble)
	if m == nil {
		return trouble
	}
	name := t.Type
	if n, err := strconv.Atoi(m[1]); err == nil && n < len(t.Scripts) {
		name = t.Scripts[n].Name
	}
	if name == "" || name == severalScripts {
		return trouble
	}
	return strings.Replace(trouble, m[0], m[0]+" ("+name+")", 1)
}

const severalScripts = "multiple scripts"

// Totals are what was said until now.
func (t *Text) Totals() Totals {
	t.begin()
	o := t.totals
	if math.IsNaN(o.TPSWith) && o.TPS > 0 && !math.IsNaN(o.ConnectMS) && !math.IsNaN(o.Processed) && o.Processed > 0 {
		// 14 and later print one of the two and the difference in time.
		o.TPSWith = math.Round(o.Processed/(o.Processed/o.TPS+o.ConnectMS/1e3)*1e6) / 1e6
	}
	return o
}

// figure is a number that a tool printed, NaN for what is none.
func figure(text string) float64 {
	v, err := number(text)
	if err != nil {
		return math.NaN()
	}
	return v
}

func number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v < 1<<53) {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return v, nil
}
