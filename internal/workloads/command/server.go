package command

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/unit"
)

var _ workload.Peering = Engine{}

const (
	maxPorts  = 32
	stopGrace = 10 * time.Second // for a server to end by itself

	// How long a server runs: a start of its workload, or from the first of them until the teardown.
	forStart, forRun = "start", "run"
)

// server is where the load goes: machines of another group, the program's own, or both.
type server struct {
	program // none: something else has started one there
	at      *yaml.Node
	group   string
	ports   []int
	ready   *ready
	stop    time.Duration
	version *version
	stays   bool
}

// ready is how it is told that the server can be used.
type ready struct {
	command []text
	match   *regexp.Regexp
	within  time.Duration
}

func (c *config) readServer(n *yaml.Node) {
	s := &server{program: program{files: map[string]string{}}, at: n, stop: stopGrace}
	about := map[string]*yaml.Node{} // a program that is started, by what says it
	c.mapping(n, "server",
		member{"vm_group", false, func(n *yaml.Node) { s.group, _ = c.text(n, "server: vm_group") }},
		member{"command", false, func(n *yaml.Node) { c.readCommand(n, "server: command", &s.program) }},
		member{"env", false, func(n *yaml.Node) { c.readEnv(n, "server: env", &s.program) }},
		member{"files", false, func(n *yaml.Node) { c.readFiles(n, "server: files", &s.program) }},
		member{"ports", false, func(n *yaml.Node) { s.ports = c.readPorts(n) }},
		member{"ready", false, func(n *yaml.Node) { about["ready"], s.ready = n, c.readReady(n) }},
		member{"version", false, func(n *yaml.Node) {
			about["version"], s.version = n, c.readVersion(n, "server: version")
		}},
		member{"for", false, func(n *yaml.Node) {
			about["for"], s.stays = n, c.choice(n, "server: for", forStart, forRun) == forRun
		}},
		member{"stop", false, func(n *yaml.Node) { s.stop = c.duration(n, "server: stop") }})
	if n.Kind != yaml.MappingNode {
		return
	}
	c.server = s
	switch {
	case s.group == "" && len(s.command) == 0:
		c.object(n, "server names neither a program (command:) nor machines where one runs (vm_group:)")
	case s.group != "" && len(s.ports) == 0:
		c.object(n, "server lacks \"ports\"; name those on which it is reached: no others are on every target")
	}
	for _, what := range slices.Sorted(maps.Keys(about)) {
		if len(s.command) == 0 {
			c.object(about[what], "server: %s is about a program that is started, and there is no command:", what)
		}
	}
}

func (c *config) readPorts(n *yaml.Node) (ports []int) {
	c.list(n, "server: ports", maxPorts, func(e *yaml.Node) {
		p, err := strconv.Atoi(e.Value)
		switch {
		case e.Kind != yaml.ScalarNode || e.Tag != "!!int" || err != nil || p < 1 || p > 65535:
			c.object(e, "server: a port must be a whole number from 1 to 65535, not %s", kind(e))
		case slices.Contains(ports, p):
			c.object(e, "server: port %d stands there twice", p)
		default:
			ports = append(ports, p)
		}
	})
	return ports
}

func (c *config) readReady(n *yaml.Node) *ready {
	r := &ready{}
	var test program
	c.mapping(n, "server: ready",
		member{"command", false, func(n *yaml.Node) { c.readCommand(n, "server: ready: command", &test) }},
		member{"match", false, func(n *yaml.Node) { r.match = c.pattern(n, "server: ready: match") }},
		member{"within", false, func(n *yaml.Node) { r.within = c.duration(n, "server: ready: within") }})
	r.command = test.command
	if n.Kind == yaml.MappingNode && len(r.command) == 0 && r.match == nil {
		c.object(n, "server: ready tests nothing; give a command: that succeeds, or a match: in what the server prints")
	}
	return r
}

// duration reads a time of the author's that is a limit, and so is not scaled.
func (c *config) duration(n *yaml.Node, what string) time.Duration {
	t, ok := c.text(n, what)
	if !ok {
		return 0
	}
	d, err := unit.ParseDuration(t)
	if err != nil || d <= 0 || time.Duration(d) > time.Hour {
		c.object(n, "%s: %q must be a time above 0 and of an hour at most, such as 30s", what, t)
		return 0
	}
	return time.Duration(d)
}

// words say where the load goes.
func (s *server) words() string {
	where := "each of its own VMs"
	if s.group != "" {
		where = fmt.Sprintf("the VMs of group %q", s.group)
	}
	var at string
	if len(s.ports) > 0 {
		at = ", TCP port " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.ports)), ", "), "[]")
	}
	if len(s.command) == 0 {
		return fmt.Sprintf("its load goes to %s%s, where a server runs already", where, at)
	}
	long := "while it runs"
	if s.stays {
		long = "from its first start until the teardown"
	}
	return fmt.Sprintf("its server, %s, runs on %s %s%s", path.Base(s.command[0].of), where, long, at)
}

// Peers implements workload.Peering.
func (Engine) Peers(spec workload.Spec) (workload.Peers, bool, error) {
	c, err := parseConfig(spec)
	if err != nil || c.server == nil {
		return workload.Peers{}, false, err
	}
	s := c.server
	return workload.Peers{Group: s.group, Served: len(s.command) > 0, Network: len(s.ports) > 0}, true, nil
}

// Server implements workload.Peering.
func (Engine) Server(spec workload.Spec) (workload.Server, error) {
	ofLoad := spec
	ofLoad.Disks = nil // the load's are others
	c, err := parseConfig(ofLoad)
	if err != nil {
		return workload.Server{}, err
	}
	s := c.server
	if s == nil || len(s.command) == 0 {
		return workload.Server{}, fmt.Errorf("prepare: workload %q: %s starts no server", spec.Name, spec.ConfigFile)
	}
	f := c.serverFilling(spec)
	argv, env := f.all()
	output := f.fileOf(outputFile)
	out := workload.Server{
		Service: target.Service{
			Name: spec.Name,
			Command: target.Command{Argv: argv, Env: env, Stdout: output, Stderr: output,
				Listens: s.ports, Dials: s.ports},
		},
		Files: map[string][]byte{},
		Grace: s.stop, Stays: s.stays,
	}
	for name, content := range s.files {
		out.Files[f.fileOf(name)] = []byte(content)
	}
	if r := s.ready; r != nil {
		out.Ready = target.Readiness{Output: output, Match: r.match, Within: r.within}
		if len(r.command) > 0 {
			out.Ready.Command = target.Command{Argv: f.each(r.command), Env: env, Label: spec.Name + " ready",
				Stdout: f.fileOf(readyFile), Dials: s.ports}
		}
	}
	return out, c.err()
}

// serverFilling fills the texts of the server.
func (c *config) serverFilling(spec workload.Spec) *filling {
	folder := workload.FolderName(spec.Name) + ".server"
	return &filling{config: c, of: &c.server.program, spec: spec, folder: folder, serves: true}
}
