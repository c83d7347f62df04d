// Package lab is the place of QEMU guests on the nodes of a miniature cluster: `--target lab`.
//
// Package internal/targets/lab/cluster makes the nodes, with network, storage and power controllers;
// internal/targets/lab/guest the images; internal/targets/lab/qemu runs the guests, as processes of their nodes;
// internal/targets/ssh/remote works inside them. A run makes a lab of its own, which goes with it, or uses one that
// `plimsoll lab up` has made. A guest's disks lie on the nodes' storage, in a folder of the run, what its process needs
// lies in the run's state folder, all of it written down before it is made, so that Destroy finds it from a fresh
// process.
//
// It refuses machines without Linux, root or QEMU, nodes that are off, and folders of other runs.
package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// Provider makes places of guests. The zero value is ready for use.
type Provider struct{}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "lab" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "QEMU guests on the nodes of a miniature cluster, made on this machine for the run or by plimsoll lab up"
}

// The images, and what guests of each have of memory at most unless the user says otherwise. Package guest, which has
// the images, is of Linux only.
const worker, debian = "worker", "debian"

var usualMemory = map[string]int64{worker: 256 << 20, debian: 1 << 30}

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{Name: "dir", Help: "folder of a lab that plimsoll lab up has made (default: as there); where none is up, the " +
			"run makes one of --nodes nodes (3), in the folder for temporary files, and takes it down"},
		{Name: "storage", Type: target.Choice, Default: "gluster", Choices: []string{"gluster", "shared"},
			Help: "of a lab that the run makes: copies on up to three nodes, or one folder without copies"},
		{Name: "image", Type: target.Choice, Default: worker, Choices: []string{worker, debian},
			Help: "what guests boot: worker is up in seconds, debian has systemd, Python and PostgreSQL"},
		{Name: "packages", Help: "of Debian's that guests of image debian have besides its own, as default-jre,unzip: " +
			"guests reach no network but the lab's"},
		{Name: "memory", Type: target.Bytes, Range: "128MiB", Help: "that a guest has at most, " +
			"whatever the scenario gives it (default: 256MiB for worker, 1GiB for debian)"},
		{Name: "ha", Type: target.Choice, Default: "on", Choices: []string{"on", "off"},
			Help: "on: guests of a node that is lost are started on another one; off: they are not"},
		{Name: "flush", Type: target.Choice, Default: "passed", Choices: []string{"passed", "dropped"},
			Help: "dropped: guests believe that their data disks need no flush, and lose what was not made safe when " +
				"their node's power goes; for seeing that a test catches it"},
		{Name: "power", Type: target.Choice, Default: "ipmi", Choices: []string{"ipmi", "redfish", "button"},
			Help: "how nodes are switched: by their controllers over IPMI 2.0 or Redfish, or past these"},
		{Name: "sockets", Type: target.Count, Default: "1", Range: "1 to 64",
			Help: "that a guest's CPUs are said to be in"},
		{Name: "threads", Type: target.Count, Default: "1", Range: "1 to 8",
			Help: "that a core of a guest is said to have"},
		{Name: "numa", Type: target.Count, Default: "1", Range: "1 to 64",
			Help: "NUMA nodes that a guest's CPUs and memory are shared among"},
		{Name: "pins", Help: "CPUs of this machine, as 0,2,1,3: the first CPU of each guest keeps to the first of them, " +
			"and so on, over again where they are fewer (default: any)"},
		{Name: "cache", Help: "folder of guest images (default: that of plimsoll lab image)"},
		{Name: "agent", Help: "file plimsoll-agent-linux-amd64 (default: beside plimsoll, or in ../libexec/plimsoll from there)"},
	}
}

// settings are what the user asked for.
type settings struct {
	dir, storage, image, cache, agent, power string

	packages []string // of a debian
	memory   int64
	nodes    int
	restarts bool // of guests whose node is lost
	dropped  bool // flushes of guests
	kinds    []target.PowerKind
	clock    clock.Clock

	sockets, threads, numa int
	pins                   []int // of guests' CPUs, to those of this machine
}

// New implements target.Provider.
func (p Provider) New(c target.Config) (target.Target, error) {
	v, err := target.Decode(p.Name(), p.Options(), c.Options)
	if err != nil {
		return nil, err
	}
	s := settings{dir: v.Text("dir"), storage: v.Text("storage"), image: v.Text("image"), cache: v.Text("cache"),
		agent: v.Text("agent"), power: v.Text("power"), kinds: c.PowerKinds, nodes: c.Nodes,
		restarts: v.Text("ha") == "on", dropped: v.Text("flush") == "dropped",
		sockets: v.Count("sockets"), threads: v.Count("threads"), numa: v.Count("numa"),
		clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})}
	if s.pins, err = readPins(v.Text("pins")); err != nil {
		return nil, fmt.Errorf("target lab: option \"pins\": %w", err)
	}
	s.packages = strings.FieldsFunc(v.Text("packages"), func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(s.packages)
	s.memory = cmp.Or(v.Bytes("memory"), usualMemory[s.image])
	return open(s)
}

// readPins reads numbers of CPUs, in their order, which may come again.
func readPins(text string) (pins []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 10) // as many as the kernel's sets have
		if err != nil {
			return nil, fmt.Errorf("%q is no list of CPUs such as 0,2,1,3, with numbers below 1024", text)
		}
		pins = append(pins, int(n))
	}
	return pins, nil
}
