package postgres

import (
	"cmp"
	"encoding/json"
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
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/secret"
	"plimsoll/scenario"
)

// Keys are those of an engine's config that Read takes.
var Keys = []string{"server", "database"}

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

// Own reports whether the run starts the server itself.
func (c Config) Own() bool { return c.URL == "" }

// address is where the user's server is, with the database, by which ~/.pgpass is searched.
func (c Config) address() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	if err == nil {
		u.Path = "/" + c.Database
	}
	return u, err
}

// Env is what the environment of a load on this server says.
func (c Config) Env() []string {
	if c.ClientCPUs == "" {
		return nil
	}
	return []string{worker.CPUsVariable + "=" + c.ClientCPUs}
}

// Admit makes a server of the run's own for more than 250 clients let them in, and so many connections more, unless the
// file says what it lets in.
func (c *Config) Admit(clients, more int) {
	if !c.Own() || c.Settings["max_connections"] != "" || clients <= 250 {
		return
	}
	if c.Settings == nil {
		c.Settings = map[string]string{}
	}
	c.Settings["max_connections"] = strconv.Itoa(clients + more + 50)
}

// Read takes the nodes of Keys in an engine's file, nil for those that are not there. Without a server it is one of the
// run's own on the workload's machines. All that is wrong comes back at once, each with its place.
func Read(server, database *yaml.Node) (Config, []scenario.Objection) {
	r := &reading{seen: map[string]*yaml.Node{}}
	if server != nil {
		r.server(server)
	}
	if database != nil {
		r.config.Database = r.text(database, "database")
		if name := r.config.Database; r.config.Own() && name != "" && !plainName.MatchString(name) {
			r.object(database, "database: %q: of a server of the run's own it has small letters, digits and _ only", name)
		}
	}
	if u, err := url.Parse(r.config.URL); err == nil && r.config.URL != "" {
		named := strings.TrimPrefix(u.Path, "/")
		if named != "" && r.config.Database != "" && named != r.config.Database {
			r.object(database, "database: %q, and the URL says %q; say it once", r.config.Database, named)
		}
		r.config.Database = cmp.Or(r.config.Database, named, u.User.Username())
	}
	if r.config.Own() {
		r.config.Database = cmp.Or(r.config.Database, OwnDatabase)
	}
	return r.config, r.objections
}

type reading struct {
	config     Config
	seen       map[string]*yaml.Node
	objections []scenario.Objection
}

func (r *reading) object(n *yaml.Node, format string, args ...any) {
	o := scenario.Objection{What: fmt.Sprintf(format, args...)}
	if n != nil {
		o.Line, o.Col = n.Line, n.Column
	}
	r.objections = append(r.objections, o)
}

func (r *reading) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		r.object(n, "%s: want a text", what)
		return ""
	}
	if len(n.Value) > 1<<10 || strings.ContainsAny(n.Value, "\x00\r\n") {
		r.object(n, "%s: want one line of at most 1024 characters", what)
		return ""
	}
	return n.Value
}

func (r *reading) cpus(n *yaml.Node, what string) string {
	list, err := worker.ReadCPUs(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.object(n, "%s: %q is no list of CPUs such as 0-3,8", what, n.Value)
	}
	return list
}

var serverKeys = []string{"client_cpus", "cpus", "password", "settings", "url", "vm_group"}

func (r *reading) server(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.object(n, `server: want pairs such as {vm_group: Database} or {url: "postgresql://app@192.0.2.1/bench"}`)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if r.seen[key.Value] != nil {
			r.object(key, "server: %s is there twice", key.Value)
			continue
		}
		r.seen[key.Value] = key
		switch key.Value {
		case "vm_group":
			r.config.Group = r.text(value, "server: vm_group")
		case "cpus":
			r.config.CPUs = r.cpus(value, "server: cpus")
		case "client_cpus":
			r.config.ClientCPUs = r.cpus(value, "server: client_cpus")
		case "settings":
			r.settings(value)
		case "url":
			r.url(value)
		case "password":
			source, err := secret.ParseSource(r.text(value, "server: password"))
			if err != nil {
				r.object(value, "server: password: %v", err)
			}
			r.config.Password = source
		default:
			what := "known are " + strings.Join(serverKeys, ", ")
			if near := nearest.Of(key.Value, serverKeys); near != "" {
				what = fmt.Sprintf("did you mean %q?", near)
			}
			r.object(key, "server: unknown key %q; %s", key.Value, what)
		}
	}
	for _, key := range []string{"vm_group", "settings", "cpus"} {
		if r.seen["url"] != nil && r.seen[key] != nil {
			r.object(r.seen[key], "server: %s is of a server that the run starts, and url names one of yours, which is "+
				"never reconfigured; leave one of them out", key)
		}
	}
	if at := r.seen["password"]; at != nil && r.seen["url"] == nil {
		r.object(at, "server: password is of a server that url names; a run's own server gets a password by itself")
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

func (r *reading) settings(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.object(n, "server: settings: want pairs such as {shared_buffers: 1GB}")
		return
	}
	r.config.Settings = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, twice := r.config.Settings[key.Value]
		switch {
		case !settingName.MatchString(key.Value):
			r.object(key, "server: settings: %q is no name of a setting", key.Value)
		case notSettings.MatchString(key.Value):
			r.object(key, "server: settings: %s is not for a scenario to set", key.Value)
		case twice:
			r.object(key, "server: settings: %s is there twice", key.Value)
		default:
			r.config.Settings[key.Value] = r.text(value, "server: settings: "+key.Value)
		}
	}
}

// urlParameters are those of libpq's that a load may give, as variables of its environment.
var urlParameters = map[string]string{
	"host": "PGHOST", "port": "PGPORT", "sslmode": "PGSSLMODE", "application_name": "PGAPPNAME",
	"connect_timeout": "PGCONNECT_TIMEOUT", "options": "PGOPTIONS", "channel_binding": "PGCHANNELBINDING",
	"require_auth": "PGREQUIREAUTH",
	"sslrootcert":  "PGSSLROOTCERT", // a file of the machine that runs plimsoll, see PutPassword
}

func (r *reading) url(n *yaml.Node) {
	text := r.text(n, "server: url")
	if text == "" {
		return
	}
	for _, what := range CheckURL(text) {
		r.object(n, "server: url: %s", what)
	}
	r.config.URL = text
}

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
	rootFile   = "root.crt"
)

// access is the content of accessFile.
type access struct {
	URL      string        `json:"url,omitempty"`
	Password secret.Source `json:"password,omitzero"`
	Own      bool          `json:"own,omitempty"`
	PassFile string        `json:"passfile"`
	RootFile string        `json:"rootfile,omitempty"` // the authorities of the server's certificate, on our machine
}

// Peers says where the load goes, as workload.Peering has it.
func (c Config) Peers() (workload.Peers, bool) {
	if !c.Own() {
		return workload.Peers{}, false
	}
	return workload.Peers{Group: c.Group, Served: true, Network: c.Group != ""}, true
}

// Apply gives a job what its command needs to reach the server: the environment that every client of PostgreSQL reads
// (PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, ...), the ports, a note, and what PutPassword has to know. So a
// worker connects with an empty connection string.
func (c Config) Apply(spec workload.Spec, job *workload.Job) error {
	folder := workload.FolderName(spec.Name)
	a := access{Password: c.Password, Own: c.Own(), PassFile: path.Join(folder, passFile)}
	// A job's working folder is the same for all its processes, and a socket's path has to begin with "/".
	job.Command.Env = append(job.Command.Env, c.Env()...)
	env := map[string]string{"PGDATABASE": c.Database, "PGPASSFILE": a.PassFile, "PGCONNECT_TIMEOUT": "10"}
	switch {
	case !c.Own():
		u, err := c.address()
		if err != nil {
			return fmt.Errorf("prepare: workload %q: url: %w", spec.Name, err)
		}
		a.URL = u.String()
		for key, values := range u.Query() {
			env[urlParameters[key]] = values[0]
		}
		if a.RootFile = env["PGSSLROOTCERT"]; a.RootFile != "" && a.RootFile != "system" {
			env["PGSSLROOTCERT"] = path.Join(folder, rootFile)
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
