package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/needs"
)

// pages are the project's documents.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := needs.Root()
	add := func(name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		found[rel] = string(data)
	}
	add(filepath.Join(root, "README.md"))
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			add(name)
		}
		return err
	})
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	return found
}

// TestCommandLinesOfTheDocuments runs every "$ plimsoll" line of every page with --help in place of doing it, which
// refuses commands and flags that do not exist.
func TestCommandLinesOfTheDocuments(t *testing.T) {
	s := session{t, filepath.Join(t.TempDir(), "runs")}
	n := 0
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile(`(?m)^\$ plimsoll (.*)$`).FindAllStringSubmatch(text, -1) {
			n++
			line, _, _ := strings.Cut(m[1], "#")
			args := append(strings.Fields(line), "--help")
			cmd := s.command(t.Context(), args...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: plimsoll %s: %v\n%s", page, line, err, out)
			} else if !strings.Contains(string(out), "plimsoll "+args[0]) {
				t.Errorf("%s: plimsoll %s: no such command", page, line)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d command lines found", n)
	}
}

// TestLinksOfTheDocuments follows every relative link.
func TestLinksOfTheDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(needs.Root(), filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}
