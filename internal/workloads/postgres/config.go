package postgres

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/secret"
)

// Config says which server a load goes to: one of the run's own, or one that the user named.
type Config struct {
	// Of a server of the run's own. Group are the VMs that have one, "": each machine of the workload one for itself,
	// reached by a unix socket.
	Group    string
	Settings map[string]string // of postgresql.conf
	Follows  string            // the address of the server that it is a standby of; "" for none

	// Of the user's. URL has no password; without a source of one it is looked up as psql does.
	URL      string
	Password secret.Source

	Database string

	CPUs       string // that a server of the run's own is kept on, and
	ClientCPUs string // those of the load, as worker.ReadCPUs gives them; "": all that the machine has
}

// Names and numbers of a server of a run's own.
const (
	OwnUser     = "plimsoll"
	OwnDatabase = "plimsoll"
	OwnPort     = 5432
)

// RunsServer reports whether the run starts the server itself.
func (c Config) RunsServer() bool { return c.URL == "" }

// address is where the user's server is, with the database, by which ~/.pgpass is searched.
func (c Config) address() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	if err == nil {
		u.Path = "/" + c.Database
	}
	return u, err
}

// Env returns what the environment of a load on this server says.
func (c Config) Env() []string {
	if c.ClientCPUs == "" {
		return nil
	}
	return []string{worker.CPUsVariable + "=" + c.ClientCPUs}
}

// Admit makes a server of the run's own for more than 250 clients let them in, and so many connections more, unless the
// file says what it lets in.
func (c *Config) Admit(clients, more int) {
	if !c.RunsServer() || c.Settings["max_connections"] != "" || clients <= 250 {
		return
	}
	if c.Settings == nil {
		c.Settings = map[string]string{}
	}
	c.Settings["max_connections"] = strconv.Itoa(clients + more + 50)
}

// Options are the rows of an engine's table that say where its load goes; ReadServer reads them when all are there.
func Options(more ...workload.Option) []workload.Option {
	later := func(*yaml.Node) {}
	return append([]workload.Option{
		{Name: "server", To: later, Help: "of the run's own {vm_group: NAME, settings: {}, cpus: 0-3, client_cpus: " +
			"4-7}, on each machine by default; or yours {url: ..., password: env:NAME}"},
		{Name: "database", To: later, Help: "where the url names none"},
	}, more...)
}

// ReadServer reads what a config says by the rows of Options. Without a server it is one of the run's own on the
// workload's machines. All that is wrong is noted at once, each with its place.
func ReadServer(r *workload.Reading) (c Config) {
	server, database := r.Given["server"], r.Given["database"]
	if server != nil {
		c.read(r, server)
	}
	if database != nil {
		r.Set(database, "database", workload.Option{To: line(&c.Database)})
		if name := c.Database; c.RunsServer() && name != "" && !plainName.MatchString(name) {
			r.Object(database, "database: %q: of a server of the run's own it has small letters, digits and _ only", name)
		}
	}
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		named := strings.TrimPrefix(u.Path, "/")
		if named != "" && c.Database != "" && named != c.Database {
			r.Object(database, "database: %q, and the URL says %q; say it once", c.Database, named)
		}
		c.Database = cmp.Or(c.Database, named, u.User.Username())
	}
	if c.RunsServer() {
		c.Database = cmp.Or(c.Database, OwnDatabase)
	}
	return c
}

// line is where a text of one line goes.
func line(to *string) func(string) error {
	return func(text string) error {
		switch {
		case strings.TrimSpace(text) == "":
			return errors.New("want a text")
		case len(text) > 1<<10 || strings.ContainsAny(text, "\x00\r\n"):
			return errors.New("want one line of at most 1024 characters")
		}
		*to = text
		return nil
	}
}

func cpus(to *string) func(string) error {
	return func(text string) (err error) {
		if *to, err = worker.ReadCPUs(text); err != nil {
			return fmt.Errorf("%q is no list of CPUs such as 0-3,8", text)
		}
		return nil
	}
}

// read reads the pairs of a server.
func (c *Config) read(r *workload.Reading, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.Object(n, `server: want pairs such as {vm_group: Database} or {url: "postgresql://app@192.0.2.1/bench"}`)
		return
	}
	r.Table(n, "server: ", []workload.Option{
		{Name: "vm_group", To: line(&c.Group), Help: "the VMs that each have a server of the run's own"},
		{Name: "cpus", To: cpus(&c.CPUs), Help: "that it is kept on"},
		{Name: "client_cpus", To: cpus(&c.ClientCPUs), Help: "that the load is kept on"},
		{Name: "settings", Help: "of postgresql.conf", To: func(n *yaml.Node) { c.settings(r, n) }},
		{Name: "url", Help: "of a server of yours", To: func(text string) error {
			if err := line(&c.URL)(text); err != nil {
				return err
			}
			return workload.Joined(CheckURL(text))
		}},
		{Name: "password", To: &c.Password, Help: "where its password is kept"},
	})
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		seen[n.Content[i].Value] = n.Content[i]
	}
	for _, key := range []string{"vm_group", "settings", "cpus"} {
		if seen["url"] != nil && seen[key] != nil {
			r.Object(seen[key], "server: %s is of a server that the run starts, and url names one of yours, which is "+
				"never reconfigured; leave one of them out", key)
		}
	}
	if at := seen["password"]; at != nil && seen["url"] == nil {
		r.Object(at, "server: password is of a server that url names; a run's own server gets a password by itself")
	}
}

var (
	plainName   = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	settingName = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$`)
	// What the run sets itself, and what would have the server run programs or load code that a config names.
	notSettings = regexp.MustCompile(`^(listen_addresses|port|unix_socket_.*|data_directory|.*_file|logging_collector|` +
		`log_destination|log_directory|external_pid_file|cluster_name|ssl.*|password_encryption|.*_command|` +
		`.*_libraries|jit_provider|dynamic_library_path|extension_control_path|archive_library|include.*)$`)
)

func (c *Config) settings(r *workload.Reading, n *yaml.Node) {
	c.Settings = map[string]string{}
	r.Mapping(n, "server: settings: ", func(key, value *yaml.Node) {
		name, text := key.Value, ""
		switch {
		case !settingName.MatchString(name):
			r.Object(key, "server: settings: %q is no name of a setting", name)
		case notSettings.MatchString(name):
			r.Object(key, "server: settings: %s is not for a scenario to set", name)
		default:
			r.Set(value, "server: settings: "+name, workload.Option{To: line(&text)})
			c.Settings[name] = text
		}
	})
}

// urlParameters are those of libpq's that a load may give, as variables of its environment.
var urlParameters = map[string]string{
	"host": "PGHOST", "port": "PGPORT", "sslmode": "PGSSLMODE", "application_name": "PGAPPNAME",
	"connect_timeout": "PGCONNECT_TIMEOUT", "options": "PGOPTIONS", "channel_binding": "PGCHANNELBINDING",
	"require_auth": "PGREQUIREAUTH",
	"sslrootcert":  "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", // see certificates
}

// certificates are the variables that name files of the machine that runs plimsoll, which PutPassword puts into a job's
// folder by these names.
var certificates = map[string]string{"PGSSLROOTCERT": "root.crt", "PGSSLCERT": "client.crt", "PGSSLKEY": "client.key"}

// CheckURL says what is wrong with the address of a user's server; nil is nothing. No answer quotes a password.
func CheckURL(text string) (objections []string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgresql" && u.Scheme != "postgres" {
		return []string{"want postgresql://USER@HOST:PORT/DATABASE, or a socket by ?host=/FOLDER"}
	}
	bad := func(format string, args ...any) { objections = append(objections, fmt.Sprintf(format, args...)) }
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		bad("it has a password, which lists of processes and histories show; leave it out and give password: " +
			"env:NAME or file:PATH")
	}
	for _, key := range slices.Sorted(maps.Keys(u.Query())) {
		if urlParameters[key] == "" && key != "password" {
			bad("%q is no parameter that a load can have; known are %s", key,
				strings.Join(slices.Sorted(maps.Keys(urlParameters)), ", "))
		}
	}
	host, port := hostPort(u)
	if host == "" || strings.Contains(host, ",") {
		bad("want one host, not %q", host)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 1 || p > 65535 {
		bad("port %q: want a whole number from 1 to 65535", port)
	}
	if u.User.Username() == "" {
		bad("it names no user; write postgresql://USER@HOST/DATABASE")
	}
	if strings.Contains(strings.TrimPrefix(u.Path, "/"), "/") {
		bad("database %q: want one name", u.Path)
	}
	return objections
}

// hostPort is where a URL leads: a host, or the folder of a unix socket, and a port.
func hostPort(u *url.URL) (host, port string) {
	return cmp.Or(u.Query().Get("host"), u.Hostname()), cmp.Or(u.Query().Get("port"), u.Port(), "5432")
}

// accessFile says in a job's files where its load goes; it holds nothing secret.
const (
	accessFile = "server.json"
	passFile   = ".pgpass"
)

// access is the content of accessFile.
type access struct {
	URL      string        `json:"url,omitempty"`
	Password secret.Source `json:"password,omitzero"`
	Own      bool          `json:"own,omitempty"`
	PassFile string        `json:"passfile"`
	// Certificates are files of our machine by the variables of certificates.
	Certificates map[string]string `json:"certificates,omitempty"`
}

// Peers says where the load goes, as workload.Peering has it.
func (c Config) Peers() (workload.Peers, bool) {
	if !c.RunsServer() {
		return workload.Peers{}, false
	}
	return workload.Peers{Group: c.Group, Served: true, Network: c.Group != ""}, true
}

// Apply gives a job what its command needs to reach the server: the environment that every client of PostgreSQL reads
// (PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, ...), the ports, a note, and what PutPassword has to know. So a
// worker connects with an empty connection string.
func (c Config) Apply(spec workload.Spec, job *workload.Job) error {
	folder := workload.FolderName(spec.Name)
	a := access{Password: c.Password, Own: c.RunsServer(), PassFile: path.Join(folder, passFile)}
	// A job's working folder is the same for all its processes, and a socket's path has to begin with "/".
	job.Command.Env = append(job.Command.Env, c.Env()...)
	env := map[string]string{"PGDATABASE": c.Database, "PGPASSFILE": a.PassFile, "PGCONNECT_TIMEOUT": "10"}
	switch {
	case !c.RunsServer():
		u, err := c.address()
		if err != nil {
			return fmt.Errorf("prepare: workload %q: url: %w", spec.Name, err)
		}
		a.URL = u.String()
		for key, values := range u.Query() {
			env[urlParameters[key]] = values[0]
		}
		a.Certificates = map[string]string{}
		for variable, name := range certificates {
			if file := env[variable]; file != "" && file != "system" {
				a.Certificates[variable], env[variable] = file, path.Join(folder, name)
			}
		}
		host, port := hostPort(u)
		env["PGHOST"], env["PGPORT"], env["PGUSER"] = host, port, u.User.Username()
		if strings.HasPrefix(host, "/") {
			job.Command.Outside = []string{host}
		} else {
			job.Command.Outside = []string{net.JoinHostPort(host, port)}
		}
		job.Notes = append(job.Notes, fmt.Sprintf("its load goes to database %q of the server that was named, %s: no "+
			"setting of it is changed", c.Database, c.URL))
	default:
		env["PGPORT"], env["PGUSER"] = strconv.Itoa(OwnPort), OwnUser
		env["PGHOST"] = "/proc/self/cwd/" + ServerFolder
		where := "the machine itself, by a unix socket"
		if c.Group != "" {
			if len(spec.Peers) == 0 || spec.Peer >= len(spec.Peers) {
				return fmt.Errorf("prepare: workload %q: there is no machine in group %q", spec.Name, c.Group)
			}
			env["PGHOST"] = spec.Peers[spec.Peer].Address
			job.Command.Dials = append(job.Command.Dials, OwnPort)
			where = fmt.Sprintf("the VMs of group %q", c.Group)
		}
		job.Notes = append(job.Notes, fmt.Sprintf("its server, PostgreSQL, runs on %s, started by the run", where))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		job.Command.Env = append(job.Command.Env, name+"="+env[name])
	}
	text, err := json.MarshalIndent(a, "", "  ")
	if job.Files == nil {
		job.Files = map[string][]byte{}
	}
	job.Files[path.Join(folder, accessFile)] = append(text, '\n')
	return err
}

// ServerFolder is the folder of a run's own server in the working folder of its machine, with its socket. A machine has
// one server: of all workloads, their prefills and their starts.
const ServerFolder = "postgresql"
