package remote_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/internal/testkit/sshtest"
)

// A server that hangs up before the login, as one does that has too many at a time, is asked again; one that always
// does is told of with what to do.
func TestServerHangsUp(t *testing.T) {
	l := sshtest.New(t, "one")
	for _, c := range []struct {
		times int
		fails string
	}{{2, ""}, {1 << 20, "MaxStartups"}} {
		door, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for n := 0; ; n++ {
				near, err := door.Accept()
				if err != nil {
					return
				}
				if n < c.times {
					_ = near.Close()
					continue
				}
				far, err := net.Dial("tcp", l.Hosts[0].At())
				if err != nil {
					t.Error(err)
					_ = near.Close()
					continue
				}
				for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
					group.Go(func() {
						_, _ = io.Copy(pair[0], pair[1]) // until either side is gone
						_, _ = pair[0].Close(), pair[1].Close()
					})
				}
			}
		})
		known, err := os.ReadFile(l.Dir + "/known_hosts")
		if err != nil {
			t.Fatal(err)
		}
		_, key, _ := strings.Cut(string(known), " ")
		at := door.Addr().(*net.TCPAddr)
		sshtest.Write(t, l.Dir+"/known", "["+at.IP.String()+"]:"+strings.TrimPrefix(at.String(), "127.0.0.1:")+" "+key)
		m := remote.Machine{Name: "one", Folder: l.Hosts[0].Folder + "/none", Hop: remote.Hop{Address: "127.0.0.1",
			Port: at.Port, User: me(t), Keys: []string{l.Dir + "/key"}, KnownHosts: []string{l.Dir + "/known"}}}
		err = m.Remove(t.Context(), "tag") // it is the shortest that logs in
		if (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("it hangs up %d times: %v", c.times, err)
		}
		if err := door.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	}
}

// A machine whose key an authority signed is known by that one; a certificate of another authority, or for another
// machine, is not taken.
func TestCertificates(t *testing.T) {
	l := sshtest.New(t, "one")
	s, known := l.Hosts[0], l.Dir+"/known_hosts"
	plain, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	m := remote.Machine{Name: "one", Folder: s.Folder + "/none", Hop: remote.Hop{Address: s.Address, Port: s.Port,
		User: me(t), Keys: []string{l.Dir + "/key"}, KnownHosts: []string{known}}}
	line := func(key ssh.PublicKey) string {
		return "# of the house\n@cert-authority " + knownhosts.Line([]string{knownhosts.Normalize(s.At())}, key) + "\n"
	}
	other := sshtest.Key(t, l.Dir+"/other")
	for _, c := range []struct {
		name, known string
		by          ssh.PublicKey
		fails       string
	}{
		{"another.example", "", nil, "its certificate, for another.example and signed by"},
		{s.Address, "", nil, ""},
		{s.Address, string(plain), nil, ""},
		{s.Address, "", other, "signs certificates of this machine"},
	} {
		authority := s.Certify(t, c.name)
		if c.by != nil {
			authority = c.by
		}
		sshtest.Write(t, known, line(authority)+c.known)
		err := m.Remove(t.Context(), "tag") // it is the shortest that logs in
		if (c.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("a certificate for %s: %v, want %q", c.name, err, c.fails)
		}
	}
}

// What is wrong with the keys is said, also where a running ssh-agent has others; one that hangs is not waited for.
func TestKeys(t *testing.T) {
	l := sshtest.New(t, "one")
	m := remote.Machine{Name: "one", Folder: l.Hosts[0].Folder + "/none", Hop: remote.Hop{Address: l.Hosts[0].Address,
		Port: l.Hosts[0].Port, User: me(t), Keys: []string{l.Dir + "/no-such-key"},
		KnownHosts: []string{l.Dir + "/known_hosts"}}}
	right := m
	right.Keys = []string{l.Dir + "/key"}
	serve := func(work func(net.Conn)) {
		door, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			for c, err := door.Accept(); err == nil; c, err = door.Accept() {
				group.Go(func() { work(c); _ = c.Close() })
			}
		})
		t.Cleanup(func() { _ = door.Close(); group.Wait() })
		t.Setenv("SSH_AUTH_SOCK", door.Addr().String())
	}
	ring := agent.NewKeyring()
	add := func() {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			err = ring.Add(agent.AddedKey{PrivateKey: key})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add()
	serve(func(c net.Conn) { _ = agent.ServeAgent(ring, c) })
	for _, words := range [][]string{{"is not let in by any of 1 keys", "no-such-key: no such file"},
		{"it hung up before the last of 9 keys", "MaxAuthTries", "no-such-key: no such file"}} {
		err := m.Remove(t.Context(), "tag")
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v: want %q", err, w)
			}
		}
		for range 8 {
			add()
		}
	}
	serve(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	began := time.Now()
	if err := right.Remove(t.Context(), "tag"); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}
