package mutants

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/golden"
)

func sampled(t *testing.T) ([]byte, []Mutant) {
	t.Helper()
	src, err := os.ReadFile("testdata/sample.txt")
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := Of("sample.go", src)
	if err != nil {
		t.Fatal(err)
	}
	return src, mutants
}

// TestOf shows every mutant of a small file as it would be printed.
func TestOf(t *testing.T) {
	t.Parallel()
	src, mutants := sampled(t)
	var b strings.Builder
	for _, m := range mutants {
		fmt.Fprintf(&b, "%d: %s\n%s\n", m.Line, m.ID, m.Diff(src))
		if changed, want := string(m.Apply(src)), len(src)-(m.End-m.Start)+len(m.Text); len(changed) != want {
			t.Errorf("%s: %d bytes, want %d", m.ID, len(changed), want)
		}
	}
	golden.Compare(t, "testdata/sample.golden", []byte(b.String()))
}

func TestOfRefuses(t *testing.T) {
	t.Parallel()
	if got, err := Of("broken.go", []byte("package x\nfunc {")); err == nil {
		t.Errorf("%v", got)
	}
}

// TestDraw: the order hangs on the seed and on what a mutant is, not on what else there is or on what line it stands.
func TestDraw(t *testing.T) {
	t.Parallel()
	src, mutants := sampled(t)
	ids := func(from []Mutant) (out []ID) {
		for _, m := range from {
			out = append(out, m.ID)
		}
		return out
	}
	first := ids(Draw(mutants, 1))
	if slices.Equal(first, ids(Draw(mutants, 2))) {
		t.Error("another seed draws the same")
	}
	moved, err := Of("sample.go", []byte(strings.Replace(string(src), "\nconst", "\nfunc a() { b() }\n\nconst", 1)))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(ids(Draw(moved, 1)), func(id ID) bool { return id.Function == "a" })
	if diff := cmp.Diff(first, got); diff != "" {
		t.Errorf("after an edit elsewhere (-before +after):\n%s", diff)
	}
	// Over many seeds those that endanger data come first more often.
	dangerous := func(m Mutant) bool { return weights[m.Kind] == 4 }
	front, there := 0, 0
	for seed := range 500 {
		if m := Draw(mutants, seed)[0]; dangerous(m) {
			front++
		}
		if dangerous(mutants[seed%len(mutants)]) {
			there++
		}
	}
	if front < there*3/2 {
		t.Errorf("of 500 drawn first %d are dangerous, and %d would be without weights", front, there)
	}
}
