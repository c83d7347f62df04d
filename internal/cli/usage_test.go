package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"plimsoll/internal/cli/drivers"
)

// Every command and flag stands in the help once, in a group that was chosen for it, and groups name nothing else.
func TestGroupsOfHelp(t *testing.T) {
	t.Parallel()
	root := (&app{drivers: drivers.All()}).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var there []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			there = append(there, c.Name())
		}
	}
	check := func(of string, groups []group, there []string) {
		var named []string
		for _, g := range groups {
			named = append(named, strings.Fields(g.names)...)
		}
		slices.Sort(named)
		slices.Sort(there)
		if diff := cmp.Diff(there, named); diff != "" {
			t.Errorf("%s (-there +in groups):\n%s", of, diff)
		}
	}
	check("plimsoll", commandGroups, there)
	for name, groups := range flagGroups {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		c.InitDefaultHelpFlag()
		check(name, groups, namesOf(c.LocalFlags()))
		if first := strings.Fields(groups[0].names); len(first) != 10 {
			t.Errorf("%s: %d flags stand first, want 10", name, len(first))
		}
	}
}

// What no group names is listed all the same, in the last.
func TestSplit(t *testing.T) {
	t.Parallel()
	got := split([]group{{"A", "b a"}, {"None", "x"}, {"Last", "c"}}, []string{"a", "b", "c", "new"})
	if diff := cmp.Diff([]group{{"A", "b a"}, {"Last", "c new"}}, got, cmp.AllowUnexported(group{})); diff != "" {
		t.Error(diff)
	}
}

// A command of few flags has the help that cobra gives.
func TestUsageOfOthers(t *testing.T) {
	t.Parallel()
	root := (&app{drivers: drivers.All()}).root()
	for _, name := range []string{"check", "runs"} {
		c, _, _ := root.Find([]string{name})
		got := c.UsageString()
		c.SetUsageFunc(new(cobra.Command).UsageFunc())
		if diff := cmp.Diff(c.UsageString(), got); diff != "" || !strings.HasPrefix(got, "Usage:\n  plimsoll "+name) {
			t.Error(got, diff)
		}
	}
}
