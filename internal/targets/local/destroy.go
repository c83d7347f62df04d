//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Destroy implements target.Target. It refuses to take a run away from another process that is still alive; within
// the process that made the cluster it works also before Close.
func (p *place) Destroy(ctx context.Context, stateDir string) (remains []string, err error) {
	stateDir, err = filepath.Abs(stateDir)
	if err != nil {
		return nil, fmt.Errorf("destroy: %w", err)
	}
	path := filepath.Join(stateDir, journalName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return []string{path}, fmt.Errorf("destroy: %w", explain(err, path, 0))
	}
	defer f.Close()
	locked := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	entries, err := readJournal(stateDir) // objections to lines do not keep us from the others
	w := wreck{place: p, stateDir: stateDir}
	w.read(entries)
	// The lock alone may be a child's that has not got to its own program yet; the process alone may have closed the
	// run.
	if pid := w.controller.PID; locked != nil && pid != os.Getpid() && w.alive(w.controller) {
		return nil, fmt.Errorf("destroy: %s: the run is still being executed by process %d: stop that first", path, pid)
	}
	problems := []error{err, w.killProcesses(ctx), w.removeGroups()}
	if w.hang == nil {
		problems = append(problems, w.removeFiles(ctx))
	} else {
		for _, dir := range w.workDirs {
			w.remains = append(w.remains, dir)
			problems = append(problems, fmt.Errorf("%s: %w", dir, w.hang))
		}
	}
	if err := errors.Join(problems...); err != nil {
		if len(w.remains) == 0 {
			w.remains = []string{path}
		}
		return w.remains, fmt.Errorf("destroy: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{path}, fmt.Errorf("destroy: %w", explain(err, path, 0))
	}
	return nil, nil
}

// wreck holds what a journal says of a run, to be removed.
type wreck struct {
	*place
	stateDir   string
	workDirs   []string // that may be ours
	mark, boot string
	controller entry
	sandboxes  []string
	groups     []string
	processes  []entry
	remains    []string
	hang       error // processes that hang; nil: none
}

func (w *wreck) read(entries []entry) {
	for _, e := range entries {
		switch e.Op {
		case "run":
			w.mark, w.boot, w.controller = e.Mark, e.Boot, e
		case "work":
			own := workDir(w.stateDir)
			if dir, err := apartDir(filepath.Dir(e.Path), w.mark); w.mark != "" && err == nil && dir == e.Path {
				own = dir // only a folder of that name is one that a run made there
			}
			if !slices.Contains(w.workDirs, own) {
				w.workDirs = append(w.workDirs, own)
			}
		case "sandbox":
			w.sandboxes = append(w.sandboxes, e.Name)
		case "refused":
			if e.Name == "" {
				w.workDirs = nil
			}
			w.sandboxes = slices.DeleteFunc(w.sandboxes, func(n string) bool { return n == e.Name })
		case "cgroup":
			if w.mark != "" && filepath.IsAbs(e.Path) && filepath.Base(e.Path) == groupName(w.mark) {
				w.groups = append(w.groups, e.Path)
			}
		case "process":
			w.processes = append(w.processes, e)
		}
	}
	slices.Sort(w.sandboxes)
	w.sandboxes = slices.Compact(w.sandboxes)
}

// alive reports whether a recorded process is the one that has its id now.
func (w *wreck) alive(e entry) bool {
	boot, err := bootID()
	p, ok := readProcess(e.PID)
	return err == nil && boot == w.boot && ok && p.start == e.Start
}

// killProcesses ends what still lives: members of the run's groups, recorded processes whose start time and boot
// are the recorded ones, and processes that carry the run's mark. It looks twice before it believes that none is left,
// since one may have been between fork and exec.
func (w *wreck) killProcesses(ctx context.Context) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	if boot != w.boot { // the host has restarted: nothing of ours lives, and the ids are others'
		return nil
	}
	deadline := w.clock.Now().Add(dieWithin)
	for calm, wait := 0, 2*time.Millisecond; calm < 2; wait = min(2*wait, 100*time.Millisecond) {
		for _, dir := range w.groups {
			killGroup(dir)
		}
		left, err := w.living()
		if err != nil {
			return err
		}
		calm++
		for _, p := range left {
			calm = 0
			err = errors.Join(err, p.kill())
		}
		if err != nil || calm < 2 && w.clock.Now().After(deadline) {
			w.hang = hangs(left)
			w.remains = append(w.remains, "processes "+describe(left))
			return errors.Join(err, fmt.Errorf("processes still alive: %s", describe(left)))
		}
		if err := w.clock.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("processes: %w", err)
		}
	}
	return nil
}

func (w *wreck) living() ([]process, error) {
	found, err := marked(w.mark)
	if err != nil {
		return nil, err
	}
	for _, dir := range w.groups {
		list, err := members(dir)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	for _, e := range w.processes {
		if p, ok := readProcess(e.PID); ok && p.start == e.Start {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b process) int { return a.pid - b.pid })
	return slices.CompactFunc(found, func(a, b process) bool { return a.pid == b.pid }), nil
}

func (w *wreck) removeGroups() error {
	var problems []error
	for _, dir := range w.groups {
		if err := removeGroup(dir); err != nil {
			w.remains = append(w.remains, dir)
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// removeFiles removes the recorded sandboxes from every work folder, then the folder if that leaves it empty. Nothing
// is reached through a symbolic link: not the work folder, and nothing below it.
func (w *wreck) removeFiles(ctx context.Context) error {
	var problems []error
	for _, dir := range w.workDirs {
		problems = append(problems, w.removeFrom(ctx, dir))
	}
	return errors.Join(problems...)
}

func (w *wreck) removeFrom(ctx context.Context, workDir string) error {
	info, err := os.Lstat(workDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("is no folder: left alone")
	}
	if err != nil {
		w.remains = append(w.remains, workDir)
		return explain(err, workDir, 0)
	}
	run, err := os.OpenRoot(filepath.Dir(workDir))
	if err != nil {
		w.remains = append(w.remains, workDir)
		return explain(err, workDir, 0)
	}
	defer run.Close()
	base := filepath.Base(workDir)
	var problems []error
	for _, name := range w.sandboxes {
		if err := ctx.Err(); err != nil {
			w.remains = append(w.remains, workDir)
			return fmt.Errorf("%s: %w", workDir, err)
		}
		if err := run.RemoveAll(path.Join(base, name)); err != nil {
			w.remains = append(w.remains, filepath.Join(workDir, name))
			problems = append(problems, explain(err, filepath.Join(workDir, name), 0))
		}
	}
	if err := run.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if len(problems) == 0 {
			w.remains = append(w.remains, workDir)
			err = fmt.Errorf("%w (what is left there is not ours)", explain(err, workDir, 0))
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
