// Package tprocc is the load generator `tprocc`: an order-entry workload derived from TPC-C, with stored procedures,
// whose clients are plimsoll itself, put on the machine; see package plimsoll/internal/workloads/tprocc/driver, which
// does the work there.
//
// It stands among the engines. Its prefill loads the warehouses that are not there yet. It refuses a schema that does
// not carry its mark or is of another scale.
package tprocc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	exporter "plimsoll/internal/exporters/mariadb"
	"plimsoll/internal/kit/mysqlserver"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/workloads/postgres"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is the engine's name in scenarios.
const Name = "tprocc"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ postgres.Engine[own, *config] }

var (
	_ workload.Engine   = Engine{}
	_ workload.Peering  = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
)

// The dialects' names.
const (
	postgresql = "postgresql"
	mariadb    = "mariadb"
	sqlserver  = "sqlserver"
)

// schemes are those of the addresses of a dialect's servers.
var schemes = map[string]string{mariadb: "mariadb", sqlserver: "sqlserver"}

type own struct{}

var _ workload.Maker[*config] = own{}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Prefills: true}
}

// config is a file that is read.
type config struct {
	workload.Reading
	job      tprocc.Job
	server   postgres.Config // of PostgreSQL
	password secret.Source   // of the others
	exporter string          // the same: the page of what counts there
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	return &config{Reading: workload.Reading{Spec: spec}, job: tprocc.Job{Dialect: postgresql, Warehouses: 1,
		Threads: 2, Seed: spec.Seed, Duration: spec.Runtime}}
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	j := &c.job
	type row = workload.Option
	return postgres.Options(
		row{Name: "dialect", To: &j.Dialect, Choices: []string{postgresql, mariadb, sqlserver},
			Help: "servers of the latter two may have exporter: http://HOST:PORT/metrics, which counts what they do"},
		row{Name: "warehouses", To: &j.Warehouses, Range: "1",
			Help: "of the schema, which a prefill loads; about 100 MB each"},
		row{Name: "users", To: &j.Users, Range: "1", Help: "without it one for each warehouse, ten with keying"},
		row{Name: "first_user", To: &j.First, Range: "0", Help: "of several workloads on one schema: where the one " +
			"before ends, so that homes are shared evenly"},
		row{Name: "keying", To: &j.Keying, Help: "users type and think as TPC-C says; else the next transaction follows " +
			"at once"},
		row{Name: "threads", To: &j.Threads, Range: "1", Help: "that drive the users, and sessions that load"},
		row{Name: "reload", To: &j.Reload, Help: "a prefill drops the tables that it made before, and loads anew"},
	)
}

// Settle implements workload.Config.
func (c *config) Settle() {
	if c.job.Users == 0 {
		c.job.Users = c.job.Warehouses
		if c.job.Keying {
			c.job.Users *= tprocc.Districts
		}
	}
	switch n := c.Given["server"]; {
	case c.job.Dialect == postgresql:
		c.postgres()
	case c.job.Dialect == mariadb && !names(n):
		c.ownMaria()
	default:
		c.other(n)
	}
	c.Judge(func() error { return workload.Joined(c.job.Check()) })
	c.job.First += c.Spec.Turn * c.job.Users
	c.job.Homes = fmt.Sprintf("user n, counted from %d, has its home in warehouse n mod %d + 1, "+
		"district n div %d mod %d + 1", c.job.First, c.job.Warehouses, c.job.Warehouses, tprocc.Districts)
}

// ServerOf implements postgres.Served.
func (c *config) ServerOf() (postgres.Config, bool, error) {
	return c.server, c.job.Dialect == postgresql, nil
}

// Facts implements workload.Config.
func (c *config) Facts() []result.Fact {
	out := workload.LoadFacts(c.Spec.Name, c.job, "load", "seed", "duration_ns", "homes", "url", "passfile",
		"cleartext_password", "database")
	switch {
	case c.job.Dialect == postgresql:
		out = append(out, c.server.Facts()...)
	case c.startsMaria():
		out = append(out, c.mariaFacts()...)
	}
	return out
}

// postgres reads the keys that all engines of PostgreSQL share. A server of the run's own is made for as many users.
func (c *config) postgres() {
	if n := c.Given["server"]; n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			scheme, _, _ := strings.Cut(n.Content[i+1].Value, "://")
			if n.Content[i].Value == "url" && schemes[scheme] != "" {
				c.Object(n.Content[i+1], "server: url: %s is another dialect; give dialect: %[1]s as well", scheme)
				return
			}
		}
	}
	c.server = postgres.ReadServer(&c.Reading)
	c.server.Admit(c.job.Users, c.job.Threads)
}

// other reads the address of a server of another dialect.
func (c *config) other(n *yaml.Node) {
	dialect, scheme := c.job.Dialect, schemes[c.job.Dialect]
	if n == nil || n.Kind != yaml.MappingNode {
		c.Object(n, "server: %s wants {url: %s://USER@HOST:PORT, password: env:NAME}", dialect, scheme)
		return
	}
	named := false
	rows := []workload.Option{
		{Name: "url", To: func(text string) error { named = true; return c.url(text, scheme) }},
		{Name: "password", To: &c.password},
		{Name: "exporter", To: func(text string) error {
			c.exporter = text
			return workload.CheckExporter(text)
		}},
	}
	if dialect == mariadb {
		rows = append(rows, workload.Option{Name: "cleartext_password", To: &c.job.Cleartext})
	}
	c.Table(n, "server: ", rows)
	if !named {
		c.Object(n, "server: it names none; %s wants {url: %s://USER@HOST:PORT, password: env:NAME}", dialect, scheme)
	}
	d := c.Given["database"]
	if d != nil {
		c.job.Database = d.Value
	}
	switch name := c.job.Database; {
	case !plain(name):
		c.Object(d, "database: %q: %s wants a name of letters, digits and _", name, dialect)
	case dialect == mariadb && name != strings.ToLower(name):
		c.Object(d, "database: %q: some servers of MariaDB take it for %q, others do not; want small letters", name,
			strings.ToLower(name))
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

func (c *config) url(text, scheme string) error {
	c.job.URL = text
	if scheme == mariadb {
		u, err := mysqlserver.Parse(text)
		if err == nil && (u.Scheme != mariadb || strings.Trim(u.Path, "/") != "" || u.Query().Has("socket")) {
			err = errors.New("want mariadb://USER@HOST:PORT and the database by database: NAME")
		}
		return err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != scheme || u.User.Username() == "" || u.Hostname() == "" ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return fmt.Errorf("want %s://USER@HOST:PORT and the database by database: NAME", scheme)
	}
	if _, has := u.User.Password(); has {
		return errors.New("it has a password, which lists of processes and histories show; leave it out and give " +
			"password: env:NAME or file:PATH")
	}
	return nil
}

func plain(name string) bool {
	const known = "abcdefghijklmnopqrstuvwxyz0123456789_"
	return name != "" && len(name) <= 63 && strings.Trim(strings.ToLower(name), known) == ""
}

// Files of a job in its folder.
const (
	passFile   = "/tprocc.password"
	sourceFile = "/tprocc.source" // a source
)

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	if !c.Spec.Prefill && c.Spec.Runtime <= 0 {
		return nil, errors.New("tprocc ends with its time: give runtime_secs")
	}
	job.Operations, job.Measures = tprocc.Operations(), tprocc.Measures()
	job.Streams = []result.Stream{{Name: "users", Noun: "group of users", Depth: c.job.Users, TimeBased: true,
		Runtime: c.Spec.Runtime}}
	if c.job.Keying {
		job.Latency = "response time"
	}
	if c.job.Load = c.Spec.Prefill; c.job.Load {
		job.Operations, job.Measures, job.Latency = tprocc.LoadOperations(), tprocc.LoadMeasures(), ""
		job.Streams = []result.Stream{{Name: "loaders", Depth: c.job.Threads}}
		job.Limit, c.job.Duration = 0, 0
	}
	job.Notes = append(job.Notes, fmt.Sprintf("%s on %s: %s", unit.Plural(c.job.Users, "user"),
		unit.Plural(c.job.Warehouses, "warehouse"), c.job.Homes))
	var err error
	switch folder := workload.FolderName(c.Spec.Name); {
	case c.job.Dialect == postgresql:
		err = c.server.Apply(c.Spec, job)
	case c.startsMaria():
		err = c.applyOwn(c.Spec, folder, job)
	default:
		err = c.apply(folder, job)
	}
	return c.job, err
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
	s := source{Certificates: map[string]string{}}
	if q := u.Query(); c.job.Dialect == mariadb {
		for parameter, name := range mysqlserver.Files {
			if file := q.Get(parameter); file != "" && file != "system" {
				s.Certificates[folder+"/"+name] = file
				q.Set(parameter, folder+"/"+name)
			}
		}
		u.RawQuery = q.Encode()
		c.job.URL = u.String()
	}
	if c.job.Dialect == mariadb && c.password == (secret.Source{}) && os.Getenv(exporter.PasswordVariable) != "" {
		if c.password, err = secret.ParseSource("env:" + exporter.PasswordVariable); err != nil {
			return err
		}
	}
	s.Password = c.password
	job.Files[folder+sourceFile], err = json.Marshal(s)
	return err
}

// source says where this machine has what the load's has to have; it holds nothing secret.
type source struct {
	Password     secret.Source     `json:"password,omitzero"`
	Certificates map[string]string `json:"certificates"` // files here, by those there
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
	var from source
	if err := json.Unmarshal(text, &from); err != nil {
		return err
	}
	for name, file := range from.Certificates {
		if err := postgres.PutCertificate(ctx, host, name, file); err != nil {
			return err
		}
	}
	password := "" // of a source that is nowhere
	if from.Password != (secret.Source{}) {
		s, err := from.Password.Read(ctx)
		if err != nil {
			return err
		}
		password = s.Reveal()
	}
	return host.Put(ctx, folder+passFile, fs.FileMode(0o600), strings.NewReader(password))
}
