package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/worker"
	"plimsoll/result"
)

// Configured is implemented by engines whose configs are read by a table.
type Configured interface {
	// Options are the keys of a config, with their defaults.
	Options() []Option
}

// Schema is the JSON schema of an engine's configs, for editors.
type Schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Type        string             `json:"type,omitempty"`
	Description string             `json:"description,omitempty"`
	Default     any                `json:"default,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Closed      *bool              `json:"additionalProperties,omitempty"`
}

// SchemaOf is made of the engine's table.
func SchemaOf(name string, c Configured) *Schema {
	types := map[target.OptionType]string{target.Count: "integer", target.Number: "number", target.Truth: "boolean",
		target.Several: ""}
	s := &Schema{Schema: "https://json-schema.org/draft/2020-12/schema", Title: "Config of the generator " + name,
		Type: "object", Properties: map[string]*Schema{}, Closed: new(false)}
	for _, o := range c.Options() {
		o = o.Shown()
		p := &Schema{Type: "string", Description: o.Help, Enum: o.Choices}
		kind, other := types[o.Type]
		if other {
			p.Type = kind
		}
		switch {
		case o.Default != "" && other:
			p.Default = json.RawMessage(o.Default)
		case o.Default != "":
			p.Default = o.Default
		}
		s.Properties[o.Name] = p
	}
	return s
}

// Config is a config while it is read, and after: its type embeds a Reading.
type Config interface {
	// Options are the rows of its table. They point to where values go, which hold the defaults before.
	Options() []Option
	// Settle judges what depends on several keys, and completes what follows from others.
	Settle()
	// Job completes a job of the Spec that was read, and returns what the program on the machine is told.
	Job(*Job) (told any, err error)
	// Facts are as those of Stating.
	Facts() []result.Fact

	Read([]Option)
	Err() error
}

// Maker adds to Self what differs from engine to engine.
type Maker[C Config] interface {
	Describe() Description
	New(Spec) C // with the defaults, and a Reading of the Spec
}

// Self is an engine whose tool is this program, put on the machine, for its type to embed. The program is called there
// by the engine's name and "-worker", with the file of what it is told, and prints States. The zero value of M is used.
type Self[M Maker[C], C Config] struct{}

// Describe implements Engine.
func (Self[M, C]) Describe() Description {
	var m M
	return m.Describe()
}

// Options implements Configured.
func (Self[M, C]) Options() []Option {
	var m M
	return m.New(Spec{}).Options()
}

// Read reads a config, and the settings of the workload on top of it.
func (Self[M, C]) Read(spec Spec) (C, error) {
	var m M
	c := m.New(spec)
	c.Read(c.Options())
	c.Settle()
	return c, c.Err()
}

// Check implements Engine: Run brings the tool along.
func (s Self[M, C]) Check(ctx context.Context, host target.Host) (Tool, error) {
	return CheckSelf(ctx, host, s.Describe().Name)
}

// Validate implements Engine.
func (s Self[M, C]) Validate(spec Spec) error {
	_, err := s.Read(spec)
	return err
}

// Facts implements Stating.
func (s Self[M, C]) Facts(spec Spec) []result.Fact {
	c, err := s.Read(spec)
	if err != nil {
		return nil
	}
	return c.Facts()
}

// Command implements Engine.
func (s Self[M, C]) Command(spec Spec) (Job, error) {
	c, err := s.Read(spec)
	if err != nil {
		return Job{}, err
	}
	name, folder := s.Describe().Name, FolderName(spec.Name)
	file := folder + "/" + name + ".json"
	job := Job{Files: map[string][]byte{}, Config: file, Output: folder + "/output", Limit: spec.Runtime,
		Command: target.Command{Label: spec.Name, Stdout: folder + "/output", Stderr: folder + "/stderr",
			Argv: []string{"./" + folder + "/plimsoll", name + "-worker", file}}}
	told, err := c.Job(&job)
	if err == nil {
		job.Files[file], err = json.Marshal(told)
	}
	if err != nil {
		return Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	return job, nil
}

// Run implements Engine.
func (s Self[M, C]) Run(ctx context.Context, env Env, job Job) (Outcome, error) {
	return RunSelf(ctx, env, job, s.Describe().Name)
}

// Parse implements Engine.
func (s Self[M, C]) Parse(d Declared, raw io.Reader, sink Sink) (Outcome, error) {
	return ReplaySelf(d, raw, sink, s.Describe().Name)
}

// CheckSelf is Check of an engine whose tool is this program, which RunSelf brings along.
func CheckSelf(ctx context.Context, host target.Host, name string) (Tool, error) {
	if err := host.Accessible(ctx); err != nil {
		return Tool{}, fmt.Errorf("check: %s on %s: %w", name, host.Name(), err)
	}
	return Tool{Path: "plimsoll", Version: runtime.GOOS + "/" + runtime.GOARCH}, nil
}

// RunSelf runs a job whose command is this program: its Argv begins with the name that the program is put on the
// machine by, relative to the working folder, such as ./workload/plimsoll. It is there for as long as the job runs.
// What a job needs besides is prepared first.
func RunSelf(ctx context.Context, env Env, job Job, name string, prepare ...Preparation) (Outcome, error) {
	return RunSelfWith(ctx, env, job, NewStateParser(job.Declared, env.Sink, name), Words{Name: name}, prepare...)
}

// Preparation puts on a machine what is in no Job, such as a password.
type Preparation func(context.Context, target.Host, Job) error

// RunSelfWith is RunSelf of a worker that prints other lines than States.
func RunSelfWith(ctx context.Context, env Env, job Job, p Parser, words Words, prepare ...Preparation) (Outcome,
	error) {
	program := strings.TrimPrefix(job.Command.Argv[0], "./")
	if env.Run != "" {
		job.Command.Env = append(slices.Clone(job.Command.Env), worker.RunVariable+"="+env.Run)
	}
	put := func(ctx context.Context, host target.Host, _ Job) error {
		self, err := os.Open("/proc/self/exe")
		if err != nil {
			return fmt.Errorf("this program's own file: %w", err)
		}
		defer self.Close()
		return host.Put(ctx, program, target.Program, self)
	}
	accessible := func(ctx context.Context, host target.Host, _ Job) error { return host.Accessible(ctx) }
	for _, do := range slices.Concat([]Preparation{accessible}, prepare, []Preparation{put}) {
		if err := do(ctx, env.Host, job); err != nil {
			if ctx.Err() != nil {
				return Outcome{Stopped: true}, nil
			}
			return Outcome{}, fmt.Errorf("start: workload %s on %s: %w", job.Command.Label, env.Host.Name(), err)
		}
	}
	outcome, err := Follow(ctx, env, job, p, words)
	// A machine that is gone keeps it until clean-up takes its folder.
	_ = env.Host.Remove(context.WithoutCancel(ctx), program)
	return outcome, err
}

// ReplaySelf is Parse of an engine whose jobs RunSelf runs.
func ReplaySelf(d Declared, raw io.Reader, sink Sink, name string) (Outcome, error) {
	return Replay(raw, NewStateParser(d, sink, name), name)
}

// StateParser reads the States that a worker prints; all else is words.
type StateParser struct {
	declared Declared
	name     string
	sink     Sink
	lines    Lines
	last     Report
	said     Said
	out      Outcome
}

var _ Parser = (*StateParser)(nil)

// NewStateParser reads the output of a job that declared this; the name is the engine's, for messages.
func NewStateParser(d Declared, sink Sink, name string) *StateParser {
	return &StateParser{declared: d, sink: sink, name: name, lines: Lines{Longest: longestState}}
}

// longestState bounds what is kept of a line: a histogram of every bucket there is, of each of many operations, fits.
const longestState = 8 << 20

// Feed implements Parser.
func (p *StateParser) Feed(data []byte) { p.lines.Feed(data, p.line) }

// line takes a state that is later than the one before and counts no less.
func (p *StateParser) line(line []byte) {
	var s worker.State
	if json.Unmarshal(line, &s) != nil || len(s.Operations) != len(p.declared.Operations) ||
		len(s.Values) != len(p.declared.Measures) {
		p.said.Add(line)
		return
	}
	r := Report{Elapsed: s.Elapsed, Time: reported(s), CPUSeconds: s.CPUSeconds, Errors: s.Errors, Final: s.Final,
		Values: []float64{}}
	goesBack := p.out.Reports > 0 && (s.Elapsed <= p.last.Elapsed || s.Errors < p.last.Errors || p.last.Final)
	for i, o := range s.Operations {
		if o.Times == nil {
			p.said.Add(line)
			return
		}
		c := Counters{Ops: o.Times.Count(), Bytes: o.Bytes, Seconds: o.Times.Sum() / 1e9, Hist: o.Times}
		if p.out.Reports > 0 {
			was := p.last.Ops[i]
			_, err := c.Hist.Sub(was.Hist)
			goesBack = goesBack || err != nil || c.Bytes < was.Bytes || c.Seconds < was.Seconds
		}
		r.Ops = append(r.Ops, c)
	}
	for _, v := range s.Values {
		if v == nil {
			v = new(math.NaN())
		}
		r.Values = append(r.Values, *v)
	}
	switch {
	case goesBack:
		p.sink.Warn(fmt.Sprintf("%s output: a report after %v that goes back was left out", p.name, s.Elapsed))
	case s.Elapsed <= 0:
		p.said.Add(line)
	default:
		p.out.Reports++
		p.out.Errors = s.Errors
		p.last = r
		p.sink.Report(r)
	}
}

// reported is when a state was, by the machine's clock; zero where it does not say.
func reported(s worker.State) time.Time {
	if s.Began.IsZero() || s.Elapsed < 0 {
		return time.Time{}
	}
	return s.Began.Add(s.Elapsed).UTC()
}

// Finish implements Parser.
func (p *StateParser) Finish() (Outcome, error) {
	p.out.Message = p.said.String()
	if p.out.Reports == 0 {
		return p.out, errors.New(p.name + ": nothing in its output says what it has done")
	}
	return p.out, nil
}

// Worked implements Parser.
func (p *StateParser) Worked() bool { return p.out.Reports > 0 && p.last.Ops.Total() > 0 }

// Words implements Parser.
func (p *StateParser) Words(text []byte) string { return p.said.Beyond(text) }
