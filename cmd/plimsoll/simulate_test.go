package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The options file of the how-to is accepted as it stands, and every kind of fault is in it.
func TestOptionsOfTheHowTo(t *testing.T) {
	page := pages(t)[filepath.Join("docs", "how-to", "simulate.md")]
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no options file")
	}
	name := filepath.Join(t.TempDir(), "sim.yaml")
	if err := os.WriteFile(name, []byte(m[1]), 0o644); err != nil {
		t.Fatal(err)
	}
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	out, err := s.command(t.Context(), "targets", "check", "sim", "--target-opt", "file="+name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[1], "kind: "+kind[1]) {
			t.Errorf("the file does not show fault %s", kind[1])
		}
	}
}
