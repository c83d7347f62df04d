package importer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/command"
)

// Name is the engine's name in the descriptions of raw output.
const Name = "import"

// Engine reads what no load generator of ours prints: logs, and counters of machines. It runs nothing. The zero value
// is ready for use.
type Engine struct{}

var _ workload.Engine = Engine{}

// format is the Format of a Declared of this engine.
type format struct {
	Reader  string  `json:"reader"`
	Kind    string  `json:"kind,omitempty"`
	Part    int     `json:"part,omitempty"`             // of a file of several runs, from 0
	Seconds float64 `json:"interval_seconds,omitempty"` // between samples, where the file does not say it
	Length  float64 `json:"length_seconds,omitempty"`   // of the part, where files beside it say it
	Sampled bool    `json:"sampled,omitempty"`          // the log holds some of the transactions, by their numbers
}

func (f format) json() json.RawMessage {
	b, _ := json.Marshal(f) // strings and a finite number
	return b
}

var errReadsOnly = errors.New("import reads what others measured, and runs nothing")

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time"}
}

// Check implements workload.Engine.
func (Engine) Check(context.Context, target.Host) (workload.Tool, error) {
	return workload.Tool{}, errReadsOnly
}

// Validate implements workload.Engine.
func (Engine) Validate(workload.Spec) error { return errReadsOnly }

// Command implements workload.Engine.
func (Engine) Command(workload.Spec) (workload.Job, error) { return workload.Job{}, errReadsOnly }

// Run implements workload.Engine.
func (Engine) Run(context.Context, workload.Env, workload.Job) (workload.Outcome, error) {
	return workload.Outcome{}, errReadsOnly
}

// counting counts reports on their way.
type counting struct {
	workload.Sink
	n int
}

// Report implements workload.Sink.
func (c *counting) Report(r workload.Report) {
	c.n++
	c.Sink.Report(r)
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	var f format
	if err := json.Unmarshal(d.Format, &f); err != nil {
		return workload.Outcome{}, fmt.Errorf("parse: the description of an imported file is damaged: %w", err)
	}
	out := &counting{Sink: sink}
	var err error
	switch f.Reader {
	case fioLog:
		err = parseFioLog(f, d, r, out)
	case fioHistLog:
		err = parseFioHist(f, d, r, out)
	case pgbenchLog:
		err = parsePgbenchLog(f, r, out)
	case vmstat, iostat, sar, sadf, iostatJSON, sadfJSON:
		err = parseHost(f, d, r, out)
	default:
		if books()[f.Reader] == nil {
			err = fmt.Errorf("no reader %q is known; it may be a newer version's", f.Reader)
			break
		}
		err = parseBook(f, d, r, out)
	}
	if err != nil {
		err = fmt.Errorf("parse: %w", err)
	}
	return workload.Outcome{Reports: out.n}, err
}

// longestLine bounds a line of a file; longer ones end the reading.
const longestLine = 1 << 20

// eachLine calls f with every line, without its end, and its number from 1.
func eachLine(r io.Reader, f func(n int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if err := f(n, line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("after line %d: %w", n, err)
	}
	return nil
}

// lineText is a line as text, without what stands unseen at its end.
func lineText(line []byte) string {
	return strings.TrimRight(strings.ToValidUTF8(string(line), "?"), " \t\r")
}

// declare has a text read by the engine of declared outputs: the layout is what an author would write for
// `generator: command`, with values of this file filled in.
func (d *Reading) declare(layout string, values any) error {
	t, err := template.New(d.As).Parse(layout)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, values); err != nil {
		return err
	}
	job, err := command.Engine{}.Command(workload.Spec{Name: d.Workload, ConfigFile: d.As, Config: b.Bytes()})
	if err != nil {
		return fmt.Errorf("its layout: %w", err)
	}
	d.Engine, d.Declared = command.Name, job.Declared
	if d.Declared.Format, err = command.OfVersions(job.Format); err != nil {
		return fmt.Errorf("its layout: %w", err)
	}
	if job.Latency != "" {
		d.Latency = job.Latency
	}
	return nil
}

// found is the first group of a pattern in a text; "" when it does not match.
func found(re *lazyregexp.Regexp, text []byte) string {
	if m := re.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
