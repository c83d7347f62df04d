//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/thread"
)

// namespaces is where "ip netns" keeps names.
const namespaces = "/run/netns"

// makeNetwork makes the namespaces and the wires between them. Nothing of it is in the machine's own namespace.
func (l *Lab) makeNetwork(ctx context.Context) error {
	names := []string{l.hub()}
	for _, n := range l.Nodes() {
		names = append(names, n.namespace())
	}
	for _, name := range names {
		if err := run(ctx, "", "ip", "netns", "add", name); err != nil {
			return err
		}
	}
	// Waiting and multicast of bridges are off: there is no loop to find, and guests are to be reached at once.
	const bridge = "link add %[1]s type bridge forward_delay 0 stp_state 0 mcast_snooping 0\nlink set %[1]s up\n"
	hub := "link set lo up\n" + fmt.Sprintf(bridge, "lab0") + "addr add 10.77.0.1/24 dev lab0\n"
	for _, n := range l.Nodes() {
		hub += fmt.Sprintf("addr add %s/24 dev lab0\nlink add %s type veth peer name eth0 netns %s\nlink set %[2]s master lab0\n",
			n.bmcAddress(), n.Name(), n.namespace())
	}
	if err := run(ctx, hub, "ip", "-n", l.hub(), "-batch", "-"); err != nil {
		return err
	}
	for _, n := range l.Nodes() {
		node := "link set lo up\n" + fmt.Sprintf(bridge, "br0") + "link set eth0 master br0\nlink set eth0 up\n" +
			"addr add " + n.Address().String() + "/24 dev br0\n"
		if err := run(ctx, node, "ip", "-n", n.namespace(), "-batch", "-"); err != nil {
			return err
		}
	}
	return nil
}

// link plugs the node's wire in or out, at the switch.
func (n *Node) link(ctx context.Context, state string) error {
	return run(ctx, "", "ip", "-n", n.lab.hub(), "link", "set", n.Name(), state)
}

// run runs a program in the machine's own namespaces; an error says what it said.
func run(ctx context.Context, input, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// Enter runs do on a thread in the lab's network, at its switch. Sockets that do opens and processes that it starts are
// there; goroutines that it starts are not.
func (l *Lab) Enter(do func() error) error { return within(filepath.Join(namespaces, l.hub()), do) }

func within(namespace string, do func() error) error {
	if !isNamespace(namespace) {
		return fmt.Errorf("lab: %s is not there: the lab is down, or this machine was started anew: remove what is "+
			"left with plimsoll lab down", namespace)
	}
	return thread.InNetwork(namespace, do)
}

// Dial connects to an address of the lab's network, which must be an IP address with a port.
func (l *Lab) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("lab: dial %q: must be an address of the lab with a port, as 10.77.0.100:22: %w",
			address, err)
	}
	err = l.Enter(func() (err error) {
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

var tapNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,14}$`)

// Tap makes a tap device for a guest in the node's namespace, on its bridge, and switches it on; one that is there
// already is switched on again. It goes with the lab, or by Untap.
func (n *Node) Tap(ctx context.Context, name string) error {
	if !tapNames.MatchString(name) || name == "br0" || name == "eth0" || name == "lo" {
		return fmt.Errorf("lab: tap %q: must be 1 to 15 letters, digits, - and _, a letter first, and not br0 or eth0",
			name)
	}
	script := fmt.Sprintf("link set %[1]s master br0\nlink set %[1]s up\n", name)
	if _, err := os.Stat(n.NetNS()); err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name(), err)
	}
	unlock, err := lock(n.path("lock"), true)
	if err != nil {
		return fmt.Errorf("lab: %s: %w", n.Name(), err)
	}
	defer unlock()
	if run(ctx, "", "ip", "-n", n.namespace(), "link", "show", name) != nil {
		script = "tuntap add " + name + " mode tap\n" + script
	}
	if err := run(ctx, script, "ip", "-n", n.namespace(), "-batch", "-"); err != nil {
		return fmt.Errorf("lab: %s: tap %s: %w", n.Name(), name, err)
	}
	return nil
}

// Forget has the lab's network forget which card an address was at: a guest that is made anew has the address of one
// that is gone, but a card of its own.
func (l *Lab) Forget(ctx context.Context, address netip.Addr) error {
	return run(ctx, "", "ip", "-n", l.hub(), "neigh", "flush", "to", address.String())
}

// Untap removes a tap device. One that is not there is fine.
func (n *Node) Untap(ctx context.Context, name string) error {
	if !tapNames.MatchString(name) || name == "br0" || name == "eth0" || name == "lo" {
		return fmt.Errorf("lab: tap %q: not a tap of the lab", name)
	}
	err := run(ctx, "", "ip", "-n", n.namespace(), "link", "del", name)
	if err != nil && run(ctx, "", "ip", "-n", n.namespace(), "link", "show", name) == nil {
		return fmt.Errorf("lab: %s: %w", n.Name(), err)
	}
	return nil
}

// Guests have addresses from the first to the last.
const firstGuest, lastGuest = 100, 250

// AddressFor gives a guest an address of the lab's network (/24), the same as before when it has one.
func (l *Lab) AddressFor(guest string) (a netip.Addr, err error) {
	err = l.addresses(func(owners map[string]byte) error {
		last, ok := owners[guest]
		if !ok {
			taken := map[byte]bool{}
			for _, b := range owners {
				taken[b] = true
			}
			for last = firstGuest; taken[last]; last++ {
				if last == lastGuest {
					return fmt.Errorf("guest %q: all %d addresses are taken", guest, len(owners))
				}
			}
			owners[guest] = last
		}
		a = netip.AddrFrom4([4]byte{10, 77, 0, last})
		return nil
	})
	return a, err
}

// Release takes a guest's address back. One that has none is fine.
func (l *Lab) Release(guest string) error {
	return l.addresses(func(owners map[string]byte) error { delete(owners, guest); return nil })
}

func (l *Lab) addresses(change func(map[string]byte) error) error {
	unlock, err := lock(l.path("addresses.lock"), true)
	if err != nil {
		return fmt.Errorf("lab: addresses: %w", err)
	}
	defer unlock()
	owners := map[string]byte{}
	data, err := regular.Read(l.path("addresses.json"), regular.NoLinks, regular.Document)
	if err == nil {
		err = json.Unmarshal(data, &owners)
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = change(owners)
	}
	if err == nil {
		data, err = json.Marshal(owners)
	}
	if err == nil {
		err = writeFile(l.path("addresses.json"), data)
	}
	if err != nil {
		return fmt.Errorf("lab: addresses: %w", err)
	}
	return nil
}

// isNamespace says whether a name of a namespace has one behind it: the file is there before, and after.
func isNamespace(path string) bool {
	var s unix.Statfs_t
	const nsfs = 0x6e736673
	return unix.Statfs(path, &s) == nil && s.Type == nsfs
}

// inside calls do with a descriptor for each process of the namespaces, of which there are how many. A descriptor was
// opened before the kernel was asked where its process is, so a later process with the same number is never meant.
func inside(paths []string, do func(pid, fd int)) (int, error) {
	var ours []unix.Stat_t
	for _, path := range paths {
		var s unix.Stat_t
		if isNamespace(path) && unix.Stat(path, &s) == nil {
			ours = append(ours, s)
		}
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return 0, err
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return 0, err
	}
	found := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // gone
		}
		var s unix.Stat_t
		if unix.Stat("/proc/"+name+"/ns/net", &s) == nil {
			for _, o := range ours {
				if s.Dev == o.Dev && s.Ino == o.Ino {
					found++
					do(pid, fd)
				}
			}
		}
		unix.Close(fd)
	}
	return found, nil
}

// end signals the processes of namespaces until there are none, for as long as the context lets it.
func end(ctx context.Context, signal unix.Signal, paths ...string) error {
	var refused error
	for empty := 0; empty < 2; { // a process may start another one where the list was read already
		found, err := inside(paths, func(pid, fd int) {
			if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				refused = fmt.Errorf("process %d: %w", pid, err)
			}
		})
		if err != nil {
			return err
		}
		if empty++; found > 0 {
			empty = 0
		}
		if ctx.Err() != nil && found > 0 {
			return errors.Join(fmt.Errorf("%d processes in %s do not end", found, strings.Join(paths, ", ")), refused)
		}
		if found > 0 {
			time.Sleep(10 * time.Millisecond) // the kernel's pace
		}
	}
	return nil
}

// program finds a process of the node by the name of its program, 0 when there is none.
func (n *Node) program(prefix string) (found int) {
	_, _ = inside([]string{n.NetNS()}, func(pid, _ int) {
		comm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if err == nil && strings.HasPrefix(string(comm), prefix) {
			found = pid
		}
	})
	return found
}
