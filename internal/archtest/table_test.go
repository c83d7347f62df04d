package archtest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"plimsoll/internal/golden"
	"plimsoll/internal/needs"
)

// page is where the table of packages and their picture stand.
func page() string { return filepath.Join(needs.Root(), "docs", "architecture.md") }

// table is the table of packages in docs/architecture.md: which others of ours the shipped files of a package may
// import. Keys and values are path.Match patterns.
var table = sync.OnceValues(func() (map[string][]string, error) {
	text, err := os.ReadFile(page())
	if err != nil {
		return nil, err
	}
	_, rows, found := strings.Cut(string(text), "| package | gives |")
	if !found {
		return nil, fmt.Errorf("%s holds no table of packages", page())
	}
	rows, _, _ = strings.Cut(rows, "\n\n")
	may := map[string][]string{}
	for _, row := range strings.Split(rows, "\n")[2:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s: a row of %d cells: %s", page(), len(cells), row)
		}
		for _, dir := range regexp.MustCompile("`[^`]+`").FindAllString(cells[0], -1) {
			may[strings.Trim(dir, "`")] = importsOf(cells[2])
		}
	}
	return may, nil
})

// importsOf reads the last cell of a row. A name that is no package beside internal stands for one in it.
func importsOf(cell string) []string {
	switch cell {
	case "nothing":
		return nil
	case "everything but drivers themselves": // they come through internal/drivers
		return []string{
			"*",
			"*/*",
			"internal/analysis/*",
			"internal/convert/*",
			"internal/device/*",
			"internal/tprocc/*",
			"internal/prism/*",
			"internal/exporter/nutanix", // it serves itself: pages of its size are not made of collectors
			"internal/trace/*",
		}
	}
	var out []string
	for name := range strings.SplitSeq(cell, ", ") {
		first, _, _ := strings.Cut(name, "/")
		if _, err := os.Stat(filepath.Join(needs.Root(), first)); err != nil {
			name = "internal/" + name
		}
		out = append(out, name)
	}
	return out
}

// row finds the rule for a package: its own row, else the longest pattern that covers it.
func row(t *testing.T, dir string) ([]string, bool) {
	t.Helper()
	may, err := table()
	if err != nil {
		t.Fatal(err)
	}
	best := ""
	for pattern := range may {
		if ok, _ := path.Match(pattern, dir); ok && (pattern == dir || len(pattern) > len(best) && best != dir) {
			best = pattern
		}
	}
	return may[best], best != ""
}

// TestRowsAreOfPackages: a row without a package is of one that is gone.
func TestRowsAreOfPackages(t *testing.T) {
	may, err := table()
	if err != nil {
		t.Fatal(err)
	}
	for pattern := range may {
		if !slices.ContainsFunc(packages(t), func(p *pkg) bool { return matches([]string{pattern}, p.dir) }) {
			t.Errorf("docs/architecture.md has a row for %s, which is no package", pattern)
		}
	}
}

// TestPicture draws the packages and their imports into docs/architecture.md; -update draws it anew. Folders of drivers
// and methods are one box, test packages are left out, and so is an arrow that follows from others.
func TestPicture(t *testing.T) {
	to := map[string]map[string]bool{}
	for _, p := range packages(t) {
		from := box(p.dir)
		if from == "" {
			continue
		}
		if to[from] == nil {
			to[from] = map[string]bool{}
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				ours, ok := strings.CutPrefix(imported, module)
				if b := box(ours); ok && b != "" && b != from {
					to[from][b] = true
				}
			}
		}
	}
	var b bytes.Buffer
	b.WriteString("```mermaid\nflowchart LR\n")
	for _, from := range slices.Sorted(maps.Keys(to)) {
		for _, dir := range slices.Sorted(maps.Keys(to[from])) {
			if !follows(to, from, dir) {
				fmt.Fprintf(&b, "  %s --> %s\n", node(from), node(dir))
			}
		}
	}
	b.WriteString("```\n")
	text, err := os.ReadFile(page())
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- picture: go test ./internal/archtest -run Picture -update -->\n", "<!-- end of picture -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the picture, between %q and %q", page(), begin, end)
	}
	golden.Compare(t, page(), []byte(head+begin+b.String()+end+tail))
}

// box is the box in which a package is drawn, "" for none.
func box(dir string) string {
	if matches(testsOnly, dir) || dir == "internal/visible/visibletest" {
		return ""
	}
	for _, folder := range []string{"internal/target", "internal/workload", "internal/analysis", "internal/exporter"} {
		if strings.HasPrefix(dir, folder+"/") {
			return folder + "/*"
		}
	}
	return dir
}

func node(dir string) string {
	name := strings.TrimPrefix(dir, "internal/")
	return strings.NewReplacer("/*", "_all", "/", "_").Replace(name) + "[" + name + "]"
}

// follows reports whether there is another way from one box to another than the arrow between them.
func follows(to map[string]map[string]bool, from, dir string) bool {
	seen := map[string]bool{from: true}
	var reach func(string) bool
	reach = func(at string) bool {
		for next := range to[at] {
			if at == from && next == dir || seen[next] {
				continue
			}
			seen[next] = true
			if next == dir || reach(next) {
				return true
			}
		}
		return false
	}
	return reach(from)
}
