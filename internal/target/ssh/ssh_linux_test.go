package ssh

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"plimsoll/internal/agent"
	"plimsoll/internal/clock"
	"plimsoll/internal/needs"
	"plimsoll/internal/target"
	"plimsoll/internal/target/targettest"
)

// TestMain lets the test's own executable be the agent that it puts on hosts.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == agent.Program {
		os.Exit(agent.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// lab is some hosts: an sshd of their own each, on an address of this machine.
type lab struct {
	t       testing.TB
	dir     string
	hosts   []*server
	options target.Options
	text    string // of the inventory
}

type server struct {
	name, address string
	port          int
	folder        string
	config        string
	sshd          *exec.Cmd
	said          *bytes.Buffer
}

func key(t testing.TB, name string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(pem.EncodeToMemory(block)))
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newLab starts the hosts.
func newLab(t testing.TB, names ...string) *lab {
	t.Helper()
	needs.Sshd(t)
	l := &lab{t: t, dir: t.TempDir()}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	mine := key(t, filepath.Join(l.dir, "key"))
	write(t, filepath.Join(l.dir, "authorized"), string(ssh.MarshalAuthorizedKey(mine)))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := os.Symlink(self, filepath.Join(l.dir, "plimsoll-agent-linux-"+arch)); err != nil {
			t.Fatal(err)
		}
	}
	l.text = "same_machine: true\nhosts:\n"
	var known strings.Builder
	for i, name := range names {
		s := &server{name: name, address: fmt.Sprintf("127.0.0.%d", 2+i), folder: filepath.Join(l.dir, name)}
		if err := os.Mkdir(s.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		free, err := net.Listen("tcp", s.address+":0")
		if err != nil {
			t.Fatal(err)
		}
		s.port = free.Addr().(*net.TCPAddr).Port
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		hostKey := key(t, filepath.Join(s.folder, "..", name+".key"))
		fmt.Fprintln(&known, knownhosts.Line([]string{knownhosts.Normalize(s.at())}, hostKey))
		s.config = filepath.Join(l.dir, name+".conf")
		write(t, s.config, fmt.Sprintf("ListenAddress %s\nPort %d\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\n"+
			"StrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxStartups 100\n", s.address, s.port,
			filepath.Join(l.dir, name+".key"), filepath.Join(l.dir, "authorized")))
		l.hosts = append(l.hosts, s)
		s.start(t)
		l.text += fmt.Sprintf("  %s: {address: %s, port: %d, user: %s, folder: %s, key: %s, known_hosts: %s, role: Loader, "+
			"disks: [{file: 1MiB}, {file: 64KiB}]}\n", name, s.address, s.port, me.Username, s.folder,
			filepath.Join(l.dir, "key"), filepath.Join(l.dir, "known"))
	}
	write(t, filepath.Join(l.dir, "known"), known.String())
	write(t, filepath.Join(l.dir, "lab.yml"), l.text)
	l.options = target.Options{"inventory": filepath.Join(l.dir, "lab.yml"), "agents": l.dir, "patience": "20s"}
	return l
}

func (s *server) at() string { return fmt.Sprintf("%s:%d", s.address, s.port) }

// start starts the host's sshd, and waits until it listens.
func (s *server) start(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where it puts those who are not in yet
			t.Fatal(err)
		}
	}
	s.said = &bytes.Buffer{}
	s.sshd = exec.Command(needs.Sshd(t), "-D", "-e", "-f", s.config)
	s.sshd.Stderr = s.said
	if err := s.sshd.Start(); err != nil {
		t.Fatal(err)
	}
	sshd := s.sshd
	t.Cleanup(func() {
		_ = sshd.Process.Kill() // it may have ended
		_ = sshd.Wait()
		if t.Failed() {
			t.Logf("sshd of %s said:\n%s", s.name, s.said)
		}
	})
	for range 500 {
		if c, err := net.Dial("tcp", s.at()); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("sshd of %s does not listen", s.name)
}

func (l *lab) open(options target.Options) target.Target {
	l.t.Helper()
	p, err := Provider{}.New(target.Config{Options: options})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// alive counts the processes with a word in their command line.
func alive(word string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if data, err := os.ReadFile(line); err == nil && bytes.Contains(data, []byte(word)) &&
			!bytes.HasPrefix(data, []byte(agent.Program+"\x00")) {
			n++
		}
	}
	return n
}

// remains lists what runs leave on the hosts: folders, and processes of their agents.
func (l *lab) remains() []string {
	left, _ := filepath.Glob(filepath.Join(l.dir, "*", "plimsoll-*"))
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if data, err := os.ReadFile(line); err == nil && bytes.HasPrefix(data, []byte(agent.Program+"\x00unit\x00"+l.dir)) {
			left = append(left, string(data))
		}
	}
	return left
}

func TestConformance(t *testing.T) {
	names := []string{"db1", "db2", "web1"}
	l := newLab(t, names...)
	targettest.Run(t, func(t testing.TB) targettest.Place {
		dir := t.TempDir()
		return targettest.Place{
			New:           func() target.Target { return l.open(l.options) },
			Request:       target.Request{RunID: "one", StateDir: filepath.Join(dir, "state"), Log: t.Logf},
			OtherStateDir: filepath.Join(dir, "other"),
			Clock:         clock.Real{},
			Commands:      targettest.Shell,
			Alive:         alive,
			Machines:      names,
			Remains:       l.remains,
		}
	})
}
