// Package ssh is a place of hosts that are there already and are reached over SSH: `--target ssh`.
//
// An inventory file names them, with what leads to each, its role and its data disks (Options tells where). Package
// agent is put into a folder of the run's own on every host and does the work there: connections may break and this
// process may end, and what was started goes on. Each host is one node with one machine, whose group is its role. It
// makes no machines, and powers those on and off whose power controllers the inventory names.
//
// It refuses hosts whose key is not the one in known_hosts, users that are not let in or may not use sudo, devices that
// the guard on the host objects to, and folders that are another run's. It never changes what was there before; what a
// run leaves behind after a crash is found and removed with what its state folder says.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/ssh/remote"
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
		{
			Name: "agents",
			Help: "the folder that holds plimsoll-agent-linux-amd64 and -arm64 (default: that of plimsoll, or ../libexec/plimsoll from there)",
		},
		{Name: "patience", Type: target.Duration, Default: "2m", Range: "1s to 24h",
			Help: "how long a host may not answer before what runs there is taken for lost"},
		{Name: "lease", Type: target.Duration, Default: "1h", Range: "0 to 720h",
			Help: "how long commands go on when nothing is heard of the run; 0 for ever"},
	}
}

// New implements target.Provider. That an inventory is needed is for Check to say: a clean-up has no options.
func (p Provider) New(c target.Config) (target.Target, error) {
	v, err := target.Decode(p.Name(), p.Options(), c.Options)
	if err != nil {
		return nil, err
	}
	return &place{
		inventory: v.Text("inventory"),
		nodes:     c.Nodes,
		kinds:     c.PowerKinds,
		Access: remote.Access{Agents: v.Text("agents"),
			Patience: v.Duration(
				"patience",
			), Lease: v.Duration("lease"), Clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})},
	}, nil
}

// place is the hosts of an inventory.
type place struct {
	remote.Access
	inventory string
	nodes     int
	kinds     []target.PowerKind
}

// read reads the inventory.
func (p *place) read(ctx context.Context) (inventory, error) {
	if p.inventory == "" {
		return inventory{}, errors.New("target ssh: no inventory: give --target-opt inventory=FILE")
	}
	v, err := readInventory(ctx, p.inventory, p.kinds)
	if err == nil && p.nodes != 0 && p.nodes != len(v.machines) {
		err = fmt.Errorf("target ssh: nodes %d: every host is a node, and there are %d", p.nodes, len(v.machines))
	}
	return v, err
}

// widest is how many hosts are looked at at once.
const widest = 32

// Check implements target.Target. For as long as it lasts the agent lies in a folder of its own on each host.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	v, err := p.read(ctx)
	if err != nil {
		return target.Facts{}, err
	}
	all, objections := make([]remote.Seen, len(v.machines)), make([]error, len(v.machines))
	_ = clock.Parallel(p.Clock, len(v.machines), widest, func(i int) error {
		all[i], objections[i] = p.Inspect(ctx, v.machines[i])
		objections[i] = errors.Join(objections[i], p.checkPower(ctx, v.machines[i], objections[i]))
		return nil
	})
	facts := target.Facts{Target: "ssh", ClusterName: strings.TrimSuffix(filepath.Base(p.inventory),
		filepath.Ext(p.inventory)), FreeBytes: -1, FreeMemory: -1, OneMachine: v.same,
		Capabilities: map[target.Capability]string{
			target.GuestCommands: "the agent on each host",
			target.Services:      "the agent on each host",
			target.PeerNetwork:   "the hosts' own",
			target.VMExporters:   "the hosts' own network",
			target.PlaybookHosts: "this machine's Ansible, with the users and keys of the inventory",
		}}
	claimPower(&facts, v.machines)
	facts.Lacking("its hosts are there already, and are only reached")
	for i, m := range v.machines {
		facts.Machines = append(facts.Machines, target.Machine{Name: m.Name, Group: m.Role, Node: i,
			Disks: m.DataDisks(all[i].Sizes())})
		facts.Nodes = append(facts.Nodes, target.Node{Index: i, Name: m.Name, Cores: all[i].Cores,
			MemoryBytes: all[i].MemoryBytes, Address: m.Address, Power: powerKind(m)})
		if objections[i] == nil {
			facts.Environment = append(facts.Environment, factsOf(m, all[i])...)
			objections[i] = all[i].Objections(m)
			for _, d := range all[i].Disks {
				for _, off := range d.Misaligned {
					facts.Notes = append(facts.Notes, fmt.Sprintf("Host %s: %s: %s.", m.Name, d.Path, off))
				}
			}
		}
	}
	facts.Notes = append(facts.Notes, differences(v.machines, all, objections)...)
	objections = append(objections, twins(v, all)...)
	return facts, errors.Join(objections...)
}

// factsOf are the provenance of a host.
func factsOf(m remote.Machine, s remote.Seen) (list []result.Fact) {
	add := func(group, what, value, missing string) {
		f := result.Fact{Group: group, Name: m.Name + ": " + what, Value: value}
		if value == "" {
			f.Missing = missing
		}
		list = append(list, f)
	}
	add("host", "kernel", s.Kernel, "the host does not tell")
	add("cpu", "model", s.CPU, "the host does not tell")
	add("cpu", "governor", s.Governor, "the host does not tell")
	add("cpu", "deepest idle state", s.Idle, "the host lists none that may be entered")
	if f := &list[len(list)-1]; s.Idle != "" {
		f.Value += fmt.Sprintf(", %g µs to wake", s.WakeMicros)
		f.Kind, f.Number = result.IdleWake, s.WakeMicros/1e6
	}
	add("memory", "size", unit.Bytes(s.MemoryBytes).String(), "")
	add("tool", "fio", s.Fio, "it is not installed")
	add("clock", "ahead of this machine's", fmt.Sprintf("%v ± %v", s.Ahead.Round(time.Microsecond),
		s.Bound.Round(time.Microsecond)), "")
	add("cpu", "mitigations", mitigations(s), "the host does not tell")
	for _, d := range s.Disks {
		add("storage", d.Path, strings.TrimSpace(d.Identity+", "+unit.Bytes(d.Bytes).String()), "")
	}
	for _, d := range m.Disks {
		if d.ID == "" {
			add("storage", "file in "+m.Folder, unit.Bytes(d.Bytes).String(), "")
		}
	}
	return list
}

func mitigations(s remote.Seen) string {
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

// farApart is how far clocks may be apart without a word.
const farApart = 50 * time.Millisecond

// differences are what is worth knowing of hosts that are compared.
func differences(machines []remote.Machine, all []remote.Seen, objections []error) (notes []string) {
	for _, what := range []struct {
		name string
		of   func(remote.Seen) string
	}{{"kernel", func(s remote.Seen) string { return s.Kernel }},
		{"CPU model", func(s remote.Seen) string { return s.CPU }},
		{"governor", func(s remote.Seen) string { return s.Governor }},
		{"deepest idle state", func(s remote.Seen) string { return s.Idle }},
		{"fio", func(s remote.Seen) string { return s.Fio }},
		{"mitigations", mitigations}} {
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
			notes = append(
				notes,
				fmt.Sprintf("Host %s has no fio: install it there for workloads that need it.", m.Name),
			)
		}
		if ahead := all[i].Ahead; ahead.Abs() > farApart+all[i].Bound {
			notes = append(
				notes,
				fmt.Sprintf("The clock of host %s is %v ahead of this machine's: run chrony or ntpd on "+
					"both.", m.Name, ahead.Round(time.Millisecond)),
			)
		}
	}
	return notes
}

// twins objects to hosts that are one machine, or copies of one; where they may be one, to those that would have one
// folder there.
func twins(v inventory, all []remote.Seen) (objections []error) {
	first := map[string]string{}
	for i, m := range v.machines {
		at := all[i].MachineID
		if at == "" {
			continue
		}
		why := "have the same /etc/machine-id: they are one machine, or copies of one that were given no identity of " +
			"their own (rm /etc/machine-id; systemd-machine-id-setup); same_machine: true in the inventory takes them " +
			"for one machine"
		if v.same {
			at += m.Folder
			why = fmt.Sprintf("are one machine and have one folder there, %s: give each its own, as folder: %s/%s",
				m.Folder, m.Folder, m.Name)
		}
		if other := first[at]; other != "" {
			objections = append(objections, fmt.Errorf("machines %q and %q %s", other, m.Name, why))
		}
		first[at] = cmp.Or(first[at], m.Name)
	}
	return objections
}
