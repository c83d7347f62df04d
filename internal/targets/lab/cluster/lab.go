//go:build linux

package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/regular"
)

// Kinds of storage.
const (
	Gluster = "gluster" // GlusterFS: a brick per node, three copies at most
	Shared  = "shared"  // one folder for all nodes, no copies
)

const (
	recordName = "lab.json"
	mostNodes  = 9
	volume     = "gv"
)

// record tells what a lab is, on disk before anything of it is made. All names follow from it.
type record struct {
	Version int    `json:"version"`
	ID      string `json:"id"` // six hexadecimal digits, in the names of its namespaces
	Nodes   int    `json:"nodes"`
	Storage string `json:"storage"`
	MadeDir bool   `json:"made_dir"` // the folder was not there before
}

// Folder is where a lab is when nobody says where: named by the environment, or here.
func Folder() string { return cmp.Or(os.Getenv("PLIMSOLL_LAB"), "plimsoll-lab") }

// Places are the folders below that of a lab in which it writes its files; there are none where no lab is.
func Places() []string {
	list, entries := []string{Folder()}, []os.DirEntry(nil)
	if _, err := os.Lstat(filepath.Join(Folder(), recordName)); err == nil {
		entries, _ = os.ReadDir(Folder())
	}
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, filepath.Join(Folder(), e.Name()))
		}
	}
	return list
}

// Lab is a miniature cluster, made by Up. Its methods may be called by several processes at once.
type Lab struct {
	dir string
	record
}

// Node is one of its machines.
type Node struct {
	lab    *Lab
	number int // from 1
}

// Open finds the lab of a folder. It asks nothing of the lab itself, which may be damaged or half made.
func Open(dir string) (*Lab, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	path := filepath.Join(dir, recordName)
	data, err := regular.Read(path, regular.NoLinks, regular.Document)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("lab: no lab in %s: make one with plimsoll lab up --dir %s: %w", dir, dir,
			os.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	r, err := parseRecord(data)
	if err != nil {
		return nil, fmt.Errorf("lab: %s: %w", path, err)
	}
	return &Lab{dir, r}, nil
}

// parseRecord refuses all that Up has not written: names of what is removed later are made of it.
func parseRecord(data []byte) (r record, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return r, err
	}
	var errs []error
	if r.Version != 1 {
		errs = append(errs, fmt.Errorf("version %d: this plimsoll knows version 1", r.Version))
	}
	if _, err := strconv.ParseUint(r.ID, 16, 24); err != nil || len(r.ID) != 6 {
		errs = append(errs, fmt.Errorf("id %q: must be six hexadecimal digits", r.ID))
	}
	return r, errors.Join(append(errs, checkShape(r.Nodes, r.Storage)...)...)
}

func checkShape(nodes int, storage string) (errs []error) {
	if nodes < 1 || nodes > mostNodes {
		errs = append(errs, fmt.Errorf("nodes %d: must be from 1 to %d", nodes, mostNodes))
	}
	if storage != Gluster && storage != Shared {
		errs = append(errs, fmt.Errorf("storage %q: must be %s or %s", storage, Gluster, Shared))
	}
	return errs
}

// Dir is the folder of the lab, absolute.
func (l *Lab) Dir() string { return l.dir }

// ID tells the lab from others on this machine.
func (l *Lab) ID() string { return l.record.ID }

// Storage is the kind of storage: Gluster or Shared.
func (l *Lab) Storage() string { return l.record.Storage }

// Nodes lists the nodes in their order.
func (l *Lab) Nodes() []*Node {
	nodes := make([]*Node, l.record.Nodes)
	for i := range nodes {
		nodes[i] = &Node{l, i + 1}
	}
	return nodes
}

// Node is the n-th node, from 1. The error wraps target.ErrNoSuchNode.
func (l *Lab) Node(n int) (*Node, error) {
	if n < 1 || n > l.record.Nodes {
		return nil, fmt.Errorf("lab: node %d: there are nodes 1 to %d: %w", n, l.record.Nodes, target.ErrNoSuchNode)
	}
	return &Node{l, n}, nil
}

// Name of the node: node1.
func (n *Node) Name() string { return "node" + strconv.Itoa(n.number) }

// Address of the node in the lab's network.
func (n *Node) Address() netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(10 + n.number)}) }

// NetNS is the path of the node's network namespace.
func (n *Node) NetNS() string { return filepath.Join(namespaces, n.namespace()) }

// Mount is the folder of the lab's storage as this node sees it, for the disks of its guests. While the node is off
// nothing may be written there.
func (n *Node) Mount() string {
	if n.lab.record.Storage == Shared {
		return n.lab.path("shared")
	}
	return n.path("mount")
}

// Guests is the folder for a QMP socket (NAME.qmp, or a link to one) of each guest of the node. A graceful shutdown
// presses the power button of each over it, so it must be a socket of the guest to which nothing else stays connected.
func (n *Node) Guests() string { return n.path("guests") }

func (l *Lab) path(elem ...string) string  { return filepath.Join(append([]string{l.dir}, elem...)...) }
func (n *Node) path(elem ...string) string { return n.lab.path(append([]string{n.Name()}, elem...)...) }

func (n *Node) namespace() string { return n.lab.prefix() + n.Name() }
func (l *Lab) prefix() string     { return "plimsoll-lab-" + l.record.ID + "-" }
func (l *Lab) hub() string        { return l.prefix() + "switch" }

// lockPatience is how long a lock may be held by what a killed process has left.
const lockPatience = 2 * time.Second

// lock takes the exclusive lock of a file, which the process's end releases; wait says whether to wait for it.
func lock(path string, wait bool) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	// A process that was killed leaves it for a moment to a child that it has forked and that is not yet another.
	for end := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) && (!errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end)) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// writeFile puts a file in its place at once, or not at all, and on the medium.
func writeFile(path string, data []byte) error {
	f, err := outfile.Temporary(filepath.Dir(path), 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
