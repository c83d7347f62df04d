// Package pgload drives a load of transactions on PostgreSQL: pgbench's built-in scripts, or any in its language, by
// clients that go as fast as they can (closed loop) or by arrivals on a schedule (open loop), at a cost of processor
// time per transaction below pgbench's.
//
// It stands on package pgwire: each thread is one Loop that serves its clients as answers arrive; scripts are compiled
// beforehand (expression, program), so a transaction is bytes made, bytes scanned, one reading of the clock. Every
// transaction is recorded in merged histograms: service time from when it was sent to its end, and in an open loop
// response time from when it was to be sent. An arrival that waits takes no memory, however many do.
//
// Nothing that fails is silent: errors are counted by class, lost connections too, and are made again. It refuses
// scripts that it cannot read, with the lines; programs to run; pipelines that nobody named; and to fill a schema that
// holds what we did not make.
package pgload

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
)

// Modes of sending, as pgbench names them.
const (
	Simple   = "simple"   // each statement as text, its variables in place
	Extended = "extended" // parsed and bound each time
	Prepared = "prepared" // parsed once for each connection
)

// How arrivals and think times are spread.
const (
	Poisson  = "poisson" // as independent ones come: exponential gaps
	Constant = "constant"
)

// What is done about the tables of the built-in scripts.
const (
	Never   = postgres.Never
	Missing = postgres.Missing
	Always  = postgres.Always
)

// Script is one of a load's scripts.
type Script struct {
	Name   string `json:"name"` // of the operation; without blanks
	Text   string `json:"text"` // "" for the built-in of that name
	Weight int    `json:"weight"`
}

// Job is a load.
type Job struct {
	Scripts    []Script          `json:"scripts"`
	Scale      int               `json:"scale"`
	Initialise string            `json:"initialise"`
	Schema     string            `json:"schema,omitempty"` // that has the tables; "" is postgres.PgbenchSchema
	Clients    int               `json:"clients"`
	Threads    int               `json:"threads"`
	Mode       string            `json:"mode"`
	Duration   time.Duration     `json:"duration_ns"`
	Seed       uint64            `json:"seed"`
	Variables  map[string]string `json:"variables,omitempty"`
	// Rate makes it an open loop: transactions per second of all clients, that arrive as Arrivals says.
	Rate     float64 `json:"rate_tps,omitempty"`
	Arrivals string  `json:"arrivals,omitempty"`
	// An arrival that is begun later than Late, 10 ms where it is 0, is counted as late; one that is later than Drop is
	// not begun any more.
	Late time.Duration `json:"late_ns,omitempty"`
	Drop time.Duration `json:"drop_ns,omitempty"`
	// Think is the mean time between the end of a client's transaction and the begin of its next, spread as ThinkTimes
	// says.
	Think      time.Duration `json:"think_ns,omitempty"`
	ThinkTimes string        `json:"think_times,omitempty"`
	Connect    bool          `json:"connect,omitempty"`    // a connection for every transaction
	Tries      int           `json:"tries"`                // of a transaction that fails to serialize or deadlocks
	Pipelining bool          `json:"pipelining,omitempty"` // scripts may have \startpipeline
	Load       bool          `json:"load,omitempty"`       // only make the tables
}

// Defaults is a load of one client.
func Defaults() Job {
	return Job{Scale: 1, Initialise: Missing, Clients: 1, Threads: 1, Mode: Prepared, Tries: 1, Arrivals: Poisson,
		ThinkTimes: Poisson}
}

// Bounds of a Job.
const (
	MostClients = 10_000
	MostThreads = 256
	MostScripts = 32
	mostScale   = 1_000_000
	mostRate    = 100e6
)

// defaultLate is how much too late an arrival may be begun before it counts as late.
const defaultLate = 10 * time.Millisecond

// grace is for how long transactions under way may end after the time is over. Then they are cut off, and counted.
const grace = 2 * time.Second

// Check says all that is wrong with the job, one objection in each line.
func (j *Job) Check() error {
	_, err := j.compile()
	return err
}

func (j *Job) compile() (*program, error) {
	var bad []error
	object := func(wrong bool, format string, args ...any) {
		if wrong {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	span := func(name string, n, most int) {
		object(n < 1 || n > most, "%s: %d; want 1 to %d", name, n, most)
	}
	among := func(name, is string, known ...string) {
		object(!slices.Contains(known, is), "%s: %q; want one of %s", name, is, strings.Join(known, ", "))
	}
	span("clients", j.Clients, MostClients)
	span("threads", j.Threads, MostThreads)
	span("scale", j.Scale, mostScale)
	span("tries", j.Tries, 1000)
	object(j.Threads > j.Clients && j.Clients > 0, "threads: %d, more than the %d clients", j.Threads, j.Clients)
	among("mode", j.Mode, Simple, Extended, Prepared)
	among("initialise", j.Initialise, Never, Missing, Always)
	among("arrivals", j.Arrivals, Poisson, Constant)
	among("think_times", j.ThinkTimes, Poisson, Constant)
	object(!(j.Rate >= 0 && j.Rate <= mostRate), "rate: %g transactions per second; want 0 to %g", j.Rate, mostRate)
	object(j.Rate == 0 && (j.Late != 0 || j.Drop != 0), "late and drop are of arrivals: they need a rate")
	if j.Rate > 0 && j.Late == 0 {
		j.Late = defaultLate
	}
	object(j.Rate > 0 && j.Think > 0, "think_time: arrivals come on a schedule, whatever clients think; leave it out or "+
		"leave out the rate")
	for i, d := range []time.Duration{j.Late, j.Drop, j.Think} {
		object(d < 0 || d > time.Hour, "%s: %v; want 0 to 1h", []string{"late", "drop", "think_time"}[i], d)
	}
	span("scripts", len(j.Scripts), MostScripts)
	p := &program{simple: j.Mode == Simple}
	for _, name := range []string{scaleName, clientName, defaultSeed, randomSeed} {
		p.names.slot(name)
		p.defines(name)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Variables)) {
		object(!validName(name), "variable %q: want letters, digits and _", name)
		p.names.slot(name)
		p.defines(name)
	}
	seen := map[string]bool{}
	total := 0
	for _, s := range j.Scripts {
		object(s.Weight < 1 || s.Weight > 1_000_000, "script %q: weight %d; want 1 to 1000000", s.Name, s.Weight)
		object(s.Name == "" || len(s.Name) > 60 || strings.ContainsAny(s.Name, " \t\n"), "script %q: want a name of 1 "+
			"to 60 characters without blanks", s.Name)
		object(seen[s.Name] || s.Name == connectName, "script %q: the name is taken; want another", s.Name)
		seen[s.Name] = true
		total += s.Weight
		text, ok := s.Text, true
		if text == "" {
			text, ok = Builtins[s.Name]
		}
		object(!ok, "script %q: it is no built-in (select-only, simple-update, tpcb-like) and has no text", s.Name)
		if ok {
			if err := p.add(s.Name, text, s.Weight, j.Pipelining); err != nil {
				bad = append(bad, err)
			}
		}
	}
	for _, s := range p.statements {
		object(s.many && j.Mode != Simple, `%s: statements combined by \; need mode: simple`, j.Scripts[s.script].Name)
	}
	bad = append(bad, p.inParameters(j.Mode)...)
	if j.Pipelining {
		object(j.Mode == Simple, "pipelining needs mode: extended or prepared")
	}
	return p, errors.Join(bad...)
}

const connectName = "connect"

// Declared returns what the lines that Run prints count, in their order.
func (j *Job) Declared() (operations []result.Operation, measures []result.Measure) {
	if j.Load {
		return []result.Operation{{Name: "load", Noun: "loads"}}, nil
	}
	for _, s := range j.Scripts {
		operations = append(operations, result.Operation{Name: s.Name, Noun: "transactions"})
	}
	if j.Connect {
		operations = append(operations, result.Operation{Name: connectName, Noun: "connections"})
	}
	count := func(unit string, names ...string) {
		for _, n := range names {
			measures = append(measures, result.Measure{Name: n, Unit: unit, Better: result.Lower, Kind: result.Count})
		}
	}
	for c := range pgwire.Classes {
		count("failures", "failed_"+c.String())
	}
	count("retries", "retries")
	count("failures", "cut_off")
	single := func(name, unit string) {
		measures = append(measures, result.Measure{Name: name, Unit: unit, Better: result.Lower, Kind: result.Single})
	}
	if j.Rate > 0 {
		count("arrivals", "late_arrivals", "dropped_arrivals", "unserved_arrivals")
		for _, q := range servicePercentiles {
			single(q.name, "µs")
		}
	}
	p, err := j.compile()
	if err != nil {
		return operations, measures
	}
	for _, name := range p.statementNames() {
		single(name, "µs")
	}
	return operations, measures
}

// servicePercentiles are given beside response times.
var servicePercentiles = []struct {
	name string
	q    float64
}{{"service_p50", 0.5}, {"service_p95", 0.95}, {"service_p99", 0.99}, {"service_p99.9", 0.999}, {"service_max", 1}}

// mostStatements is how many statements have a measure each.
const mostStatements = 30

// statementNames are the measures of the statements' mean times: script, number in it, and how it begins.
func (p *program) statementNames() (names []string) {
	at := map[int]int{}
	for _, s := range p.statements[:min(len(p.statements), mostStatements)] {
		at[s.script]++
		words := strings.FieldsFunc(s.text, func(r rune) bool { return !isName(byte(min(r, math.MaxUint8))) })
		names = append(names, fmt.Sprintf("mean_of_%s_%d_%s", p.scripts[s.script].name, at[s.script],
			strings.ToLower(cmp.Or(strings.Join(words[:min(len(words), 2)], "_"), "statement"))))
	}
	return names
}
