//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/regular"
)

// How long things may take until they are given up.
const (
	killLimit  = 10 * time.Second
	bootLimit  = 3 * time.Minute
	buildLimit = 5 * time.Minute  // longer than a lock lives that glusterd has forgotten
	guestLimit = 90 * time.Second // for guests to heed their power button
)

// button is the node's power state on disk. Times counts how often it was switched on: what began in one life of the
// node must not reach into the next.
type button struct {
	On    bool `json:"on"`
	Times int  `json:"times"`
}

func (n *Node) button() (b button, err error) {
	data, err := regular.Read(n.path("power.json"), regular.NoLinks, regular.Document)
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil {
		return b, fmt.Errorf("lab: %s: power: %w", n.Name(), n.gone(err))
	}
	return b, nil
}

// gone says of an error with a node's files what it means for those who ask for the node: where they are not there any
// more, the lab was taken down.
func (n *Node) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the lab was taken down: %w: %w", target.ErrNoSuchNode, err)
	}
	return fmt.Errorf("%w: %w", err, target.ErrNotAccessible)
}

func (n *Node) press(b button) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return writeFile(n.path("power.json"), data)
}

// Power is the node's controller, past its BMC's protocols, and works when the BMC does not.
func (n *Node) Power() target.PowerController { return controller{n} }

type controller struct{ n *Node }

var _ target.PowerController = controller{}

func (c controller) State(ctx context.Context) (target.PowerState, error) {
	if err := ctx.Err(); err != nil {
		return target.Unknown, err
	}
	b, err := c.n.button()
	switch {
	case err != nil:
		return target.Unknown, err
	case b.On && isNamespace(c.n.NetNS()):
		return target.On, nil
	}
	return target.Off, nil
}

func (c controller) PowerOn(ctx context.Context) error { return c.do(ctx, c.n.on) }

func (c controller) PowerOff(ctx context.Context) error { return c.do(ctx, c.n.off) }

// Shutdown begins a graceful shutdown, which goes on when it returns.
func (c controller) Shutdown(ctx context.Context) error {
	return c.do(ctx, func(context.Context) error {
		b, err := c.n.button()
		if err != nil || !b.On {
			return err
		}
		return c.n.lab.part(filepath.Join(namespaces, c.n.lab.hub()), c.n.path("halt.log"), "halt", c.n.lab.dir,
			strconv.Itoa(c.n.number), strconv.Itoa(b.Times))
	})
}

// do switches with nobody else at it, and not at all when the context has ended while it waited for that.
func (c controller) do(ctx context.Context, what func(context.Context) error) error {
	return c.n.locked(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return what(ctx)
	})
}

// locked keeps others from switching or starting something on the node meanwhile.
func (n *Node) locked(do func() error) error {
	unlock, err := lock(n.path("lock"), true)
	if err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name(), n.gone(err))
	}
	defer unlock()
	if err := do(); err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name(), err)
	}
	return nil
}

// on plugs the node in and lets it boot.
func (n *Node) on(ctx context.Context) error {
	b, err := n.button()
	if err != nil || b.On {
		return err
	}
	if err := n.link(ctx, "up"); err != nil {
		return err
	}
	b.On, b.Times = true, b.Times+1
	if err := n.press(b); err != nil {
		return err
	}
	return n.lab.part(n.NetNS(), n.path("boot.log"), "boot", n.lab.dir, strconv.Itoa(n.number))
}

// off cuts the node's power: the wire first, as others notice first that it is gone, then all its processes.
func (n *Node) off(ctx context.Context) error {
	b, err := n.button()
	if err != nil {
		return err
	}
	b.On = false
	// The state comes last: a controller that says "off" while something runs would be a lie.
	err = errors.Join(n.link(ctx, "down"), n.kill(ctx), os.RemoveAll(n.path("ready")))
	if err != nil {
		return err
	}
	return n.press(b)
}

// kill ends all processes of the node and takes away the mount that was theirs.
func (n *Node) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	return errors.Join(end(ctx, unix.SIGKILL, n.NetNS()), n.unmount())
}

// Start starts a process as part of the node: in its network, in a session of its own, and killed when its power is
// cut. It refuses when the node is off. The caller waits for it, or leaves it.
func (n *Node) Start(cmd *exec.Cmd) error {
	return n.locked(func() error {
		b, err := n.button()
		if err != nil {
			return err
		}
		if !b.On {
			return fmt.Errorf("start %s: the node is off: switch it on with plimsoll lab power %d on: %w", cmd.Path,
				n.number, target.ErrNotAccessible)
		}
		return spawn(n.NetNS(), cmd)
	})
}

// spawn starts a process in a namespace and in a session of its own.
func spawn(namespace string, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setsid = true
	return within(namespace, cmd.Start)
}

// State is whether the node is on, and whether its storage is there so that guests can run.
func (n *Node) State(ctx context.Context) (power target.PowerState, ready bool, err error) {
	power, err = n.Power().State(ctx)
	if err != nil || power != target.On {
		return power, false, err
	}
	if _, err := os.Stat(n.path("ready")); err != nil {
		return power, false, nil
	}
	return power, n.lab.record.Storage == Shared || mounted(n.path("mount")) && n.program("glusterd") != 0, nil
}

// WaitReady returns when all the nodes are ready, or with the reason why they are not when the context ends.
func (l *Lab) WaitReady(ctx context.Context, nodes ...*Node) error {
	for _, n := range nodes {
		for {
			_, ready, err := n.State(ctx)
			if err != nil {
				return err
			}
			if ready {
				break
			}
			if !sleep(ctx, 100*time.Millisecond) {
				return fmt.Errorf("lab: %s: not ready: %w\n%s", n.Name(), ctx.Err(), tail(n.path("boot.log")))
			}
		}
	}
	return nil
}

// boot does what a node does when it is switched on, as a process of the node.
func (n *Node) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	if err := os.RemoveAll(n.path("ready")); err != nil {
		return err
	}
	if n.lab.record.Storage == Gluster {
		if err := n.bootGluster(ctx); err != nil {
			return err
		}
	}
	return writeFile(n.path("ready"), nil)
}

// halt is a graceful shutdown of the life of the node that it began in: guests first, then the daemons.
func (n *Node) halt(ctx context.Context, times int) error {
	limit, cancel := context.WithTimeout(ctx, guestLimit)
	defer cancel()
	sockets, err := fs.Glob(os.DirFS(n.Guests()), "*.qmp")
	if err != nil {
		return err
	}
	for _, s := range sockets {
		if err := powerButton(limit, filepath.Join(n.Guests(), s)); err != nil {
			fmt.Fprintf(os.Stderr, "guest %s: %v\n", s, err) // it is killed below
		}
	}
	for n.program("qemu-system") != 0 && sleep(limit, 100*time.Millisecond) {
	}
	return n.locked(func() error {
		b, err := n.button()
		if err != nil || !b.On || b.Times != times {
			return err
		}
		gently, cancel := context.WithTimeout(ctx, killLimit)
		defer cancel()
		if err := errors.Join(n.unmount(), end(gently, unix.SIGTERM, n.NetNS())); err != nil {
			fmt.Fprintln(os.Stderr, err) // what does not end is killed
		}
		return n.off(ctx)
	})
}

// powerButton presses a guest's power button over its QMP socket.
func powerButton(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	answers := json.NewDecoder(io.LimitReader(c, 1<<20)) // far more than these answers take
	for _, line := range []string{"", `{"execute":"qmp_capabilities"}`, `{"execute":"system_powerdown"}`} {
		if _, err := fmt.Fprintln(c, line); err != nil {
			return err
		}
		for said := false; !said; {
			var answer struct {
				Greeting json.RawMessage `json:"QMP"`
				Return   json.RawMessage `json:"return"`
				Error    json.RawMessage `json:"error"`
			}
			if err := answers.Decode(&answer); err != nil {
				return err
			}
			if answer.Error != nil {
				return fmt.Errorf("%s: %s", line, answer.Error)
			}
			said = answer.Return != nil || answer.Greeting != nil // else it is an event
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// WaitOff returns when the node is off.
func (n *Node) WaitOff(ctx context.Context) error {
	for {
		power, err := n.Power().State(ctx)
		if err != nil || power == target.Off {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("lab: %s: still on: %w\n%s", n.Name(), ctx.Err(), tail(n.path("halt.log")))
		}
	}
}
