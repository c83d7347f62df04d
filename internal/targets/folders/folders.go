//go:build linux

// Package folders is a place of ready-made machines: folders of this one, each standing for a host that was there
// before, will be there afterwards, and lets nobody in without its password.
//
// It is the worked example of docs/how-to/add-a-target.md and is in no registry. A machine is called as its folder is,
// its data disks are the files *.img in it, and a file `password`, where there is one, holds what it asks for. A run
// works in
// `plimsoll-RUN` inside, and leaves nothing else. It makes no machines, powers none, and says so in Facts.Missing.
//
// What a run has begun is found by its working folder's path in the environment of its processes. A process that clears
// its environment gets away, and no wall keeps commands from this machine: package local does all that.
package folders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/secret"
)

// Provider makes places of folders. The zero value is ready for use.
type Provider struct{}

var _ target.Provider = Provider{}

// Name implements target.Provider.
func (Provider) Name() string { return "folders" }

// Summary implements target.Provider.
func (Provider) Summary() string {
	return "folders of this machine that stand for hosts that are there already"
}

// Options implements target.Provider.
func (Provider) Options() []target.Option {
	return []target.Option{
		{Name: "machines", Help: "the folders, with : between"},
		{Name: "password", Type: target.Secret,
			Help: "where the password that they ask for is kept: env:NAME, file:PATH or command:PROGRAM"},
		{Name: "wait", Type: target.Duration, Default: "10s", Range: "100ms to 10m",
			Help: "how long killed processes may take to be gone"},
	}
}

// New implements target.Provider. That machines are needed is for Check to say: a clean-up has no options but what the
// run has recorded.
func (p Provider) New(c target.Config) (target.Target, error) {
	given, err := target.Decode(p.Name(), p.Options(), c.Options)
	t := &place{password: given.Secret("password"), wait: given.Duration("wait"),
		clock: cmp.Or[clock.Clock](c.Clock, clock.Real{})}
	for name := range strings.SplitSeq(given.Text("machines"), ":") {
		if name = strings.TrimSpace(name); name != "" {
			t.machines = append(t.machines, name)
		}
	}
	if c.Nodes != 0 && c.Nodes != len(t.machines) && len(t.machines) > 0 {
		err = errors.Join(err, fmt.Errorf("target folders: nodes %d: every machine is a node, and there are %d",
			c.Nodes, len(t.machines)))
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// place is the machines of the options.
type place struct {
	machines []string
	password secret.Source
	wait     time.Duration
	clock    clock.Clock
}

// Check implements target.Target.
func (p *place) Check(ctx context.Context) (target.Facts, error) {
	facts := target.Facts{Target: "folders", ClusterName: "folders", OneMachine: true, FreeBytes: -1, FreeMemory: -1,
		Capabilities: map[target.Capability]string{target.GuestCommands: "processes of this machine"},
		Notes:        []string{"The machines share this one's processors, memory and disks."},
	}
	facts.Lacking("its machines are there already, and are only reached")
	var objections []error
	if len(p.machines) == 0 {
		objections = append(objections,
			errors.New(`target folders: no machines: give --target-opt machines=FOLDER:FOLDER`))
	}
	names := map[string]bool{}
	for i, dir := range p.machines {
		name := filepath.Base(dir)
		if names[name] {
			objections = append(objections,
				fmt.Errorf("target folders: two machines are called %q: rename a folder", name))
		}
		names[name] = true
		facts.Nodes = append(facts.Nodes, target.Node{Index: i, Name: name, Cores: runtime.NumCPU()})
		if err := enter(ctx, dir, p.password); err != nil {
			objections = append(objections, err)
		}
	}
	return facts, errors.Join(objections...)
}

// enter shows a machine the password that it asks for.
func enter(ctx context.Context, dir string, password secret.Source) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return fmt.Errorf("machine %q: %w", dir, err)
	}
	wanted, err := os.ReadFile(filepath.Join(dir, "password"))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("machine %q: %w", dir, err)
	case password == secret.Source{}:
		return fmt.Errorf("machine %q asks for a password: give --target-opt password=env:NAME or file:PATH", dir)
	}
	given, err := password.Read(ctx)
	if err != nil {
		return fmt.Errorf("machine %q: %w", dir, err)
	}
	if given.Reveal() != strings.TrimRight(string(wanted), "\r\n") {
		return fmt.Errorf("machine %q: the password from %s is wrong", dir, password)
	}
	return nil
}
