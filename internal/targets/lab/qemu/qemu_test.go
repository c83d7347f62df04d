package qemu

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/golden"
)

func full() Spec {
	return Spec{Name: "db-1", Accel: TCG, CPUs: 2, MemoryBytes: 256 << 20, Kernel: "/images/a,b/vmlinuz",
		Initrd: "/images/initrd", Append: "console=ttyS0 quiet",
		Disks: []Disk{{Path: "/lab/a,b/identity.raw", Format: Raw, Serial: "identity", ReadOnly: true},
			{Path: "/lab/db-1/root.qcow2", Format: Qcow2, Bus: Virtio, Cached: true},
			{Path: "/lab/db-1/disk1.qcow2", Format: Qcow2, Serial: "a,b", IgnoreFlush: true}},
		NIC: &NIC{MAC: "52:54:00:77:00:01", Tap: "tap0"}, Args: []string{"-uuid", "x"}}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	user := Spec{Name: "user", Accel: KVM, CPUs: 1, MemoryBytes: mebibyte, NoReboot: true,
		NIC: &NIC{Forwards: []Forward{{Host: 2201, Guest: 22}}}}
	wide := Spec{Name: "wide", Accel: TCG, CPUs: 8, MemoryBytes: 512 * mebibyte,
		Topology: Topology{Sockets: 2, Threads: 2, NUMA: 2, Pins: []int{3}}}
	text := strings.Join(full().Argv("/lab/a,b", false), "\n") + "\n\n" +
		strings.Join(user.Argv("/lab", true), "\n") + "\n\n" + strings.Join(wide.Argv("/lab", false), "\n") + "\n"
	golden.Compare(t, "testdata/argv.golden", []byte(text))
}

func TestCheckGivesAllObjections(t *testing.T) {
	t.Parallel()
	if err := full().Check(); err != nil {
		t.Fatal(err)
	}
	bad := Spec{Name: "a,b", Accel: "magic", MemoryBytes: 1000, Initrd: "i",
		Topology: Topology{NUMA: 3, Pins: []int{0, -1}},
		Disks: []Disk{{Path: "x", Format: Raw}, {Path: "/x", Format: "vmdk"}, {Path: "/x", Format: Raw, Bus: "ide"},
			{Path: "/x", Format: Raw, Serial: strings.Repeat("s", 21)}},
		NIC: &NIC{MAC: "51:00:00:00:00:00", Tap: "a name,far too long", Forwards: []Forward{{Host: 1, Guest: 2}}}}
	want := strings.Join([]string{
		`machine "a,b": no name of a machine: give one without commas, slashes and equals signs`,
		`machine "a,b": accelerator "magic": want "tcg" or "kvm"`,
		`machine "a,b": 0 CPUs: want 1 to 255`,
		`machine "a,b": memory of 1000 bytes: want a multiple of 1 MiB`,
		`machine "a,b": CPU -1 of this host: none has a negative number`,
		`machine "a,b": an initial RAM disk or a command line without a kernel`,
		`machine "a,b": file "i": must be an absolute path`,
		`machine "a,b": disk 0: file "x": must be an absolute path`,
		`machine "a,b": disk 1: format "vmdk": want "raw" or "qcow2"`,
		`machine "a,b": disk 2: bus "ide": want "scsi" or "virtio"`,
		`machine "a,b": disk 3: serial number "sssssssssssssssssssss": guests see 20 bytes of it`,
		`machine "a,b": hardware address "51:00:00:00:00:00": want six pairs of 0-9 and a-f, the first one even`,
		`machine "a,b": tap "a name,far too long": no name of a network interface`,
		`machine "a,b": tap "a name,far too long": ports are forwarded without a tap only`}, "\n")
	if diff := cmp.Diff(want, bad.Check().Error()); diff != "" {
		t.Error(diff)
	}
}

func TestTopologiesThatDoNotFit(t *testing.T) {
	t.Parallel()
	s := Spec{Name: "m", Accel: TCG, CPUs: 6, MemoryBytes: 511 * mebibyte}
	for want, topology := range map[string]Topology{
		"": {Sockets: 3, Threads: 2, NUMA: 1, Pins: []int{0, 0}},
		`machine "m": 6 CPUs: not a multiple of 2 sockets times 2 threads`:             {Sockets: 2, Threads: 2},
		`machine "m": 2 NUMA nodes: 6 CPUs and 511 MiB cannot be shared evenly`:        {NUMA: 2},
		`machine "m": -1 sockets, 0 threads, 0 NUMA nodes: want none of them negative`: {Sockets: -1},
	} {
		s.Topology = topology
		got := ""
		if err := s.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: got %q, want %q", topology, got, want)
		}
	}
}

const greeting = `{"QMP": {"version": {}, "capabilities": []}}` + "\n"

// served gives a monitor whose QEMU says lines, one for each that it is sent, beginning with the greeting.
func served(t *testing.T, lines ...string) (*Monitor, error) {
	t.Helper()
	here, there := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer there.Close()
		r := bufio.NewReader(there)
		for i, line := range lines {
			if i > 0 {
				if _, err := r.ReadString('\n'); err != nil {
					return
				}
			}
			if _, err := io.WriteString(there, line); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	t.Cleanup(func() { here.Close(); <-ended })
	return NewMonitor(t.Context(), here)
}

const ready = `{"return": {}, "id": "1"}` + "\n"

func TestMonitor(t *testing.T) {
	t.Parallel()
	event := `{"timestamp": {"seconds": 5, "microseconds": 7}, "event": "STOP", "data": {"a": 1}}` + "\r\n"
	m, err := served(
		t,
		greeting,
		ready,
		event+`{"return": {"status": "running"}, "id": "2"}`+"\n",
		`{"id": "3", "error": {"class": "GenericError", "desc": "no disk"}}`+"\n"+event,
		`{"return": {}, "id": "9"}`+"\n",
	)
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Status string }
	if err := m.Do(t.Context(), "query-status", nil, &s); err != nil || s.Status != "running" {
		t.Fatal(s, err)
	}
	err = m.Do(t.Context(), "block_resize", nil, nil)
	var no *Refusal
	if !errors.As(err, &no) || *no != (Refusal{"block_resize", "GenericError", "no disk"}) {
		t.Fatal(err)
	}
	want := Event{Name: "STOP", Data: []byte(`{"a": 1}`), At: time.Unix(5, 7000).UTC()}
	for range 2 {
		if e, err := m.Event(t.Context()); err != nil || !cmp.Equal(e, want) {
			t.Fatal(e, err)
		}
	}
	if err := m.Do(t.Context(), "stop", nil, nil); err == nil || err.Error() !=
		`stop: an answer to "9", which was not asked: want "4"` {
		t.Fatal(err)
	}
	if err := m.Do(t.Context(), "cont", nil, nil); err == nil {
		t.Fatal("a broken monitor was used")
	}
}

func TestMonitorDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	m, err := served(t, greeting, ready)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := m.Do(ctx, "stop", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestMonitorRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"HTTP/1.1 200 OK\n", "{}\n", `{"return": {}, "event": "X"}` + "\n", ready, "\n[]\n"} {
		if _, err := served(t, line); err == nil {
			t.Errorf("%q was taken for a greeting", line)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	for _, s := range []string{greeting, ready, "\n\n" + ready, `{"event": "X"}`, "{}\n",
		strings.Repeat(" ", 5000) + ready} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(strings.NewReader(string(data)))
		for {
			m, err := readMessage(r)
			if err != nil {
				if !cmp.Equal(m, message{}) {
					t.Fatalf("%+v beside %v", m, err)
				}
				return
			}
			if m.kinds() != 1 {
				t.Fatalf("%+v", m)
			}
		}
	})
}
