package pgbench

import (
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
	"plimsoll/scenario"
	"plimsoll/unit"
)

// Bounds of a config.
const (
	mostClients = 10_000
	mostScripts = 64
	mostText    = 256 << 10
	mostScale   = 1_000_000
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

// config is what the author's file says.
type config struct {
	workload.Pairs
	server  postgres.Config
	job     pgbench.Job
	scripts []script

	spec       workload.Spec
	serverAt   *yaml.Node
	databaseAt *yaml.Node
	init       []string // options of pgbench -i
	keys       map[string]func(*yaml.Node)
	given      map[string]*yaml.Node
}

// parse reads the file, then the settings of the workload on top of it.
func parse(spec workload.Spec) (*config, error) {
	c := &config{
		spec:  spec,
		Pairs: workload.Pairs{Example: "scale: 100", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		given: map[string]*yaml.Node{},
		job:   pgbench.Job{Scale: 1, Clients: 1, Threads: 1, Mode: "simple", Log: true},
	}
	c.scripts = []script{{"tpcb-like", "tpcb-like", "", 1}}
	c.keys = map[string]func(*yaml.Node){
		"server":   func(n *yaml.Node) { c.serverAt = n },
		"database": func(n *yaml.Node) { c.databaseAt = n },
		"scale":    func(n *yaml.Node) { c.whole(n, "scale", &c.job.Scale, mostScale) },
		"schema": func(n *yaml.Node) {
			var err error
			if c.job.Schema, err = postgres.ReadSchema(n.Value); err != nil || n.Kind != yaml.ScalarNode {
				c.Object(n, "schema: %v", err)
			}
		},
		"clients": func(n *yaml.Node) { c.whole(n, "clients", &c.job.Clients, mostClients) },
		"threads": func(n *yaml.Node) { c.whole(n, "threads", &c.job.Threads, mostClients) },
		"builtin": func(n *yaml.Node) {
			if name := c.builtin(n); name != "" {
				c.scripts = []script{{name, name, "", 1}}
			}
		},
		"scripts":       c.readScripts,
		"mode":          func(n *yaml.Node) { c.choice(n, "mode", &c.job.Mode, "simple", "extended", "prepared") },
		"rate":          func(n *yaml.Node) { c.rate(n) },
		"latency_limit": func(n *yaml.Node) { c.limit(n) },
		"max_tries":     func(n *yaml.Node) { c.whole(n, "max_tries", &c.job.MaxTries, 1_000_000) },
		"connect":       func(n *yaml.Node) { c.yes(n, "connect", &c.job.Connect) },
		"statements":    func(n *yaml.Node) { c.yes(n, "statements", &c.job.Statements) },
		"percentiles":   func(n *yaml.Node) { c.yes(n, "percentiles", &c.job.Log) },
		"initialise": func(n *yaml.Node) {
			c.choice(n, "initialise", &c.job.Initialise, postgres.Never, postgres.Missing, postgres.Always)
		},
		"variables": c.readVariables,
		"options":   c.readOptions,
	}
	c.Read(spec, c.take)
	c.together()
	if len(c.Bad.Objections) > 0 {
		return c, c.Bad
	}
	return c, nil
}

// together judges what depends on several keys.
func (c *config) together() {
	var objections []scenario.Objection
	c.server, objections = postgres.Read(c.serverAt, c.databaseAt)
	c.Bad.Objections = append(c.Bad.Objections, objections...)
	if c.job.Initialise == "" {
		c.job.Initialise = c.server.Initialise(slices.ContainsFunc(c.scripts,
			func(s script) bool { return s.builtin != "" }))
	}
	switch {
	case c.job.Initialise == postgres.Never && len(c.init) > 0:
		c.Object(c.given["options"], "options: %s is of making the tables, and initialise is never", c.init[0])
	case c.given["builtin"] != nil && c.given["scripts"] != nil:
		c.Object(c.given["builtin"], "builtin and scripts: give one of them; a script can be {builtin: select-only}")
	case c.job.Threads > c.job.Clients:
		c.Object(c.given["threads"], "threads: %d, more than the %d clients; a client needs one thread at most",
			c.job.Threads, c.job.Clients)
	case c.job.LatencyLimitMS > 0 && c.job.Rate == 0 && !c.job.Log:
		c.Object(
			c.given["latency_limit"],
			"latency_limit: without a rate and without percentiles nothing says what is late",
		)
	}
}

// take takes one key of the file.
func (c *config) take(key, value *yaml.Node) {
	read := c.keys[key.Value]
	if read == nil {
		c.Unknown(key, "", slices.Sorted(maps.Keys(c.keys)))
		return
	}
	c.given[key.Value] = key
	read(value)
}

func (c *config) whole(n *yaml.Node, what string, to *int, most int) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < 1 || v > most {
		c.Object(n, "%s: %q is no whole number from 1 to %d", what, n.Value, most)
		return
	}
	*to = v
}

func (c *config) yes(n *yaml.Node, what string, to *bool) {
	v, err := strconv.ParseBool(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		c.Object(n, "%s: %q is neither true nor false", what, n.Value)
		return
	}
	*to = v
}

func (c *config) choice(n *yaml.Node, what string, to *string, of ...string) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(of, n.Value) {
		c.Object(n, "%s: %q is none of %s", what, n.Value, strings.Join(of, ", "))
		return
	}
	*to = n.Value
}

func (c *config) rate(n *yaml.Node) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(n.Value, "/s"), 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v >= 0.001 && v <= 1e7) { // pgbench rounds to microseconds
		c.Object(n, "rate: %q is no number of transactions per second from 0.001 to 10000000", n.Value)
		return
	}
	c.job.Rate = v
}

func (c *config) limit(n *yaml.Node) {
	d, err := unit.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || time.Duration(d) < time.Microsecond ||
		time.Duration(d) > time.Hour {
		c.Object(n, "latency_limit: %q is no time from a microsecond to an hour, such as 50ms", n.Value)
		return
	}
	c.job.LatencyLimitMS = math.Round(time.Duration(d).Seconds()*1e6) / 1e3
}

func (c *config) builtin(n *yaml.Node) string {
	name := ""
	c.choice(n, "builtin", &name, slices.Sorted(maps.Keys(builtins))...)
	return name
}

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
		c.Mapping(item, "scripts: ", func(key, value *yaml.Node) {
			switch key.Value {
			case "builtin":
				s.builtin = c.builtin(value)
			case "text":
				s.text = value.Value
				c.checkText(value)
			case "name":
				if s.name = value.Value; !plain(s.name) {
					c.Object(value, "scripts: name: %q: use small letters, digits, - and _, at most 40", s.name)
				}
			case "weight":
				c.whole(value, "scripts: weight", &s.weight, 1_000_000)
			default:
				c.Unknown(key, "scripts: ", []string{"builtin", "name", "text", "weight"})
			}
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

// checkText objects to what a script may not do: programs of the author's on the machine.
func (c *config) checkText(n *yaml.Node) {
	switch {
	case n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "":
		c.Object(n, "scripts: text: want the script itself")
	case len(n.Value) > mostText || strings.ContainsRune(n.Value, 0):
		c.Object(n, "scripts: text: want at most %d KiB, without NUL", mostText>>10)
	case shell.MatchString(n.Value):
		c.Object(
			n,
			`scripts: text: \shell and \setshell run programs on the machine, which is refused; compute with \set`,
		)
	}
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
