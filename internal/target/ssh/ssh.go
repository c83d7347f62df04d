// Package ssh is a place of hosts that are there already and are reached over SSH: `--target ssh`.
//
// An inventory file names them, with what leads to each, its role and its data disks (Options tells where). Package
// agent is put into a folder of the run's own on every host and does the work there: connections may break and this
// process may end, and what was started goes on. Each host is one node with one machine, whose group is its role. It
// makes no machines and powers none.
//
// It refuses hosts whose key is not the one in known_hosts, users that are not let in or may not use sudo, devices that
// the guard on the host objects to, and folders that are another run's. It never changes what was there before; what a
// run leaves behind after a crash is found and removed with what its state folder says.
package ssh

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/clock"
	"plimsoll/internal/target"
	"plimsoll/result"
	"plimsoll/unit"
)

// Provider makes places of hosts. The zero value is ready for use.
type Provider struct{}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "ssh" }

// Summary implements target.Provider.
func (Provider) Summary() string { return "hosts that are there already, reached over SSH" }

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{Name: "inventory", Help: "the file that names the hosts: see docs/how-to/ssh.md"},
		{Name: "agents", Help: "the folder that holds plimsoll-agent-linux-amd64 and -arm64 (default: that of plimsoll)"},
		{Name: "patience", Type: target.Duration, Default: "2m", Least: target.Bound(1), Most: target.Bound(86400),
			Help: "how long a host may not answer before what runs there is taken for lost"},
		{Name: "lease", Type: target.Duration, Default: "1h", Least: target.Bound(0), Most: target.Bound(30 * 86400),
			Help: "how long commands go on when nothing is heard of the run; 0 for ever"},
	}
}

// New implements target.Provider. That an inventory is needed is for Check to say: a clean-up has no options.
func (p Provider) New(c target.Config) (target.Target, error) {
	v, err := target.Decode(p.Name(), p.Options(), c.Options)
	if err != nil {
		return nil, err
	}
	return &place{inventory: v.Text("inventory"), agents: v.Text("agents"), patience: v.Duration("patience"),
		lease: v.Duration("lease"), nodes: c.Nodes, clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})}, nil
}

// place is the hosts of an inventory.
type place struct {
	inventory, agents string
	patience, lease   time.Duration
	nodes             int
	clock             clock.Clock
}

// read reads the inventory.
func (p *place) read(ctx context.Context) (inventory, error) {
	if p.inventory == "" {
		return inventory{}, errors.New("target ssh: no inventory: give --target-opt inventory=FILE")
	}
	v, err := readInventory(ctx, p.inventory)
	if err == nil && p.nodes != 0 && p.nodes != len(v.machines) {
		err = fmt.Errorf("target ssh: nodes %d: every host is a node, and there are %d", p.nodes, len(v.machines))
	}
	return v, err
}

// seen is what a check found on a host.
type seen struct {
	agent.Look
	ahead, bound time.Duration // its clock
}

// widest is how many hosts are looked at at once.
const widest = 32

// Check implements target.Target. For as long as it lasts the agent lies in a folder of its own on each host.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	v, err := p.read(ctx)
	if err != nil {
		return target.Facts{}, err
	}
	all, objections := make([]seen, len(v.machines)), make([]error, len(v.machines))
	_ = clock.Parallel(p.clock, len(v.machines), widest, func(i int) error {
		all[i], objections[i] = p.inspect(ctx, v.machines[i])
		return nil
	})
	facts := target.Facts{Target: "ssh", ClusterName: strings.TrimSuffix(filepath.Base(p.inventory),
		filepath.Ext(p.inventory)), FreeBytes: -1, FreeMemory: -1, OneMachine: v.same,
		Capabilities: map[target.Capability]string{
			target.GuestCommands: "the agent on each host",
			target.Services:      "the agent on each host",
			target.PeerNetwork:   "the hosts' own",
			target.VMExporters:   "the hosts' own network",
		}}
	facts.Lacking("its hosts are there already, and are only reached")
	for i, m := range v.machines {
		facts.Machines = append(facts.Machines, target.Machine{Name: m.Name, Group: m.Role, Node: i,
			Disks: m.dataDisks(all[i].sizes())})
		facts.Nodes = append(facts.Nodes, target.Node{Index: i, Name: m.Name, Cores: all[i].Cores,
			MemoryBytes: all[i].MemoryBytes, Address: m.Address})
		if objections[i] == nil {
			facts.Environment = append(facts.Environment, all[i].facts(m.Name)...)
			objections[i] = all[i].objections(m)
			for _, d := range all[i].Disks {
				for _, off := range d.Misaligned {
					facts.Notes = append(facts.Notes, fmt.Sprintf("Host %s: %s: %s.", m.Name, d.Path, off))
				}
			}
		}
	}
	facts.Notes = append(facts.Notes, differences(v.machines, all, objections)...)
	if !v.same {
		objections = append(objections, twins(v.machines, all)...)
	}
	return facts, errors.Join(objections...)
}

// facts are the provenance of a host.
func (s seen) facts(name string) (list []result.Fact) {
	add := func(group, what, value, missing string) {
		f := result.Fact{Group: group, Name: name + ": " + what, Value: value}
		if value == "" {
			f.Missing = missing
		}
		list = append(list, f)
	}
	add("host", "kernel", s.Kernel, "the host does not tell")
	add("cpu", "model", s.CPU, "the host does not tell")
	add("cpu", "governor", s.Governor, "the host does not tell")
	add("memory", "size", unit.Bytes(s.MemoryBytes).String(), "")
	add("tool", "fio", s.Fio, "it is not installed")
	add("clock", "ahead of this machine's", fmt.Sprintf("%v ± %v", s.ahead.Round(time.Microsecond),
		s.bound.Round(time.Microsecond)), "")
	add("cpu", "mitigations", s.mitigations(), "the host does not tell")
	for _, d := range s.Disks {
		add("storage", d.Path, strings.TrimSpace(d.Identity+", "+unit.Bytes(d.Bytes).String()), "")
	}
	return list
}

func (s seen) mitigations() string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(s.Mitigations)) {
		if s.Mitigations[k] != "Not affected" {
			list = append(list, k+": "+s.Mitigations[k])
		}
	}
	if len(list) == 0 && len(s.Mitigations) > 0 {
		return "none: not affected"
	}
	return strings.Join(list, "; ")
}

// sizes are the devices of a host by path.
func (s seen) sizes() map[string]target.Disk {
	sizes := map[string]target.Disk{}
	for _, d := range s.Disks {
		sizes[d.Path] = target.Disk{Bytes: d.Bytes}
	}
	return sizes
}

// objections are what stands against using a host as the inventory says.
func (s seen) objections(m machine) error {
	var list []error
	object := func(format string, args ...any) {
		list = append(list, fmt.Errorf("machine %q: %s", m.Name, fmt.Sprintf(format, args...)))
	}
	var files int64
	for _, d := range m.Disks {
		files += d.Bytes
	}
	const spare = 64 << 20 // for outputs
	if files+spare > s.FreeBytes {
		object("disk space: %v needed in %s for files and output, %v free: give another folder, or smaller files",
			unit.Bytes(files+spare), m.Folder, unit.Bytes(s.FreeBytes))
	}
	for _, d := range s.Disks {
		for _, o := range d.Objections {
			object("%s: %s", d.Path, o)
		}
	}
	return errors.Join(list...)
}

// farApart is how far clocks may be apart without a word.
const farApart = 50 * time.Millisecond

// differences are what is worth knowing of hosts that are compared.
func differences(machines []machine, all []seen, objections []error) (notes []string) {
	for _, what := range []struct {
		name string
		of   func(seen) string
	}{{"kernel", func(s seen) string { return s.Kernel }}, {"CPU model", func(s seen) string { return s.CPU }},
		{"governor", func(s seen) string { return s.Governor }}, {"fio", func(s seen) string { return s.Fio }},
		{"mitigations", seen.mitigations}} {
		by := map[string][]string{}
		for i, m := range machines {
			if all[i].Hostname != "" {
				by[what.of(all[i])] = append(by[what.of(all[i])], m.Name)
			}
		}
		if len(by) > 1 {
			var parts []string
			for _, value := range slices.Sorted(maps.Keys(by)) {
				parts = append(parts, fmt.Sprintf("%s on %s", cmp.Or(value, "none"), unit.List(by[value], 5)))
			}
			notes = append(notes, fmt.Sprintf("The hosts differ in their %s: %s.", what.name,
				strings.Join(parts, "; ")))
		}
	}
	for i, m := range machines {
		if objections[i] != nil && all[i].Hostname == "" {
			continue
		}
		if all[i].Fio == "" {
			notes = append(notes, fmt.Sprintf("Host %s has no fio: install it there for workloads that need it.", m.Name))
		}
		if ahead := all[i].ahead; ahead.Abs() > farApart+all[i].bound {
			notes = append(notes, fmt.Sprintf("The clock of host %s is %v ahead of this machine's: run chrony or ntpd on "+
				"both.", m.Name, ahead.Round(time.Millisecond)))
		}
	}
	return notes
}

// twins objects to hosts that are one machine, or copies of one.
func twins(machines []machine, all []seen) (objections []error) {
	first := map[string]string{}
	for i, m := range machines {
		id := all[i].MachineID
		if other := first[id]; id != "" && other != "" {
			objections = append(objections, fmt.Errorf("machines %q and %q have the same /etc/machine-id: they are one "+
				"machine, or copies of one that were given no identity of their own (rm /etc/machine-id; "+
				"systemd-machine-id-setup); same_machine: true in the inventory takes them for one machine", other, m.Name))
		}
		first[id] = cmp.Or(first[id], m.Name)
	}
	return objections
}

// inspect looks at a host with an agent that is there for a moment.
func (p *place) inspect(ctx context.Context, m machine) (s seen, err error) {
	c, err := m.dial(ctx)
	if err != nil {
		return s, err
	}
	base := m.Folder
	m.Folder += "/plimsoll-check-" + rand.Text()
	l := newLink(m, p.clock, 0)
	l.spare = c
	defer c.Close() //nolint:errcheck // only looked at
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialLimit)
		defer cancel()
		removed := m.remove(ctx, c, m.Folder)
		if removed != nil { // a session that was refused has closed the connection
			if again, err := m.dial(ctx); err == nil {
				removed = errors.Join(m.remove(ctx, again, m.Folder), again.Close())
			}
		}
		err = errors.Join(err, removed)
	}()
	if err := p.install(ctx, m, c, m.Folder); err != nil {
		return s, err
	}
	if err := l.once(ctx, "POST", "/look", agent.Looking{Disks: m.devices()}, &s.Look); err != nil {
		return s, fmt.Errorf("machine %q: %s: %w", m.Name, base, err)
	}
	if s.ahead, s.bound, err = l.offset(ctx, 8); err != nil {
		return s, fmt.Errorf("machine %q: %w", m.Name, err)
	}
	return s, nil
}

// devices are the block devices of a host for its agent.
func (m machine) devices() (list []agent.Disk) {
	for _, d := range m.Disks {
		if d.ID != "" {
			list = append(list, agent.Disk{Path: d.path(), Consent: d.Consent})
		}
	}
	return list
}

// install makes a run's folder on a host and puts the agent there. The folder must not be there.
func (p *place) install(ctx context.Context, m machine, c *connection, tag string) error {
	fail := func(err error) error {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("machine %q: %s: %w", m.Name, m.Folder, err)
	}
	kind, err := c.command(ctx, nil, "uname -sm")
	if err != nil {
		return fail(err)
	}
	program, err := p.agent(strings.TrimSpace(kind))
	if err != nil {
		return fail(err)
	}
	defer program.Close() //nolint:errcheck // read only
	const script = `umask 077; mkdir -- "$1" && printf %s "$2" >"$1/tag" && cat >"$1/part" && chmod 700 "$1/part" && ` +
		`mv "$1/part" "$1/agent"`
	if _, err := c.command(ctx, program, quoted("sh", "-c", script, "sh", m.Folder, tag)); err != nil {
		return fail(err)
	}
	return nil
}

// agent opens the agent for a kind of machine, as uname has it.
func (p *place) agent(kind string) (io.ReadCloser, error) {
	arch := map[string]string{"Linux x86_64": "amd64", "Linux aarch64": "arm64"}[kind]
	if arch == "" {
		return nil, fmt.Errorf("the machine is %q: there are agents for Linux on x86_64 and aarch64", kind)
	}
	dir := p.agents
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		dir = filepath.Dir(self)
	}
	name := filepath.Join(dir, "plimsoll-agent-linux-"+arch)
	f, err := os.Open(name)
	if err != nil && runtime.GOOS+runtime.GOARCH == "linux"+arch {
		if own, second := os.Open(filepath.Join(dir, "plimsoll-agent")); second == nil {
			return own, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the agent: %w: make agents builds it, --target-opt agents=FOLDER says where it is", err)
	}
	return f, nil
}

// remove ends all of a run on a host and removes its folder, if it has the run's tag. No folder is fine.
func (m machine) remove(ctx context.Context, c *connection, tag string) error {
	const script = `f=$1 t=$2; shift 2
[ -e "$f" ] || exit 0
[ "$(cat "$f/tag")" = "$t" ] || { rmdir "$f" 2>/dev/null && exit 0; echo "$f is not of this run" >&2; exit 3; }
[ -e "$f/agent" ] || exec "$@" rm -rf -- "$f"
"$@" "$f/agent" end "$f" "$t" 2>/dev/null || [ ! -e "$f" ] || "$f/agent" end "$f" "$t"`
	words := []string{"sh", "-c", script, "sh", m.Folder, tag}
	if m.Sudo {
		words = append(words, "sudo", "-n", "--")
	} else {
		words = append(words, "env")
	}
	if _, err := c.command(ctx, nil, quoted(words...)); err != nil {
		return fmt.Errorf("machine %q: %s: %w", m.Name, m.Folder, err)
	}
	return nil
}
