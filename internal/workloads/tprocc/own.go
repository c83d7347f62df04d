package tprocc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1" // what MariaDB keeps of a password
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	exporter "plimsoll/internal/exporters/mariadb"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/result"
)

//go:embed mariadb.sh
var script []byte

// Names and numbers of a MariaDB of the run's own.
const (
	mariaFolder  = "mariadb" // in the working folder of its machine, with its socket
	mariaService = "mariadb"
	mariaPort    = 3306
	ownFile      = "/tprocc.own" // among a job's files: its password is that of the run's own server
)

// ownPassword is that of every MariaDB that this process starts. It is in no file but those of mode 0600 that a load's
// client reads; servers get what MariaDB keeps of it.
var ownPassword = sync.OnceValue(rand.Text)

// kept returns what MariaDB keeps of a password (mysql_native_password), from which it cannot be had.
func kept(password string) string {
	once := sha1.Sum([]byte(password)) // as above
	twice := sha1.Sum(once[:])         // as above
	return fmt.Sprintf("*%X", twice)
}

// mariaStated are settings of a server of the run's own, before those of the config.
func mariaStated() map[string]string {
	return map[string]string{"max_connections": "300", "local_infile": "ON", "skip_name_resolve": "ON"}
}

// notMariaSettings are what the run sets itself, and what would have the server run programs, load code or write files
// that a config names.
var notMariaSettings = regexp.MustCompile(`^(bind_address|port|extra_port|socket|datadir|basedir|tmpdir|user|chroot|` +
	`.*_file|.*_dir|.*_path|plugin.*|init_.*|log_error.*|log_bin.*|pid_file|secure_.*|skip_(grant|networking|name).*|` +
	`ssl.*|tls.*|local_infile|lc_messages_dir|wsrep.*|relay_log.*|report_.*|default_authentication_plugin|aria_log_dir_path|` +
	`general_log.*|slow_query_log_.*)$`)

// ownMaria reads the keys of a MariaDB that the run starts, which are those of a PostgreSQL's.
func (c *config) ownMaria() {
	server := postgres.ReadServer(&c.Reading)
	for _, name := range slices.Sorted(maps.Keys(server.Settings)) {
		if notMariaSettings.MatchString(strings.ReplaceAll(name, "-", "_")) {
			c.Object(c.Given["server"], "server: settings: %s is not for a scenario to set", name)
		}
	}
	server.Admit(c.job.Users, c.job.Threads)
	c.server, c.job.Database = server, server.Database
}

// startsMaria reports whether the run starts a MariaDB for the load.
func (c *config) startsMaria() bool { return c.job.Dialect == mariadb && c.job.URL == "" }

// Peers implements workload.Peering.
func (e Engine) Peers(spec workload.Spec) (workload.Peers, bool, error) {
	if c, err := e.Read(spec); err == nil && c.startsMaria() {
		peers, ok := c.server.Peers()
		return peers, ok, nil
	}
	return e.Engine.Peers(spec)
}

// Server implements workload.Peering: of MariaDB one that is made where it is not there yet, with one user
// (postgres.OwnUser), who may all, beside root, who gets in as the system's root alone. It stays until the teardown.
func (e Engine) Server(spec workload.Spec) (workload.Server, error) {
	c, err := e.Read(spec)
	if err != nil || !c.startsMaria() {
		return e.Engine.Server(spec)
	}
	stated := mariaStated()
	maps.Copy(stated, c.server.Settings)
	settings := "# What plimsoll set, on top of what MariaDB has by itself.\n[mariadbd]\n"
	for _, name := range slices.Sorted(maps.Keys(stated)) {
		settings += fmt.Sprintf("%s = \"%s\"\n", name, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(stated[name]))
	}
	// The file is gone through at every start.
	sql := fmt.Sprintf("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY PASSWORD '%s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO %[1]s@'%%' WITH GRANT OPTION;\nCREATE DATABASE IF NOT EXISTS %[3]s;\n",
		postgres.OwnUser, kept(ownPassword()), c.job.Database)
	sum := fnv.New32a() // the last but one tells servers of other settings apart: see loads.Set
	fmt.Fprint(sum, settings, c.job.Database, c.server.CPUs)
	service := target.Service{Name: mariaService, Command: target.Command{
		Argv:   []string{"/bin/sh", mariaFolder + "/server.sh", "", fmt.Sprintf("%08x", sum.Sum32()), c.server.CPUs},
		Stdout: mariaFolder + "/output", Stderr: mariaFolder + "/output"}}
	if c.server.Group != "" {
		service.Command.Argv[2] = spec.Address
		service.Command.Listens = []int{mariaPort}
	}
	return workload.Server{
		Service: service,
		Files: map[string][]byte{mariaFolder + "/server.sh": script, mariaFolder + "/first.sql": []byte(sql),
			mariaFolder + "/settings.cnf": []byte(settings)},
		Ready: target.Readiness{Output: service.Command.Stdout, Within: 10 * time.Minute,
			Match: regexp.MustCompile(`: ready for connections`)},
		Grace: 20 * time.Second,
		Stays: true,
	}, nil
}

var mariaVersion = regexp.MustCompile(`Ver ([0-9]+\.[0-9]+\.[0-9]+)-MariaDB`)

// CheckServer implements workload.Peering.
func (e Engine) CheckServer(ctx context.Context, host target.Host, spec workload.Spec) (workload.Tool, error) {
	c, err := e.Read(spec)
	if err != nil || !c.startsMaria() {
		return e.Engine.CheckServer(ctx, host, spec)
	}
	fail := func(err error) (workload.Tool, error) {
		return workload.Tool{}, fmt.Errorf("check: MariaDB on %s: %w", host.Name(), err)
	}
	if err := target.WriteFile(ctx, host, mariaFolder+"/server.sh", script); err != nil {
		return fail(err)
	}
	said, exit, err := workload.Ask(ctx, host, []string{"/bin/sh", mariaFolder + "/server.sh", "version"},
		mariaFolder+"/version", "MariaDB's version", true)
	if err != nil {
		return fail(err)
	}
	m := mariaVersion.FindStringSubmatch(said)
	if exit != (target.Exit{}) || m == nil {
		return fail(errors.New(strings.TrimSpace(said) + "; install it (apt-get install mariadb-server)"))
	}
	return workload.Tool{Path: "mariadbd", Version: m[1]}, nil
}

// applyOwn has the job's client reach a MariaDB of the run's own.
func (c *config) applyOwn(spec workload.Spec, folder string, job *workload.Job) error {
	where := "the machine itself, by a unix socket"
	job.Command.Env = c.server.Env()
	u := url.URL{Scheme: mariadb, User: url.User(postgres.OwnUser), Host: "localhost",
		RawQuery: url.Values{"socket": {"/proc/self/cwd/" + mariaFolder + "/socket"}}.Encode()}
	if c.server.Group != "" {
		if len(spec.Peers) == 0 || spec.Peer >= len(spec.Peers) {
			return fmt.Errorf("prepare: workload %q: there is no machine in group %q", spec.Name, c.server.Group)
		}
		u.Host, u.RawQuery = spec.Peers[spec.Peer].Address, "sslmode=disable" // as a PostgreSQL of the run's own
		job.Command.Dials = append(job.Command.Dials, mariaPort)
		where = fmt.Sprintf("the VMs of group %q", c.server.Group)
	}
	job.Notes = append(job.Notes, fmt.Sprintf("its server, MariaDB, runs on %s, started by the run", where))
	c.job.URL, c.job.PassFile = u.String(), folder+passFile
	job.Files[folder+ownFile] = []byte("the run's own server\n")
	return nil
}

// mariaFacts are of a MariaDB of the run's own, as it is set up.
func (c *config) mariaFacts() []result.Fact {
	settings := map[string]string{"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON", "sync_binlog": "0"}
	maps.Copy(settings, mariaStated())
	maps.Copy(settings, c.server.Settings)
	return mariaFacts(settings)
}

// Asked implements workload.Asking.
func (e Engine) Asked(ctx context.Context, spec workload.Spec) ([]result.Fact, error) {
	c, err := e.Read(spec)
	if err != nil || c.job.Dialect != mariadb || c.startsMaria() {
		return e.Engine.Asked(ctx, spec)
	}
	collector, err := exporter.New(exporter.Server{URL: c.job.URL, Password: c.password, Cleartext: c.job.Cleartext})
	if err != nil {
		return nil, err
	}
	defer collector.Close()
	version, settings, err := collector.Settings(ctx)
	return append([]result.Fact{{Group: result.ServerGroup, Name: "version", Value: version}},
		mariaFacts(settings)...), err
}

// mariaApart are settings that tell two servers apart and not what they do.
var mariaApart = []string{"basedir", "bind_address", "datadir", "general_log_file", "hostname", "log_error", "pid_file",
	"plugin_dir", "port", "report_", "server_id", "slow_query_log_file", "socket", "ssl_", "tmpdir"}

// mariaFacts are settings of a MariaDB or MySQL as facts: what makes a commit last first.
func mariaFacts(settings map[string]string) (out []result.Fact) {
	names := slices.Sorted(maps.Keys(settings))
	slices.SortStableFunc(names, func(a, b string) int {
		rank := func(name string) int { return slices.Index(exporter.Lasting, name) }
		last := func(r int) int { return map[bool]int{true: len(exporter.Lasting), false: r}[r < 0] }
		return cmp.Compare(last(rank(a)), last(rank(b)))
	})
	for _, name := range names {
		f := result.Fact{Group: result.ServerGroup, Name: name, Value: settings[name], Across: result.MustAgree}
		if slices.ContainsFunc(mariaApart, func(word string) bool { return strings.HasPrefix(name, word) }) {
			f.Across = result.Noted
		}
		out = append(out, f)
	}
	return out
}
