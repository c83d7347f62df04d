// Package hammerdb is the load generator `hammerdb`: a HammerDB that the user has unpacked on the machine, against a
// database whose schema is there. See package plimsoll/internal/workloads/hammerdb/tool, which runs it there.
//
// It stands among the engines. Its config is YAML:
//
//	benchmark: tprocc          # or tproch
//	database: pg               # or mysql, maria, mssqls
//	virtual_users: 8
//	rampup: 2m                 # whole minutes, as HammerDB has them
//	time_profile: true         # tprocc: times of each kind of transaction
//	query_sets: 1              # tproch
//	folder: /opt/HammerDB-4.12 # default: where it is found
//	port: 5432                 # of the database, for places that let commands reach nothing else
//	passwords: {pg_pass: "env:TPCC_PASSWORD"}
//	settings:                  # HammerDB's own, as its command diset takes them
//	  connection: {pg_host: 192.0.2.1}
//	  tpcc: {pg_user: tpcc, pg_dbase: tpcc}
//
// NOPM and TPM are HammerDB's own figures of its timed period, and never results of a TPC benchmark. It refuses
// passwords among the settings, times that are no whole minutes, and to build schemas: HammerDB does that, and reports
// success of some builds that failed.
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
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/secret"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is what scenarios call the engine.
const Name = "hammerdb"

// Engine is the generator. The zero value is ready for use.
type Engine struct{}

var (
	_ workload.Engine   = Engine{}
	_ workload.Naming   = Engine{}
	_ workload.Counting = Engine{}
	_ workload.Stating  = Engine{}
)

// Facts implements workload.Stating.
func (Engine) Facts(spec workload.Spec) []result.Fact {
	c, err := parse(spec)
	if err != nil {
		return nil
	}
	var out []result.Fact
	add := func(key, value string) { out = append(out, workload.LoadFact(spec.Name, key, value)) }
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

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
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

// config is what the author's file says.
type config struct {
	workload.Pairs
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

var keys = []string{"benchmark", "database", "exporter", "folder", "passwords", "port", "query_sets", "rampup",
	"settings", "time_profile", "virtual_users"}

func parse(spec workload.Spec) (*config, error) {
	c := &config{
		Pairs:     workload.Pairs{Example: "virtual_users: 4", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		benchmark: "tprocc",
		database:  "pg",
		users:     1,
		sets:      1,
		passwords: map[string]string{},
		settings:  map[string]map[string]string{},
	}
	c.Read(spec, c.take)
	if c.benchmark == "tproch" && (c.profile || c.rampup > 0) {
		c.Object(nil, "rampup and time_profile are of tprocc; the queries of tproch run once and are timed each")
	}
	if c.benchmark == "tprocc" && c.sets > 1 {
		c.Object(nil, "query_sets is of tproch")
	}
	if spec.Runtime > 0 && c.benchmark == "tprocc" && spec.Runtime%time.Minute != 0 {
		c.Object(nil, "HammerDB measures whole minutes: give runtime_secs of 60, 120 and so on, not %v",
			unit.Duration(spec.Runtime))
	}
	if len(c.Bad.Objections) > 0 {
		return c, c.Bad
	}
	return c, nil
}

// take takes one key of the file.
func (c *config) take(key, value *yaml.Node) {
	whole := func(to *int, most int) {
		v, err := strconv.Atoi(value.Value)
		if value.Kind != yaml.ScalarNode || err != nil || v < 1 || v > most {
			c.Object(value, "%s: %q is no whole number from 1 to %d", key.Value, value.Value, most)
			return
		}
		*to = v
	}
	choice := func(to *string, of ...string) {
		if value.Kind != yaml.ScalarNode || !slices.Contains(of, value.Value) {
			c.Object(value, "%s: %q is none of %s", key.Value, value.Value, strings.Join(of, ", "))
			return
		}
		*to = value.Value
	}
	switch key.Value {
	case "benchmark":
		choice(&c.benchmark, "tprocc", "tproch")
	case "database":
		choice(&c.database, "pg", "mysql", "maria", "mssqls")
	case "exporter":
		c.exporter = value.Value
		if err := workload.CheckExporter(c.exporter); err != nil {
			c.Object(value, "exporter: %q: %v", c.exporter, err)
		}
	case "virtual_users":
		whole(&c.users, 10_000)
	case "query_sets":
		whole(&c.sets, 10_000)
	case "port":
		whole(&c.port, 65535)
	case "rampup":
		d, err := unit.ParseDuration(value.Value)
		if err != nil || d < 0 || time.Duration(d)%time.Minute != 0 || time.Duration(d) > 24*time.Hour {
			c.Object(value, "rampup: %q is no number of whole minutes such as 2m", value.Value)
		}
		c.rampup = time.Duration(d)
	case "time_profile":
		v, err := strconv.ParseBool(value.Value)
		if err != nil {
			c.Object(value, "time_profile: %q is neither true nor false", value.Value)
		}
		c.profile = v
	case "folder":
		if c.folder = value.Value; !strings.HasPrefix(c.folder, "/") || strings.ContainsAny(c.folder, "\x00\r\n") {
			c.Object(value, "folder: %q is no path from the root", value.Value)
		}
	case "passwords":
		c.Mapping(value, "passwords: ", func(k, v *yaml.Node) {
			if !word(k.Value) || !hammer.Secret("_"+strings.TrimPrefix(k.Value, "_")) {
				c.Object(
					k,
					"passwords: %q is none of HammerDB's names for one, such as pg_pass or pg_superuserpass",
					k.Value,
				)
			}
			if _, err := secret.ParseSource(v.Value); err != nil {
				c.Object(v, "passwords: %s: %v", k.Value, err)
			}
			c.passwords[k.Value] = v.Value
		})
	case "settings":
		c.Mapping(value, "settings: ", c.section)
	default:
		c.Unknown(key, "", keys)
	}
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
		case slices.Contains(c.own(), k.Value):
			c.Object(k, "settings: %s follows from the keys of this file and the step; leave it out", k.Value)
		case v.Kind != yaml.ScalarNode || len(v.Value) > 1000 || strings.ContainsAny(v.Value, "{}\\\x00\r\n"):
			c.Object(v, `settings: %s: want one value on one line, without braces and \`, k.Value)
		default:
			of[k.Value] = v.Value
		}
	})
	c.settings[key.Value] = of
}

// own are settings that the engine gives.
func (c *config) own() (names []string) {
	for _, d := range []string{"pg_", "mysql_", "maria_", "mssqls_"} {
		for _, n := range []string{"driver", "rampup", "duration", "timeprofile", "total_querysets"} {
			names = append(names, d+n)
		}
	}
	return names
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, err := parse(spec)
	return err
}

// script is what hammerdbcli does. Passwords are read from the environment, so they stand in no file of ours. Versions
// before 4.6 do not wait in vurun, so it is waited for here.
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
	outputFile   = "/output"
	stderrFile   = "/stderr"
	programFile  = "/plimsoll"
)

// Command implements workload.Engine.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	c, err := parse(spec)
	switch {
	case err != nil:
		return workload.Job{}, err
	case spec.Prefill:
		err = errors.New("HammerDB builds its schema itself: build it beforehand, and leave the prefill out")
	case spec.Runtime < time.Minute && c.benchmark == "tprocc":
		err = errors.New("HammerDB measures whole minutes: give runtime_secs of 60 or more")
	}
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	folder := workload.FolderName(spec.Name)
	queries := c.benchmark == "tproch"
	work := hammer.Job{Folder: c.folder, Script: folder + scriptFile, Temporary: folder + "/tmp", Profile: c.profile &&
		!queries, Queries: queries, Sources: c.passwords}
	if len(c.passwords) > 0 {
		work.Passwords = folder + passwordFile
	}
	job := workload.Job{
		Declared: c.declared(),
		Files:    map[string][]byte{folder + scriptFile: []byte(c.script(spec.Runtime))},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, hammer.WorkCommand, folder + jobFile}},
		Config:  folder + scriptFile,
		Output:  folder + outputFile,
		Streams: []result.Stream{{Name: "virtual users", Noun: "set of virtual users", Depth: c.users}},
		Notes: []string{
			"NOPM and TPM are HammerDB's own figures, and no results of a TPC benchmark; TPM compares runs " +
				"of one database only",
		},
	}
	if !queries {
		// Beside its time HammerDB makes its users, and gathers the times of each.
		job.Limit = c.rampup + spec.Runtime + 10*time.Minute
		job.Streams[0].TimeBased, job.Streams[0].Runtime = true, job.Limit
	}
	work.Orders = c.orders()
	job.Command.Loopback = true // Tcl's comm, by which its programs talk to each other
	if c.port > 0 {
		job.Command.Outside = []string{net.JoinHostPort(c.host(), strconv.Itoa(c.port))}
	}
	if job.Format, err = json.Marshal(format{Queries: queries}); err != nil {
		return job, err
	}
	job.Files[folder+jobFile], err = json.MarshalIndent(work, "", "  ")
	return job, err
}

// host is the machine of the server.
func (c *config) host() string {
	key := c.database + "_host"
	if c.database == "mssqls" {
		key = "mssqls_linux_server" // mssqls_server is what HammerDB takes on Windows
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
func (Engine) Counters(spec workload.Spec, _ target.Host) (*workload.Scrape, error) {
	c, err := parse(spec)
	if err != nil || c.exporter == "" {
		return nil, err
	}
	return workload.Scraped(c.database, c.host(), c.exporter), nil
}

// declared is what a job counts.
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
func (Engine) CheckTool(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	c, err := parse(spec)
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
