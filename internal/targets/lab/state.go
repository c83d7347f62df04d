//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/targets/fleet"
	lab "plimsoll/internal/targets/lab/cluster"
	"plimsoll/internal/targets/lab/qemu"
)

const (
	stateFile = "lab.json"
	keyName   = "key" // with which guests are logged in to
)

// state holds what a fresh process needs to remove a run.
type state struct {
	Lab  string         `json:"lab"`            // folder
	Made bool           `json:"made,omitempty"` // the lab is of the run and goes with it
	Run  string         `json:"run"`            // name of its folder on the storage
	VMs  map[string]*vm `json:"vms"`
}

// vm is a guest, or what one is made of.
type vm struct {
	Name        string  `json:"name"`
	Group       string  `json:"group"`
	Node        int     `json:"node"`
	Template    bool    `json:"template,omitempty"`
	Base        string  `json:"base,omitempty"`   // the guest whose disks its own are layers above
	Exempt      bool    `json:"exempt,omitempty"` // from restarts
	On          bool    `json:"on"`               // as it should be
	CPUs        int     `json:"cpus"`
	MemoryBytes int64   `json:"memory_bytes"`
	DiskBytes   []int64 `json:"disk_bytes"`
	Machine     string  `json:"machine"` // folder of the process that is, or was last
}

// save writes the state down; c.mu is held.
func (c *cluster) save() error { return fleet.Save(c.dir, stateFile, c.state) }

// Destroy implements target.Target.
func (p *place) Destroy(ctx context.Context, stateDir string) (remains []string, err error) {
	s, made, err := fleet.Load(stateDir, stateFile, func(s state) error {
		if !strings.HasPrefix(s.Run, folderPrefix) || filepath.Base(s.Run) != s.Run {
			return fmt.Errorf("run %q: not a folder of a run", s.Run)
		}
		return nil
	})
	if err != nil || !made {
		return nil, err
	}
	if s.Made {
		return takeDown(ctx, s, stateDir)
	}
	l, err := lab.Open(s.Lab)
	gone := errors.Is(err, fs.ErrNotExist) // with all that was in it
	if err != nil && !gone {
		return nil, fmt.Errorf("destroy: %w", err)
	}
	err = os.RemoveAll(filepath.Join(stateDir, keyName))
	for name := range s.VMs {
		folders, e := os.ReadDir(filepath.Join(stateDir, "vm", name))
		if e != nil && !errors.Is(e, fs.ErrNotExist) { // else it was never on
			remains, err = append(remains, "guest "+name), errors.Join(err, fmt.Errorf("destroy: %w", e))
		}
		for _, folder := range folders {
			m := &qemu.Machine{Folder: filepath.Join(stateDir, "vm", name, folder.Name()), Spec: qemu.Spec{Name: name}}
			if e := m.Kill(); e != nil {
				remains, err = append(remains, "guest "+name), errors.Join(err, fmt.Errorf("destroy: %w", e))
			}
		}
		if !gone {
			err = errors.Join(err, l.Release(s.Run+"/"+name))
			for _, n := range l.Nodes() {
				err = errors.Join(err, os.RemoveAll(filepath.Join(n.Guests(), socketName(s.Run, name))))
			}
		}
	}
	if gone {
		return remains, errors.Join(err, os.RemoveAll(filepath.Join(stateDir, "vm")))
	}
	if e := removeFolder(ctx, l, s.Run); e != nil {
		remains = append(remains, "folder "+s.Run+" on the lab's storage")
		err = errors.Join(err, fmt.Errorf("destroy: %w", e))
	}
	if err == nil {
		err = os.RemoveAll(filepath.Join(stateDir, "vm"))
	}
	return remains, err
}

// removeFolder removes a run's folder by a node that is ready. Where there is none, as after a run that was killed in
// the dark, the nodes are switched on.
func removeFolder(ctx context.Context, l *lab.Lab, run string) error {
	nodes := l.Nodes()
	ready := func() *lab.Node {
		for _, n := range nodes {
			if _, is, err := n.State(ctx); err == nil && is {
				return n
			}
		}
		return nil
	}
	n := ready()
	if n == nil {
		for _, n := range nodes {
			if err := n.Power().PowerOn(ctx); err != nil {
				return err
			}
		}
		limited, cancel := context.WithTimeout(ctx, wakeLimit)
		defer cancel()
		err := l.WaitReady(limited, nodes...)
		if n = ready(); n == nil {
			return errors.Join(errors.New("no node is ready to remove the run's folder: see plimsoll lab status"), err)
		}
	}
	return os.RemoveAll(filepath.Join(n.Mount(), run))
}

// wakeLimit is how long nodes may take to be ready again.
const wakeLimit = 3 * time.Minute

// takeDown removes a lab of the run's own with all that is in it, guests and disks.
func takeDown(ctx context.Context, s state, stateDir string) (remains []string, err error) {
	remains, err = lab.Down(ctx, s.Lab)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return append(remains, "lab in "+s.Lab), fmt.Errorf("destroy: %w", err)
	}
	return remains, errors.Join(os.RemoveAll(filepath.Join(stateDir, keyName)),
		os.RemoveAll(filepath.Join(stateDir, "vm")))
}

const folderPrefix = "plimsoll-run-"

func socketName(run, vm string) string { return run + "-" + vm + ".qmp" }
