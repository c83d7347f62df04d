//go:build linux

package local

import (
	"context"
	"fmt"

	"plimsoll/internal/exporter"
	machine "plimsoll/internal/exporter/host"
	"plimsoll/internal/target"
)

var _ target.ScrapeSource = (*cluster)(nil)

// servedSections are what is served of this machine. Disks are not among them: those of the VMs are derived from what
// load generators do, and counters of the device below would be counted besides them. File systems are the run's own
// business.
var servedSections = []machine.Section{
	machine.CPU,
	machine.Load,
	machine.Memory,
	machine.Network,
	machine.Kernel,
	machine.Paging,
	machine.Pressure,
}

// Endpoints implements target.ScrapeSource: this machine, whose counters are those of every sandbox on it.
func (c *cluster) Endpoints(ctx context.Context) ([]target.Endpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("endpoints: %w", err)
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	if c.exporter == nil {
		x, err := exporter.New("", machine.New(c.system, nil, servedSections...))
		if err != nil {
			return nil, fmt.Errorf("endpoints: %w", err)
		}
		c.exporter = x
	}
	return []target.Endpoint{{Name: "host", Machine: hostName, Shared: true, Get: c.exporter.Get}}, nil
}
