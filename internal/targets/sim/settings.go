package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/tagged"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
	"plimsoll/unit"
)

// settings are what a user may say of a simulated cluster, in a file or option by option. The tags are the names in
// both.
type settings struct {
	Nodes     int           `yaml:"nodes"`
	Cores     int           `yaml:"cores"`
	Memory    size          `yaml:"memory"`
	Disk      size          `yaml:"disk"`
	Power     nodeSet       `yaml:"power"`
	Without   []string      `yaml:"without"`
	Seed      uint64        `yaml:"seed"`
	Clone     span          `yaml:"clone"`
	Boot      span          `yaml:"boot"`
	NodeBoot  span          `yaml:"node_boot"`
	Migration span          `yaml:"migration"`
	Playbook  span          `yaml:"playbook"`
	HA        haFields      `yaml:"ha"`
	NUMA      NUMA          `yaml:"numa"`
	Starved   Starved       `yaml:"starved"`
	Model     perf.Truth    `yaml:"model"`
	Faults    []faultFields `yaml:"faults"`

	lines []int // of the faults in their file
	file  string
}

// haFields is HA as a file has it.
type haFields struct {
	After   span    `yaml:"after"`
	Rebuild span    `yaml:"rebuild"`
	Load    float64 `yaml:"load"`
}

// faultFields is a Fault as a file has it.
type faultFields struct {
	Kind        string   `yaml:"kind"`
	Nodes       nodeSet  `yaml:"nodes"`
	Groups      []string `yaml:"groups"`
	Step        string   `yaml:"step"`
	At          span     `yaml:"at"`
	For         span     `yaml:"for"`
	Factor      float64  `yaml:"factor"`
	Skew        span     `yaml:"skew"`
	Controller  *bool    `yaml:"controller"`
	Methods     []string `yaml:"methods"`
	Probability float64  `yaml:"probability"`
	Delay       span     `yaml:"delay"`
}

// defaults is a healthy cluster.
func defaults() settings {
	truth := perf.DefaultTruth()
	truth.Seed, truth.Host.Cores = 0, 0 // the cluster's
	return settings{
		Nodes: 4, Cores: 32, Memory: size(256 * unit.GiB), Disk: size(16 * unit.TiB), Power: nodeSet{all: true},
		Seed:  1,
		Clone: span(time.Second), Boot: span(15 * time.Second), NodeBoot: span(4 * time.Minute),
		Migration: span(5 * time.Second), Playbook: span(10 * time.Minute),
		HA: haFields{After: span(defaultHA.After)}, Model: truth,
	}
}

// options is the table for people, in the order of the fields.
func options() []target.Option {
	return []target.Option{
		{Name: "file", Help: "YAML file with these options, model and faults; see the how-to on the simulated cluster"},
		{Name: "seed", Default: "1", Help: "of everything left to chance; the same seed gives the same run, byte " +
			"by byte"},
		{Name: "cores", Default: "32", Help: "of every node"},
		{Name: "memory", Default: "256GiB", Help: "of every node"},
		{Name: "disk", Default: "16TiB", Help: "space for data disks on every node"},
		{Name: "power", Default: "all", Help: "nodes that have a power controller: all, none, or like 0,2-5"},
		{Name: "without", Help: "capabilities to take away, as targets check names them, like [live migration " +
			"between nodes]"},
		{Name: "clone", Default: "1s", Help: "time to clone one VM"},
		{Name: "boot", Default: "15s", Help: "time a VM takes to boot"},
		{Name: "node_boot", Default: "4m", Help: "time from a node's power-on until it is ready"},
		{Name: "migration", Default: "5s", Help: "time to migrate one VM"},
		{Name: "playbook", Default: "10m", Help: "time a playbook is taken to last; it changes and loads nothing"},
		{Name: "numa.nodes", Help: "NUMA nodes of every node; with two or more, their CPU use is served"},
		{Name: "numa.first", Help: "share of a node's CPU time that falls on its first NUMA node, like 0.9 (default: " +
			"an even part)"},
		{Name: "starved.steal", Help: "share of every node's CPU time that a hypervisor gives to others, like 0.2; it is " +
			"counted, and slows nothing down"},
		{Name: "starved.quota", Help: "share of the periods in which the CPU quota of every VM holds it back, like 0.6; " +
			"counted likewise"},
		{Name: "ha.after", Default: "1m",
			Help: "time from a node's failure until its VMs that are not exempt are powered on elsewhere; 0: never"},
		{Name: "ha.rebuild", Default: "0", Help: "how long the other nodes then rebuild what the node held, at the " +
			"cost of ha.load"},
		{Name: "ha.load", Help: "share of the other nodes' storage that the rebuild takes, like 0.2"},
		{Name: "model.NAME", Help: "one parameter of the performance model, like model.contention=0.02"},
	}
}

const largestFile = 1 << 20

// readFile reads settings from a YAML file over those there are, and returns all objections with their positions.
func (s *settings) readFile(name string, data []byte) error {
	if len(data) > largestFile {
		return fmt.Errorf("%s: %d bytes: a file of options has at most %d", name, len(data), largestFile)
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.file = name
	s.lines = faultLines(&tree)
	return s.decode(data, name, true)
}

// faultLines are the lines at which the entries of faults begin.
func faultLines(tree *yaml.Node) (lines []int) {
	if len(tree.Content) == 0 || tree.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	top := tree.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value == "faults" {
			for _, f := range top[i+1].Content {
				lines = append(lines, f.Line)
			}
		}
	}
	return lines
}

// readOptions reads the options given one by one over those there are.
func (s *settings) readOptions(o target.Options) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if name == "file" {
			continue
		}
		errs = append(errs, s.readOption(name, o[name]))
	}
	return errors.Join(errs...)
}

func (s *settings) readOption(name, value string) error {
	if name == "faults" || name == "model" {
		return fmt.Errorf("option %s: it needs a file: --target-opt file=sim.yaml", name)
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(value), &node); err != nil || len(node.Content) != 1 {
		return fmt.Errorf("option %s: %q is no value", name, value)
	}
	v := node.Content[0]
	for _, key := range slices.Backward(strings.Split(name, ".")) {
		v = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: key}, v}}
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	return s.decode(text, "option "+name, false)
}

// decode is strict. Lines are those of a file, or mean nothing.
func (s *settings) decode(data []byte, where string, lines bool) error {
	objections, err := tagged.Decode(data, s)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	var errs []error
	for _, o := range objections {
		at := where
		if lines && o.Line > 0 {
			at += fmt.Sprintf(":%d", o.Line)
		}
		errs = append(errs, fmt.Errorf("%s: %s", at, o.What))
	}
	return errors.Join(errs...)
}

// world turns settings into the options of a World, and returns all objections.
func (s *settings) world() (Options, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, v := range []struct {
		name  string
		value int64
	}{{"nodes", int64(s.Nodes)}, {"cores", int64(s.Cores)}, {"memory", int64(s.Memory)}, {"disk", int64(s.Disk)}} {
		if v.value < 1 {
			bad("%s: %d: must be at least 1", v.name, v.value)
		}
	}
	if s.Nodes > mostNodes {
		bad("nodes: %d: at most %d", s.Nodes, mostNodes)
		return Options{}, errors.Join(errs...)
	}
	for _, v := range []struct {
		name  string
		value span
	}{{"clone", s.Clone}, {"boot", s.Boot}, {"node_boot", s.NodeBoot}, {"migration", s.Migration}, {"playbook",
		s.Playbook}} {
		if v.value < 0 {
			bad("%s: %s: must not be negative", v.name, time.Duration(v.value))
		}
	}
	o := Options{
		Nodes: s.Nodes, Cores: s.Cores, MemoryBytes: int64(s.Memory), Seed: s.Seed,
		FreeBytes: int64(s.Nodes) * int64(s.Disk),
		Clone:     time.Duration(s.Clone), Boot: time.Duration(s.Boot), NodeBoot: time.Duration(s.NodeBoot),
		Migration: time.Duration(s.Migration),
		Playbook:  time.Duration(s.Playbook), NUMA: s.NUMA, Starved: s.Starved,
	}
	for _, err := range []error{s.NUMA.check(), s.Starved.check()} {
		if err != nil {
			bad("%w", err)
		}
	}
	o.HA = HA{After: time.Duration(s.HA.After), Rebuild: time.Duration(s.HA.Rebuild), Load: s.HA.Load}
	errs = append(errs, o.HA.check())
	with, err := s.Power.resolve(s.Nodes)
	if err != nil {
		bad("power: %w", err)
	}
	for i := range s.Nodes {
		if _, has := slices.BinarySearch(with, i); !has {
			o.NoController = append(o.NoController, i)
		}
	}
	for _, name := range s.Without {
		if _, ok := capabilities[target.Capability(name)]; !ok {
			bad("without: %q is no capability; %s", name, suggest(name, capabilityNames()))
		}
		o.Without = append(o.Without, target.Capability(name))
	}
	if s.Model.Seed != 0 || s.Model.Host.Cores != 0 {
		bad("model: seed and host.cores are the cluster's own: give seed and cores instead")
	}
	s.Model.Seed, s.Model.Host.Cores = s.Seed, s.Cores
	errs = append(errs, s.Model.Check())
	o.Truth = &s.Model
	faults, err := s.faults()
	o.Faults = faults
	if err := errors.Join(append(errs, err)...); err != nil {
		return Options{}, err
	}
	return o, nil
}

// mostNodes is the largest cluster there is.
const mostNodes = 10_000

func capabilityNames() (names []string) {
	for c := range capabilities {
		names = append(names, string(c))
	}
	slices.Sort(names)
	return names
}

func (s *settings) faults() (list []Fault, err error) {
	var errs []error
	for i, f := range s.Faults {
		where := fmt.Sprintf("faults[%d]", i)
		if i < len(s.lines) {
			where = fmt.Sprintf("%s:%d: fault", s.file, s.lines[i])
		}
		nodes, err := f.Nodes.resolve(s.Nodes)
		fault := Fault{
			Kind: FaultKind(f.Kind), Nodes: nodes, Groups: f.Groups, Step: f.Step, At: time.Duration(f.At),
			For: time.Duration(f.For), Factor: f.Factor,
			Skew: time.Duration(f.Skew), NoController: f.Controller != nil && !*f.Controller, Methods: f.Methods,
			Probability: f.Probability,
			Delay:       time.Duration(f.Delay),
		}
		for _, err := range flatten(errors.Join(err, fault.Check(s.Nodes))) {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
		list = append(list, fault)
	}
	return list, errors.Join(errs...)
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}

// truthFacts are the parameters of the model, one by one.
func truthFacts(truth perf.Truth) (facts []result.Fact) {
	text, err := yaml.Marshal(truth)
	var tree yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &tree)
	}
	if err != nil {
		return []result.Fact{{Group: "model", Name: "parameters", Missing: err.Error()}}
	}
	var walk func(prefix string, n *yaml.Node)
	walk = func(prefix string, n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			facts = append(facts, result.Fact{Group: "model", Name: prefix, Value: n.Value})
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			walk(strings.TrimPrefix(prefix+"."+n.Content[i].Value, "."), n.Content[i+1])
		}
	}
	for _, n := range tree.Content {
		walk("", n)
	}
	return facts
}

// size is a number of bytes, written like 256GiB.
type size int64

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *size) UnmarshalYAML(n *yaml.Node) error {
	b, err := unit.ParseBytes(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return atNode(n, "%q is no size, like 256GiB", n.Value)
	}
	*s = size(b)
	return nil
}

// span is a length of time, written like 90s or 1h30m.
type span time.Duration

// UnmarshalYAML implements yaml.Unmarshaler. A minus is allowed for what can go back.
func (s *span) UnmarshalYAML(n *yaml.Node) error {
	text, negative := strings.CutPrefix(n.Value, "-")
	d, err := unit.ParseDuration(text)
	if n.Kind != yaml.ScalarNode || err != nil {
		return atNode(n, "%q is no length of time, like 90s or 1h30m", n.Value)
	}
	if negative {
		d = -d
	}
	*s = span(d)
	return nil
}

// nodeSet names nodes: all, none, one, or several as a list or as a text like "0,2-5".
type nodeSet struct {
	all   bool
	parts []string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *nodeSet) UnmarshalYAML(n *yaml.Node) error {
	*s = nodeSet{}
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "all":
		s.all = true
	case n.Kind == yaml.ScalarNode && n.Value == "none":
	case n.Kind == yaml.ScalarNode:
		s.parts = strings.Split(n.Value, ",")
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			s.parts = append(s.parts, item.Value)
		}
	default:
		return atNode(n, "want nodes: all, none, or like 0,2-5")
	}
	if _, err := s.resolve(mostNodes); err != nil {
		return atNode(n, "%v", err)
	}
	return nil
}

// resolve lists the nodes on a cluster of so many.
func (s nodeSet) resolve(nodes int) (list []int, err error) {
	if s.all {
		for i := range nodes {
			list = append(list, i)
		}
		return list, nil
	}
	named := map[int]bool{}
	for _, part := range s.parts {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			to = from
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil || a < 0 || b < a {
			return nil, fmt.Errorf("nodes: %q is neither a node nor a range like 2-5", part)
		}
		if b >= nodes {
			return nil, fmt.Errorf("nodes: %q: the cluster has %d, counted from 0", part, nodes)
		}
		for i := a; i <= b; i++ {
			named[i] = true
		}
	}
	return slices.Sorted(maps.Keys(named)), nil
}

// atNode is an objection that the decoder collects with its own.
func atNode(n *yaml.Node, format string, args ...any) error {
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: ", n.Line) + fmt.Sprintf(format, args...)}}
}
