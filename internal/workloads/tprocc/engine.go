// Package tprocc is the load generator `tprocc`: an order-entry workload derived from TPC-C, with stored procedures,
// whose clients are plimsoll itself, put on the machine; see package plimsoll/internal/workloads/tprocc/driver, which
// does the work there.
//
// It stands among the engines. Its config is YAML:
//
//	dialect: postgresql   # or mariadb, sqlserver
//	server: {vm_group: Database}   # internal/workloads/postgres, of MariaDB as well; of servers of yours that are no
//	                               # PostgreSQL {url: ..., password: env:NAME}
//	                               # and exporter: http://HOST:9182/metrics, which counts what that server does
//	database: bench
//	warehouses: 10
//	users: 20             # default: one for each warehouse, ten with keying
//	keying: false         # users type and think as TPC-C says; else the next transaction follows at once
//	threads: 2            # that drive the users
//	reload: false         # a prefill drops the tables that it made before, and loads anew
//
// Its prefill loads the warehouses that are not there yet. It refuses a schema that does not carry its mark or is of
// another scale, and unknown keys with the nearest known one.
package tprocc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/workloads/postgres"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is what scenarios call the engine.
const Name = "tprocc"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Peering[reader] }

type reader struct{}

// ServerOf implements postgres.Reader.
func (reader) ServerOf(spec workload.Spec) (postgres.Config, bool, error) {
	c, err := parse(spec)
	if err != nil {
		return postgres.Config{}, false, err
	}
	return c.server, c.job.Dialect == postgresql, nil
}

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
)

// Facts implements workload.Stating.
func (Engine) Facts(spec workload.Spec) []result.Fact {
	c, err := parse(spec)
	if err != nil {
		return nil
	}
	out := workload.LoadFacts(spec.Name, c.job, "load", "seed", "duration_ns", "homes", "url", "passfile",
		"cleartext_password", "database")
	if c.job.Dialect == postgresql {
		out = append(out, c.server.Facts()...)
	}
	if c.startsMaria() {
		out = append(out, c.mariaFacts()...)
	}
	return out
}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Prefills: true}
}

// Check implements workload.Engine: the tool is this program, which Run brings along.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	return workload.CheckSelf(ctx, host, Name)
}

// The dialects' names.
const (
	postgresql = "postgresql"
	mariadb    = "mariadb"
	sqlserver  = "sqlserver"
)

// schemes are those of the addresses of a dialect's servers.
var schemes = map[string]string{mariadb: "mariadb", sqlserver: "sqlserver"}

// config is a file that was read.
type config struct {
	workload.Pairs
	spec     workload.Spec
	job      tprocc.Job
	server   postgres.Config // of PostgreSQL
	password secret.Source   // of the others
	exporter string          // the same: the page of what counts there
	nodes    map[string]*yaml.Node
}

var keys = append([]string{"dialect", "first_user", "keying", "reload", "threads", "users", "warehouses"},
	postgres.Keys...)

// parse reads the file, then the settings of the workload on top of it.
func parse(spec workload.Spec) (*config, error) {
	c := &config{Pairs: workload.Pairs{Example: "warehouses: 10", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		spec: spec, nodes: map[string]*yaml.Node{},
		job: tprocc.Job{Dialect: postgresql, Warehouses: 1, Threads: 2, Seed: spec.Seed, Duration: spec.Runtime}}
	c.Read(spec, c.take)
	if c.job.Users == 0 {
		c.job.Users = c.job.Warehouses
		if c.job.Keying {
			c.job.Users *= tprocc.Districts
		}
	}
	if c.job.Dialect == postgresql {
		c.postgres()
	} else {
		c.other()
	}
	if len(c.Bad.Objections) == 0 {
		for _, what := range c.job.Check() {
			c.Object(nil, "%s", what)
		}
	}
	c.job.First += spec.Turn * c.job.Users
	c.job.Homes = fmt.Sprintf("user n, counted from %d, has its home in warehouse n mod %d + 1, "+
		"district n div %d mod %d + 1", c.job.First, c.job.Warehouses, c.job.Warehouses, tprocc.Districts)
	if len(c.Bad.Objections) > 0 {
		return c, c.Bad
	}
	return c, nil
}

// take takes one pair, or objects to it at its place.
func (c *config) take(key, node *yaml.Node) {
	switch {
	case !slices.Contains(keys, key.Value):
		c.Unknown(key, "", keys)
		return
	case slices.Contains(postgres.Keys, key.Value):
		c.nodes[key.Value] = node
		return
	case node.Kind != yaml.ScalarNode:
		c.Object(node, "%s: want one value", key.Value)
		return
	}
	var err error
	value := node.Value
	whole := func(to *int) {
		if *to, err = strconv.Atoi(value); err != nil || *to <= 0 {
			err = fmt.Errorf("%q is no whole number above 0", value)
		}
	}
	switch key.Value {
	case "warehouses":
		whole(&c.job.Warehouses)
	case "users":
		whole(&c.job.Users)
	case "threads":
		whole(&c.job.Threads)
	case "first_user":
		if c.job.First, err = strconv.Atoi(value); err != nil || c.job.First < 0 {
			err = fmt.Errorf("%q is no whole number from 0", value)
		}
	case "keying", "reload":
		to := map[string]*bool{"keying": &c.job.Keying, "reload": &c.job.Reload}[key.Value]
		if *to, err = strconv.ParseBool(value); err != nil {
			err = fmt.Errorf("%q is neither true nor false", value)
		}
	case "dialect":
		if value != postgresql && schemes[value] == "" {
			err = fmt.Errorf("%q is none of %s, %s, %s", value, postgresql, mariadb, sqlserver)
			break
		}
		c.job.Dialect = value
	}
	if err != nil {
		c.Object(node, "%s: %v", key.Value, err)
	}
}

// postgres reads the keys that all engines of PostgreSQL share. A server of the run's own is made for as many users.
func (c *config) postgres() {
	if n := c.nodes["server"]; n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			scheme, _, _ := strings.Cut(n.Content[i+1].Value, "://")
			if n.Content[i].Value == "url" && schemes[scheme] != "" {
				c.Object(n.Content[i+1], "server: url: %s is another dialect; give dialect: %[1]s as well", scheme)
				return
			}
		}
	}
	server, bad := postgres.Read(c.nodes["server"], c.nodes["database"])
	c.Bad.Objections = append(c.Bad.Objections, bad...)
	server.Admit(c.job.Users, c.job.Threads)
	c.server = server
}

// other reads the address of a server of another dialect.
func (c *config) other() {
	scheme := schemes[c.job.Dialect]
	n := c.nodes["server"]
	if c.job.Dialect == mariadb && !names(n) {
		c.own()
		return
	}
	if n == nil || n.Kind != yaml.MappingNode {
		c.Object(n, "server: %s wants {url: %s://USER@HOST:PORT, password: env:NAME}", c.job.Dialect, scheme)
		return
	}
	named := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch key.Value {
		case "url":
			named = true
			c.url(value, scheme)
		case "password":
			var err error
			if c.password, err = secret.ParseSource(value.Value); err != nil {
				c.Object(value, "server: password: %v", err)
			}
		case "cleartext_password":
			var err error
			if c.job.Cleartext, err = strconv.ParseBool(value.Value); err != nil || c.job.Dialect != mariadb {
				c.Object(value, "server: cleartext_password: %q: want true or false, of MariaDB alone", value.Value)
			}
		case "exporter":
			c.exporter = value.Value
			if err := workload.CheckExporter(c.exporter); err != nil {
				c.Object(value, "server: exporter: %q: %v", c.exporter, err)
			}
		default:
			c.Object(key, "server: unknown key %q; known for %s are cleartext_password, exporter, password, url", key.Value, c.job.Dialect)
		}
	}
	if !named {
		c.Object(n, "server: it names none; %s wants {url: %s://USER@HOST:PORT, password: env:NAME}", c.job.Dialect, scheme)
	}
	if d := c.nodes["database"]; d != nil {
		c.job.Database = d.Value
	}
	switch name := c.job.Database; {
	case !plain(name):
		c.Object(c.nodes["database"], "database: %q: %s wants a name of letters, digits and _", name, c.job.Dialect)
	case c.job.Dialect == mariadb && name != strings.ToLower(name):
		c.Object(c.nodes["database"], "database: %q: some servers of MariaDB take it for %q, others do not; want small "+
			"letters", name, strings.ToLower(name))
	}
}

// names reports whether a server is named by something that only one of the user's has.
func names(n *yaml.Node) bool {
	if n == nil || n.Kind != yaml.MappingNode {
		return n != nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if slices.Contains([]string{"url", "password", "exporter", "cleartext_password"}, n.Content[i].Value) {
			return true
		}
	}
	return false
}

func (c *config) url(n *yaml.Node, scheme string) {
	u, err := url.Parse(n.Value)
	switch {
	case err != nil || u.Scheme != scheme || u.User.Username() == "" || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		c.Object(n, "server: url: want %s://USER@HOST:PORT and the database by database: NAME", scheme)
	default:
		if _, has := u.User.Password(); has {
			c.Object(
				n,
				"server: url: it has a password, which lists of processes and histories show; leave it out and "+
					"give password: env:NAME or file:PATH",
			)
		}
		c.job.URL = n.Value
	}
}

func plain(name string) bool {
	const known = "abcdefghijklmnopqrstuvwxyz0123456789_"
	return name != "" && len(name) <= 63 && strings.Trim(strings.ToLower(name), known) == ""
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parse(spec)
	return err
}

// Files of a job in its folder.
const (
	jobFile     = "/tprocc.json"
	outputFile  = "/output"
	stderrFile  = "/stderr"
	programFile = "/plimsoll"
	passFile    = "/tprocc.password"
	sourceFile  = "/tprocc.source" // where the password is found, not the password
)

// Command implements workload.Engine.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	c, err := parse(spec)
	switch {
	case err != nil:
		return workload.Job{}, err
	case !spec.Prefill && spec.Runtime <= 0:
		return workload.Job{}, fmt.Errorf(
			"prepare: workload %q: tprocc ends with its time: give runtime_secs",
			spec.Name,
		)
	}
	folder := workload.FolderName(spec.Name)
	job := workload.Job{
		Declared: workload.Declared{Operations: tprocc.Operations(), Measures: tprocc.Measures()},
		Files:    map[string][]byte{},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, tprocc.WorkCommand, folder + jobFile}, Env: c.server.Env()},
		Config: folder + jobFile,
		Output: folder + outputFile,
		Streams: []result.Stream{{Name: "users", Noun: "group of users", Depth: c.job.Users, TimeBased: true,
			Runtime: spec.Runtime}},
		Limit: spec.Runtime,
	}
	if c.job.Keying {
		job.Latency = "response time"
	}
	if c.job.Load = spec.Prefill; spec.Prefill {
		job.Declared = workload.Declared{Operations: tprocc.LoadOperations(), Measures: tprocc.LoadMeasures()}
		job.Streams = []result.Stream{{Name: "loaders", Depth: c.job.Threads}}
		job.Limit, c.job.Duration = 0, 0
	}
	job.Notes = append(job.Notes, fmt.Sprintf("%s on %s: %s", unit.Plural(c.job.Users, "user"),
		unit.Plural(c.job.Warehouses, "warehouse"), c.job.Homes))
	if c.job.Dialect == postgresql {
		err = c.server.Apply(spec, &job)
	} else if c.startsMaria() {
		err = c.applyOwn(spec, folder, &job)
	} else {
		err = c.apply(folder, &job)
	}
	if err != nil {
		return workload.Job{}, err
	}
	job.Files[folder+jobFile], err = json.Marshal(c.job)
	return job, err
}

// apply is postgres.Config.Apply for the other dialects.
func (c *config) apply(folder string, job *workload.Job) error {
	u, err := url.Parse(c.job.URL)
	if err != nil {
		return err
	}
	job.Command.Outside = []string{u.Host}
	job.Notes = append(
		job.Notes,
		fmt.Sprintf("its load goes to database %q of the server that was named, %s: no setting "+
			"of it is changed", c.job.Database, c.job.URL),
	)
	c.job.PassFile = folder + passFile
	job.Files[folder+sourceFile], err = json.Marshal(c.password)
	return err
}

// Run implements workload.Engine. It puts this program and the server's password on the machine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.RunSelf(ctx, env, job, Name, putPassword)
}

func putPassword(ctx context.Context, host target.Host, job workload.Job) error {
	folder := path.Dir(job.Config)
	if _, own := job.Files[folder+ownFile]; own {
		return host.Put(ctx, folder+passFile, fs.FileMode(0o600), strings.NewReader(ownPassword()))
	}
	text, ok := job.Files[folder+sourceFile]
	if !ok {
		return postgres.PutPassword(ctx, host, job)
	}
	var source secret.Source
	if err := json.Unmarshal(text, &source); err != nil {
		return err
	}
	password := ""
	if source.String() != "nowhere" {
		s, err := source.Read(ctx)
		if err != nil {
			return err
		}
		password = s.Reveal()
	}
	return host.Put(ctx, folder+passFile, fs.FileMode(0o600), strings.NewReader(password))
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	return workload.ReplaySelf(d, raw, sink, Name)
}
