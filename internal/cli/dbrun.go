package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
	"plimsoll/scenario"
)

// dbLoad is a load generator of databases, with the words of its config for what every load of db run has.
type dbLoad struct {
	engine, clients string
	scale           string // "" for a load whose tables are there before, made by others
	selectOnly      string // key of the built-in script; "" for a load that has none
	rate            bool
	fraction        bool   // scales may have one
	lasts           string // without --duration
	summary         string
}

// dbLoads are what db run can run, by the name that it is given.
var dbLoads = map[string]dbLoad{
	"pgbench": {"pgbench", "clients", "scale", "builtin", true, false, "60s",
		"pgbench itself, which has to be installed"},
	"pg": {"pg", "clients", "scale", "script", true, false, "60s",
		"the same scripts by a driver that takes less of the processor"},
	"tprocc": {"tprocc", "users", "warehouses", "", false, false, "60s",
		"TPC-C-derived: orders of warehouses by procedures"},
	"tproch": {"tproch", "streams", "scale", "", false, true, "8h",
		"TPC-H-derived: 22 questions to a large data set"},
	"hammerdb": {"hammerdb", "virtual_users", "", "", false, false, "60s",
		"HammerDB's TPROC-C, which has to be installed, with the schema that it has built on --server"},
}

func dbLoadNames() []string {
	return []string{"pgbench", "pg", "tprocc", "tproch", "hammerdb"}
}

type dbRunFlags struct {
	server     serverFlags
	database   string
	settings   []string
	options    []string
	scale      float64
	clients    int
	selectOnly bool
	files      []string // of scripts, FILE@WEIGHT
	define     []string
	sweeps     []string
	repeats    int
	other      string // the dialect of a server that is no PostgreSQL
	beside     untyped.Object
	duration   string
	rate       float64
	marked     string // what a search varies: rateOption, clientsOption; "" for a run
	dry        bool
	given      func(flag string) bool
	tf         machines.Flags
	rf         runFlags
}

func (rn *runner) dbRunCommand() *cobra.Command {
	var f dbRunFlags
	var list strings.Builder
	for _, name := range dbLoadNames() {
		visible.Fprintf(&list, "  %-9s %s\n", name, dbLoads[name].summary)
	}
	c := &cobra.Command{
		Use: "run LOAD", Short: "Run one load on a database now, with a run folder and a report", Args: console.Args(1, 1, "load"),
		ValidArgs: dbLoadNames(),
		Long: `Run makes a scenario of one load and runs it on this machine like any other: its tables are made where they are not
there yet, then it is measured. Loads are

` + list.String() + `
Without --server a PostgreSQL is made for the run: in the run's own folder, with the settings that are given, reached
by a unix socket with a password that nobody else has, removed at the end.

With --server the load goes to yours. None of its settings is changed, and only tables that plimsoll has recorded as its
own are filled again or dropped: what somebody else made is left alone and the run refused. Scripts given by -f find there
what they need: nothing is made for them. --option initialise=never has built-in scripts use the tables of pgbench -i. Its password comes from --password,
PGPASSWORD or ~/.pgpass, never from the command line. How it was before and after is kept in the run folder.`,
		Example: `  plimsoll db run pgbench --scale 10 --clients 8 --duration 60s
  plimsoll db run pgbench --select-only --server-setting shared_buffers=1GB
  plimsoll db run pgbench --server postgresql://app@192.0.2.1/bench --password env:DBPASSWORD --rate 500
  plimsoll db run pg -f transfer.sql@3 -f report.sql -D branches=10 --server postgresql://app@192.0.2.1/shop
  plimsoll db run pg --sweep clients=1,2,4,8,16 --repeat 3
  plimsoll db run tprocc --scale 4 --clients 8`,
		RunE: func(cmd *cobra.Command, given []string) error {
			f.given = cmd.Flags().Changed
			return rn.dbRun(given[0], f)
		},
	}
	f.register(c, 1)
	flags := c.Flags()
	flags.StringVar(&f.duration, "duration", "", "`time` that is measured, at most where the load ends by itself "+
		"(default 60s; tproch 8h)")
	flags.Float64Var(&f.rate, "rate", 0, "offer this `number` of transactions per second instead of as many as it takes "+
		"(pgbench, pg)")
	flags.StringArrayVar(&f.sweeps, "sweep", nil, "run it with each `NAME=VALUE,VALUE,...`: clients, scale, rate, "+
		"server.SETTING or a key of the config; repeatable")
	flags.IntVar(&f.repeats, "repeat", 0, "`number` of runs of every combination")
	flags.BoolVar(&f.dry, "dry-run", false, "print the scenario and what would be done, and touch nothing")
	f.rf.waitFlags.register(c)
	f.rf.LabelFlags.Register(c)
	return c
}

// register gives a command the flags that say which load goes to which server.
func (f *dbRunFlags) register(c *cobra.Command, clients int) {
	f.tf.TimeScale, f.tf.SizeScale = 1, 1
	f.tf.Name = "local"
	f.server.register(c, "; without one a server is made for the run")
	flags := c.Flags()
	flags.StringVar(&f.database, "database", "", "`name` of the database (default: that of the URL)")
	flags.StringArrayVar(&f.settings, "server-setting", nil,
		"of the run's own server: `NAME=VALUE` of postgresql.conf; repeatable")
	flags.StringArrayVar(&f.options, "option", nil, "`KEY=VALUE` of the load generator's config, like mode=prepared; "+
		"repeatable")
	flags.Float64Var(&f.scale, "scale", 1, "`number` of branches, warehouses, or the scale factor, of tproch from "+
		"0.01 on; hammerdb has that of its schema")
	flags.IntVar(&f.clients, "clients", clients, "`number` of clients at once")
	flags.BoolVar(&f.selectOnly, "select-only", false, "only look accounts up (pgbench, pg)")
	flags.StringArrayVarP(&f.files, "file", "f", nil, "run the transactions of this `FILE[@WEIGHT]`, as pgbench -f does; "+
		"repeatable (pgbench, pg)")
	flags.StringArrayVarP(&f.define, "define", "D", nil, "`NAME=VALUE` of a variable of the scripts; repeatable (pgbench, pg)")
	flags.StringArrayVar(&f.tf.Options, "target-opt", nil, "set an option of the target local, `NAME=VALUE`; repeatable")
}

func (rn *runner) dbRun(name string, f dbRunFlags) error {
	const phase = "db run"
	f.other = f.dialect(name)
	files, err := rn.dbScenario(name, f)
	if err != nil {
		return err
	}
	given := phase + " " + name
	rn.made = map[string]fs.FS{given: files}
	// Who named it, by settings too, allows to reach it.
	f.tf.AllowHostCommands = f.server.url != "" || name == "hammerdb"
	sf := scenarioFlags{nodes: 1}
	if f.dry {
		for _, file := range []string{"test.yml", "load.yml"} {
			visible.Fprintf(rn.Out, "# %s\n%s\n", file, visible.Lines(files[file].Data))
		}
		p, err := rn.prepare(context.Background(), phase, given, sf, f.tf)
		if p != nil {
			defer p.close()
		}
		if err != nil {
			return err
		}
		return rn.sayPlan(context.Background(), p, sf, f.tf)
	}
	if err := rn.around(&f); err != nil {
		return err
	}
	return rn.run(given, sf, f.tf, f.rf)
}

// withDatabase is the address of a server with the database that is named beside it.
func withDatabase(address, database string) string {
	u, err := url.Parse(address)
	if err != nil || database == "" || strings.Trim(u.Path, "/") != "" {
		return address
	}
	u.Path = "/" + database
	return u.String()
}

// serves reports whether the scenario's workloads start a PostgreSQL of the run's own.
func (pl *planner) serves(p *prepared) bool {
	engines := pl.Drivers.ByName()
	return slices.ContainsFunc(p.scenario.Workloads, func(w scenario.Workload) bool {
		e, ok := engines[w.Generator].(workload.Peering)
		if !ok {
			return false
		}
		spec := workload.Spec{Name: w.Name, ConfigFile: w.ConfigFile, Config: w.Config, Settings: w.Settings}
		peers, ok, err := e.Peers(spec)
		if !ok || err != nil || !peers.Served {
			return false
		}
		server, err := e.Server(spec)
		return err == nil && server.Service.Name == postgres.ServiceName
	})
}

// programs has PostgreSQL in PATH: where it is installed, or else fetched into the user's cache.
func programs(con *console.Console, phase string) error {
	if _, err := postgres.Folder(); err == nil || os.Getenv(postgres.FolderVariable) != "" {
		return nil // the run says what is wrong with a folder that was named
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	visible.Fprintf(con.Notes(), "%s: PostgreSQL is not installed here: version 18.4 is fetched into %s, once (25 MB)\n",
		phase, filepath.Join(cache, "plimsoll"))
	ctx, stop := con.Interruptible()
	defer stop()
	bin, root, err := postgres.Fetch(ctx, filepath.Join(cache, "plimsoll"))
	if err != nil {
		return exit.Errorf(console.StoppedOrFailed(ctx), "apt-get install postgresql, or give --server", "%s: %w",
			phase, err)
	}
	// Commands of a run may read the folders of PATH: the programs need their libraries, too.
	list := strings.Join([]string{bin, root, os.Getenv("PATH")}, string(filepath.ListSeparator))
	if err := os.Setenv("PATH", list); err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return nil
}

// Files of a run folder with the state of the user's server.
const (
	stateBefore = "server-before.json"
	stateAfter  = "server-after.json"
)

// around asks a PostgreSQL of the user's how it is before the run, and has the run ask again at its end.
func (pl *planner) around(f *dbRunFlags) error {
	const phase = "db run"
	if f.server.url == "" || f.other != "" {
		return nil
	}
	f.server.url = withDatabase(f.server.url, f.database)
	ctx, stop := pl.Interruptible()
	before, err := f.server.state(ctx)
	code := console.StoppedOrFailed(ctx)
	stop()
	if err != nil {
		return exit.Errorf(code, "", "%s: %s", phase, console.OneLine(err))
	}
	server := f.server
	f.rf.finish = func(ctx context.Context, folder *result.Folder, _ *result.Data) error {
		after, err := server.state(ctx)
		keep := func(name string, s postgres.State) error {
			return folder.WriteFile(name, func(w io.Writer) error { return console.Indented(w, s) })
		}
		if err != nil {
			return errors.Join(keep(stateBefore, before), fmt.Errorf("the server's state after the run: %w", err))
		}
		if err := errors.Join(keep(stateBefore, before), keep(stateAfter, after)); err != nil {
			return err
		}
		if !pl.Quiet {
			visible.Fprintf(pl.Err, "the server before and after: plimsoll db state --diff %s %s\n",
				filepath.Join(folder.Dir(), stateBefore), filepath.Join(folder.Dir(), stateAfter))
		}
		return nil
	}
	return nil
}

// wholeSeconds reads --duration.
func wholeSeconds(given string) (int, error) {
	duration, err := console.TimeLimit(given)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--duration %q: want a length of time above 0, like 60s", given)
	case duration < time.Second || duration%time.Second != 0:
		return 0, fmt.Errorf("--duration %s: want whole seconds, 1s or more", given)
	}
	return int(duration.Seconds()), nil
}

// dbScenario makes the scenario of one load.
func (pl *planner) dbScenario(name string, f dbRunFlags) (fstest.MapFS, error) {
	const phase = "db run"
	load, ok := dbLoads[name]
	if !ok {
		return nil, exit.Usagef("there are: "+strings.Join(dbLoadNames(), ", "), "%s: no load called %q", phase, name)
	}
	if pl.Drivers.ByName()[load.engine] == nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: this program has no load generator %s", phase, load.engine)
	}
	var bad []error
	object := func(format string, args ...any) { bad = append(bad, fmt.Errorf(phase+": "+format, args...)) }
	if f.other != "" {
		if err := f.checkOther(); err != nil {
			bad = append(bad, err)
		}
	} else if err := f.server.check(phase); err != nil {
		bad = append(bad, err)
	}
	seconds, err := wholeSeconds(cmp.Or(f.duration, load.lasts))
	if err != nil {
		object("%w", err)
	}
	switch whole := f.scale == math.Trunc(f.scale); {
	case !(f.scale > 0 && f.scale <= math.MaxInt32):
		object("--scale %v: want a number above 0", f.scale)
	case !whole && !load.fraction:
		object("--scale %v: %s wants a whole number", f.scale, name)
	}
	if f.clients < 1 || f.clients > 100_000 {
		object("--clients %d: want 1 to 100,000", f.clients)
	}
	if f.given("rate") && !(f.rate > 0 && f.rate < math.Inf(1)) {
		object("--rate %g: want a number of transactions per second above 0", f.rate)
	}
	if u, err := url.Parse(f.server.url); err == nil && f.server.url != "" && load.scale == "" &&
		(u.Hostname() == "" || u.RawQuery != "" && !u.Query().Has("sslmode") || len(u.Query()) > 1) {
		object("--server: HammerDB wants postgresql://USER@HOST:PORT/DATABASE, with ?sslmode=... at most")
	}
	config := untyped.Object{load.clients: f.clients}
	switch {
	case load.scale != "":
		config[load.scale] = f.scale
	case f.given("scale"):
		object("--scale: %s loads the schema that it has built before, of the size that it has", name)
	}
	if f.selectOnly {
		config[load.selectOnly] = "select-only"
		if load.selectOnly == "" {
			object("--select-only: %s has no such script", name)
		}
	}
	if f.rate > 0 {
		config["rate"] = f.rate
		if !load.rate {
			object("--rate: %s takes none", name)
		}
	}
	paths := map[string]string{}
	if err := f.ownScripts(name, load, config, paths); err != nil {
		bad = append(bad, err)
	}
	settings, err := console.Pairs("--server-setting", f.settings)
	if err != nil {
		bad = append(bad, err)
	}
	if len(settings) > 0 && (f.server.url != "" || load.scale == "") {
		object("--server-setting is of a server that the run makes; yours is never reconfigured")
	}
	options, err := console.Pairs("--option", f.options)
	if err != nil {
		bad = append(bad, err)
	}
	if load.scale == "" {
		_, other := options["settings"]
		if f.server.url == "" && !other {
			object("%s: give --server URL of the PostgreSQL with its schema, or --option settings=... of another database",
				name)
		}
		maps.Copy(config, f.hammer())
	} else {
		maps.Copy(config, f.named(settings))
	}
	if f.other != "" {
		maps.Copy(config, f.named(nil))
		delete(options, "dialect")
		delete(options, "server") // both are in it
	}
	for key, text := range options {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			object("--option %s=%s: no value of YAML: %v", key, text, err)
		}
		given, mapping := untyped.Of(value)
		if mapping && key == "settings" && load.scale == "" {
			config.Merge(untyped.Object{key: given}) // what the address says stays where nothing else is given
			continue
		}
		if mapping && key == "server" {
			if given["url"] != nil {
				object("--option server: its address is --server URL, and --password says where its password is")
			}
			if named := config.Object(key); named != nil { // what else is said of it stands beside its address
				maps.Copy(named, given)
				continue
			}
		}
		config[key] = value
	}
	factors, err := f.factors(name, load)
	if err != nil {
		bad = append(bad, err)
	}
	if len(bad) > 0 {
		return nil, exit.Usagef("", "%w", errors.Join(bad...))
	}
	if slices.ContainsFunc(factors, func(x dbFactor) bool { return x.Key == load.scale && load.scale != "" }) {
		anew := map[string]untyped.Object{"pg": {"initialise": "always"}, "tprocc": {"reload": true},
			"tproch": {"reload": true}} // tables of ours are of another scale each time
		for key, value := range anew[name] {
			if config[key] == nil && f.server.url != "" {
				config[key] = value
			}
		}
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if err := pl.judge(f, load, text, paths, options); err != nil {
		return nil, exit.Errorf(exit.Scenario, "", "%w", err)
	}
	memory, err := memoryBytes()
	if err != nil {
		memory = 4 << 30
	}
	sc := dbScenario{Load: name, Engine: load.engine, Summary: load.summary, Seconds: seconds,
		Estimated: seconds + 600, CPUs: runtime.NumCPU(), MemoryMB: max(512, memory>>21),
		Fill: load.scale != "" && !pl.left(load, text)}
	f.vary(&sc, load, factors, settings)
	scenario, err := sc.encode()
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return fstest.MapFS{"test.yml": {Data: scenario}, "load.yml": {Data: text}}, nil
}

// otherSchemes are the dialects of addresses of servers that are no PostgreSQL.
var otherSchemes = map[string]string{"mariadb": "mariadb", "mysql": "mariadb", "sqlserver": "sqlserver"}

// dialect is that of a server that is no PostgreSQL, "" for one that is: by --server, or by --option server, whose
// address is taken for that of --server then.
func (f *dbRunFlags) dialect(load string) string {
	scheme := func(address string) string {
		before, _, _ := strings.Cut(address, "://")
		return otherSchemes[before]
	}
	if load != "tprocc" {
		return ""
	}
	if f.server.url != "" {
		return scheme(f.server.url)
	}
	for _, option := range f.options {
		text, ok := strings.CutPrefix(option, "server=")
		var server untyped.Object
		if !ok || yaml.Unmarshal([]byte(text), &server) != nil {
			continue
		}
		address := server.Text("url")
		if dialect := scheme(address); dialect != "" {
			f.server.url = address
			f.server.password = cmp.Or(f.server.password, server.Text("password"))
			delete(server, "url")
			delete(server, "password")
			f.beside = server
			return dialect
		}
	}
	return ""
}

// checkOther objects to the address of a server that is no PostgreSQL. It prints none, for it may hold a password.
func (f *dbRunFlags) checkOther() error {
	var bad []error
	u, err := url.Parse(f.server.url)
	named := err == nil && (f.database != "" || strings.Trim(u.Path, "/") != "")
	secretly := false
	if err == nil {
		_, secretly = u.User.Password()
	}
	switch {
	case err != nil || u.User.Username() == "" || u.Hostname() == "" || u.RawQuery != "" && f.other != "mariadb" ||
		strings.Contains(strings.Trim(u.Path, "/"), "/"):
		bad = append(bad, fmt.Errorf("db run: --server: want %s://USER@HOST:PORT/DATABASE", f.other))
	case secretly:
		bad = append(bad, errors.New("db run: --server: it has a password: give --password env:NAME"))
	case !named && !slices.ContainsFunc(f.options, func(o string) bool { return strings.HasPrefix(o, "database=") }):
		bad = append(bad, fmt.Errorf("db run: --server: it names no database: want %s://USER@HOST:PORT/DATABASE, or --database",
			f.other))
	}
	if len(f.settings) > 0 {
		bad = append(bad, errors.New("db run: --server-setting is of a server that the run makes"))
	}
	if f.server.password != "" {
		if _, err := secret.ParseSource(f.server.password); err != nil {
			bad = append(bad, fmt.Errorf("db run: --password: %w", err))
		}
	}
	return errors.Join(bad...)
}

// named is the server of a load as the generators of this house have it in their configs.
func (f *dbRunFlags) named(settings map[string]string) untyped.Object {
	server, config := untyped.Object{}, untyped.Object{}
	if u, err := url.Parse(f.server.url); f.other != "" && err == nil {
		config["dialect"] = f.other
		if database := strings.Trim(u.Path, "/"); database != "" {
			config["database"] = database
		}
		maps.Copy(server, f.beside)
		u.Scheme, u.Path = f.other, ""
		server["url"] = u.String()
	} else if f.server.url != "" {
		server["url"] = f.server.url
	}
	if f.server.password != "" {
		server["password"] = f.server.password
	}
	if len(settings) > 0 {
		server["settings"] = settings
	}
	if len(server) > 0 {
		config["server"] = server
	}
	if f.database != "" {
		config["database"] = f.database
	}
	return config
}

// hammer is the server of a load as HammerDB has it in its settings.
func (f *dbRunFlags) hammer() untyped.Object {
	u, err := url.Parse(f.server.url)
	if err != nil || f.server.url == "" {
		return nil // an address that cannot be read was refused
	}
	port := cmp.Or(u.Port(), "5432")
	connection := untyped.Object{"pg_host": u.Hostname(), "pg_port": port}
	if mode := u.Query().Get("sslmode"); mode != "" {
		connection["pg_sslmode"] = mode
	}
	user := u.User.Username()
	schema := untyped.Object{"pg_user": user, "pg_dbase": cmp.Or(f.database, strings.TrimPrefix(u.Path, "/"), user)}
	config := untyped.Object{"port": port, "settings": untyped.Object{"connection": connection, "tpcc": schema}}
	if f.server.password != "" {
		config["passwords"] = map[string]string{"pg_pass": f.server.password}
	}
	return config
}
