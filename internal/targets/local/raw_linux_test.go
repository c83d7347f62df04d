package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/storage/device/guard"
	"plimsoll/internal/testkit/devicetest"
)

const rawBytes = 8 << 20

// rawOptions are those for n loop devices with consent for each, and their nodes.
func rawOptions(t testing.TB, n int) (target.Options, []string) {
	t.Helper()
	var nodes, consents []string
	for range n {
		node, _ := devicetest.Loop(t, rawBytes)
		d, list, err := guard.Check(t.Context(), nil, node)
		if err != nil || len(list) > 0 {
			t.Fatal(list, err)
		}
		nodes, consents = append(nodes, node), append(consents, d.Identity.Phrase)
	}
	return target.Options{"dir": strings.Join(nodes, ":"), "consent": strings.Join(consents, "\n"),
		"reserve": "1MiB", "cgroups": "off"}, nodes
}

func digest(t *testing.T, node string) string {
	t.Helper()
	data, err := os.ReadFile(node)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// provisionRaw opens a cluster with devices, which the test closes.
func provisionRaw(t *testing.T, options target.Options) (target.Target, *cluster, string) {
	t.Helper()
	p, err := Provider{}.New(target.Config{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "run", "state")
	c, err := p.Provision(t.Context(), target.Request{RunID: "run", StateDir: state, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	return p, c.(*cluster), state
}

// TestRawDisks: each member has a device of its own and can use no other; a deleted member's is free again; the guard
// holds them for as long as the cluster is open; clean-up removes nothing of what is on them.
func TestRawDisks(t *testing.T) {
	options, nodes := rawOptions(t, 2)
	p, c, state := provisionRaw(t, options)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	must(c.CreateTemplate(ctx, target.Template{Name: "t", CPUs: 1, MemoryBytes: 64 << 20,
		DiskBytes: []int64{rawBytes / 2}}))
	clone := func(names ...string) error {
		var members []target.Placement
		for _, n := range names {
			members = append(members, target.Placement{Name: n})
		}
		return c.Clone(ctx, target.Clone{Source: "t", Members: members})
	}
	must(clone("a", "b"))
	if err := clone("x"); err == nil || !strings.Contains(err.Error(),
		`vm "x": disk /dev/sdb: no device of 4 MiB or more is left of 2 devices: give more with --disk`) {
		t.Error(err)
	}
	if _, err := guard.ForWriting(ctx, nil, nodes[0], ""); !guard.Has(err, guard.Busy) {
		t.Errorf("a device of a cluster is not held: %v", err)
	}
	must(c.PowerOn(ctx, []string{"a", "b"}, 2))
	run := func(name, script string) (out string, code int) {
		t.Helper()
		h, err := c.Host(name)
		must(err)
		u, err := h.Start(ctx, target.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: "o", Stderr: "o"})
		must(err)
		exit, err := u.Wait(ctx)
		must(err)
		data, err := target.ReadFile(ctx, h, "o", 0, 1000)
		must(err)
		return string(data), exit.Code
	}
	for i, name := range []string{"a", "b"} {
		h, err := c.Host(name)
		must(err)
		d := h.Disks()[0]
		want := target.Disk{Device: "/dev/sdb", Path: d.Path, Bytes: rawBytes, ID: c.raw[i].Identity.Phrase}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Error(diff)
		}
		text := fmt.Sprintf("written by %s", name)
		write := fmt.Sprintf("echo '%s' | dd of=%s bs=1M conv=notrunc,fsync,sync", text, d.Path)
		if out, code := run(name, write); code != 0 {
			t.Errorf("%s cannot write to its disk: %s", name, out)
		}
		if got, err := os.ReadFile(nodes[i]); err != nil || !bytes.HasPrefix(got, []byte(text)) {
			t.Errorf("%s: %v, begins with %q", nodes[i], err, got[:min(20, len(got))])
		}
		if c.wall.leaks() == nil {
			if out, code := run(name, "dd if="+nodes[1-i]+" of=/dev/null bs=512 count=1"); code == 0 {
				t.Errorf("%s reads the other's device: %s", name, out)
			}
		}
	}
	h, err := c.Host("a")
	must(err)
	file, err := h.(target.DiskReader).OpenDisk(ctx, "/dev/sdb")
	must(err)
	page := make([]byte, 12)
	_, err = file.ReadAt(page, 0)
	must(err)
	if _, known, err := file.Written(0, rawBytes); known || err != nil || string(page) != "written by a" {
		t.Errorf("known %t, %v, reads %q", known, err, page)
	}
	must(file.Close())
	how, err := h.(target.DiskPurger).PurgeDisk(ctx, "/dev/sdb")
	if err != nil || how != "every block of the device discarded" {
		t.Errorf("%q, %v", how, err)
	}
	if got, err := os.ReadFile(nodes[0]); err != nil || !bytes.Equal(got, make([]byte, rawBytes)) {
		t.Errorf("a device is not empty after a purge: %v", err)
	}
	if err := c.Clone(ctx, target.Clone{Source: "a", Members: []target.Placement{{Name: "c"}}}); err == nil ||
		!strings.Contains(err.Error(), `vm "a": its data disks are whole devices, which are not copied`) {
		t.Errorf("a clone of a device: %v", err)
	}
	if err := c.Snapshot(ctx, "s", []string{"a"}); err == nil {
		t.Error("a snapshot of a device")
	}
	must(c.Delete(ctx, []string{"a"}))
	must(clone("x"))
	before := []string{digest(t, nodes[0]), digest(t, nodes[1])}
	must(c.Close())
	if remains, err := p.Destroy(context.Background(), state); err != nil || len(remains) > 0 {
		t.Errorf("destroy: %v, %q", err, remains)
	}
	c.goroutines.Wait()
	if diff := cmp.Diff(before, []string{digest(t, nodes[0]), digest(t, nodes[1])}); diff != "" {
		t.Errorf("clean-up has changed a device: %s", diff)
	}
	for _, node := range nodes { // what was written there is no mark of anybody
		if _, list, err := guard.Check(ctx, nil, node); err != nil || len(list) > 0 {
			t.Error(list, err)
		}
	}
}

// TestRawDealt: a machine has the devices that a job file names, in its order.
func TestRawDealt(t *testing.T) {
	options, _ := rawOptions(t, 2)
	options["deal"] = "2,1"
	_, c, _ := provisionRaw(t, options)
	defer c.Close()
	err := errors.Join(c.CreateTemplate(t.Context(), target.Template{Name: "t", CPUs: 1, MemoryBytes: 64 << 20,
		DiskBytes: []int64{rawBytes / 2, rawBytes / 2}}),
		c.Clone(t.Context(), target.Clone{Source: "t", Members: []target.Placement{{Name: "a"}}}))
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range h.Disks() {
		got = append(got, d.ID)
	}
	if want := []string{c.raw[1].Identity.Phrase, c.raw[0].Identity.Phrase}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRawRechecked: what changes about a device after the claim is seen before a command is let at it.
func TestRawRechecked(t *testing.T) {
	options, nodes := rawOptions(t, 1)
	p, c, state := provisionRaw(t, options)
	defer func() {
		err := c.Close()
		_, destroyed := p.Destroy(context.Background(), state)
		c.goroutines.Wait()
		if err := errors.Join(err, destroyed); err != nil {
			t.Error(err)
		}
	}()
	err := errors.Join(c.CreateTemplate(t.Context(), target.Template{Name: "t", CPUs: 1, MemoryBytes: 64 << 20,
		DiskBytes: []int64{rawBytes}}),
		c.Clone(t.Context(), target.Clone{Source: "t", Members: []target.Placement{{Name: "a"}}}),
		c.PowerOn(t.Context(), []string{"a"}, 1))
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--setro", "--setrw"} {
		if out, err := exec.Command("blockdev", flag, nodes[0]).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		u, err := h.Start(t.Context(), target.Command{Argv: []string{"true"}})
		if readOnly := flag == "--setro"; readOnly != guard.Has(err, guard.ReadOnly) || readOnly == (err == nil) {
			t.Errorf("%s: %v", flag, err)
		}
		if err == nil {
			if _, err := u.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRawAfterKill: a run with devices that is killed leaves nothing that clean-up does not remove, and clean-up does
// not touch what is on the devices.
func TestRawAfterKill(t *testing.T) {
	options, nodes := rawOptions(t, 2)
	cmd := exec.Command(os.Args[0])
	state := filepath.Join(t.TempDir(), "run", "state")
	cmd.Env = append(os.Environ(), rawVariable+"="+state, "PLIMSOLL_TEST_DIR="+options["dir"],
		"PLIMSOLL_TEST_CONSENT="+options["consent"])
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var word string
	if _, err := fmt.Fscan(out, &word); err != nil || word != "written" {
		t.Fatalf("%q, %v", word, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	before := []string{digest(t, nodes[0]), digest(t, nodes[1])}
	p, err := Provider{}.New(target.Config{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if remains, err := p.Destroy(t.Context(), state); err != nil || len(remains) > 0 {
			t.Errorf("destroy: %v, %q", err, remains)
		}
	}
	if left := remains(filepath.Dir(state)); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if diff := cmp.Diff(before, []string{digest(t, nodes[0]), digest(t, nodes[1])}); diff != "" {
		t.Errorf("clean-up has changed a device: %s", diff)
	}
	if _, _, err := guard.Check(t.Context(), nil, nodes[0]); err != nil {
		t.Error(err)
	}
}

// rawVariable names the state folder for a copy of this test that works with devices until it is killed.
const rawVariable = "PLIMSOLL_TEST_RAW"

func rawController() {
	fail := func(err error) {
		if err != nil {
			fmt.Println("raw controller:", err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	state := os.Getenv(rawVariable)
	p, err := Provider{}.New(target.Config{Options: target.Options{"dir": os.Getenv("PLIMSOLL_TEST_DIR"),
		"consent": os.Getenv("PLIMSOLL_TEST_CONSENT"), "reserve": "1MiB", "cgroups": "off"}})
	fail(err)
	fail(os.MkdirAll(filepath.Dir(state), 0o755))
	c, err := p.Provision(ctx, target.Request{RunID: "crash", StateDir: state})
	fail(err)
	maker := c.(*cluster)
	fail(maker.CreateTemplate(ctx, target.Template{Name: "t", CPUs: 1, MemoryBytes: 64 << 20,
		DiskBytes: []int64{rawBytes}}))
	fail(maker.Clone(ctx, target.Clone{Source: "t", Members: []target.Placement{{Name: "a"}, {Name: "b"}}}))
	fail(maker.PowerOn(ctx, []string{"a", "b"}, 2))
	for _, name := range []string{"a", "b"} {
		h, err := c.Host(name)
		fail(err)
		u, err := h.Start(ctx, target.Command{Argv: []string{"/bin/sh", "-c", "echo " + name + " | dd of=" +
			h.Disks()[0].Path + " conv=notrunc,fsync,sync && setsid sleep 60 & wait; sleep 60"}})
		fail(err)
		for {
			if data, err := os.ReadFile(maker.boxes[name].raw[0].Node); err == nil && data[0] == name[0] {
				break
			}
		}
		_ = u
	}
	fmt.Println("written")
	select {}
}

// TestRawRefused: what stands against devices is said by check, all of it, and by the provider where names will do.
func TestRawRefused(t *testing.T) {
	options, nodes := rawOptions(t, 1)
	options["consent"] = "yes"
	p, err := Provider{}.New(target.Config{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Check(t.Context()); !guard.Has(err, guard.OtherDevice) {
		t.Errorf("check: %v", err)
	}
	_, err = p.Provision(t.Context(), target.Request{RunID: "r", StateDir: filepath.Join(t.TempDir(), "r", "state")})
	if !guard.Has(err, guard.OtherDevice) {
		t.Errorf("provision: %v", err)
	}
	for dir, want := range map[string]string{
		"/dev/null": "/dev/null: is a character device: name a block device, or a folder on the file system to be " +
			"tested",
		nodes[0] + ":" + os.TempDir(): os.TempDir() + ": is no block device, and " + nodes[0] + " is one: give " +
			"devices or folders, not both",
	} {
		_, err := Provider{}.New(target.Config{Options: target.Options{"dir": dir}})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
