package arch

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
)

// page is where the table of rooms and their picture stand.
func page() string { return filepath.Join(needs.Root(), "docs", "architecture.md") }

// rooms is the table of rooms in docs/architecture.md, from the ground up: which others the shipped files of a room may
// import. order is theirs in the table.
type rooms struct {
	may   map[string][]string
	order []string
}

var table = sync.OnceValues(func() (r rooms, err error) {
	text, err := os.ReadFile(page())
	if err != nil {
		return r, err
	}
	_, rows, found := strings.Cut(string(text), "| room | gives |")
	if !found {
		return r, fmt.Errorf("%s holds no table of rooms", page())
	}
	rows, _, _ = strings.Cut(rows, "\n\n")
	r.may = map[string][]string{}
	for _, row := range strings.Split(rows, "\n")[2:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			return r, fmt.Errorf("%s: a row of %d cells: %s", page(), len(cells), row)
		}
		may := importsOf(cells[2], r.order)
		for _, dir := range regexp.MustCompile("`[^`]+`").FindAllString(cells[0], -1) {
			dir = strings.Trim(dir, "`")
			r.may[dir] = may
			r.order = append(r.order, dir)
		}
	}
	return r, nil
})

// importsOf reads the last cell of a row. A name that is no folder beside internal stands for one in it.
func importsOf(cell string, above []string) []string {
	switch cell {
	case "nothing":
		return nil
	case "all above":
		return slices.Clone(above)
	}
	var out []string
	for name := range strings.SplitSeq(cell, ", ") {
		if _, err := os.Stat(filepath.Join(needs.Root(), name)); err != nil {
			name = "internal/" + name
		}
		out = append(out, name)
	}
	return out
}

// house is which rooms a room may import.
func house(t *testing.T) map[string][]string {
	t.Helper()
	r, err := table()
	if err != nil {
		t.Fatal(err)
	}
	return r.may
}

// room is the folder that a stranger sees: the first in internal, else the first.
func room(dir string) string {
	first, rest, _ := strings.Cut(dir, "/")
	if first != "internal" {
		return first
	}
	second, _, _ := strings.Cut(rest, "/")
	return first + "/" + second
}

// TestArrowsPointOneWay: a room imports what stands above it in the table, so there is no way round in a circle.
func TestArrowsPointOneWay(t *testing.T) {
	r, err := table()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.order) > 21 {
		t.Errorf("%d rooms: a stranger finds the way among 21", len(r.order))
	}
	for i, dir := range r.order {
		if !slices.ContainsFunc(packages(t), func(p *pkg) bool { return room(p.dir) == dir }) {
			t.Errorf("docs/architecture.md has a row for %s, which holds no package", dir)
		}
		for _, to := range r.may[dir] {
			if !slices.Contains(r.order[:i], to) {
				t.Errorf("docs/architecture.md lets %s import %s, which does not stand above it", dir, to)
			}
		}
	}
}

// arrows are the imports between the rooms that ship, as the source has them.
func arrows(t *testing.T) map[string]map[string]bool {
	t.Helper()
	to := map[string]map[string]bool{}
	for _, p := range packages(t) {
		from := room(p.dir)
		if from == "internal/testkit" {
			continue
		}
		if to[from] == nil {
			to[from] = map[string]bool{}
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				if ours, ok := strings.CutPrefix(imported, module); ok && room(ours) != from {
					to[from][room(ours)] = true
				}
			}
		}
	}
	return to
}

// TestFigures says what docs/decisions/0013-house.md states: run it with -v.
func TestFigures(t *testing.T) {
	to := arrows(t)
	n := 0
	for _, others := range to {
		n += len(others)
	}
	floors := map[string]int{}
	var floor func(string, int) int
	floor = func(dir string, depth int) int {
		if depth > len(to) {
			t.Fatalf("the rooms import each other in a circle, %s among them", dir)
		}
		if floors[dir] == 0 {
			highest := 0
			for other := range to[dir] {
				highest = max(highest, floor(other, depth+1))
			}
			floors[dir] = highest + 1
		}
		return floors[dir]
	}
	top := 0
	for dir := range to {
		top = max(top, floor(dir, 0))
	}
	t.Logf("%d rooms that ship, %d arrows between them, %d floors, no circle", len(to), n, top)
}

// TestPicture draws the rooms and their imports into docs/architecture.md; -update draws it anew. The room of tests is
// left out, and so is an arrow that follows from others.
func TestPicture(t *testing.T) {
	to := arrows(t)
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
	const begin, end = "<!-- picture: go test ./internal/testkit/arch -run Picture -update -->\n", "<!-- end of picture -->"
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the picture, between %q and %q", page(), begin, end)
	}
	golden.Compare(t, page(), []byte(head+begin+b.String()+end+tail))
}

func node(dir string) string {
	name := strings.TrimPrefix(dir, "internal/")
	return strings.ReplaceAll(name, "/", "_") + "[" + name + "]"
}

// follows reports whether there is another way from one room to another than the arrow between them.
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
