package pgbench

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
	"plimsoll/internal/workloads/postgres"
)

// Bounds of a config.
const (
	mostScripts = 64
	mostText    = 256 << 10
)

// builtins are pgbench's own scripts with the statements of each, which say what a mean is of.
var builtins = map[string]string{
	"tpcb-like": "BEGIN; UPDATE pgbench_accounts; SELECT abalance; UPDATE pgbench_tellers; UPDATE pgbench_branches; " +
		"INSERT INTO pgbench_history; END;",
	"simple-update": "BEGIN; UPDATE pgbench_accounts; SELECT abalance; INSERT INTO pgbench_history; END;",
	"select-only":   "SELECT abalance;",
}

// script is one of those that clients choose from.
type script struct {
	name    string
	builtin string
	text    string
	weight  int
}

// config holds what the author's file says.
type config struct {
	workload.Reading
	server  postgres.Config
	job     pgbench.Job
	builtin string
	limit   time.Duration
	scripts []script
	init    []string // options of pgbench -i
}

type own struct{}

var _ workload.Maker[*config] = own{}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	return &config{Reading: workload.Reading{Spec: spec}, builtin: "tpcb-like",
		job: pgbench.Job{Scale: 1, Clients: 1, Threads: 1, Mode: "simple", Log: true}}
}

var builtinNames = slices.Sorted(maps.Keys(builtins))

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	j := &c.job
	type row = workload.Option
	return postgres.Options(
		row{Name: "scale", To: &j.Scale, Range: "1 to 1000000", Help: "of the tables, which a prefill makes"},
		postgres.InitialiseOption(&j.Initialise),
		postgres.SchemaOption(&j.Schema),
		row{Name: "clients", To: &j.Clients, Range: "1 to 10000"},
		row{Name: "threads", To: &j.Threads, Range: "1 to 10000", Help: "of pgbench"},
		row{Name: "builtin", To: &c.builtin, Choices: builtinNames,
			Help: "what clients do"},
		row{Name: "scripts", To: c.readScripts, Help: "in place of builtin, a list of {builtin: select-only, weight: 9} " +
			`and {name: transfer, weight: 1, text: "..."}`},
		row{Name: "mode", To: &j.Mode, Choices: []string{"simple", "extended", "prepared"}},
		row{Name: "rate", To: &j.Rate, Unit: "transactions per second", Range: "0.001 to 10000000", // it rounds to µs
			Help: "offered; times are response times then"},
		row{Name: "latency_limit", To: &c.limit, Range: "1us to 1h",
			Help: "transactions that take longer are counted; with a rate what is later than this before it begins is skipped and counted"},
		row{Name: "max_tries", To: &j.MaxTries, Range: "1 to 1000000",
			Help: "after serialization failures and deadlocks; from PostgreSQL 15 on"},
		row{Name: "connect", To: &j.Connect, Help: "a connection for every transaction"},
		row{Name: "statements", To: &j.Statements, Help: "the mean of every statement"},
		row{Name: "percentiles", To: &j.Log, Help: "of every transaction; false: pgbench's own means alone"},
		row{Name: "variables", To: c.readVariables, Help: "{NAME: VALUE} of the scripts"},
		row{Name: "options", To: c.readOptions, Help: "pgbench's own, such as {vacuum-all: true, unlogged-tables: true}"},
	)
}

// Settle implements workload.Config.
func (c *config) Settle() {
	if c.Given["scripts"] == nil {
		c.scripts = []script{{c.builtin, c.builtin, "", 1}}
	}
	c.job.LatencyLimitMS = math.Round(c.limit.Seconds()*1e6) / 1e3
	c.server = postgres.ReadServer(&c.Reading)
	if c.job.Initialise == "" {
		c.job.Initialise = c.server.Initialise(slices.ContainsFunc(c.scripts,
			func(s script) bool { return s.builtin != "" }))
	}
	switch {
	case c.job.Initialise == postgres.Never && len(c.init) > 0:
		c.Object(c.Given["options"], "options: %s is of making the tables, and initialise is never", c.init[0])
	case c.Given["builtin"] != nil && c.Given["scripts"] != nil:
		c.Object(c.Given["builtin"], "builtin and scripts: give one of them; a script can be {builtin: select-only}")
	case c.job.Threads > c.job.Clients:
		c.Object(c.Given["threads"], "threads: %d, more than the %d clients; a client needs one thread at most",
			c.job.Threads, c.job.Clients)
	case c.limit > 0 && c.job.Rate == 0 && !c.job.Log:
		c.Object(c.Given["latency_limit"],
			"latency_limit: without a rate and without percentiles nothing says what is late")
	}
}

// ServerOf implements postgres.Served.
func (c *config) ServerOf() (postgres.Config, bool, error) { return c.server, true, nil }

// readScripts reads a list of {builtin | text, name, weight}.
func (c *config) readScripts(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > mostScripts {
		c.Object(n, "scripts: want a list of 1 to %d such as {builtin: select-only, weight: 9}", mostScripts)
		return
	}
	c.scripts = nil
	names := map[string]bool{}
	for i, item := range n.Content {
		s := script{weight: 1}
		c.Table(item, "scripts: ", []workload.Option{
			{Name: "builtin", To: &s.builtin, Choices: builtinNames},
			{Name: "text", To: func(text string) error { s.text = text; return fit(text) }},
			{Name: "name", To: func(name string) error {
				if s.name = name; !plain(name) {
					return fmt.Errorf("%q: use small letters, digits, - and _, at most 40", name)
				}
				return nil
			}},
			{Name: "weight", To: &s.weight, Range: "1 to 1000000"},
		})
		if (s.builtin == "") == (s.text == "") {
			c.Object(item, "scripts: give a builtin or a text")
		}
		if s.name == "" {
			if s.name = s.builtin; s.name == "" {
				s.name = "script-" + strconv.Itoa(i+1)
			}
		}
		if names[s.name] {
			c.Object(item, "scripts: two are called %q; give each a name", s.name)
		}
		names[s.name] = true
		c.scripts = append(c.scripts, s)
	}
}

func plain(name string) bool {
	return name != "" && len(name) <= 40 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// shell is a command of pgbench's that runs programs: blanks and ends of lines may come between it and its backslash.
var shell = lazyregexp.New(`(?i)\\[\s\v\\]*(?:set)?shell`)

// fit objects to what a script may not do: programs of the author's on the machine.
func fit(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("want the script itself")
	case len(text) > mostText || strings.ContainsRune(text, 0):
		return fmt.Errorf("want at most %d KiB, without NUL", mostText>>10)
	case shell.MatchString(text):
		return errors.New(`\shell and \setshell run programs on the machine, which is refused; compute with \set`)
	}
	return nil
}

func (c *config) readVariables(n *yaml.Node) {
	c.Mapping(n, "variables: ", func(key, value *yaml.Node) {
		if !plain(strings.ToLower(key.Value)) || strings.Contains(key.Value, "-") ||
			value.Kind != yaml.ScalarNode || strings.ContainsAny(value.Value, "\x00\r\n") {
			c.Object(key, "variables: want letters, digits and _ for a name, and one line for its value")
			return
		}
		c.job.Options = append(c.job.Options, "--define="+key.Value+"="+value.Value)
	})
}

// readOptions reads options that pgbench takes as they are, by its own table.
func (c *config) readOptions(n *yaml.Node) {
	var known []string
	table := map[string]pgbench.Option{}
	for _, o := range pgbench.Options() {
		table[o.Name] = o
		if o.Instead == "" {
			known = append(known, o.Name)
		}
	}
	c.Mapping(n, "options: ", func(key, value *yaml.Node) {
		o, there := table[key.Value]
		switch {
		case !there:
			c.Unknown(key, "options: ", known)
			return
		case o.Instead != "":
			c.Object(key, "options: %s is not given here; write %s", o.Name, o.Instead)
			return
		case value.Kind != yaml.ScalarNode || strings.ContainsAny(value.Value, "\x00\r\n"):
			c.Object(value, "options: %s: want one value on one line", o.Name)
			return
		}
		arg := "--" + o.Name
		switch {
		case o.Value && value.Value != "":
			arg += "=" + value.Value
		case o.Value:
			c.Object(value, "options: %s: it takes a value", o.Name)
		case value.Value == "false":
			return
		case value.Value != "true":
			c.Object(value, "options: %s: %q is neither true nor false", o.Name, value.Value)
		}
		if o.Initialize {
			c.init = append(c.init, arg)
		} else {
			c.job.Options = append(c.job.Options, arg)
		}
	})
}

// statementsOf are the statements of a script, each by its first word.
func (s script) statementsOf() (words []string) {
	text := s.text
	if s.builtin != "" {
		text = builtins[s.builtin]
	}
	return pgbench.StatementWords(text)
}
