package target

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"plimsoll/internal/kit/nearest"
)

// PowerController switches one node past its operating system: a BMC behind IPMI or Redfish, a switched outlet, the
// place itself. Commands return when the controller has confirmed them; the effect is observed with State. Repeating a
// command is fine. A controller that does not answer is an error that wraps ErrNotAccessible.
type PowerController interface {
	State(context.Context) (PowerState, error)
	PowerOn(context.Context) error
	// PowerOff cuts the power.
	PowerOff(context.Context) error
	// Shutdown asks the node's operating system to stop, VMs and all, without evacuating them.
	Shutdown(context.Context) error
}

// NodePower is implemented by clusters whose nodes have power controllers, claimed as NodePowerControl. Whether a
// node is ready for use again is not its controller's to say: see Cluster.NodeState.
type NodePower interface {
	// PowerController is that of a node. It asks nothing of the controller itself. Errors wrap ErrNoSuchNode or
	// ErrNoController.
	PowerController(node int) (PowerController, error)
}

// PowerKind makes controllers of one kind. It is named in one line of package drivers.
type PowerKind interface {
	// Name is the word users choose it by: "redfish".
	Name() string
	// Summary is one line for people.
	Summary() string
	// Options is the option table. What is secret in it is of type Secret.
	Options() []Option
	// Open returns the controller that decoded options lead to. It opens no connection and reads no secret: these are
	// read from where they are kept when they are needed.
	Open(Values) (PowerController, error)
}

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// PowerThrough is implemented by kinds whose controllers can be reached by connections that somebody else makes, as
// those of a network must be that this machine is no part of.
type PowerThrough interface {
	Through(Dial) PowerKind
}

// PowerSetting is how a node's controller is reached. It holds no secret, only where one is kept, so it may be recorded
// in a state folder, and a fresh process opens the same controller from it.
type PowerSetting struct {
	Kind    string  `json:"kind"`
	Options Options `json:"options,omitempty"`
}

// Open finds the kind of a setting among those there are and opens the controller, or returns all objections at once;
// they begin with whose it is. Only a setting that it accepted may be recorded.
func (s PowerSetting) Open(whose string, kinds []PowerKind) (PowerController, error) {
	i := slices.IndexFunc(kinds, func(k PowerKind) bool { return k.Name() == s.Kind })
	if i < 0 {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = k.Name()
		}
		hint := "there are none"
		if len(names) > 0 {
			hint = "there are " + strings.Join(names, ", ")
		}
		if meant := nearest.Of(s.Kind, names); meant != "" {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		return nil, fmt.Errorf("%s: no power controllers of kind %q: %s", whose, s.Kind, hint)
	}
	values, err := DecodeFor(whose+": power controller "+s.Kind, kinds[i].Options(), s.Options)
	if err != nil {
		return nil, err
	}
	controller, err := kinds[i].Open(values)
	if err != nil {
		return nil, fmt.Errorf("%s: power controller %s: %w", whose, s.Kind, err)
	}
	return controller, nil
}
