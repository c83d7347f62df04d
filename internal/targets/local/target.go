//go:build linux

package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/storage/device"
	"plimsoll/internal/targets/underneath"
	"plimsoll/unit"
)

// place is the target itself; it holds nothing open.
type place struct{ settings }

var _ target.Target = (*place)(nil)

func open(s settings) (target.Target, error) {
	if s.system == nil {
		s.system = os.DirFS("/")
	}
	return &place{s}, nil
}

func (p *place) controlGroups() controlGroups {
	if !p.cgroups {
		off := controlBase{why: "switched off with --target-opt cgroups=off"}
		return controlGroups{off, off, off, "not used"}
	}
	return findControlGroups(p.system, writable)
}

func writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// workDir is where the sandboxes of a run are, unless they were asked for elsewhere: beside its state folder.
func workDir(stateDir string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(stateDir)), "work")
}

// apartDir is the folder of a run with this mark in a folder of the user's.
func apartDir(disks, mark string) (string, error) {
	dir, err := filepath.Abs(disks)
	return filepath.Join(dir, "plimsoll-"+mark), err
}

// Provision implements target.Target. Sandboxes go to the folder `work` beside req.StateDir.
func (p *place) Provision(ctx context.Context, req target.Request) (target.Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	if req.RunID == "" || req.StateDir == "" {
		return nil, errors.New("provision: the request needs a run id and a state folder")
	}
	stateDir, err := filepath.Abs(req.StateDir)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	log := req.Log
	if log == nil {
		log = func(string, ...any) {}
	}
	if err := p.checkRoom(stateDir, req); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	raw, err := p.takeDevices(ctx, filepath.Dir(stateDir))
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	c, err := p.open(stateDir, boot, req.RunID, log, raw)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", errors.Join(err, releaseAll(raw)))
	}
	return c, nil
}

// open makes the cluster of a run, with its journal.
func (p *place) open(stateDir, boot, run string, log func(string, ...any), raw []*rawDisk) (*cluster, error) {
	mark := newMark()
	j, err := openJournal(stateDir)
	if err != nil {
		return nil, err
	}
	c := &cluster{settings: p.settings, journal: j, log: log, mark: mark, run: run, raw: raw,
		boxes: map[string]*sandbox{}, goroutines: p.clock.Group()}
	for _, disks := range p.disks {
		dir, err := apartDir(disks, mark)
		if err != nil {
			_ = j.close()
			return nil, err
		}
		c.stores = append(c.stores, &store{dir: dir})
	}
	if len(c.stores) == 0 {
		c.stores = []*store{{dir: workDir(stateDir)}}
	}
	c.workDir = c.stores[0].dir
	c.on = make([]bool, p.nodes)
	for i := range c.on {
		c.on[i] = true
	}
	c.groups = groupSet{controlGroups: p.controlGroups(), name: groupName(mark), log: log}
	if err := c.prepare(boot); err != nil {
		_ = j.close()
		return nil, err
	}
	return c, nil
}

// newMark is a mark that no other run has.
func newMark() string {
	random := make([]byte, markLength/2)
	rand.Read(random)
	return hex.EncodeToString(random)
}

// prepare journals the run and makes its work folder and control groups.
func (c *cluster) prepare(boot string) error {
	self, ok := readProcess(os.Getpid())
	if !ok {
		return errors.New("/proc does not list this process: it must be mounted")
	}
	entries := []entry{
		{Op: "run", Run: c.run, Mark: c.mark, Boot: boot, PID: self.pid, Start: self.start},
	}
	for _, s := range c.stores {
		entries = append(entries, entry{Op: "work", Path: s.dir})
	}
	for _, dir := range c.groups.bases() {
		entries = append(entries, entry{Op: "cgroup", Path: dir})
	}
	if err := c.journal.add(true, entries...); err != nil {
		return err
	}
	for i, s := range c.stores {
		if err := os.Mkdir(s.dir, 0o755); err != nil {
			err = fmt.Errorf("%w: sandboxes need a folder of their own", explain(err, s.dir, 0))
			for _, made := range c.stores[:i] {
				err = errors.Join(err, os.Remove(made.dir))
			}
			return errors.Join(err, c.journal.add(true, entry{Op: "refused"}))
		}
	}
	for _, s := range c.stores {
		root, err := os.OpenRoot(s.dir)
		if err != nil {
			return explain(err, s.dir, 0)
		}
		s.root = root
	}
	c.work = c.stores[0].root
	var err error
	if c.wall, err = findWall(c.workDir, c.mark); err != nil {
		return err
	}
	if note := c.wall.note(); note != "" {
		c.log("%s", note)
	}
	c.groups.setUp()
	c.sampled = c.clock.Now()
	c.cpus = underneath.New(c.system)
	for _, r := range c.raw {
		c.devices = append(c.devices, r.Name)
	}
	if len(c.raw) > 0 {
		return nil
	}
	mounts, _ := device.Mounts(c.system) // the facts say why there is none
	for _, s := range c.stores {
		dir, err := filepath.EvalSymlinks(s.dir)
		if err != nil {
			continue
		}
		if m, ok := device.MountOf(mounts, dir); ok {
			if d, _ := countedDevice(c.system, m); d != "" && !slices.Contains(c.devices, d) {
				c.devices = append(c.devices, d)
			}
		}
	}
	return nil
}

// checkRoom compares what the run asks for with what is there now, less the reserve.
func (p *place) checkRoom(stateDir string, req target.Request) error {
	var objections []error
	folders := p.disks
	if p.isRaw() {
		req.DiskBytes = 0 // the plan has compared sizes; the disks take no space of a file system
	}
	if len(folders) == 0 {
		folders = []string{filepath.Dir(stateDir)}
	}
	for _, together := range onOneFileSystem(folders) {
		needed := p.share(req.DiskBytes, folders, together)
		free, err := regular.Free(together[0])
		switch {
		case err != nil:
			objections = append(objections, err)
		case needed > free-p.reserve:
			objections = append(objections, target.NoRoom{Err: fmt.Errorf(
				"disk space: %s needed for data disks, %s free on the file system of %s less %s kept in reserve; free some space, use another folder or a smaller size scale",
				unit.Bytes(needed), unit.Bytes(free), strings.Join(together, " and "), unit.Bytes(p.reserve))})
		}
	}
	m, err := readMemory(p.system)
	switch {
	case err != nil:
		objections = append(objections, err)
	case req.MemoryBytes > m.available-p.reserve:
		objections = append(objections, target.NoRoom{Err: fmt.Errorf(
			"memory: %s needed, %s available less %s kept in reserve; use fewer machines or a smaller scenario",
			unit.Bytes(req.MemoryBytes), unit.Bytes(m.available), unit.Bytes(p.reserve))})
	}
	return errors.Join(objections...)
}

// groupName is the name of a run's control group.
func groupName(mark string) string { return groupPrefix + mark[:markLength/2] }
