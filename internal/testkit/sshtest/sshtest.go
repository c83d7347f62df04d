//go:build linux

// Package sshtest starts hosts for tests of what goes over SSH: a real OpenSSH server for each, on a loopback address
// of its own, with keys of its own, an inventory that names them, and the agent built from this source.
//
// It sits beside package target/ssh, and is imported by tests only. It is no wall: the hosts are this machine.
package sshtest

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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/procfs"
	"plimsoll/internal/kit/thread"
	"plimsoll/internal/testkit/needs"
)

// Lab is some hosts.
type Lab struct {
	Dir       string // holds everything: the private key `key`, `known_hosts`, the folder of each host by its name
	Inventory string // the file
	Text      string // what is in it
	Hosts     []*Server
	Space     string // the network namespace from which hosts in networks of their own are reached; "" is this one
}

// Server is a host.
type Server struct {
	Name, Address string
	Port          int
	Folder        string // in which runs have theirs; programs in the folder of that name and ".bin" come first
	sshd          *exec.Cmd
	config        string
	ends          []func() // of the servers that it has had
	space, from   string   // its network namespace, and the one it is reached from; "" is this one
}

// Key makes a key pair, the private key in a file of that name.
func Key(t testing.TB, name string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	Write(t, name, string(pem.EncodeToMemory(block)))
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Write writes a file that only its owner reads.
func Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// New starts hosts of these names, all of role Loader, each with a file of 4 MiB and one of 64 KiB for data disks. They
// are stopped with the test.
func New(t testing.TB, names ...string) *Lab {
	t.Helper()
	return begin(t, "", 0, names)
}

// NewApart is New with a network namespace for each host and one for who works with them, Lab.Space: with addresses of
// their own that are nowhere else, and with processes that end together.
func NewApart(t testing.TB, names ...string) *Lab {
	t.Helper()
	needs.Lab(t, false)
	space := fmt.Sprintf("plimsoll-t%d", os.Getpid())
	do := func(words ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "ip", words...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(words, " "), err, out)
		}
	}
	make := func(name string) {
		do("netns", "add", name)
		t.Cleanup(func() {
			if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
				t.Errorf("ip netns del %s: %v: %s", name, err, out)
			}
		})
		do("-n", name, "link", "set", "lo", "up")
	}
	make(space)
	do("-n", space, "link", "add", "br0", "type", "bridge")
	do("-n", space, "address", "add", "192.0.2.1/24", "dev", "br0")
	do("-n", space, "link", "set", "br0", "up")
	for i := range names {
		own, port := fmt.Sprint(space, "-", i), fmt.Sprint("host", i)
		make(own)
		do("-n", space, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", own)
		do("-n", space, "link", "set", port, "master", "br0", "up")
		do("-n", own, "address", "add", fmt.Sprintf("192.0.2.%d/24", 2+i), "dev", "eth0")
		do("-n", own, "link", "set", "eth0", "up")
	}
	return begin(t, space, 0, names)
}

// NewAhead is New with hosts whose agents take their clocks to be ahead by so much.
func NewAhead(t testing.TB, ahead time.Duration, names ...string) *Lab {
	t.Helper()
	return begin(t, "", ahead, names)
}

func begin(t testing.TB, space string, ahead time.Duration, names []string) *Lab {
	t.Helper()
	needs.Sshd(t)
	l := &Lab{Dir: t.TempDir(), Space: space}
	needs.Outlives(t, l.Dir)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	mine := Key(t, filepath.Join(l.Dir, "key"))
	Write(t, filepath.Join(l.Dir, "authorized"), string(ssh.MarshalAuthorizedKey(mine)))
	agent := needs.Program(t, "./cmd/plimsoll-agent",
		"-X plimsoll/internal/targets/ssh/agent.clockAhead="+ahead.String())
	needs.Copy(t, agent, filepath.Join(l.Dir, "plimsoll-agent"))
	l.Text = "same_machine: true\nhosts:\n"
	var known strings.Builder
	for i, name := range names {
		s := &Server{Name: name, Address: fmt.Sprintf("127.0.0.%d", 2+i), Folder: filepath.Join(l.Dir, name)}
		if err := os.Mkdir(s.Folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if s.Port = 22; space != "" {
			s.Address, s.space, s.from = fmt.Sprintf("192.0.2.%d", 2+i), fmt.Sprint(space, "-", i), space
		} else {
			s.Port = freePort(t, s.Address)
		}
		hostKey := Key(t, filepath.Join(l.Dir, name+".key"))
		fmt.Fprintln(&known, knownhosts.Line([]string{knownhosts.Normalize(s.At())}, hostKey))
		// A home of its own: what this user's .bashrc does is not to be waited for, nor to be cut in the middle of it.
		home := s.Folder + ".home"
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		s.config = filepath.Join(l.Dir, name+".conf")
		Write(t, s.config, fmt.Sprintf("ListenAddress %s\nPort %d\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\n"+
			"StrictModes no\nUsePAM no\nPasswordAuthentication no\nSetEnv PATH=%s.bin:/usr/bin:/bin HOME=%s\n",
			s.Address, s.Port, filepath.Join(l.Dir, name+".key"), filepath.Join(l.Dir, "authorized"), s.Folder, home))
		l.Hosts = append(l.Hosts, s)
		t.Cleanup(func() {
			for _, end := range s.ends {
				end()
			}
		})
		s.Start(t)
		l.Text += fmt.Sprintf("  %s: {address: %s, port: %d, user: %s, folder: %s, key: %s, known_hosts: %s, role: Loader, "+
			"disks: [{file: 4MiB}, {file: 64KiB}]}\n", name, s.Address, s.Port, me.Username, s.Folder,
			filepath.Join(l.Dir, "key"), filepath.Join(l.Dir, "known_hosts"))
	}
	Write(t, filepath.Join(l.Dir, "known_hosts"), known.String())
	l.Inventory = filepath.Join(l.Dir, "lab.yml")
	Write(t, l.Inventory, l.Text)
	return l
}

// given are the ports that hosts have, by their addresses: tests beside each other get no port twice.
var given sync.Map

func freePort(t testing.TB, address string) int {
	t.Helper()
	for {
		free, err := net.Listen("tcp", address+":0")
		if err != nil {
			t.Fatal(err)
		}
		if err := free.Close(); err != nil {
			t.Fatal(err)
		}
		if _, taken := given.LoadOrStore(free.Addr().String(), true); !taken {
			return free.Addr().(*net.TCPAddr).Port
		}
	}
}

// Certify starts the host's server anew with a certificate of its key for the name, and returns the key of the
// authority that signed it.
func (s *Server) Certify(t testing.TB, name string) ssh.PublicKey {
	t.Helper()
	stem := filepath.Join(filepath.Dir(s.config), s.Name)
	authority := Key(t, stem+".ca")
	for _, end := range s.ends {
		end()
	}
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-s", stem+".ca", "-I", s.Name, "-h", "-n", name,
		stem+".key").CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	config, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, s.config, string(config)+"HostCertificate "+stem+".key-cert.pub\n")
	s.Start(t)
	return authority
}

// At is where the host listens.
func (s *Server) At() string { return fmt.Sprintf("%s:%d", s.Address, s.Port) }

// Start starts the host's server, and returns when it listens.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where it puts those who are not in yet
			t.Fatal(err)
		}
	}
	said := &bytes.Buffer{}
	words := []string{needs.Sshd(t), "-D", "-e", "-f", s.config}
	if s.space != "" {
		words = append([]string{"ip", "netns", "exec", s.space}, words...)
	}
	sshd := exec.Command(words[0], words[1:]...)
	sshd.Stderr, s.sshd = said, sshd
	ended, err := needs.Start(sshd)
	if err != nil {
		t.Fatal(err)
	}
	s.ends = append(s.ends, func() {
		_ = sshd.Process.Kill() // it may have ended
		<-ended
		if t.Failed() {
			t.Logf("sshd of %s said:\n%s", s.Name, said)
		}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		dial := func() error {
			c, err := net.Dial("tcp", s.At())
			if err == nil {
				_ = c.Close()
			}
			return err
		}
		err := error(nil)
		if s.from != "" {
			err = thread.InNetwork("/run/netns/"+s.from, dial)
		} else {
			err = dial()
		}
		if err == nil {
			return
		}
	}
	t.Fatalf("sshd of %s does not listen", s.Name)
}

// Crash ends all that runs on a host in a network of its own, as the loss of its power does.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	for range 100 {
		out, err := exec.Command("ip", "netns", "pids", s.space).Output()
		if err != nil {
			t.Fatal(err)
		}
		pids := strings.Fields(string(out))
		if len(pids) == 0 {
			return
		}
		for _, text := range pids {
			if pid, err := strconv.Atoi(text); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("processes of %s do not end", s.Name)
}

// Kill ends the host's server at once, with all its connections. What agents have begun lives on, as it does when a
// real server is gone: it is below the server only for as long as the agent that began it lives.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	for _, pid := range append(Children(s.sshd.Process.Pid), s.sshd.Process.Pid) {
		if env, err := procfs.Environment(pid); err == nil && bytes.Contains(env, []byte("PLIMSOLL_UNIT=")) {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended
		}
	}
}

// Children are the processes below one.
func Children(pid int) (list []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, f := range folders {
		child, _ := strconv.Atoi(filepath.Base(f))
		if fields := procfs.Fields(child); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			list = append(append(list, child), Children(child)...)
		}
	}
	return list
}

// Alive counts the processes with a word in their command line, agents apart, wherever they come from.
func Alive(word string) int { return alive(word, "/") }

// Alive counts those that work in the folders of these hosts: other tests run the same programs.
func (l *Lab) Alive(word string) int { return alive(word, l.Dir) }

func alive(word, folder string) (n int) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		data, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(data, []byte(word)) || bytes.HasPrefix(data, []byte("agent\x00")) {
			continue
		}
		at, _ := os.Readlink(filepath.Join(filepath.Dir(line), "cwd"))
		if strings.HasPrefix(at, folder) || folder == "/" {
			n++
		}
	}
	return n
}

// Remains lists what runs have left on the hosts: folders, and processes of their agents.
func (l *Lab) Remains() []string {
	left, _ := filepath.Glob(filepath.Join(l.Dir, "*", "plimsoll-*"))
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		data, err := os.ReadFile(line)
		if err == nil && bytes.HasPrefix(data, []byte("agent\x00unit\x00"+l.Dir)) {
			left = append(left, string(data))
		}
	}
	return left
}
