package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
)

// TestLabPowerWaitNegative: it is refused before the button is pressed, and not found to be over afterwards.
func TestLabPowerWaitNegative(t *testing.T) {
	a, _, errs := quiet(t)
	if got := a.main([]string{"lab", "power", "1", "off", "--wait", "-5s", "--dir", t.TempDir()}); got != exit.Usage ||
		!strings.Contains(errs.String(), "--wait -5s") {
		t.Errorf("exit code %d, %s", got, errs)
	}
}

// TestLabStatusSaysWhy: a node of which nothing is known is not just unknown.
func TestLabStatusSaysWhy(t *testing.T) {
	for _, storage := range []string{"shared", "gluster"} {
		dir := t.TempDir()
		record := `{"version":1,"id":"000000","nodes":2,"storage":"` + storage + `"}`
		if err := os.WriteFile(filepath.Join(dir, "lab.json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
		a, out, _ := quiet(t)
		a.main([]string{"lab", "status", "--dir", dir})
		for _, want := range []string{"node1: power: ", "node2: power: "} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: want %q in %s", storage, want, out)
			}
		}
	}
}
