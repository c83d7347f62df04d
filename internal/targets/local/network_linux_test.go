package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/needs"
)

// peerDeeds are what commands with ports do. They are deeds of the wall's tests as well.
var peerDeeds = map[string]func(string) error{
	// serve answers every connection with its address until it is ended.
	"serve": func(address string) error {
		var plain net.ListenConfig
		plain.SetMultipathTCP(false) // of which Landlock knows nothing
		l, err := plain.Listen(context.Background(), "tcp", address)
		if err != nil {
			return err
		}
		fmt.Println("listening")
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			fmt.Fprintln(c, "from", address)
			c.Close()
		}
	},
	"ask":      func(address string) error { return ask("tcp", address) },
	"ask tcp":  func(address string) error { return ask("tcp", address) },
	"ask unix": func(address string) error { return ask("unix", address) },
	"interfaces": func(string) error {
		list, err := net.Interfaces()
		for _, i := range list {
			fmt.Println(i.Name)
		}
		return err
	},
}

func ask(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	fmt.Print(string(text))
	return err
}

// peers are a server's machine and a client's, on different nodes, with their addresses.
func peers(t *testing.T, c *cluster, w wall) (server, client *host, at, from string) {
	t.Helper()
	address := func(name string) (*host, string) {
		h := behind(t, c, name, w)
		a, err := h.Address(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h, a
	}
	server, at = address("server of " + t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	client, from = address("client of " + t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	return server, client, at, from
}

// does runs a deed with ports and returns its exit code and words.
func does(t *testing.T, h *host, deed, object string, listens, dials []int) (int, string) {
	t.Helper()
	p, err := h.Start(t.Context(), target.Command{Argv: []string{program(h.c), object}, Listens: listens, Dials: dials,
		Env: []string{deedVariable + "=" + deed}, Stdout: "o", Stderr: "o"})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := target.ReadFile(t.Context(), h, "o", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return exit.Code, string(out)
}

// serving starts the deed as a service and waits for its first word.
func serving(t *testing.T, h *host, address string, port int) {
	t.Helper()
	s := target.Service{
		Name: "answers " + address,
		Command: target.Command{Argv: []string{program(h.c), net.JoinHostPort(address, strconv.Itoa(port))},
			Env: []string{deedVariable + "=serve"}, Stdout: "answers", Stderr: "answers", Listens: []int{port}},
	}
	if err := h.StartService(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for {
		state, err := h.ServiceState(t.Context(), s.Name)
		if err != nil || !state.Running {
			t.Fatalf("%+v, %v%s", state, err, target.LastWords(context.Background(), h, s.Command))
		}
		if text, _ := target.ReadFile(t.Context(), h, "answers", 0, 100); strings.Contains(string(text), "listening") {
			return
		}
	}
}

// TestPortsBetweenSandboxes: a client reaches the server's declared port, and nothing else is reachable that was not
// before, neither by it nor by its server, nor they by anybody.
func TestPortsBetweenSandboxes(t *testing.T) {
	c, _ := sandboxes(t, target.Options{}, 1<<20)
	needs.That(t, c.wall.noNetwork() == "", "namespaces", c.wall.noNetwork())
	enterable(t, c)
	const port, other = 6379, 6380
	for name, w := range walls(c.wall) {
		if w.noNetwork() != "" || strings.Contains(name, "without namespaces") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			server, client, at, from := peers(t, c, w)
			defer func() { // its ports are free for the next
				if err := c.PowerOff(context.Background(), []string{server.Name()}); err != nil {
					t.Error(err)
				}
			}()
			if at == from || !strings.HasPrefix(at, "127.") || at == "127.0.0.1" {
				t.Errorf("addresses %s and %s", at, from)
			}
			serving(t, server, at, port)
			serving(t, server, "127.0.0.1", other) // of the same run, and declared by nobody who asks
			declared, undeclared := net.JoinHostPort(at, strconv.Itoa(port)), net.JoinHostPort("127.0.0.1",
				strconv.Itoa(other))
			if code, out := does(t, client, "ask", declared, nil, []int{port}); code != 0 ||
				out != "from "+declared+"\n" {
				t.Errorf("the client: exit code %d, %q", code, out)
			}
			if code, out := does(t, server, "ask", declared, nil, []int{port}); code != 0 {
				t.Errorf("on the same machine: exit code %d, %q", code, out)
			}
			if code, out := does(t, client, "ask", declared, nil, nil); code != 7 {
				t.Errorf("a command without ports reaches it: exit code %d, %q", code, out)
			}
			ports := w.landlock.Handled_access_net != 0
			if code, out := does(t, client, "ask", undeclared, nil, []int{port}); code != 7 && ports {
				t.Errorf("a port that was not declared: exit code %d, %q", code, out)
			}
			if code, out := does(t, client, "listen", from+":"+strconv.Itoa(other), nil, []int{port}); code != 7 &&
				ports {
				t.Errorf("it may listen: exit code %d, %q", code, out)
			}
			if _, out := does(t, client, "interfaces", "", nil, []int{port}); out != "lo\n" {
				t.Errorf("its network has %q", out)
			}
			if conn, err := net.Dial("tcp", declared); err == nil {
				conn.Close()
				t.Error("the server is reached from this machine's own network")
			}
			for deed := range outsideDeeds {
				if deed == "become root" && w.id == 0 || deed == "listen" && !ports {
					continue
				}
				t.Run(deed, func(t *testing.T) {
					outside := newWorld(t, c, client)
					defer outside.end()
					dials := []int{port}
					if deed == "connect" { // this machine's own loopback, with its very port declared
						dials = append(dials, outside.listener.Addr().(*net.TCPAddr).Port)
					}
					code, said := does(t, client, deed, outside.object(deed), []int{port}, dials)
					if deed == "datagram" { // may be sent, on the run's network, where nobody takes it
						_ = outside.datagrams.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
						if n, _, err := outside.datagrams.ReadFrom(make([]byte, 10)); err == nil {
							t.Errorf("%d bytes arrived", n)
						}
						return
					}
					if code != 7 {
						t.Errorf("could be done: exit code %d, %s", code, said)
					}
				})
			}
		})
	}
}

// TestPortsAreCheckedAndRefused says why ports cannot be had.
func TestPortsAreCheckedAndRefused(t *testing.T) {
	c, h := sandboxes(t, target.Options{}, 1<<20)
	start := func(listens ...int) error {
		p, err := h.Start(t.Context(), target.Command{Argv: []string{"true"}, Label: "db", Listens: listens})
		if err == nil {
			_, err = p.Wait(t.Context())
		}
		return err
	}
	for _, port := range []int{0, -1, 65536} {
		if err := start(port); err == nil || !strings.Contains(err.Error(), strconv.Itoa(port)) ||
			!strings.Contains(err.Error(), `"db"`) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	c.wall.namespaces, c.wall.noNamespaces = false, "only root can"
	for what, err := range map[string]error{"ports": start(80), "address": second(h.Address(t.Context()))} {
		if err == nil || !strings.Contains(err.Error(), "only root can") {
			t.Errorf("%s without namespaces: %v", what, err)
		}
	}
	if os.Geteuid() == 0 && c.network.namespace != nil {
		t.Error("a network was made for ports that were refused")
	}
}

func second(_ string, err error) error { return err }

// TestAddressOf: machines have addresses of their own, up to the last one.
func TestAddressOf(t *testing.T) {
	var got []string
	for _, n := range []int{1, 255, 256, 65535, 65536, mostAddresses - 1} {
		got = append(got, addressOf(n))
	}
	want := []string{"127.1.0.1", "127.1.0.255", "127.1.1.0", "127.1.255.255", "127.2.0.0", "127.255.255.255"}
	if !slices.Equal(got, want) {
		t.Errorf("addresses %q, want %q", got, want)
	}
}

// A command reaches a server outside that the operator named, by its port or its socket, only where commands of this
// machine are allowed; without one it reaches neither. Its user has a name.
func TestOutside(t *testing.T) {
	c, _ := sandboxes(t, target.Options{}, 1<<20)
	folder, err := os.MkdirTemp("", "outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := folder + "/s"
	addresses := map[string]string{"tcp": "127.0.0.1:0", "unix": socket}
	for network, address := range addresses {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[network] = l.Addr().String()
		go greet(l)
	}
	if err := os.Chmod(socket, 0o777); err != nil {
		t.Fatal(err)
	}
	enterable(t, c)
	h := behind(t, c, "client", c.wall)
	ask := func(network string, outside ...string) string {
		t.Helper()
		p, err := h.Start(t.Context(), target.Command{Argv: []string{program(c), addresses[network]}, Outside: outside,
			Env: []string{deedVariable + "=ask " + network}, Stdout: "o", Stderr: "o"})
		if err != nil {
			return err.Error()
		}
		if _, err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		out, err := target.ReadFile(t.Context(), h, "o", 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for network, outside := range map[string]string{"tcp": addresses["tcp"], "unix": folder} {
		c.commands = false
		if got := ask(network, outside); !strings.Contains(got, "--allow-host-commands") {
			t.Errorf("%s: not allowed: %q", network, got)
		}
		c.commands = true
		if got := ask(network, outside); got != "from outside" {
			t.Errorf("%s: %q", network, got)
		}
		if got := ask(network); got == "from outside" && (network == "tcp" || c.wall.namespaces) {
			t.Errorf("%s: reached without being named", network)
		}
	}
	if c.wall.namespaces && c.wall.id != 0 {
		p, err := h.Start(t.Context(), target.Command{Argv: []string{"id", "-un"}, Stdout: "o", Stderr: "o"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, err := target.ReadFile(t.Context(), h, "o", 0, 100); err != nil || string(out) != "plimsoll\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// TestLoopback has a command listen on loopback: on a port that the system picks where it said so, on one of its choice
// never. What it may not do without saying so, it may not do.
func TestLoopback(t *testing.T) {
	c, _ := sandboxes(t, target.Options{}, 1<<20)
	needs.That(t, c.wall.landlock.Handled_access_net&tcpRights == tcpRights, "Landlock of TCP", "Linux 6.7")
	enterable(t, c)
	c.commands = true
	h := behind(t, c, "tool", c.wall)
	listens := func(address string, loopback bool) bool {
		t.Helper()
		p, err := h.Start(t.Context(), target.Command{Argv: []string{program(c), address}, Loopback: loopback,
			Outside: []string{"127.0.0.1:1"}, Env: []string{deedVariable + "=serve"}, Stdout: "o", Stderr: "o"})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Wait(context.WithoutCancel(t.Context()))
		defer p.Kill()
		for {
			out, err := target.ReadFile(t.Context(), h, "o", 0, 1<<20)
			switch {
			case err == nil && strings.Contains(string(out), "listening"):
				return true
			case err == nil && strings.Contains(string(out), "permission denied"):
				return false
			case t.Context().Err() != nil:
				t.Fatalf("%s: %q, %v", address, out, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, one := range []struct {
		address  string
		loopback bool
		want     bool
	}{{"127.0.0.1:0", true, true}, {"127.0.0.1:0", false, false}, {"127.0.0.1:45454", true, false}} {
		if got := listens(one.address, one.loopback); got != one.want {
			t.Errorf("%s, declared %v: listens %v, want %v", one.address, one.loopback, got, one.want)
		}
	}
}

// greet says the same to all who connect, until its listener is closed.
func greet(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprint(conn, "from outside")
		conn.Close()
	}
}

// TestNamesOutside has a command reach a server outside by a name that only a name server knows, in a network and with
// a resolv.conf of this test's own. Without one 127.0.0.1 would be asked.
func TestNamesOutside(t *testing.T) {
	needs.That(t, os.Geteuid() == 0, "root", "root, for a network of its own")
	const inside = "PLIMSOLL_TEST_NAMES"
	if os.Getenv(inside) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNamesOutside$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
		if out, err := again.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "resolv.conf")
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.WriteFile(file, []byte("nameserver 127.0.0.53\n"), 0o644),
		unix.Mount(file, "/etc/resolv.conf", "", unix.MS_BIND, ""),
		loopback(),
	)
	if err != nil {
		t.Fatal(err)
	}
	names, err := net.ListenPacket("udp", "127.0.0.53:53")
	if err != nil {
		t.Fatal(err)
	}
	defer names.Close()
	go answerNames(names)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go greet(l)
	server := fmt.Sprintf("database.example:%d", l.Addr().(*net.TCPAddr).Port)
	c, _ := sandboxes(t, target.Options{}, 1<<20)
	enterable(t, c)
	h := behind(t, c, "client", c.wall)
	c.commands = true
	p, err := h.Start(t.Context(), target.Command{Argv: []string{program(c), server}, Outside: []string{server},
		Env: []string{deedVariable + "=ask tcp"}, Stdout: "o", Stderr: "o"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := target.ReadFile(t.Context(), h, "o", 0, 1<<20); err != nil || string(out) != "from outside" {
		t.Errorf("%q, %v", out, err)
	}
}

// answerNames is a name server where every name has the address 127.0.0.1, until its socket is closed.
func answerNames(socket net.PacketConn) {
	packet := make([]byte, 512)
	for {
		n, from, err := socket.ReadFrom(packet)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(packet[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		if reply, err := m.Pack(); err == nil {
			_, _ = socket.WriteTo(reply, from)
		}
	}
}
