package integrity_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"plimsoll/internal/targets/lab/guest"
	"plimsoll/internal/targets/lab/qemu"
	"plimsoll/internal/testkit/needs"
	integrity "plimsoll/internal/workloads/integrity/driver"
)

// build builds a program of this source for the guest.
func build(t *testing.T, pkg string) string {
	t.Helper()
	return needs.Program(t, pkg)
}

// victim is a guest whose power is cut, with disks sdb, sdc, ... of qcow2 that go past this machine's page cache.
type victim struct {
	machine *qemu.Machine
	disks   []string // images
	signer  ssh.Signer
	id      guest.Identity
	port    int
	worker  []byte
}

// programs are what victims boot and run.
type programs struct {
	image  guest.Image
	worker []byte
}

func built(t *testing.T) (p programs) {
	t.Helper()
	needs.QEMU(t)
	cache, err := guest.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	p.image, err = guest.Build(t.Context(), guest.Config{Kind: guest.Worker, Cache: cache,
		Agent: build(t, "./cmd/plimsoll-agent"), Log: t.Logf})
	if err != nil {
		needs.That(t, false, "guest images", err.Error())
	}
	if p.worker, err = os.ReadFile(build(t, "./internal/workloads/integrity/driver/testdata/worker")); err != nil {
		t.Fatal(err)
	}
	return p
}

func newVictim(t *testing.T, p programs, disks int) *victim {
	t.Helper()
	v := &victim{worker: p.worker}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if v.signer, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	network := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 2, n}) } // the emulator's own
	v.id, err = guest.NewIdentity("victim", netip.PrefixFrom(network(15), 24), network(2),
		string(ssh.MarshalAuthorizedKey(v.signer.PublicKey())))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "plimsoll-integrity-") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	needs.Outlives(t, dir)
	b, err := p.image.Boot(t.Context(), dir, v.id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	s := qemu.Spec{Name: "victim", Accel: qemu.TCG, CPUs: 1, MemoryBytes: 256 << 20, Kernel: b.Kernel, Initrd: b.Initrd,
		Append: b.Append, Args: b.Args, NIC: &qemu.NIC{MAC: v.id.MAC().String(),
			Forwards: []qemu.Forward{{Host: v.port, Guest: 22}}}}
	for _, d := range b.Drives {
		s.Disks = append(s.Disks, qemu.Disk{Path: d.Path, Format: d.Format, Bus: d.Bus, Serial: d.Serial,
			ReadOnly: d.ReadOnly})
	}
	for i := range disks {
		v.disks = append(v.disks, filepath.Join(dir, fmt.Sprintf("data%d.qcow2", i)))
		v.empty(t, i)
		s.Disks = append(s.Disks, qemu.Disk{Path: v.disks[i], Format: qemu.Qcow2, Serial: fmt.Sprint("data", i)})
	}
	if v.machine, err = qemu.Create(filepath.Join(dir, "m"), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.machine.Kill() })
	return v
}

// empty puts a new disk in the place of one. It loses single blocks: a cluster of the image is a block.
func (v *victim) empty(t *testing.T, disk int) {
	t.Helper()
	create := exec.CommandContext(t.Context(), "qemu-img", "create", "-q", "-f", "qcow2",
		"-o", fmt.Sprint("cluster_size=", blockBytes), v.disks[disk], fmt.Sprint(diskBytes))
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// boot starts the guest, logs in and puts the worker there.
func (v *victim) boot(t *testing.T) *ssh.Client {
	t.Helper()
	if err := v.machine.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	public, err := v.id.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(v.signer)},
		HostKeyCallback: ssh.FixedHostKey(public), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}}
	for begun := time.Now(); time.Since(begun) < 4*time.Minute; time.Sleep(200 * time.Millisecond) {
		conn, err2 := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", v.port), time.Second)
		if err = err2; err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		c, chans, reqs, err2 := ssh.NewClientConn(conn, "", config)
		if err = err2; err != nil {
			conn.Close()
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Minute))
		client := ssh.NewClient(c, chans, reqs)
		t.Cleanup(func() { client.Close() })
		v.put(t, client, "worker", v.worker)
		return client
	}
	t.Fatalf("no login: %v; its console ends with %s", err, v.machine.Console(2000))
	return nil
}

func (v *victim) put(t *testing.T, c *ssh.Client, name string, content []byte) {
	t.Helper()
	run(t, c, content, "cat > /tmp/"+name+" && chmod 755 /tmp/"+name)
}

// run has a guest run a command, and gives what it printed.
func run(t *testing.T, c *ssh.Client, input []byte, command string) []byte {
	t.Helper()
	var out output
	s := session(t, c, command, bytes.NewReader(input), &out)
	defer s.Close()
	if err := s.Wait(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out.bytes())
	}
	return out.bytes()
}

// session has a guest begin a command. Of some hundred sessions its server closes one before it has begun anything.
func session(t *testing.T, c *ssh.Client, command string, input io.Reader, out io.Writer) *ssh.Session {
	t.Helper()
	err := io.EOF
	for range 5 {
		s, bad := c.NewSession()
		if bad != nil {
			t.Fatal(bad)
		}
		if input != nil {
			s.Stdin = input
		}
		s.Stdout, s.Stderr = out, out
		if err = s.Start(command); err == nil {
			return s
		}
		s.Close()
		if !errors.Is(err, io.EOF) {
			break
		}
	}
	t.Fatalf("%s: %v", command, err)
	return nil
}

// output holds what a worker printed as far as it came off the machine.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.b.Bytes())
}

// work runs a job on the guest until it ends or ctx does.
func (v *victim) work(ctx context.Context, t *testing.T, c *ssh.Client, j integrity.Job, before string,
	out io.Writer) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	v.put(t, c, "job", text)
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var errs bytes.Buffer
	s.Stdout, s.Stderr = out, &errs
	ended := make(chan error, 1)
	go func() { ended <- s.Run(before + "cd /tmp && ./worker < job") }()
	select {
	case err = <-ended:
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
	case <-ctx.Done():
		if err := v.machine.Kill(); err != nil { // the power is cut
			t.Fatal(err)
		}
		c.Close()
		<-ended
	}
}

// TestPowerCut cuts the power of a real guest in the middle of writing. With an honest disk nothing that was
// acknowledged is lost. With one that claims to have no cache, so that nobody flushes it, what the emulator still held
// in its memory is lost, and named. An emulator that ignores flushes (no-flush) passes on what it holds and spares this
// machine's disk only, so nothing is lost as long as this machine keeps its own power.
func TestPowerCut(t *testing.T) {
	p := built(t)
	const honest, lies = "", "echo write through > /sys/block/sdb/queue/write_cache && "
	for name, before := range map[string]string{"honest": honest, "lies": lies, "no-flush": honest} {
		t.Run(name, func(t *testing.T) {
			if name == "no-flush" {
				needs.Long(t, "an honest disk and one that lies are tried")
			}
			t.Parallel()
			v := newVictim(t, p, 1)
			if name == "no-flush" {
				v.machine.Spec.Disks[len(v.machine.Spec.Disks)-1].IgnoreFlush = true
				if err := v.machine.Save(); err != nil {
					t.Fatal(err)
				}
			}
			c := v.boot(t)
			j := integrity.Job{Path: "/dev/sdb", Device: "/dev/sdb", Bytes: diskBytes, Threads: 2, BlockBytes: 4096,
				FlushBytes: 64 << 10, Order: integrity.Random, Duration: time.Minute}
			var out output
			ctx, cut := context.WithCancel(t.Context())
			go func() { // in the middle of it, as soon as some was acknowledged
				defer cut()
				for range 300 {
					if strings.Count(string(out.bytes()), "integrity-acknowledged") > 30 {
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
			}()
			v.work(ctx, t, c, j, before, &out)
			rec, err := integrity.ReadRecord(bytes.NewReader(out.bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if rec.Acknowledged.Blocks == 0 {
				t.Fatal("nothing was acknowledged")
			}
			c = v.boot(t)
			data, err := json.Marshal(rec)
			if err != nil {
				t.Fatal(err)
			}
			v.put(t, c, "record", data)
			var found output
			v.work(t.Context(), t, c, integrity.Job{Path: "/dev/sdb", Device: "/dev/sdb", Threads: 2,
				WrittenBy: "the write", Record: "record"}, "", &found)
			if err := v.machine.Kill(); err != nil {
				t.Fatal(err)
			}
			var r integrity.Report
			said := false
			for line := range bytes.SplitSeq(found.bytes(), []byte("\n")) {
				if got, ok := integrity.Verified(line); ok {
					r, said = got, true
				}
			}
			t.Logf("acknowledged %+v: %d lost, %v; %d intact, %d never acknowledged", r.Acknowledged, r.Lost,
				r.DamagedBlocks, r.Intact, r.Unclaimed)
			if !said || (r.Lost > 0) != (name == "lies") || (len(r.Damages) > 0) != (name == "lies") {
				t.Errorf("%s", found.bytes())
			}
		})
	}
}
