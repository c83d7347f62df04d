package ssh

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/ssh/remote"
)

// state holds what a fresh process needs to remove a run, written down before anything is made.
type state struct {
	Machines []remote.Machine `json:"machines"` // their Folder is the run's
	Tag      string           `json:"tag"`      // in each of these
}

const stateFile = "ssh.json"

// Provision implements target.Target.
func (p *place) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	v, err := p.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("provision: %w", err)
	}
	name := "plimsoll-" + r.RunID
	if !remote.Plain(name) {
		return nil, fmt.Errorf("provision: run %q: it is no name of a folder", r.RunID)
	}
	s := state{Machines: v.machines, Tag: name + " " + rand.Text()}
	for i := range s.Machines {
		s.Machines[i].Folder += "/" + name
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
	c := &cluster{place: p, hosts: make([]*remote.Host, len(s.Machines)), byName: map[string]*remote.Host{},
		off: make([]atomic.Bool, len(s.Machines))}
	for i, m := range s.Machines {
		c.hosts[i] = p.NewHost(m, i)
		c.byName[m.Name] = c.hosts[i]
	}
	objections := make([]error, len(c.hosts))
	_ = clock.Parallel(p.Clock, len(c.hosts), widest, func(i int) error {
		objections[i] = c.hosts[i].Settle(ctx, s.Tag)
		return nil
	})
	if err := errors.Join(objections...); err != nil {
		return nil, errors.Join(fmt.Errorf("provision: %w", err), c.Close())
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
	objections := make([]error, len(s.Machines))
	_ = clock.Parallel(p.Clock, len(s.Machines), widest, func(i int) error {
		objections[i] = s.Machines[i].Remove(ctx, s.Tag)
		return nil
	})
	for i, o := range objections {
		if o != nil {
			remains = append(remains, s.Machines[i].Name+":"+s.Machines[i].Folder)
			err = errors.Join(err, fmt.Errorf("destroy: %w", o))
		}
	}
	return remains, err
}

// cluster is the hosts, with a folder of one run on each.
type cluster struct {
	place  *place
	hosts  []*remote.Host
	byName map[string]*remote.Host
	off    []atomic.Bool // what was switched off, or seen so, until it is back
}

var (
	_ target.Cluster      = (*cluster)(nil)
	_ target.NodePower    = (*cluster)(nil)
	_ target.ScrapeSource = (*cluster)(nil)
	_ target.VMAddressed  = (*cluster)(nil)
	_ target.Addressed    = (*cluster)(nil)
	_ target.LoginSource  = (*cluster)(nil)
)

// VMs implements target.Cluster: every host is one, and is on unless it was switched off.
func (c *cluster) VMs(ctx context.Context) (list []target.VM, err error) {
	for i, h := range c.hosts {
		v := target.VM{Name: h.Name(), Group: h.Machine().Role, Node: h.Node(), Power: target.On}
		if c.off[i].Load() {
			v.Power = target.Off
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b target.VM) int { return strings.Compare(a.Name, b.Name) })
	return list, ctx.Err()
}

// Host implements target.Cluster.
func (c *cluster) Host(name string) (target.Host, error) {
	if h, ok := c.byName[name]; ok {
		return h, nil
	}
	return nil, fmt.Errorf("machine %q: %w", name, target.ErrNoSuchVM)
}

// Close implements target.Cluster. What runs on the hosts goes on.
func (c *cluster) Close() (err error) {
	for _, h := range c.hosts {
		err = errors.Join(err, h.Close())
	}
	return err
}

// Logins implements target.LoginSource.
func (c *cluster) Logins(ctx context.Context, group string) (list []target.Login, err error) {
	for _, h := range c.in(group) {
		list = append(list, h.Machine().Login())
	}
	return list, c.needsHost(ctx, group, len(list))
}

// Addresses implements target.Addressed.
func (c *cluster) Addresses(ctx context.Context, group string) (list []string, err error) {
	for _, h := range c.in(group) {
		list = append(list, h.Machine().Address)
	}
	return list, c.needsHost(ctx, group, len(list))
}

// in are the hosts of a role; each host is a node as well.
func (c *cluster) in(group string) (list []*remote.Host) {
	for _, h := range c.hosts {
		if group == "nodes" || h.Machine().Role == group {
			list = append(list, h)
		}
	}
	return list
}

func (c *cluster) needsHost(ctx context.Context, group string, hosts int) error {
	if hosts == 0 {
		return fmt.Errorf("addresses: group %q: no host of the inventory has this role", group)
	}
	return ctx.Err()
}

// VMAddress implements target.VMAddressed.
func (c *cluster) VMAddress(vm string) string {
	if h := c.byName[vm]; h != nil && len(h.Machine().Jump) == 0 {
		return h.Machine().Address
	}
	return ""
}

// Endpoints implements target.ScrapeSource: what the agent counts, and how far the host's clock is ahead.
func (c *cluster) Endpoints(ctx context.Context) (list []target.Endpoint, err error) {
	for _, h := range c.hosts {
		list = append(list, target.Endpoint{Name: "agent", VM: h.Name(), Get: h.Page})
	}
	return list, ctx.Err()
}
