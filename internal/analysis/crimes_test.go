package analysis

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
)

// TestCrimes: the table of ways to be fooled has forty rows or more, and what it says is caught names a check,
// a document or a command, and a test that there is, with its case. Where the words of a case are held in a file, each
// check that the row names speaks up there.
func TestCrimes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("testdata", "crimes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n\n|")
	if !ok {
		t.Fatal("testdata/crimes.md has no table")
	}
	known := []string{"compare", "baseline check", "compare --fail-on", "steady", "usl", "changes"}
	for _, c := range checks {
		known = append(known, c.Name)
	}
	tests := func(room string) string {
		files, err := filepath.Glob(filepath.Join(needs.Root(), "internal", "analysis", room, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	named, rows := regexp.MustCompile("`([^`]+)`"), strings.Split(strings.TrimSpace(table), "\n")[2:]
	if len(rows) < 40 {
		t.Errorf("%d rows: at least 40 are wanted", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if strings.Contains(row, " | not | ") || strings.Contains(row, " | warned | ") {
			continue
		}
		if len(cells) != 5 || cells[2] != "caught" {
			t.Errorf("%q: not a row of how, source, verdict, by, test", row)
			continue
		}
		by := named.FindAllStringSubmatch(cells[3], -1)
		if by == nil {
			t.Errorf("%q names no check", row)
		}
		for _, name := range by {
			if !slices.Contains(known, name[1]) {
				t.Errorf("%q: there is no check %q", row, name[1])
			}
		}
		room, test, ok := strings.Cut(cells[4], ": ")
		name, one, _ := strings.Cut(test, "/")
		if room == "analysis" {
			room = ""
		}
		source := tests(room)
		if !ok || !strings.Contains(source, "\nfunc "+name+"(") {
			t.Errorf("%q: there is no test %q", row, test)
		}
		if !strings.Contains(source, `"`+one) {
			t.Errorf("%q: its test has no case %q", row, one)
		}
		if room != "" || one == "" {
			continue
		}
		for _, name := range by {
			if !speaksUp(t, name[1], one) {
				t.Errorf("%q: %s does not speak up in %q", row, name[1], one)
			}
		}
	}
}

// speaksUp reports whether a check says something of a case, other than that all is well.
func speaksUp(t *testing.T, check, of string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	check, of = regexp.QuoteMeta(check), regexp.QuoteMeta(of)
	const loud = `(info|warning|invalid): `
	said := regexp.MustCompile(`(?m)^== ` + of + `\n((?:[^=].*\n)*)`)
	own, direct := regexp.MustCompile(`(?m)^`+check+`, `+loud), regexp.MustCompile(`(?m)^`+check+`: `+of+`\n  `+loud)
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m := said.FindSubmatch(text)
		return direct.Match(text) || m != nil && own.Match(m[1])
	})
}
