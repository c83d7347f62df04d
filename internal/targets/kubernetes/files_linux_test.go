package kubernetes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
)

// TestMakeFiles makes the files of disks as a pod's shell does: where a file system keeps no space, too, and not where
// it has too little.
func TestMakeFiles(t *testing.T) {
	programs := t.TempDir()
	stand := func(name, does string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const size = 3<<20 + 512
	for _, test := range []struct{ name, fallocate, df, refused string }{
		{name: "as elsewhere"},
		{name: "no space is kept", fallocate: "exit 1"},
		{name: "too little space", fallocate: "exit 1", df: "echo head; echo x 9 9 100 1% /",
			refused: "disk /dev/sdc: its volume has room for 100 KiB of 3072"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, does := range map[string]string{"fallocate": test.fallocate, "df": test.df} {
				_ = os.Remove(filepath.Join(programs, name))
				if does != "" {
					stand(name, does)
				}
			}
			root := t.TempDir()
			line := strings.ReplaceAll(makeFiles([]int64{4096, size}), "/disks/", root+"/")
			run := func() (string, error) {
				c := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
				c.Env = []string{"PATH=" + programs + ":/usr/bin:/bin"}
				out, err := c.CombinedOutput()
				return string(out), err
			}
			if out, err := run(); err == nil {
				t.Fatalf("there is no folder, and it says nothing: %s", out)
			}
			for _, name := range []string{"sdb", "sdc"} {
				if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			out, err := run()
			if test.refused != "" {
				if err == nil || !strings.Contains(out, test.refused) {
					t.Errorf("%v, %q", err, out)
				}
				return
			}
			file := filepath.Join(root, "sdc", "disk")
			is, e := os.Stat(file)
			if err = errors.Join(err, e); err != nil || is.Size() != size {
				t.Fatalf("%v, %s, %+v", err, out, is)
			}
			if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := run(); err != nil {
				t.Errorf("again: %v, %s", err, out)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
				t.Errorf("what was there is not: %v", err)
			}
		})
	}
}

// TestFiles uses a class that makes no volumes of mode Block: data disks are files, which go with their machine through
// power cycles, snapshots and clones of these.
func TestFiles(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "volume_mode: Filesystem\nclones: snapshots\n")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "storage_class: "+k8s.Shared, "storage_class: "+k8s.FilesOnly, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	facts, err := opened(t, file, agents(t)).Check(t.Context())
	if err != nil || facts.Can(target.DiskTrim) || facts.Can(target.PlainJobs) ||
		!strings.Contains(strings.Join(facts.Notes, " "), "Data disks are files") {
		t.Errorf("%v, %q, missing %q", err, facts.Notes, facts.Missing)
	}
	o := having(t, c, namespace, file, "a")
	ctx := context.Background()
	does := func(vm, line string) {
		t.Helper()
		p, err := o.host(vm).Start(ctx, target.Command{Argv: []string{"/bin/sh", "-c", line}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(ctx); err != nil || exit.Code != 0 {
			t.Errorf("%s: %s: %+v, %v", vm, line, exit, err)
		}
	}
	disk := o.host("a").Disks()[0]
	if !disk.File || disk.Device != "/dev/sdb" {
		t.Errorf("%+v", disk)
	}
	has := func(text string) string { return `[ "$(dd if=` + disk.Path + ` bs=5 count=1)" = ` + text + " ]" }
	write := func(text string) string { return "printf " + text + " | dd conv=notrunc of=" + disk.Path }
	does("a", `[ $(wc -c <`+disk.Path+`) = 67108864 ]`)
	does("a", write("first"))
	power, shooter := o.Cluster.(target.VMPower), o.Cluster.(target.Snapshotter)
	a := []string{"a"}
	if err := errors.Join(shooter.Snapshot(ctx, "s", a), o.Cluster.(target.VMMaker).Clone(ctx, target.Clone{Source: "a",
		Members: []target.Placement{{Name: "b", Node: 1}}}), power.PowerOn(ctx, []string{"b"}, 1)); err != nil {
		t.Fatal(err)
	}
	does("b", has("first"))
	does("a", write("later"))
	if err := errors.Join(power.PowerOff(ctx, a), power.PowerOn(ctx, a, 1)); err != nil {
		t.Fatal(err)
	}
	does("a", has("later"))
	if err := errors.Join(power.PowerOff(ctx, a), shooter.Restore(ctx, "s", "a"),
		power.PowerOn(ctx, a, 1)); err != nil {
		t.Fatal(err)
	}
	does("a", has("first"))
	if err := o.Cluster.(target.VMMaker).Delete(ctx, []string{"a", "b", "gold"}); err != nil {
		t.Error(err)
	}
}
