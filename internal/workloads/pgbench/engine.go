// Package pgbench is the load generator `pgbench`: PostgreSQL's own, as it is installed on the machine, against a
// server of the run's own or one that the user names. See package plimsoll/internal/workloads/pgbench/tool, which runs
// it there.
//
// It stands among the engines. Percentiles are of histograms of every transaction in pgbench's log (-l), which is read
// from a pipe while it is written. It refuses options that pgbench's version does not know, and scripts that run
// programs on the machine. Passwords reach neither arguments nor logs.
package pgbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
)

// Name is the engine's name in scenarios.
const Name = "pgbench"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Engine[own, *config] }

var (
	_ workload.Engine   = Engine{}
	_ workload.Naming   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Filling  = Engine{}
	_ workload.Stating  = Engine{}
)

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, OpenLoop: true, Latency: "service time", MinVersion: "9.6", Prefills: true}
}

// Check implements workload.Engine.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	tool, _, err := check(ctx, host)
	return tool, err
}

func check(ctx context.Context, host target.Host) (workload.Tool, int, error) {
	fail := func(err error) (workload.Tool, int, error) {
		return workload.Tool{}, 0, fmt.Errorf("check: pgbench on %s: %w", host.Name(), err)
	}
	text, exit, err := workload.Ask(ctx, host, []string{"/bin/sh", "-c", pgbench.FindScript}, ".pgbench-version",
		"pgbench version", false)
	if err != nil {
		return fail(err)
	}
	path, version, _ := cutLine(text)
	if exit.Code != 0 || path == "" {
		return fail(
			errors.New("not found; install PostgreSQL's client programs with pgbench in the VMs that are to run it " +
				"(of Debian: postgresql-contrib or postgresql-15)"),
		)
	}
	number, words, err := pgbench.ReadVersion(version)
	if err != nil {
		return fail(err)
	}
	if number < pgbench.Oldest {
		return fail(fmt.Errorf("it is version %s, needed is 9.6 or later", words))
	}
	return workload.Tool{Path: path, Version: "pgbench " + words}, number, nil
}

// CheckTool implements workload.Naming: what the file asks for is held against the version there is.
func (e Engine) CheckTool(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	c, err := e.Read(spec)
	if err != nil {
		return workload.Tool{}, err
	}
	tool, version, err := check(ctx, host)
	if err != nil {
		return tool, err
	}
	err = c.job.Check(version)
	for _, s := range c.scripts {
		if err == nil && s.builtin == "" {
			err = checkScript(ctx, host, tool.Path, s.file(spec), s.text)
		}
	}
	if err != nil {
		return tool, fmt.Errorf("check: pgbench on %s: %w", host.Name(), err)
	}
	return tool, nil
}

// file is the script's on its machine, which pgbench names in its errors.
func (s script) file(spec workload.Spec) string {
	return workload.FolderName(spec.Name) + "/" + s.name + ".sql"
}

// checkScript has pgbench read a script before there is a server. It reads scripts where it finds them among its
// options, and that -i goes with none only then: it connects to nothing.
func checkScript(ctx context.Context, host target.Host, tool, file, text string) error {
	if err := target.WriteFile(ctx, host, file, []byte(text)); err != nil {
		return err
	}
	said, _, err := workload.Ask(ctx, host, []string{"/bin/sh", "-c", `LC_ALL=C exec "$0" -i -f "$1"`, tool, file},
		".pgbench-script", "pgbench reads "+file, true)
	if err = errors.Join(err, host.Remove(ctx, file)); err != nil {
		return err
	}
	if strings.Contains(said, file) {
		return errors.New(strings.TrimSpace(said)) // a caret below tells where
	}
	return nil
}

// format holds what Parse needs to know of a job.
type format struct {
	Prefill  bool    `json:"prefill,omitempty"`          // what pgbench -i prints
	Text     bool    `json:"text,omitempty"`             // pgbench's own lines are all there is
	Scale    int     `json:"scale,omitempty"`            // that was asked for, where pgbench says what it found
	Interval float64 `json:"interval_seconds,omitempty"` // of -P; 0: 1
	Clocks   bool    `json:"clocks,omitempty"`           // reports have the times of day that progress lines have
	Length   float64 `json:"length_seconds,omitempty"`   // of a test; 0: as its text has it
}

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	spec := c.Spec
	if !spec.Prefill && spec.Runtime < time.Second {
		return nil, fmt.Errorf("pgbench runs for a second or more, and its time is %v: give a longer runtime_secs or time scale", spec.Runtime)
	}
	job.Streams = []result.Stream{{Name: "clients", Noun: "set of clients", Depth: c.job.Clients, Rate: c.job.Rate,
		OpenLoop: c.job.Rate > 0, TimeBased: true, Runtime: spec.Runtime}}
	j := &c.job
	j.Seconds = int(math.Ceil(spec.Runtime.Seconds()))
	j.Seed = c.server.Seed(spec.Seed, j.Initialise)
	if s := spec.SizeScale; s > 0 && s != 1 {
		j.Scale = max(1, int(math.Round(float64(j.Scale)*s)))
		job.Notes = append(job.Notes, fmt.Sprintf("pgbench's scale is %d, by the size scale", j.Scale))
	}
	f := format{Text: !j.Log, Interval: 1}
	if spec.Prefill {
		*j = pgbench.Job{Initialize: true, Initialise: j.Initialise, Scale: j.Scale, Schema: j.Schema, Options: c.init}
		if f = (format{Prefill: true, Scale: j.Scale}); j.Initialise == postgres.Never {
			f.Scale = 0
		}
		c.scripts = nil
		job.Streams[0] = result.Stream{Name: "tables", Noun: "set of tables", Depth: 1}
	}
	for _, s := range c.scripts {
		one := pgbench.Script{Builtin: s.builtin, Weight: s.weight}
		if s.builtin == "" {
			one.File = s.file(spec)
			job.Files[one.File] = []byte(s.text)
		} else if j.Initialise != postgres.Never {
			f.Scale = j.Scale
		}
		j.Scripts = append(j.Scripts, one)
	}
	job.Declared = c.declared()
	for _, m := range job.Measures {
		j.Measures = append(j.Measures, m.Name)
	}
	var err error
	job.Format, err = json.Marshal(f)
	return j, errors.Join(err, c.server.Apply(spec, job))
}

// declared returns what a job counts.
func (c *config) declared() workload.Declared {
	var d workload.Declared
	if c.job.Initialize {
		d.Operations = []result.Operation{{Name: "row", Noun: "rows"}}
		return d
	}
	if c.job.Rate > 0 {
		d.Latency = "response time"
	}
	if c.job.Apart = c.job.Log && len(c.scripts) > 1; c.job.Apart {
		for _, s := range c.scripts {
			d.Operations = append(d.Operations, result.Operation{Name: s.name, Noun: s.name + " transactions"})
		}
	} else {
		d.Operations = []result.Operation{{Name: "transaction", Noun: "transactions"}}
	}
	add := func(name, unit string, better result.Direction, kind result.Kind) {
		d.Measures = append(d.Measures, result.Measure{Name: name, Unit: unit, Better: better, Kind: kind})
	}
	ms := func(names ...string) {
		for _, name := range names {
			add(name, "ms", result.Lower, result.Single)
		}
	}
	add(pgbench.TPS, "tps", result.Higher, result.Single)
	add(pgbench.TPSWith, "tps", result.Higher, result.Single)
	if !c.job.Connect {
		ms(pgbench.InitialConnect)
	}
	for i := range d.Measures {
		d.Measures[i].Aside = true // the rate is counted, and connecting is not what is measured
	}
	count := func(name, unit string) { add(name, unit, result.Lower, result.Count) }
	if c.job.MaxTries > 1 {
		count(pgbench.RetriedMeasure, "transactions")
		count(pgbench.RetriesMeasure, "retries")
	}
	if c.job.Log && (c.job.MaxTries > 1 || c.scripts[0].builtin == "" || len(c.scripts) > 1) {
		count(pgbench.SerializationBad, "failures")
		count(pgbench.DeadlockBad, "failures")
		count(pgbench.OtherBad, "failures")
	}
	if c.job.LatencyLimitMS > 0 {
		count(pgbench.LateMeasure, "transactions")
		if c.job.Rate > 0 {
			count(pgbench.SkippedMeasure, "transactions")
		}
	}
	if c.job.Rate > 0 {
		ms(pgbench.LagMean, pgbench.LagMax)
		if c.job.Log {
			ms(pgbench.ServiceMean, pgbench.ServiceP50, pgbench.ServiceP99, pgbench.ServiceP999)
		}
	}
	if c.job.Statements {
		for _, s := range c.scripts {
			before := ""
			if len(c.scripts) > 1 {
				before = s.name + "_"
			}
			for i, word := range s.statementsOf() {
				ms(fmt.Sprintf("%s%s%d_%s", before, pgbench.StatementWord, i+1, word))
			}
		}
	}
	return d
}

// Facts implements workload.Config.
func (c *config) Facts() (out []result.Fact) {
	name := c.Spec.Name
	for _, s := range c.scripts {
		out = append(out, workload.ScriptFact(name, s.name, s.text, s.weight))
	}
	out = append(out, workload.LoadFacts(name, c.job, "scripts", "measures", "seed", "log", "apart")...)
	if len(c.init) > 0 {
		out = append(out, workload.LoadFact(name, "options of pgbench -i", strings.Join(c.init, " ")))
	}
	return append(out, c.server.Facts()...)
}

// Fills implements workload.Filling.
func (e Engine) Fills(spec workload.Spec) bool {
	c, err := e.Read(spec)
	return err != nil || c.job.Initialise != postgres.Never // what is wrong is said where it is run
}

// Run implements workload.Engine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	p, err := newParser(job.Declared, env.Sink)
	if err != nil {
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", job.Command.Label, env.Host.Name(), err)
	}
	return workload.RunSelfWith(ctx, env, job, p, workload.Words{Name: Name, Hint: hint}, postgres.PutPassword)
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	p, err := newParser(d, sink)
	if err != nil {
		return workload.Outcome{}, err
	}
	return workload.Replay(raw, p, Name)
}
