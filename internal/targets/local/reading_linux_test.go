//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/devicetest"
	"plimsoll/result"
)

// TestDevicesOnlyRead: without consent a device can be a data disk that is only read: what it holds is sampled, a
// command that may write is refused, one that says it reads gets it, and cannot write after all.
func TestDevicesOnlyRead(t *testing.T) {
	node, _ := devicetest.Loop(t, 8<<20)
	half := strings.Repeat("data", 1<<20)
	if err := os.WriteFile(node, []byte(half), 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "r"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "r", "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	place, err := Provider{}.New(target.Config{Nodes: 1, RunsDir: dir, Options: map[string]string{"dir": node,
		"devices": "read"}})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := place.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	zeros := result.Find(facts.Environment, result.SampledZeros)
	if len(zeros) != 1 || zeros[0].Number < 0.3 || zeros[0].Number > 0.7 {
		t.Errorf("half of the device holds data; sampled: %+v", zeros)
	}
	open, err := place.Provision(t.Context(), target.Request{RunID: "r", StateDir: filepath.Join(dir, "r", "state")})
	if err != nil {
		t.Fatal(err)
	}
	c := open.(*cluster)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := t.Context()
	err = c.CreateTemplate(ctx, target.Template{Name: "gold", DiskBytes: []int64{4 << 20}})
	if err == nil {
		err = c.Clone(ctx, target.Clone{Source: "gold", Members: []target.Placement{{Name: "a"}}})
	}
	if err == nil {
		err = c.PowerOn(ctx, []string{"a"}, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	disk := h.Disks()[0]
	if _, err := h.Start(ctx, target.Command{Argv: []string{"true"}}); err == nil ||
		!strings.Contains(err.Error(), "may write, and its devices are only to be read") {
		t.Errorf("a command that may write was let at it: %v", err)
	}
	for text, want := range map[string]int{
		`test "$(head -c 4 "$1")" = data`:                    0,
		`dd if=/dev/zero of="$1" bs=4k count=1 conv=notrunc`: 1,
	} {
		p, err := h.Start(ctx, target.Command{Argv: []string{"sh", "-c", text, "sh", disk.Path}, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		end, err := p.Wait(ctx)
		if err != nil || end.Code != want {
			t.Errorf("%s: %+v, %v, want code %d", text, end, err, want)
		}
	}
	if after, err := os.ReadFile(node); err != nil || string(after[:len(half)]) != half {
		t.Errorf("the device is not what it was: %v", err)
	}
}
