// Package usage prints the part of a command's help that lists commands and flags: in groups, those first that are used
// most. All of it is text of the program's own.
package usage

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Group is some commands or flags as help lists them, those first that are used most.
type Group struct{ Title, Names string }

// Commands are the commands of the program. What is in none stands in the last.
var Commands = []Group{
	{"Run", "run check plan scenarios mark attach resume cleanup"},
	{"Look at runs", "report runs analyze metrics import steady usl"},
	{"Compare and judge", "compare baseline history changes catalogue"},
	{"Storage tools", "device trace convert content integrity vioperf"},
	{"Databases", "db"},
	{"Machines", "targets lab nutanix exporter"},
	{"Serve", "serve dashboards"},
	{"Settings and help", "help config schema completion version"},
}

// Flags are the flags of commands that have many, by the command's name.
var Flags = map[string][]Group{"run": {
	{"Most used flags", "target disk set nodes preset time-scale size-scale name assert keep"},
	{"Scenario", "set-file strict once"},
	{"Job files instead of a scenario", "sweep repeat runtime job-size precondition curve-max"},
	{"Machines", "target-opt consent allow-host-commands"},
	{"Course", "time-limit patience detach remote-write"},
	{"Outcome", "compare-plain data-sheet junit tag note"},
	{"Help", "help"},
}}

// Print prints it: of the program and of commands of many flags in groups, of others as cobra does.
func Print(c *cobra.Command) error {
	groups := Flags[c.Name()]
	if c.HasParent() && (groups == nil || c.Parent().HasParent()) {
		return new(cobra.Command).UsageFunc()(c)
	}
	w := c.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
	if !c.HasParent() {
		fmt.Fprintf(w, "  %s [command]\n", c.CommandPath())
	}
	fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	if !c.HasParent() {
		listCommands(w, c)
		fmt.Fprintf(w, "\nFlags:\n%s\n", strings.TrimRight(c.LocalFlags().FlagUsages(), "\n"))
		_, err := fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more information about a command.\n", c.CommandPath())
		return err
	}
	for _, g := range Split(groups, Names(c.LocalFlags())) {
		some := pflag.NewFlagSet("", pflag.ContinueOnError)
		some.SortFlags = false
		for name := range strings.FieldsSeq(g.Names) {
			some.AddFlag(c.LocalFlags().Lookup(name))
		}
		fmt.Fprintf(w, "\n%s:\n%s\n", g.Title, strings.TrimRight(some.FlagUsages(), "\n"))
	}
	_, err := fmt.Fprintf(w, "\nGlobal Flags:\n%s\n", strings.TrimRight(c.InheritedFlags().FlagUsages(), "\n"))
	return err
}

func listCommands(w io.Writer, root *cobra.Command) {
	short := map[string]string{}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names, short[c.Name()] = append(names, c.Name()), c.Short
		}
	}
	for _, g := range Split(Commands, names) {
		fmt.Fprintf(w, "\n%s:\n", g.Title)
		for name := range strings.FieldsSeq(g.Names) {
			fmt.Fprintf(w, "  %-*s %s\n", root.NamePadding(), name, short[name])
		}
	}
}

// Split deals names to groups. Groups hold only what there is, and none is empty.
func Split(groups []Group, names []string) (out []Group) {
	var known []string
	for _, g := range groups {
		known = append(known, strings.Fields(g.Names)...)
	}
	for i, g := range groups {
		list := slices.DeleteFunc(strings.Fields(g.Names), func(n string) bool { return !slices.Contains(names, n) })
		if i == len(groups)-1 {
			list = append(list, slices.DeleteFunc(slices.Clone(names), func(n string) bool {
				return slices.Contains(known, n)
			})...)
		}
		if len(list) > 0 {
			out = append(out, Group{g.Title, strings.Join(list, " ")})
		}
	}
	return out
}

// Names are the flags that help shows.
func Names(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
