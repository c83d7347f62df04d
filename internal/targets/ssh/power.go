package ssh

import (
	"context"
	"fmt"
	"sync/atomic"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/unit"
)

// powerKind is the kind of a host's power controller, "" when it has none.
func powerKind(m remote.Machine) string {
	if m.Power == nil {
		return ""
	}
	return m.Power.Kind
}

// claimPower claims power control when all hosts have a controller, and says which have none.
func claimPower(f *target.Facts, machines []remote.Machine) {
	var without []string
	for _, m := range machines {
		if m.Power == nil {
			without = append(without, m.Name)
		}
	}
	for _, c := range []target.Capability{target.NodePowerControl, target.NodeShutdown} {
		switch {
		case len(without) == 0:
			f.Capabilities[c] = "the hosts' power controllers"
		case len(without) < len(machines):
			f.Missing = map[target.Capability]string{
				target.NodePowerControl: fmt.Sprintf("the inventory gives no power: "+
					"for %s", unit.List(without, 5)),
			}
			f.Missing[target.NodeShutdown] = f.Missing[target.NodePowerControl]
		}
	}
}

// checkPower asks a host's power controller, so that one that is not reached, refuses us or is another machine's is
// known before it is needed. reached is nil when the host itself was reached.
func (p *place) checkPower(ctx context.Context, m remote.Machine, reached error) error {
	if m.Power == nil {
		return nil
	}
	whose := fmt.Sprintf("machine %q", m.Name)
	c, err := m.Power.Open(whose, p.kinds)
	if err != nil {
		return err
	}
	state, err := c.State(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%s: power controller %s: %w", whose, m.Power.Kind, err)
	case state == target.Off && reached == nil:
		return fmt.Errorf(
			"%s: power controller %s says that it is off, while it answers: is its address that of another "+
				"machine's controller?",
			whose,
			m.Power.Kind,
		)
	case state == target.Off:
		return fmt.Errorf("%s: power controller %s says that it is off: power it on", whose, m.Power.Kind)
	}
	return nil
}

// controller is the power controller of a host, which is remembered to be off.
type controller struct {
	target.PowerController
	off *atomic.Bool
}

// PowerController implements target.NodePower.
func (c *cluster) PowerController(node int) (target.PowerController, error) {
	if node < 0 || node >= len(c.hosts) {
		return nil, fmt.Errorf("node %d: %w", node, target.ErrNoSuchNode)
	}
	m := c.hosts[node].Machine()
	if m.Power == nil {
		return nil, fmt.Errorf("machine %q: %w: the inventory gives no power:", m.Name, target.ErrNoController)
	}
	open, err := m.Power.Open(fmt.Sprintf("machine %q", m.Name), c.place.kinds)
	if err != nil {
		return nil, err
	}
	return &controller{open, &c.off[node]}, nil
}

// PowerOff implements target.PowerController.
func (c *controller) PowerOff(ctx context.Context) error {
	err := c.PowerController.PowerOff(ctx)
	if err == nil {
		c.off.Store(true)
	}
	return err
}

// NodeState implements target.Cluster. Without a power controller, or when that does not answer, a host that answers is
// on. One that is back from being off is ready once its devices are claimed again.
func (c *cluster) NodeState(ctx context.Context, node int) (target.PowerState, bool, error) {
	if node < 0 || node >= len(c.hosts) {
		return target.Unknown, false, fmt.Errorf("node %d: %w", node, target.ErrNoSuchNode)
	}
	state, h := target.Unknown, c.hosts[node]
	var silent error
	if h.Machine().Power != nil {
		p, err := c.PowerController(node)
		if err == nil {
			state, err = p.State(ctx)
		}
		if silent = err; state == target.Off {
			c.off[node].Store(true)
			return state, false, nil
		}
	}
	err := h.Accessible(ctx)
	switch {
	case ctx.Err() != nil:
		return target.Unknown, false, ctx.Err()
	case err != nil:
		return state, false, silent
	case c.off[node].Load():
		if err := h.Claim(ctx); err != nil {
			return target.On, false, err
		}
		c.off[node].Store(false)
	}
	return target.On, true, nil
}
