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

	"golang.org/x/sys/unix"

	"plimsoll/internal/target"
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

// workDir is where the sandboxes of a run are: beside its state folder.
func workDir(stateDir string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(stateDir)), "work")
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
	mark := newMark()
	j, err := openJournal(stateDir)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	c := &cluster{settings: p.settings, journal: j, log: log, mark: mark, run: req.RunID,
		workDir: workDir(stateDir), boxes: map[string]*sandbox{}, goroutines: p.clock.Group()}
	c.on = make([]bool, p.nodes)
	for i := range c.on {
		c.on[i] = true
	}
	c.groups = groupSet{controlGroups: p.controlGroups(), name: groupName(mark), log: log}
	if err := c.prepare(boot); err != nil {
		j.close()
		return nil, fmt.Errorf("provision: %w", err)
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
		{Op: "work"},
	}
	for _, dir := range c.groups.bases() {
		entries = append(entries, entry{Op: "cgroup", Path: dir})
	}
	if err := c.journal.add(true, entries...); err != nil {
		return err
	}
	if err := os.Mkdir(c.workDir, 0o755); err != nil {
		return errors.Join(fmt.Errorf("%w: sandboxes need a folder of their own", explain(err, c.workDir, 0)),
			c.journal.add(true, entry{Op: "refused"}))
	}
	work, err := os.OpenRoot(c.workDir)
	if err != nil {
		return explain(err, c.workDir, 0)
	}
	c.work = work
	if c.wall, err = findWall(c.workDir, c.mark); err != nil {
		return err
	}
	if note := c.wall.note(); note != "" {
		c.log("%s", note)
	}
	c.groups.setUp()
	c.sampled = c.clock.Now()
	c.numa = numaNodes(c.system)
	if dir, err := filepath.EvalSymlinks(c.workDir); err == nil {
		mounts, _ := readMounts(c.system) // the facts say why there is none
		if m, ok := mountOf(mounts, dir); ok {
			c.device, _ = countedDevice(c.system, m)
		}
	}
	return nil
}

// checkRoom compares what the run asks for with what is there now, less the reserve.
func (p *place) checkRoom(stateDir string, req target.Request) error {
	var objections []error
	free, err := freeBytes(workDir(stateDir))
	switch {
	case err != nil:
		objections = append(objections, err)
	case req.DiskBytes > free-p.reserve:
		objections = append(objections, fmt.Errorf(
			"disk space: %s needed for data disks, %s free on the file system of %s less %s kept in reserve; free "+
				"some space, use another folder or a smaller size scale",
			unit.Bytes(req.DiskBytes), unit.Bytes(free), filepath.Dir(stateDir), unit.Bytes(p.reserve)))
	}
	m, err := readMemory(p.system)
	switch {
	case err != nil:
		objections = append(objections, err)
	case req.MemoryBytes > m.available-p.reserve:
		objections = append(objections, fmt.Errorf(
			"memory: %s needed, %s available less %s kept in reserve; use fewer machines or a smaller scenario",
			unit.Bytes(req.MemoryBytes), unit.Bytes(m.available), unit.Bytes(p.reserve)))
	}
	return errors.Join(objections...)
}

// groupName is the name of a run's control group.
func groupName(mark string) string { return groupPrefix + mark[:markLength/2] }
