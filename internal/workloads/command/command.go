// Package command drives any program that the scenario's author names: it runs it on the machine, without a shell, and
// reads what it prints as the author's file says. With it sysbench, stress-ng, openssl or a vendor's binary become
// scenarios. The file is described in docs/how-to/run-any-program.md.
//
// Nothing in it is guessed: fields, units and ways to count are declared, and what cannot be read is a warning. All
// that Parse needs stands in Declared.Format. Reports hold elapsed time only: times of day in the output are not read.
//
// A report is made of one moment: of every line, row or element with one elapsed time. It goes out when the next moment
// begins, so the program's own summary can still correct what rates added up to.
package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// Engine runs programs of the author's. The zero value is ready for use.
type Engine struct{}

var (
	_ workload.Engine = Engine{}
	_ workload.Naming = Engine{}
)

// Name is the engine's name in scenarios.
const Name = "command"

// Files of a job in its folder, whose names the author cannot use.
const (
	outputFile = "output"
	stderrFile = "stderr"
	stdoutFile = "stdout"
	configFile = "command.yml"
	readyFile  = "ready" // of a server's readiness test
)

var ownFiles = []string{outputFile, stderrFile, stdoutFile, configFile, readyFile}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: serviceTime, RunsPrograms: true}
}

// Check implements workload.Engine. Which program is needed stands in the author's file; see CheckTool.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	if err := host.Accessible(ctx); err != nil {
		return workload.Tool{}, fmt.Errorf("check: command on %s: %w", host.Name(), err)
	}
	return workload.Tool{}, nil
}

const askFile = ".command-version"

// CheckTool implements workload.Naming: it finds the program on the host and, where the file says how, its version.
func (Engine) CheckTool(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return workload.Tool{}, err
	}
	return find(ctx, host, c.command[0].of, c.version)
}

// CheckServer implements workload.Peering.
func (Engine) CheckServer(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	spec.Disks = nil // the load's are others
	c, err := parseConfig(spec)
	if err != nil || c.server.version == nil {
		return workload.Tool{}, err
	}
	return find(ctx, host, c.server.command[0].of, c.server.version)
}

// find finds a program on the host and its version, v being nil where nothing says how.
func find(ctx context.Context, host target.Host, program string, v *version) (workload.Tool, error) {
	fail := func(format string, args ...any) (workload.Tool, error) {
		return workload.Tool{}, fmt.Errorf("check: %s on %s: %w", program, host.Name(), fmt.Errorf(format, args...))
	}
	found := program
	if !strings.Contains(program, "/") { // a path may be seen by nobody but the program itself; its start tells
		find := []string{"/bin/sh", "-c", `command -v "$0"`, program}
		text, exit, err := workload.Ask(ctx, host, find, askFile, program, false)
		if err != nil {
			return fail("%w", err)
		}
		if found = strings.TrimSpace(text); exit.Code != 0 || found == "" {
			return fail("not found; install it in the VMs that are to run it, or name its path under command:")
		}
	}
	if v == nil {
		return workload.Tool{Path: found}, nil
	}
	text, exit, err := workload.Ask(ctx, host, v.command, askFile, program+" version", true)
	if err != nil {
		return fail("version: %w", err)
	}
	m := v.match.FindStringSubmatch(text)
	if m == nil {
		var said workload.Said
		said.Add([]byte(text))
		return fail("version: %s printed nothing that matches %q (exit code %d): %s", strings.Join(v.command, " "),
			v.match, exit.Code, workload.FirstLines(said.String(), 3))
	}
	tool := workload.Tool{Path: found, Version: path.Base(program) + " " + m[1]}
	if v.oldest == "" {
		return tool, nil
	}
	switch have := numbersOf(m[1]); {
	case have == nil:
		return fail("version: %q cannot be compared with %s; let match: pick numbers with dots between", m[1], v.oldest)
	case older(have, numbersOf(v.oldest)):
		return fail("it is version %s, needed is %s or later", m[1], v.oldest)
	}
	return tool, nil
}

// older reports whether version a is below b; what a lacks at its end is 0.
func older(a, b []int) bool {
	for i := range max(len(a), len(b)) {
		x, y := 0, 0
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x < y
		}
	}
	return false
}

// Validate implements workload.Engine. Without disks or a runtime in the Spec it judges only the form of what asks for
// them.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parseConfig(spec)
	return err
}

// placeholders judges the form of all placeholders.
func (c *config) placeholders(spec workload.Spec) {
	f := c.filling(spec)
	f.formOnly = true
	f.all()
	if c.server != nil {
		s := c.serverFilling(spec)
		s.formOnly = true
		if c.server.group != "" {
			s.spec.Disks = nil // its machines are others
		}
		s.all()
		if c.server.ready != nil {
			s.each(c.server.ready.command)
		}
	}
	if c.from == fromFile && !f.output && len(c.command) > 0 {
		c.object(c.command[0].at, "output: {from: file} needs {output} among the arguments, for the program to "+
			"write there")
	}
}

// filling fills the texts of the load itself.
func (c *config) filling(spec workload.Spec) *filling {
	return &filling{config: c, of: &c.program, spec: spec, folder: workload.FolderName(spec.Name)}
}

// all fills every argument and variable.
func (f *filling) all() (argv, env []string) {
	argv = f.each(f.of.command)
	for _, v := range f.of.env {
		env = append(env, v.name+"="+f.fill(v.value))
	}
	return argv, env
}

// each fills texts.
func (f *filling) each(texts []text) (filled []string) {
	for _, t := range texts {
		filled = append(filled, f.fill(t))
	}
	return filled
}

// Command implements workload.Engine. The job's files lie in a folder of their own, named after the workload.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	if spec.Prefill {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: a program of one's own cannot be made to prefill; "+
			"start it instead", spec.Name)
	}
	c, err := parseConfig(spec)
	if err != nil {
		return workload.Job{}, err
	}
	f := c.filling(spec)
	argv, env := f.all()
	if err := c.err(); err != nil {
		return workload.Job{}, err
	}
	c.layout.Program = path.Base(argv[0])
	format, err := json.Marshal(&c.layout)
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	files := map[string][]byte{f.fileOf(configFile): spec.Config}
	for name, content := range c.files {
		files[f.fileOf(name)] = []byte(content)
	}
	command := target.Command{Argv: argv, Env: env, Label: spec.Name}
	if c.server != nil {
		command.Dials = c.server.ports
	}
	output := f.fileOf(outputFile)
	switch c.from {
	case fromStdout:
		command.Stdout, command.Stderr = output, f.fileOf(stderrFile)
	case fromStderr:
		command.Stdout, command.Stderr = f.fileOf(stdoutFile), output
	case fromBoth:
		command.Stdout, command.Stderr = output, output
	default:
		command.Stdout, command.Stderr = f.fileOf(stdoutFile), f.fileOf(stderrFile)
	}
	latency := ""
	if c.latency != serviceTime {
		latency = c.latency
	}
	stream := result.Stream{Name: c.layout.Program, Depth: c.depth, TimeBased: f.timed, Rate: c.rate,
		OpenLoop: c.rate > 0}
	if c.rate > 0 {
		stream.Arrivals = result.ArrivalsUnknown
	}
	if f.timed {
		stream.Runtime = spec.Runtime
	}
	var notes []string
	if c.server != nil {
		notes = append(notes, c.server.words())
	}
	return workload.Job{
		Notes:    notes,
		Declared: workload.Declared{Operations: c.operations, Measures: c.measures, Format: format, Latency: latency},
		Command:  command,
		Files:    files,
		Output:   output,
		Limit:    stream.Runtime,
		Streams:  []result.Stream{stream},
	}, nil
}

// Run implements workload.Engine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	p, err := newParser(job.Declared, env.Sink)
	if err != nil {
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", job.Command.Label, env.Host.Name(), err)
	}
	return workload.Follow(ctx, env, job, p, workload.Words{Name: p.layout.Program})
}

// Parse implements workload.Engine.
func (Engine) Parse(declared workload.Declared, r io.Reader, sink workload.Sink) (workload.Outcome, error) {
	p, err := newParser(declared, sink)
	if err != nil {
		return workload.Outcome{}, err
	}
	return workload.Replay(r, p, p.layout.Program)
}
