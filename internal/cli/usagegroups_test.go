package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/usage"
)

// Every command and flag stands in the help once, in a group that was chosen for it, and groups name nothing else.
func TestGroupsOfHelp(t *testing.T) {
	t.Parallel()
	root := newApp(&console.Console{}, drivers.All()).root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var there []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			there = append(there, c.Name())
		}
	}
	check := func(of string, groups []usage.Group, there []string) {
		var named []string
		for _, g := range groups {
			named = append(named, strings.Fields(g.Names)...)
		}
		slices.Sort(named)
		slices.Sort(there)
		if diff := cmp.Diff(there, named); diff != "" {
			t.Errorf("%s (-there +in groups):\n%s", of, diff)
		}
	}
	check("plimsoll", usage.Commands, there)
	for name, groups := range usage.Flags {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		c.InitDefaultHelpFlag()
		check(name, groups, usage.Names(c.LocalFlags()))
		if first := strings.Fields(groups[0].Names); len(first) != 10 {
			t.Errorf("%s: %d flags stand first, want 10", name, len(first))
		}
	}
}

// A command of few flags has the help that cobra gives.
func TestUsageOfOthers(t *testing.T) {
	t.Parallel()
	root := newApp(&console.Console{}, drivers.All()).root()
	for _, name := range []string{"check", "runs"} {
		c, _, _ := root.Find([]string{name})
		got := c.UsageString()
		c.SetUsageFunc(new(cobra.Command).UsageFunc())
		if diff := cmp.Diff(c.UsageString(), got); diff != "" || !strings.HasPrefix(got, "Usage:\n  plimsoll "+name) {
			t.Error(got, diff)
		}
	}
}
