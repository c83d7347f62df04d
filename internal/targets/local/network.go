//go:build linux

package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/thread"
)

// network is where the commands of a run meet: a network namespace with nothing but a loopback device in it, made for
// the first command that asks for ports. docs/decisions/0011-ports-between-sandboxes.md says why it is made this way.
// It has no name and no file: it is gone with the last of its commands and plimsoll's own descriptor of it.
type network struct {
	mu        sync.Mutex
	namespace *os.File
}

// join returns the namespace, made when it is not there yet.
func (n *network) join() (*os.File, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.namespace != nil {
		return n.namespace, nil
	}
	var made *os.File
	err := thread.Run(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("namespaces: network: %w", err)
		}
		if err = loopback(); err != nil {
			return fmt.Errorf("namespaces: loopback device: %w", err)
		}
		made, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, err
	}
	n.namespace = made
	return made, nil
}

// loopback switches the loopback device of this thread's network on, which gives it 127.0.0.0/8.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

func (n *network) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.namespace == nil {
		return nil
	}
	err := n.namespace.Close()
	n.namespace = nil
	return err
}

// mostAddresses is how many machines of a run can have one: those of 127.1.0.0 to 127.255.255.255.
const mostAddresses = 255 << 16

// addressOf is the address of a run's n-th machine in the run's own network, where all of 127.0.0.0/8 is reached
// through the loopback device: each machine has one of its own, and none has the usual 127.0.0.1.
func addressOf(n int) string { return fmt.Sprintf("127.%d.%d.%d", 1+n>>16, n>>8&0xff, n&0xff) }

// Address implements target.Networked.
func (h *host) Address(ctx context.Context) (string, error) {
	if err := h.Accessible(ctx); err != nil {
		return "", fmt.Errorf("address: %w", err)
	}
	if why := h.c.wall.noNetwork(); why != "" {
		return "", fmt.Errorf("address: vm %q: %s", h.b.name, why)
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if h.b.number == 0 {
		if h.c.numbered == mostAddresses-1 {
			return "", fmt.Errorf("address: vm %q: no address is left: %d machines have one", h.b.name, h.c.numbered)
		}
		h.c.numbered++
		h.b.number = h.c.numbered
	}
	return addressOf(h.b.number), nil
}

// ports are the TCP ports that a command may listen on and connect to, on the network that its run has.
type ports struct {
	listens, dials []int
	network        *os.File // nil: one of its own, where nothing is
	outside        bool     // this machine's instead, for servers that the operator named
}

// anyPort stands for a port that the system picks.
const anyPort = 0

// portsOf checks what a command asks for.
func (c *cluster) portsOf(r target.Command) (ports, error) {
	p := ports{listens: r.Listens, dials: r.Dials}
	if r.Loopback {
		p.listens = append(slices.Clip(p.listens), anyPort)
	}
	for _, server := range r.Outside {
		if !c.commands {
			return p, fmt.Errorf("command %q: it connects to %s, which is outside of the cluster: allow it with "+
				"--allow-host-commands", r.Label, server)
		}
		if strings.HasPrefix(server, "/") {
			continue // a socket, see grants
		}
		_, port, err := net.SplitHostPort(server)
		if err != nil {
			return p, fmt.Errorf("command %q: %w", r.Label, err)
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return p, fmt.Errorf("command %q: %s: port %q: must be from 1 to 65535", r.Label, server, port)
		}
		if len(r.Listens)+len(r.Dials) > 0 {
			return p, fmt.Errorf("command %q: it connects to %s and to machines of the cluster: one of them only",
				r.Label, server)
		}
		p.dials, p.outside = append(slices.Clip(p.dials), n), true
	}
	if p.outside {
		return p, nil
	}
	if len(p.listens)+len(p.dials) == 0 {
		return p, nil
	}
	for _, port := range append(append([]int(nil), r.Listens...), p.dials...) {
		if port < 1 || port > 65535 {
			return p, fmt.Errorf("command %q: port %d: must be from 1 to 65535", r.Label, port)
		}
	}
	if why := c.wall.noNetwork(); why != "" {
		return p, fmt.Errorf("command %q: ports: %s", r.Label, why)
	}
	var err error
	p.network, err = c.network.join()
	return p, err
}

// noNetwork says why commands cannot be given a network of their run's own; "" when they can.
func (w wall) noNetwork() string {
	if w.namespaces {
		return ""
	}
	return "machines have no network to meet on: namespaces: " + w.noNamespaces
}

// grantPorts lets the ports through that a command was given, as far as the kernel knows to refuse the others.
func grantPorts(ruleset int, rights unix.LandlockRulesetAttr, ports ports) error {
	for _, r := range []struct {
		right uint64
		list  []int
	}{{unix.LANDLOCK_ACCESS_NET_BIND_TCP, ports.listens}, {unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, ports.dials}} {
		if rights.Handled_access_net&r.right == 0 {
			continue
		}
		for _, port := range r.list {
			const rulePort = 2                       // LANDLOCK_RULE_NET_PORT
			rule := [2]uint64{r.right, uint64(port)} // struct landlock_net_port_attr
			_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), rulePort,
				uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
			if errno != 0 {
				return fmt.Errorf("landlock: port %d: %w", port, errno)
			}
		}
	}
	return nil
}
