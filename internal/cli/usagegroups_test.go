package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/usage"
	"plimsoll/internal/kit/exit"
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

// A command that only holds others has no JSON: with --json it is a wrong command line, which prints nothing.
func TestGroupsHaveNoJSON(t *testing.T) {
	a, _, _ := quiet(t)
	groups := 0
	for _, c := range append(a.root().Commands(), a.root()) {
		if c.RunE == nil || reflect.ValueOf(c.RunE).Pointer() != reflect.ValueOf(console.Help).Pointer() {
			continue
		}
		groups++
		a, out, errs := quiet(t)
		args := append(strings.Fields(c.CommandPath())[1:], "--json")
		if code := a.main(args); code != exit.Usage || out.Len() > 0 ||
			!strings.Contains(errs.String(), c.CommandPath()) {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, errs)
		}
	}
	if groups < 8 {
		t.Errorf("%d groups", groups)
	}
}
