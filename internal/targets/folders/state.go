//go:build linux

package folders

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/kit/secret"
)

// state holds what a fresh process needs to remove a run, written down before anything is made. Of the password it is
// the place where it is kept.
type state struct {
	Machines []string      `json:"machines"`
	Folder   string        `json:"folder"` // of the run, in each of them
	Password secret.Source `json:"password,omitzero"`
}

const stateFile = "folders.json"

// Provision implements target.Target.
func (p *place) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	if _, err := p.Check(ctx); err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	s := state{Folder: "plimsoll-" + r.RunID, Password: p.password}
	for _, dir := range p.machines {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("provision: machine %q: %w", dir, err)
		}
		work := filepath.Join(dir, s.Folder)
		if _, err := os.Lstat(work); !errors.Is(err, fs.ErrNotExist) { // else Destroy would remove what is not ours
			return nil, fmt.Errorf("provision: %s is there already: take it away", work)
		}
		s.Machines = append(s.Machines, dir)
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(r.StateDir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.StateDir, stateFile), data, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	c := &cluster{hosts: map[string]*host{}}
	for i, dir := range s.Machines {
		h, err := reach(p, i, dir, s.Folder)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("provision: machine %q: %w", dir, err), c.Close())
		}
		c.hosts[h.name] = h
	}
	return c, nil
}

// Destroy implements target.Target.
func (p *place) Destroy(ctx context.Context, stateDir string) (remains []string, err error) {
	data, err := os.ReadFile(filepath.Join(stateDir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was made
	}
	var s state
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("destroy: %s: %w", filepath.Join(stateDir, stateFile), err)
	}
	var objections []error
	for _, dir := range s.Machines {
		work := filepath.Join(dir, s.Folder)
		err := enter(ctx, dir, s.Password)
		if err == nil {
			err = end(ctx, p.clock, p.wait, work+"#")
		}
		if err == nil {
			err = os.RemoveAll(work)
		}
		if err != nil {
			remains = append(remains, work)
			objections = append(objections, fmt.Errorf("destroy: %w", err))
		}
	}
	return remains, errors.Join(objections...)
}

// unitVariable is in the environment of all that a command has started: its working folder, "#" and its number.
const unitVariable = "PLIMSOLL_UNIT="

// marked lists the processes whose unit begins so.
func marked(unit string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		environment, err := procfs.Environment(pid) // of others it cannot be read, of the dead it is empty
		if err == nil && bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+unitVariable+unit)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// end kills the processes of a unit until none is left: between a look and the kill they may have started others.
func end(ctx context.Context, c clock.Clock, wait time.Duration, unit string) error {
	const pause = 5 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		pids := marked(unit)
		if len(pids) == 0 {
			return nil
		}
		if waited > wait {
			return fmt.Errorf("processes %v are still there %v after they were killed", pids, wait)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d: %w", pid, err)
			}
		}
		if err := c.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
