// Package hammerdb is the load generator `hammerdb`: a HammerDB that the user has unpacked on the machine, against a
// database whose schema is there. See package plimsoll/internal/workloads/hammerdb/tool, which runs it there.
//
// It stands among the engines. NOPM and TPM are HammerDB's own figures of its timed period, and never results of a TPC
// benchmark. It refuses passwords among the settings, times that are no whole minutes, and to build schemas: HammerDB
// does that, and reports success of some builds that failed.
package hammerdb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/secret"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is the engine's name in scenarios.
const Name = "hammerdb"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ workload.Self[own, *config] }

var (
	_ workload.Engine   = Engine{}
	_ workload.Naming   = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
	_ workload.Asking   = Engine{}
)

type own struct{}

var _ workload.Maker[*config] = own{}

// Facts implements workload.Config.
func (c *config) Facts() (out []result.Fact) {
	add := func(key, value string) { out = append(out, workload.LoadFact(c.Spec.Name, key, value)) }
	add("benchmark", c.benchmark)
	add("database", c.database)
	add("virtual_users", strconv.Itoa(c.users))
	if c.benchmark == "tprocc" {
		add("rampup", unit.Duration(c.rampup).String())
		add("time_profile", strconv.FormatBool(c.profile))
	} else {
		add("query_sets", strconv.Itoa(c.sets))
	}
	for _, section := range slices.Sorted(maps.Keys(c.settings)) {
		for _, key := range slices.Sorted(maps.Keys(c.settings[section])) {
			if section != "connection" { // where the server is, which may be what is compared
				add(section+" "+key, c.settings[section][key])
			}
		}
	}
	return out
}

// Asked implements workload.Asking, for PostgreSQL.
func (Engine) Asked(ctx context.Context, spec workload.Spec) ([]result.Fact, error) {
	c, err := Engine{}.Read(spec)
	if err != nil {
		return nil, err
	}
	o := c.orders()
	if o == nil || o.Database != "pg" {
		return nil, nil
	}
	u := url.URL{Scheme: "postgresql", User: url.User(o.User), Host: net.JoinHostPort(o.Host, strconv.Itoa(o.Port))}
	if mode := c.settings["connection"]["pg_sslmode"]; mode != "" {
		u.RawQuery = url.Values{"sslmode": {strings.ToLower(mode)}}.Encode()
	}
	server := postgres.Config{URL: u.String(), Database: o.Schema}
	if from := c.passwords[o.Password]; from != "" {
		if server.Password, err = secret.ParseSource(from); err != nil {
			return nil, err
		}
	}
	return server.Asked(ctx)
}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time"}
}

const (
	counterMeasure = "TPM_counter"
	countedMeasure = "NOPM_counted" // by the districts' order numbers, read by the worker
	courseMeasure  = "NOPM_course"  // of that, every ten seconds, where the counter does not run
)

// kinds are the transactions of TPROC-C as time profiles call them.
var kinds = []string{"neword", "payment", "delivery", "slev", "ostat"}

// stated are HammerDB's own figures of each kind.
var stated = []string{"min", "p50", "p95", "p99", "max"}

// config holds what the author's file says.
type config struct {
	workload.Reading
	benchmark string
	database  string
	users     int
	rampup    time.Duration
	profile   bool
	sets      int
	port      int
	folder    string
	exporter  string                       // the page of what counts on the server, "" for none
	passwords map[string]string            // name in HammerDB's dictionary → source
	settings  map[string]map[string]string // section → key → value
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	return &config{Reading: workload.Reading{Spec: spec}, benchmark: "tprocc", database: "pg", users: 1, sets: 1,
		passwords: map[string]string{}, settings: map[string]map[string]string{}}
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	return []workload.Option{
		{Name: "benchmark", To: &c.benchmark, Choices: []string{"tprocc", "tproch"}},
		{Name: "database", To: &c.database, Choices: []string{"pg", "mysql", "maria", "mssqls"},
			Help: "as HammerDB calls them"},
		{Name: "virtual_users", To: &c.users, Range: "1 to 10000", Help: "without the monitor, which HammerDB adds"},
		{Name: "rampup", To: &c.rampup, Range: "0 to 24h",
			Help: "of tprocc: whole minutes, and runtime_secs of the step as well: HammerDB has no others"},
		{Name: "time_profile", To: &c.profile, Help: "of tprocc: times of each kind of transaction"},
		{Name: "query_sets", To: &c.sets, Range: "1 to 10000", Help: "of tproch: how often queries run"},
		{Name: "folder", Help: "where HammerDB is unpacked; without it where it is found", To: func(text string) error {
			if c.folder = text; !strings.HasPrefix(text, "/") || strings.ContainsAny(text, "\x00\r\n") {
				return fmt.Errorf("%q is no path from the root", text)
			}
			return nil
		}},
		{Name: "port", To: &c.port, Range: "1 to 65535",
			Help: "of the database, for places that let commands reach nothing else"},
		{Name: "exporter", Help: "http://HOST:PORT/metrics of what counts on the server", To: func(text string) error {
			c.exporter = text
			return workload.CheckExporter(text)
		}},
		{Name: "passwords", To: c.readPasswords, Help: `where HammerDB's are kept, such as {pg_pass: "env:NAME"}`},
		{Name: "settings", Help: "HammerDB's own, as diset takes them: {connection: {pg_host: 192.0.2.1}, tpcc: " +
			"{pg_user: tpcc, pg_dbase: tpcc}}", To: func(n *yaml.Node) { c.Mapping(n, "settings: ", c.section) }},
	}
}

// Settle implements workload.Config.
func (c *config) Settle() {
	runtime := c.Spec.Runtime
	if c.rampup%time.Minute != 0 {
		c.Object(c.Given["rampup"], "rampup: %q is no number of whole minutes such as 2m", c.Given["rampup"].Value)
	}
	if c.benchmark == "tproch" && (c.profile || c.rampup > 0) {
		c.Object(nil, "rampup and time_profile are of tprocc; the queries of tproch run once and are timed each")
	}
	if c.benchmark == "tprocc" && c.sets > 1 {
		c.Object(nil, "query_sets is of tproch")
	}
	if runtime > 0 && c.benchmark == "tprocc" && runtime%time.Minute != 0 {
		c.Object(nil, "HammerDB measures whole minutes: give runtime_secs of 60, 120 and so on, not %v",
			unit.Duration(runtime))
	}
}

func (c *config) readPasswords(n *yaml.Node) {
	c.Mapping(n, "passwords: ", func(k, v *yaml.Node) {
		if !word(k.Value) || !hammer.Secret("_"+strings.TrimPrefix(k.Value, "_")) {
			c.Object(k, "passwords: %q is none of HammerDB's names for one, such as pg_pass or pg_superuserpass", k.Value)
		}
		if _, err := secret.ParseSource(v.Value); err != nil {
			c.Object(v, "passwords: %s: %v", k.Value, err)
		}
		c.passwords[k.Value] = v.Value
	})
}

func word(s string) bool {
	return s != "" && len(s) <= 60 &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

func (c *config) section(key, value *yaml.Node) {
	if !slices.Contains([]string{"connection", "tpcc", "tpch"}, key.Value) {
		c.Object(key, "settings: unknown section %q; known are connection, tpcc, tpch", key.Value)
		return
	}
	of := map[string]string{}
	c.Mapping(value, "settings: "+key.Value+": ", func(k, v *yaml.Node) {
		switch {
		case !word(k.Value):
			c.Object(k, "settings: %q is no name of a setting", k.Value)
		case hammer.Secret("_" + k.Value):
			c.Object(k, "settings: %s is a password: give passwords: {%[1]s: \"env:NAME\"}", k.Value)
		case slices.Contains(c.reserved(), k.Value):
			c.Object(k, "settings: %s follows from the keys of this file and the step; leave it out", k.Value)
		case v.Kind != yaml.ScalarNode || len(v.Value) > 1000 || strings.ContainsAny(v.Value, "{}\\\x00\r\n"):
			c.Object(v, `settings: %s: want one value on one line, without braces and \`, k.Value)
		default:
			of[k.Value] = v.Value
		}
	})
	c.settings[key.Value] = of
}

// reserved lists the settings that the engine gives.
func (c *config) reserved() (names []string) {
	for _, d := range []string{"pg_", "mysql_", "maria_", "mssqls_"} {
		for _, n := range []string{"driver", "rampup", "duration", "timeprofile", "total_querysets"} {
			names = append(names, d+n)
		}
	}
	return names
}

// script returns what hammerdbcli does. Passwords are read from the environment, so they stand in no file of ours.
// Versions before 4.6 do not wait in vurun, so it is waited for here.
func (c *config) script(runtime time.Duration) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	benchmark, section := "TPC-C", "tpcc"
	if c.benchmark == "tproch" {
		benchmark, section = "TPC-H", "tpch"
	}
	line("dbset db %s", c.database)
	line("dbset bm %s", benchmark)
	for _, s := range slices.Sorted(maps.Keys(c.settings)) {
		for _, k := range slices.Sorted(maps.Keys(c.settings[s])) {
			line("diset %s %s {%s}", s, k, c.settings[s][k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.passwords)) {
		if strings.HasPrefix(k, "mssqls_") { // SQL Server's users are none of a schema
			section = "connection"
		}
		line("diset %s %s $::env(%s)", section, k, hammer.Variable(k))
	}
	if c.benchmark == "tprocc" {
		line("diset tpcc %s_driver timed", c.database)
		line("diset tpcc %s_rampup %d", c.database, int(c.rampup.Minutes()))
		line("diset tpcc %s_duration %d", c.database, int(runtime.Minutes()))
		line("diset tpcc %s_timeprofile %t", c.database, c.profile)
	} else {
		line("diset tpch %s_total_querysets %d", c.database, c.sets)
	}
	line("loadscript")
	line("vuset vu %d", c.users)
	line("vuset logtotemp 0") // a line of each transaction would be the bottleneck
	line("vucreate")
	if c.benchmark == "tprocc" {
		line("tcset refreshrate 10")
		line("tcstart")
	}
	line("vurun")
	line("while {![vucomplete]} {")
	line("\tset ::plimsoll 0")
	line("\tafter 1000 {set ::plimsoll 1}")
	line("\tvwait ::plimsoll")
	line("}")
	if c.benchmark == "tprocc" {
		line("tcstop")
	}
	line("vudestroy")
	line("exit")
	return b.String()
}

// Files of a job in its folder.
const (
	jobFile      = "/hammerdb.json"
	scriptFile   = "/run.tcl"
	passwordFile = "/passwords"
)

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	queries, runtime := c.benchmark == "tproch", c.Spec.Runtime
	switch {
	case c.Spec.Prefill:
		return nil, errors.New("HammerDB builds its schema itself: build it beforehand, and leave the prefill out")
	case runtime < time.Minute && !queries:
		return nil, errors.New("HammerDB measures whole minutes: give runtime_secs of 60 or more")
	}
	folder := workload.FolderName(c.Spec.Name)
	work := hammer.Job{Folder: c.folder, Script: folder + scriptFile, Temporary: folder + "/tmp", Profile: c.profile &&
		!queries, Queries: queries, Sources: c.passwords, Orders: c.orders()}
	if len(c.passwords) > 0 {
		work.Passwords = folder + passwordFile
	}
	job.Declared, job.Config, job.Limit = c.declared(), folder+scriptFile, 0
	job.Files[job.Config] = []byte(c.script(runtime))
	job.Streams = []result.Stream{{Name: "virtual users", Noun: "set of virtual users", Depth: c.users}}
	job.Notes = []string{"NOPM and TPM are HammerDB's own figures, and no results of a TPC benchmark; TPM compares runs " +
		"of one database only"}
	if !queries {
		// Beside its time HammerDB makes its users, and gathers the times of each.
		job.Limit = c.rampup + runtime + 10*time.Minute
		job.Streams[0].TimeBased, job.Streams[0].Runtime = true, job.Limit
	}
	job.Command.Loopback = true // Tcl's comm, by which its programs talk to each other
	if c.port > 0 {
		job.Command.Outside = []string{net.JoinHostPort(c.host(), strconv.Itoa(c.port))}
	}
	var err error
	job.Format, err = json.Marshal(format{Queries: queries})
	return work, err
}

// host is the machine of the server.
func (c *config) host() string {
	key := c.database + "_host"
	if c.database == "mssqls" {
		key = "mssqls_linux_server" // on Windows HammerDB takes mssqls_server
	}
	return cmp.Or(c.settings["connection"][key], "127.0.0.1")
}

// orders is where new orders are counted beside HammerDB: nil for queries, for a database that cannot be read here, and
// without a port, which says that the worker may reach it.
func (c *config) orders() *hammer.Orders {
	user, ok := map[string]string{"pg": "tpcc", "maria": "root", "mysql": "root"}[c.database]
	if !ok || c.port == 0 || c.benchmark != "tprocc" {
		return nil
	}
	tpcc := c.settings["tpcc"]
	return &hammer.Orders{Database: c.database, Host: c.host(), Port: c.port,
		User: cmp.Or(tpcc[c.database+"_user"], user), Schema: cmp.Or(tpcc[c.database+"_dbase"], "tpcc"),
		Password: c.database + "_pass"}
}

// Counters implements workload.Counting: by the exporter that the file names.
func (e Engine) Counters(spec workload.Spec, _ target.Host) (*workload.Scrape, error) {
	c, err := e.Read(spec)
	if err != nil || c.exporter == "" {
		return nil, err
	}
	return workload.Scraped(c.database, c.host(), c.exporter), nil
}

// declared returns what a job counts.
func (c *config) declared() workload.Declared {
	var d workload.Declared
	add := func(name, unit string, better result.Direction, kind result.Kind) {
		d.Measures = append(d.Measures, result.Measure{Name: name, Unit: unit, Better: better, Kind: kind})
	}
	if c.benchmark == "tproch" {
		d.Operations = []result.Operation{{Name: "query", Noun: "queries", Set: true}}
		add("geometric_mean", "s", result.Lower, result.Single)
		add("query_set", "s", result.Lower, result.Single)
		for i := range 22 {
			add(fmt.Sprintf("query_%02d", i+1), "s", result.Lower, result.Single)
		}
		return d
	}
	add("NOPM", "NOPM", result.Higher, result.Single)
	if c.orders() != nil {
		add(countedMeasure, "NOPM", result.Higher, result.Single)
		add(courseMeasure, "NOPM", result.Higher, result.Level)
	}
	add("TPM", "TPM", result.Higher, result.Single)
	add(counterMeasure, "TPM", result.Higher, result.Level)
	if !c.profile {
		return d
	}
	for _, kind := range kinds {
		d.Operations = append(d.Operations, result.Operation{Name: kind, Noun: kind + " calls"})
		for _, s := range stated {
			add(kind+"_"+s, "ms", result.Lower, result.Single)
		}
	}
	return d
}

// Check implements workload.Engine. Where HammerDB is may stand in the file; see CheckTool.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	if err := host.Accessible(ctx); err != nil {
		return workload.Tool{}, fmt.Errorf("check: hammerdb on %s: %w", host.Name(), err)
	}
	return workload.Tool{}, nil
}

// CheckTool implements workload.Naming.
func (e Engine) CheckTool(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	c, err := e.Read(spec)
	if err != nil {
		return workload.Tool{}, err
	}
	text, exit, err := workload.Ask(ctx, host, []string{"/bin/sh", "-c", hammer.Find, "find", c.folder}, ".hammerdb",
		"HammerDB's folder", false)
	if err == nil && exit.Code != 0 {
		err = errors.New(
			"there is no hammerdbcli; unpack HammerDB (4.0 or later) into /opt there, or name its folder: " +
				"under folder:; commands that are shut in see it where its folder is in PATH",
		)
	}
	if err != nil {
		return workload.Tool{}, fmt.Errorf("check: hammerdb on %s: %w", host.Name(), err)
	}
	return workload.Tool{Path: strings.TrimSpace(text) + "/hammerdbcli", Version: "told when it runs"}, nil
}

// Run implements workload.Engine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	p, err := newParser(job.Declared, env.Sink)
	if err == nil {
		err = putPasswords(ctx, env.Host, job)
	}
	if err != nil {
		if ctx.Err() != nil {
			return workload.Outcome{Stopped: true}, nil
		}
		return workload.Outcome{}, fmt.Errorf("start: workload %s on %s: %w", job.Command.Label, env.Host.Name(), err)
	}
	outcome, err := workload.RunSelfWith(ctx, env, job, p, workload.Words{Name: "HammerDB"})
	if work, _ := read(job); work.Passwords != "" {
		_ = env.Host.Remove(context.WithoutCancel(ctx), work.Passwords) // gone already where the worker began
	}
	return outcome, err
}

// read is the worker's job again.
func read(job workload.Job) (work hammer.Job, err error) {
	for name, data := range job.Files {
		if strings.HasSuffix(name, jobFile) {
			err = json.Unmarshal(data, &work)
		}
	}
	return work, err
}

// putPasswords reads the passwords from where they are kept and puts them on the machine, for the worker alone.
func putPasswords(ctx context.Context, host target.Host, job workload.Job) error {
	work, err := read(job)
	if err != nil || work.Passwords == "" {
		return err
	}
	values := map[string]string{}
	for name, from := range work.Sources {
		source, err := secret.ParseSource(from)
		if err != nil {
			return err
		}
		value, err := source.Read(ctx)
		if err != nil {
			return fmt.Errorf("passwords: %s: %w", name, err)
		}
		values[name] = value.Reveal()
	}
	data, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return host.Put(ctx, work.Passwords, 0o600, strings.NewReader(string(data)))
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	p, err := newParser(d, sink)
	if err != nil {
		return workload.Outcome{}, err
	}
	return workload.Replay(raw, p, "HammerDB")
}
