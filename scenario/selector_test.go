package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll/scenario"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func ExampleSelector_Resolve() {
	s, _ := scenario.ParseSelector("n-1,:n/2")
	nodes, _ := s.Resolve(5)
	fmt.Println(nodes)
	// Output: [4 0 1]
}

func TestSelectorResolve(t *testing.T) {
	t.Parallel()
	none := []int{}
	for _, c := range []struct {
		text  string
		nodes int
		want  []int
	}{
		{"0", 4, []int{0}}, {"1,2", 4, []int{1, 2}}, {"0, 1", 4, []int{0, 1}},
		{"-1", 4, []int{3}}, {"n-1", 4, []int{3}}, {"-n", 4, []int{0}},
		{"all", 4, []int{0, 1, 2, 3}}, {":", 4, []int{0, 1, 2, 3}}, {"0:", 4, []int{0, 1, 2, 3}},
		{":n", 4, []int{0, 1, 2, 3}},
		{"3,0:2", 4, []int{3, 0, 1}}, {"0,0", 4, []int{0}}, {"0, 0:2", 4, []int{0, 1}},
		{"::2", 4, []int{0, 2}}, {"::-1", 4, []int{3, 2, 1, 0}}, {":n/2", 4, []int{0, 1}}, {"n/2:", 4, []int{2, 3}},
		{"2:9", 4, []int{2, 3}}, {"9:12", 4, none}, {"3:1", 4, none},
		{":n-1", 4, []int{0, 1, 2}}, {"1:", 4, []int{1, 2, 3}}, {"0:2, n-2:n", 4, []int{0, 1, 2, 3}},
		{"1:(n/2)+1", 4, []int{1, 2}},
		{"1:3", 4, []int{1, 2}}, {"-3:-1", 4, []int{1, 2}}, {"-99:", 4, []int{0, 1, 2, 3}}, {"3:0:-2", 4, []int{3, 1}},
		{"2*(1+0)", 4, []int{2}}, {"7//2", 4, []int{3}}, {"-7/2", 4, []int{0}}, {"2**1", 4, []int{2}},
		{"-1**2", 4, []int{3}}, {"+1", 4, []int{1}},
		{"::9223372036854775807", 4, []int{0}}, {"::-9223372036854775807", 4, []int{3}}, {" 1", 4, []int{1}},
		{"00", 4, []int{0}}, {"2n-22", 4, []int{2}},
		// Small and odd clusters.
		{":n/2", 1, none}, {":n-1", 1, none}, {"0", 1, []int{0}}, {"-1", 1, []int{0}}, {"1:", 1, none},
		{":n/2", 2, []int{0}}, {":n-1", 2, []int{0}}, {"n/2:", 2, []int{1}}, {"-n", 2, []int{0}},
		{":n/2", 3, []int{0}}, {"n/2:", 3, []int{1, 2}}, {"1,2", 3, []int{1, 2}}, {"::-2", 3, []int{2, 0}},
		{":n/2", 5, []int{0, 1}}, {"n/2", 5, []int{2}}, {"n/2:", 5, []int{2, 3, 4}}, {":n-1", 5, []int{0, 1, 2, 3}},
	} {
		s, err := scenario.ParseSelector(c.text)
		if err != nil {
			t.Errorf("ParseSelector(%q): %v", c.text, err)
			continue
		}
		got, err := s.Resolve(c.nodes)
		if err != nil {
			t.Errorf("%q on %d nodes: %v", c.text, c.nodes, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q on %d nodes (-want +got):\n%s", c.text, c.nodes, diff)
		}
	}
}

func TestSelectorErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		syntax bool // refused without knowing the cluster
		bounds bool
		want   string
	}{
		{"", true, false, "empty piece"}, {" ", true, false, "empty piece"}, {"0,", true, false, "empty piece"},
		{"0,,1", true, false, "empty piece"},
		{"a", true, false, "'a'"}, {"1.5", true, false, "'.'"}, {"none", true, false, "'o'"}, {"N", true, false, "'N'"},
		{"0 1", true, false, `unexpected "1"`}, {"08", true, false, "leading zero"}, {"010", true, false, `write "10"`},
		{"1:2:3:4", true, false, "3 colons"}, {"(1", true, false, "closing parenthesis"},
		{"1)", true, false, "unexpected"}, {"1+", true, false, "lacks a number"},
		{": ", true, false, "only blanks"}, {"0, :2", true, false, "only blanks"},
		{strings.Repeat("(", 500) + "1", true, false, "closing"},
		{strings.Repeat("1", 1001), true, false, "longer than"},
		{"99999999999999999999", true, false, "too large"},
		{"n/0", false, false, "divides by zero"}, {"::0", false, false, "step"},
		{"2**-1", false, false, "negative power"},
		{"9223372036854775807*2", false, false, "too large"}, {"2**99", false, false, "too large"},
		{"n", false, true, "node 4 is out of bounds on 4 nodes"}, {"6", false, true, "node 6"},
		{"-n-1", false, true, "node -5"}, {"2n", false, true, "node 24"},
	} {
		s, err := scenario.ParseSelector(c.text)
		if (err != nil) != c.syntax {
			t.Errorf("ParseSelector(%.20q): error %v, want one: %t", c.text, err, c.syntax)
		}
		_, err = s.Resolve(4)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q on 4 nodes: error %v, want one with %q", c.text, err, c.want)
		}
		if errors.Is(err, scenario.ErrOutOfBounds) != c.bounds {
			t.Errorf("%.20q on 4 nodes: %v: is ErrOutOfBounds: %t", c.text, err, !c.bounds)
		}
	}
	if _, err := (scenario.Selector{Text: "all"}).Resolve(0); err == nil {
		t.Error("a cluster of 0 nodes resolves")
	}
}

// TestSelectorSlices compares slices with a walk over the indices written from the definition.
func TestSelectorSlices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		start, stop := rapid.IntRange(-15, 15).Draw(t, "start"), rapid.IntRange(-15, 15).Draw(t, "stop")
		step := rapid.IntRange(-4, 4).Filter(func(i int) bool { return i != 0 }).Draw(t, "step")
		got, err := scenario.Selector{Text: fmt.Sprintf("%d:%d:%d", start, stop, step)}.Resolve(n)
		if err != nil {
			t.Fatal(err)
		}
		from, to := start, stop
		if from < 0 {
			from += n
		}
		if to < 0 {
			to += n
		}
		// Every node k is selected that lies on the walk from start by step, before stop, with start clipped into
		// range.
		if step > 0 {
			from = max(from, 0)
		} else {
			from = min(from, n-1)
		}
		want := []int{}
		for k := from; (step > 0 && k < min(to, n)) || (step < 0 && k > max(to, -1)); k += step {
			want = append(want, k)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d:%d:%d on %d nodes: got %v, want %v", start, stop, step, n, got, want)
		}
	})
}

func FuzzSelector(f *testing.F) {
	for _, s := range []string{"0", ":n/2", "1:(n/2)+1", "0:2, n-2:n", "all", "n/0", "::-1", "2**63", "((", "-n"} {
		f.Add(s, 4)
	}
	f.Fuzz(func(t *testing.T, text string, nodes int) {
		nodes = nodes&63 + 1
		s, syntax := scenario.ParseSelector(text)
		got, err := s.Resolve(nodes)
		if syntax != nil && err == nil && !strings.ContainsAny(text, "n") {
			t.Fatalf("%q resolves to %v although it does not parse: %v", text, got, syntax)
		}
		seen := map[int]bool{}
		for _, i := range got {
			if i < 0 || i >= nodes || seen[i] {
				t.Fatalf("%q on %d nodes: %v", text, nodes, got)
			}
			seen[i] = true
		}
	})
}
