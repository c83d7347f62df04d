// Package local is the target that needs nothing: VM groups become sandboxes on this host.
//
// A sandbox is a folder with one file per data disk, a working folder, and the processes started in it. Nodes are
// logical: they share the host's cores and memory, and a node's power-off kills every process of its sandboxes at once.
// No root is needed. Every command runs behind a wall (wall.go) that leaves it the sandbox's working folder and disks
// and the system's programs; what that does not stop on a machine is in Check's notes. Where control groups are at
// hand, CPU and memory limits are enforced, kills are exact and CPU time is accounted by the kernel; elsewhere
// processes are found by the mark of the run in their environment, and Check says so in its notes. Commands and
// services that declare TCP ports meet on a loopback device of the run's own (network.go), as root; nothing else is
// reachable.
//
// In a run folder, `state` (the request's StateDir) holds this package's journal and `work/<vm>` the sandboxes.
// With devices (option dir, and option consent) data disks are the devices themselves: the guard claims them for as
// long as the cluster is open, each is one disk of one sandbox, none is cloned, grown or kept in a snapshot, and
// clean-up lets them be. With folders of the user's (option dir) the sandboxes are in `plimsoll-<mark>` of the first,
// and data disks are dealt out in turn over such folders in all of them.
//
// Everything is journalled before it is made, so that Destroy, from any process and any number of times, ends the
// processes and removes the files and control groups of a run that died at any moment, and touches nothing else:
// a process is only killed when its start time and the boot of the host, or the run's mark, say that it is ours, and
// no symbolic link is followed out of the run folder.
//
// It refuses to run on anything but Linux, to write into a file system with less room than asked for plus a reserve,
// and to use a folder that was there before.
package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// DefaultNodes is the number of logical nodes when the user names none. Four is what the published scenarios ask for.
const DefaultNodes = 4

// Provider makes local targets. The zero value is ready for use.
type Provider struct {
	// System is where /proc, /sys and /etc are read from for facts; nil means this host.
	System fs.FS
}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "local" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "sandboxes on this host: files as disks, processes as VMs; no root needed"
}

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{
			Name: "dir",
			Help: "folder on the file system to be tested: data disks lie there, in a folder of the run's own " +
				`(default: the run folder); several with ":" between them are dealt the disks in turn; or block devices, ` +
				"each a data disk as a whole, which is overwritten",
		},
		{Name: "deal", Help: "which of those in dir holds each data disk of a machine, counted from 1, with commas: 2,1 " +
			"puts the first disk into the second (default: dealt out in turn)"},
		{Name: "consent", Help: "to overwrite the devices of dir: their consent phrases, a line for each"},
		{Name: "devices", Type: target.Choice, Choices: []string{"write", "read"}, Default: "write",
			Help: "read: block devices of dir are only read, which takes no consent; commands that may write are refused"},
		{Name: "reserve", Type: target.Bytes, Default: "512MiB", Help: "space and memory that a run must leave free"},
		{Name: "cgroups", Type: target.Choice, Choices: []string{"auto", "off"}, Default: "auto",
			Help: "auto: limit CPU and memory where permitted; off: never touch control groups"},
	}
}

// settings are the decoded options.
type settings struct {
	nodes    int
	dir      string   // whose file system is described
	disks    []string // where data disks are put, none for the run folder
	blocks   []string // block devices that are the data disks instead
	consents []string // to overwrite them
	reading  bool     // devices are only read
	deals    []int    // which of disks or blocks holds each disk of a machine; none: in turn
	reserve  int64
	cgroups  bool
	commands bool
	clock    clock.Clock
	system   fs.FS
}

// New implements target.Provider.
func (p Provider) New(c target.Config) (target.Target, error) {
	given, err := target.Decode("local", p.Options(), c.Options)
	s := settings{nodes: c.Nodes, dir: cmp.Or(c.RunsDir, "."), cgroups: given.Text("cgroups") == "auto",
		reserve: given.Bytes("reserve"), commands: c.AllowHostCommands, clock: c.Clock, system: p.System,
		reading: given.Text("devices") == "read"}
	disks, devices, wrong := stores(given.Text("dir"))
	s.blocks = devices
	for line := range strings.Lines(given.Text("consent")) {
		s.consents = append(s.consents, strings.TrimSpace(line))
	}
	if s.disks = disks; len(disks) > 0 {
		s.dir = disks[0]
	}
	deals, undealt := readDeal(given.Text("deal"), len(disks)+len(devices))
	s.deals = deals
	err = errors.Join(err, wrong, undealt)
	if s.nodes == 0 {
		s.nodes = DefaultNodes
	}
	if s.nodes < 0 || s.nodes > maxNodes {
		err = errors.Join(err, fmt.Errorf("target local: nodes %d: want 1 to %d", c.Nodes, maxNodes))
	}
	if s.clock == nil {
		s.clock = clock.Real{}
	}
	if err != nil {
		return nil, err
	}
	return open(s)
}

// readDeal reads the option deal, of so many folders or devices.
func readDeal(text string, n int) (deals []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		k, bad := strconv.Atoi(strings.TrimSpace(part))
		if bad != nil || k < 1 || k > n {
			return nil, fmt.Errorf("target local: option \"deal\": %q is none of the %d in dir, counted from 1", part, n)
		}
		deals = append(deals, k-1)
	}
	return deals, nil
}

// share is how much of so many bytes of disks lie on some of the folders.
func (s settings) share(bytes int64, folders, some []string) int64 {
	if len(s.deals) == 0 || len(s.blocks) > 0 { // of devices, which take no space in folders
		return bytes * int64(len(some)) / int64(len(folders))
	}
	n := 0
	for _, k := range s.deals {
		if slices.Contains(some, folders[k]) {
			n++
		}
	}
	return bytes * int64(n) / int64(len(s.deals))
}

// maxNodes bounds --nodes: beyond it logical nodes of one host say nothing.
const maxNodes = 1000

// stores reads the option dir: block devices, or folders. Which devices may be written to is the guard's to say.
func stores(text string) (dirs, devices []string, err error) {
	parts := split(text)
	for _, name := range parts {
		info, err := os.Stat(name)
		if err == nil && info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice {
			devices = append(devices, name)
		}
	}
	switch {
	case len(devices) == 0:
		dirs, err = storeFolders(text)
	case len(devices) < len(parts):
		i := slices.IndexFunc(parts, func(n string) bool { return !slices.Contains(devices, n) })
		err = fmt.Errorf("%s: is no block device, and %s is one: give devices or folders, not both", parts[i], devices[0])
	}
	return dirs, devices, err
}

// split divides the option dir at each ":", unless all of it is one name.
func split(text string) []string {
	if _, err := os.Stat(text); err != nil && strings.Contains(text, ":") {
		return strings.Split(text, ":")
	}
	return []string{text}
}

// storeFolders reads the option dir: one folder, or several with ":" between them, on whose file systems data disks are
// put. Nothing is made in them yet; all objections are returned at once.
func storeFolders(text string) (dirs []string, err error) {
	if text == "" {
		return nil, nil
	}
	parts := split(text)
	var objections []error
	var real []string
	for _, dir := range parts {
		at, err := storeFolder(dir)
		if err != nil {
			objections = append(objections, err)
			continue
		}
		for i, other := range real {
			switch {
			case other == at:
				err = fmt.Errorf("%s: is the same folder as %s", dir, dirs[i])
			case strings.HasPrefix(at+"/", other+"/"):
				err = fmt.Errorf("%s: lies in %s: they share what is below them", dir, dirs[i])
			case strings.HasPrefix(other+"/", at+"/"):
				err = fmt.Errorf("%s: holds %s: they share what is below them", dir, dirs[i])
			}
			if err != nil {
				objections = append(objections, err)
				break
			}
		}
		if err == nil {
			real, dirs = append(real, at), append(dirs, dir)
		}
	}
	return dirs, errors.Join(objections...)
}

// storeFolder is a folder without symbolic links, if disks may be put in it.
func storeFolder(dir string) (string, error) {
	if dir == "" {
		return "", errors.New(`a folder without a name: between two ":" nothing is said`)
	}
	info, err := os.Stat(dir)
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return "", fmt.Errorf("%s: %w: name a folder on the file system to be tested", dir, path.Err)
	case err != nil:
		return "", fmt.Errorf("%s: %w", dir, err)
	case info.Mode().Type()&(fs.ModeDevice|fs.ModeCharDevice) != 0:
		return "", fmt.Errorf("%s: is a character device: name a block device, or a folder on the file system to be "+
			"tested", dir)
	case !info.IsDir():
		return "", fmt.Errorf("%s: is no folder: what is in it would be lost; name the folder that it lies in", dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return "", fmt.Errorf("%s: nothing can be made in it: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return real, err
}
