package guest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"plimsoll/internal/testkit/needs"
)

// built gives the image of a kind with the agent of this source, from the user's cache if it is there.
func built(t *testing.T, kind Kind, cache string) Image {
	t.Helper()
	for _, err := range missing(kind) {
		needs.That(t, false, "what guest images are built with", err.Error())
	}
	i, err := Build(t.Context(), Config{Kind: kind, Cache: cache, Agent: agent(t), Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func agent(t *testing.T) string {
	t.Helper()
	return needs.Program(t, "./cmd/plimsoll-agent")
}

func cacheOfUser(t *testing.T) string {
	t.Helper()
	dir, err := DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// user is who logs in: a key of the test's own.
func user(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// machine is a running guest.
type machine struct {
	id     Identity
	port   int
	qmp    net.Conn
	serial string
	signer ssh.Signer
	ended  chan error
}

// start boots an image with data disks of these sizes, on the emulator, with its SSH port on loopback.
func start(t *testing.T, i Image, id Identity, signer ssh.Signer, cpus int, disks ...int64) *machine {
	t.Helper()
	qemu, _ := needs.QEMU(t)
	dir := t.TempDir()
	b, err := i.Boot(t.Context(), dir, id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{id: id, signer: signer, port: l.Addr().(*net.TCPAddr).Port, serial: filepath.Join(dir, "serial"),
		ended: make(chan error, 1)}
	l.Close()
	socket := filepath.Join(dir, "qmp")
	args := []string{"-machine", "q35", "-accel", "tcg,tb-size=64", "-cpu", "max", "-smp", fmt.Sprint(cpus), "-m",
		fmt.Sprintf("%dM", i.MemoryBytes>>20), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", b.Kernel, "-initrd", b.Initrd, "-append", b.Append, "-serial", "file:" + m.serial,
		"-qmp", "unix:" + socket + ",server=on,wait=off",
		"-netdev", fmt.Sprintf("user,id=n0,net=192.0.2.0/24,hostfwd=tcp:127.0.0.1:%d-%s:22", m.port, id.Address.Addr()),
		"-device", "virtio-net-pci,netdev=n0,romfile=,mac=" + id.MAC().String(), "-device", "virtio-scsi-pci,id=s0"}
	for n, size := range disks {
		name := filepath.Join(dir, fmt.Sprintf("data%d.raw", n))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		b.Drives = append(b.Drives, Drive{Path: name, Format: "raw", Serial: fmt.Sprintf("data%d", n), Bus: "scsi"})
	}
	for n, d := range b.Drives {
		readOnly := map[bool]string{true: "on", false: "off"}[d.ReadOnly]
		device := map[string]string{"scsi": "scsi-hd,bus=s0.0", "virtio": "virtio-blk-pci"}[d.Bus]
		args = append(args, "-drive",
			fmt.Sprintf("if=none,id=d%d,file=%s,format=%s,readonly=%s", n, d.Path, d.Format, readOnly),
			"-device", fmt.Sprintf("%s,drive=d%d,serial=%s", device, n, d.Serial))
	}
	for _, secret := range strings.Split(strings.TrimSpace(string(id.HostKey)), "\n") {
		if strings.Contains(strings.Join(append(args, b.Args...), " "), secret) {
			t.Error("the emulator's arguments have the host key")
		}
	}
	c := exec.Command(qemu, append(args, b.Args...)...)
	var errs bytes.Buffer
	c.Stderr = &errs
	ended, err := needs.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	go func() { m.ended <- <-ended }()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-m.ended
		if t.Failed() {
			log, _ := os.ReadFile(m.serial)
			t.Logf("emulator: %s\nconsole of %s:\n%s", errs.Bytes(), id.Name, log)
		}
	})
	for range 100 {
		if m.qmp, err = net.Dial("unix", socket); err == nil {
			t.Cleanup(func() { m.qmp.Close() })
			m.ask(t, `{"execute":"qmp_capabilities"}`)
			return m
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal(err)
	return nil
}

// ask sends commands to the emulator.
func (m *machine) ask(t *testing.T, commands ...string) {
	t.Helper()
	_ = m.qmp.SetDeadline(time.Now().Add(20 * time.Second))
	d := json.NewDecoder(m.qmp)
	for _, c := range commands {
		if _, err := m.qmp.Write([]byte(c)); err != nil {
			t.Fatal(err)
		}
		for answer := map[string]any{}; answer["return"] == nil; {
			clear(answer)
			if err := d.Decode(&answer); err != nil || answer["error"] != nil {
				t.Fatalf("%s: %v %v", c, err, answer)
			}
		}
	}
}

// login waits until the machine lets its user in, and holds it to its host key.
func (m *machine) login(t *testing.T, limit time.Duration) *ssh.Client {
	t.Helper()
	public, err := m.id.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(m.signer)},
		HostKeyCallback: ssh.FixedHostKey(public), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}}
	begun := time.Now()
	for time.Since(begun) < limit {
		conn, err2 := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", m.port), time.Second)
		if err = err2; err == nil {
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			c, chans, reqs, err2 := ssh.NewClientConn(conn, "", config)
			if err = err2; err == nil {
				_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
				client := ssh.NewClient(c, chans, reqs)
				t.Cleanup(func() { client.Close() })
				t.Logf("%s: login after %.1f s", m.id.Name, time.Since(begun).Seconds())
				return client
			}
			conn.Close()
		}
		select {
		case end := <-m.ended:
			m.ended <- end
			t.Fatalf("%s: the emulator ended: %v", m.id.Name, end)
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Fatalf("%s: no login in %s: %v", m.id.Name, limit, err)
	return nil
}

// say runs a command in the machine and gives what it prints.
func say(t *testing.T, c *ssh.Client, command string) string {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.CombinedOutput(command)
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// off waits for the emulator's end, which must be the guest's own doing.
func (m *machine) off(t *testing.T) {
	t.Helper()
	select {
	case err := <-m.ended:
		m.ended <- err
		if err != nil {
			t.Errorf("%s: the emulator ended with %v", m.id.Name, err)
		}
	case <-time.After(90 * time.Second):
		t.Errorf("%s: still on", m.id.Name)
	}
}

func identity(t *testing.T, n int, authorized string) Identity {
	t.Helper()
	id, err := NewIdentity(fmt.Sprintf("vm-%d", n),
		netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + n)}), 24),
		netip.MustParseAddr("192.0.2.2"), authorized)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// expect checks what every kind of guest says of itself.
func expect(t *testing.T, c *ssh.Client, id Identity) {
	t.Helper()
	for command, want := range map[string]string{
		"hostname":            id.Name,
		"cat /etc/machine-id": id.MachineID,
		"ip -4 addr show dev eth0 | sed -n 's/^ *inet \\([^ ]*\\).*/\\1/p'":                id.Address.String(),
		"ip -4 route show default | cut -d' ' -f3":                                         id.Gateway.String(),
		"cat /sys/class/net/eth0/address":                                                  id.MAC().String(),
		"cd /sys/block; for d in sd*; do echo $d $(cat $d/size); done | sort | tr '\\n' ,": "sda 128,sdb 16384,sdc 32768,sdd 49152,sde 65536,",
		"fio --version | cut -d. -f1":                                                      "fio-3",
		"stat -c %a ~/.ssh/authorized_keys":                                                "600",
		"cat /run/identity/* 2>/dev/null | wc -c":                                          "0",
	} {
		if got := say(t, c, command); got != want {
			t.Errorf("%s: %s: %q, want %q", id.Name, command, got, want)
		}
	}
	if got := say(t, c, "plimsoll-agent help"); !strings.Contains(got, "plimsoll-agent session FOLDER") {
		t.Errorf("%s: the agent says %q", id.Name, got)
	}
	out := say(t, c, "fio --name=a --filename=/dev/sdb --rw=randwrite --bs=4k --size=4m --ioengine=libaio --direct=1 "+
		"--iodepth=4 --output-format=json")
	var said struct {
		Jobs []struct {
			Error int
			Write struct {
				Bytes int64 `json:"io_bytes"`
			}
		}
	}
	err := json.Unmarshal([]byte(out), &said)
	if err != nil || len(said.Jobs) != 1 || said.Jobs[0].Write.Bytes != 4<<20 {
		t.Errorf("%s: fio: %v: %s", id.Name, err, out)
	}
}

// sizes of data disks: all different, so that each shows which it is.
var sizes = []int64{8 << 20, 16 << 20, 24 << 20, 32 << 20}

// Two workers of one image share nothing that an identity has. One ends by its power button, one by its own word.
func TestWorkersBoot(t *testing.T) {
	needs.Time(t)
	i := built(t, Worker, cacheOfUser(t))
	signer, authorized := user(t)
	var machines []*machine
	var clients []*ssh.Client
	count := 1 // whose identity is its own; target lab has two beside each other
	if needs.All() {
		count = 2
	}
	for n := range count {
		machines = append(machines, start(t, i, identity(t, n, authorized), signer, n+1, sizes...))
	}
	said := map[string]string{}
	for _, m := range machines {
		c := m.login(t, 4*time.Minute) // seconds on a quiet machine; as target lab waits
		clients = append(clients, c)
		expect(t, c, m.id)
		for _, command := range []string{"hostname", "cat /etc/machine-id", "sha256sum </etc/dropbear/key",
			"cat /sys/class/net/eth0/address", "cat /sys/class/dmi/id/product_uuid", "cat /etc/hosts"} {
			answer := say(t, c, command)
			if answer == said[command] {
				t.Errorf("%s: two machines say %q", command, answer) // or one says nothing
			}
			said[command] = answer
		}
	}
	// Before the data disks come those of the identity and of the files that are kept.
	machines[0].ask(t, fmt.Sprintf(`{"execute":"block_resize","arguments":{"device":"d2","size":%d}}`, 64<<20))
	for n := 0; say(t, clients[0], "cat /sys/block/sdb/size") != "131072"; n++ {
		if time.Sleep(100 * time.Millisecond); n == 100 {
			t.Fatal("the disk that was grown has not grown in the guest")
		}
	}
	machines[0].ask(t, `{"execute":"system_powerdown"}`)
	machines[0].off(t)
	if count == 1 {
		return
	}
	if s, err := clients[1].NewSession(); err != nil {
		t.Error(err)
	} else {
		_ = s.Run("poweroff") // which ends the session in whatever way
	}
	machines[1].off(t)
}

func TestIdentityIsComplete(t *testing.T) {
	t.Parallel()
	_, authorized := user(t)
	good := identity(t, 1, authorized)
	bad := good
	bad.Name, bad.MachineID, bad.Address, bad.HostKey, bad.AuthorizedKeys = "VM_1", "x", netip.Prefix{}, nil, nil
	_, err := Image{}.Boot(t.Context(), t.TempDir(), bad)
	want := `guest "VM_1": no host name: want up to 63 of a-z, 0-9 and hyphens inside
guest "VM_1": machine ID "x": want 32 digits of a-f and 0-9, not all zero
guest "VM_1": no address: want one with the length of its network, as 192.0.2.100/24
guest "VM_1": host key: ssh: no key found
guest "VM_1": no key may log in: give at least one line as of authorized_keys`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for name, change := range map[string]func(*Identity){
		`gateway 198.51.100.1: not another machine of 192.0.2.101/24`: func(i *Identity) {
			i.Gateway = netip.MustParseAddr("198.51.100.1")
		},
		`key "ssh-rsa x": not a line as of authorized_keys`: func(i *Identity) { i.AuthorizedKeys = []string{"ssh-rsa x"} },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil || err.Error() != `guest "vm-1": `+name {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

// What Boot writes is readable by its owner only, and is the same for the same identity.
func TestSeed(t *testing.T) {
	t.Parallel()
	_, authorized := user(t)
	id, dir := identity(t, 1, authorized), t.TempDir()
	var seeds [][]byte
	for range 2 {
		b, err := Image{}.Boot(t.Context(), dir, id)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(b.Drives[0].Path)
		if err != nil || info.Mode() != 0o600 || info.Size()%(64<<10) != 0 {
			t.Errorf("%v %v", info, err)
		}
		seed, _ := os.ReadFile(b.Drives[0].Path)
		if !bytes.Contains(seed, []byte(id.MachineID)) {
			t.Error("the seed has no machine ID")
		}
		seeds = append(seeds, seed)
	}
	if !bytes.Equal(seeds[0], seeds[1]) {
		t.Error("the same identity gave two seeds")
	}
}
