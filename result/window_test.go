package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What a window is called, and what is read from such a name where nothing else was kept.
func TestNamesOfWindows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Circumstances{
		"alone":                               {},
		"alone (2)":                           {Again: 2},
		"alone in start 3":                    {Round: 3},
		`alone, after "node 1 off"`:           {After: "node 1 off"},
		`alone, after "a, after b (2)" (3)`:   {After: "a, after b (2)", Again: 3},
		"with A and B and C (12)":             {Beside: []string{"A", "B", "C"}, Again: 12},
		`with A in start 2, after "\"\n off"`: {Beside: []string{"A"}, Round: 2, After: "\"\n off"},
		"between its starts (4)":              {State: BetweenStarts, Again: 4},
		"while its VMs start in start 2":      {State: VMsStart, Round: 2},
		"while its VMs end":                   {State: VMsEnd},
	} {
		if got := c.Name(); got != name {
			t.Errorf("%+v is called %q, want %q", c, got, name)
		}
		if got, ok := CircumstancesOf(name); !ok || cmp.Diff(c, got) != "" {
			t.Errorf("%q was read as %+v, %t", name, got, ok)
		}
	}
	for _, name := range []string{"", "together", "with", "alone (1)", "alone (0)", "alone in start 0",
		"alone, after nothing", `with A, after "B", after "C"`, "alone (99999999999999999999)"} {
		if got, ok := CircumstancesOf(name); ok {
			t.Errorf("%q was read as %+v", name, got)
		}
	}
}

// A name that was read is made again of what was read in it.
func TestNamesOfWindowsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		made := `(alone|with [AB ]+( and C)?|while its VMs end)( in start \d)?(, after "[^"]*")?( \(\d\))?`
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(made)).Draw(t, "name")
		if c, ok := CircumstancesOf(name); ok && c.Name() != name {
			t.Fatalf("%q was read as %+v, which is called %q", name, c, c.Name())
		}
	})
}

// Data that were collected before circumstances and VM groups were kept are read as if they had been; what was kept
// stays.
func TestTellWindows(t *testing.T) {
	t.Parallel()
	odd := Circumstances{Beside: []string{"A and B (2)", "C, after D"}}
	d := &Data{
		Workloads: []Workload{
			{Windows: []Window{{Name: "alone"}, {Name: `with N, after "x" (2)`}, {Name: "before lunch"},
				{Name: odd.Name(), Circumstances: odd}}},
		},
		Panels: []Panel{
			{Kind: "vm_group", Group: "VMGroupResult_G", Query: "sum by (vm_group) (x)"},
			{Kind: "vm_group", Group: "VMGroupResult_G", Query: "max by (vm_group) (x)"},
			{Kind: "workload", Group: "IogenResult_W"},
			{
				Kind:      "vm_group",
				Group:     "VMGroupResult_G",
				VMGroup:   "H",
				Aggregate: "mean",
				Query:     "sum by (vm_group) (x)",
			},
		},
	}
	d.tellWindows()
	var windows []Circumstances
	for _, w := range d.Workloads[0].Windows {
		windows = append(windows, w.Circumstances)
	}
	if diff := cmp.Diff([]Circumstances{{}, {Beside: []string{"N"}, After: "x", Again: 2}, {}, odd},
		windows); diff != "" {
		t.Error(diff)
	}
	var panels [][2]string
	for _, p := range d.Panels {
		panels = append(panels, [2]string{p.VMGroup, p.Aggregate})
	}
	if diff := cmp.Diff([][2]string{{"G", "sum"}, {"G", ""}, {"", ""}, {"H", "mean"}}, panels); diff != "" {
		t.Error(diff)
	}
}
