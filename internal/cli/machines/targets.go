package machines

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

func (tg *Targets) Command() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the places that machines can come from, with their options",
		Args:    console.Args(0, 0, "argument"),
		Example: "  plimsoll targets list",
		RunE:    func(*cobra.Command, []string) error { return tg.listTargets() },
	}
	var f Flags
	var nodes int
	var try bool
	check := &cobra.Command{
		Use: "check [TARGET]", Short: "Look at a target and say what it is and what it can do",
		Args:    console.Args(0, 1, "target"),
		Example: "  plimsoll targets check local --nodes 4",
		RunE: func(_ *cobra.Command, given []string) error {
			if len(given) == 1 {
				f.Name = given[0]
			}
			return tg.checkTarget(f, nodes, try)
		},
	}
	check.Flags().BoolVar(&try, "try", false,
		"also make a small machine, switch it on, run a command there, clone it and remove all")
	check.Flags().IntVar(&nodes, "nodes", 0, "`number` of nodes (default: the target's)")
	check.Flags().StringArrayVar(&f.Options, "target-opt", nil, "set an option of the target, `NAME=VALUE`; repeatable")
	check.Flags().BoolVar(&f.AllowHostCommands, "allow-host-commands", false,
		"permit steps that run the author's commands on this machine")
	f.Name = tg.Drivers.Targets[0].Name()
	return console.Group("targets", "List and look at the places that machines come from", list, check,
		tg.roleCommand())
}

// roleCommand prints the rights that a run needs.
func (tg *Targets) roleCommand() *cobra.Command {
	var namespace, account string
	var power, virtual bool
	c := &cobra.Command{
		Use: "role TARGET", Short: "Print the least rights that a run needs, for kubectl apply",
		Args:    console.Args(1, 1, "target"),
		Example: "  plimsoll targets role kubernetes --namespace perf",
		RunE: func(_ *cobra.Command, given []string) error {
			p, ok := tg.Drivers.Target(given[0])
			if !ok {
				return exit.Usagef("there are: "+strings.Join(tg.Drivers.TargetNames(), ", "),
					"target: no target called %q", given[0])
			}
			giver, is := p.(target.RoleGiver)
			if !is {
				return exit.Usagef("", "target: %s has no roles", given[0])
			}
			for _, name := range []string{namespace, account} {
				if !plainName.MatchString(name) {
					return exit.Usagef("", "target: role: %q: want a name of small letters, digits and dashes", name)
				}
			}
			for line := range strings.Lines(giver.Role(namespace, account, power, virtual)) {
				visible.Fprintf(tg.Out, "%s\n", strings.TrimSuffix(line, "\n"))
			}
			return nil
		},
	}
	c.Flags().StringVar(&namespace, "namespace", "plimsoll", "`name` of the namespace that runs are in")
	c.Flags().StringVar(&account, "account", "plimsoll", "`name` of the service account that they run as")
	c.Flags().BoolVar(&power, "power", false, "with what switching nodes off needs: seeing whose pods are there")
	c.Flags().BoolVar(&virtual, "virtual", false, "with what virtual machines of KubeVirt need")
	return c
}

var plainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (tg *Targets) listTargets() error {
	var all []console.Listed
	for _, p := range tg.Drivers.Targets {
		all = append(all, console.Listing(p.Name(), p.Summary(), p.Options()))
	}
	return tg.PrintListed(all)
}

func (tg *Targets) checkTarget(f Flags, nodes int, try bool) error {
	t, err := tg.Target(f, nodes)
	if err != nil {
		return err
	}
	ctx, stop := tg.Interruptible()
	defer stop()
	facts, checkErr := t.Check(ctx)
	if checkErr != nil && facts.Target == "" { // there is nothing to show
		return exit.Errorf(exit.Refused, "", "target: %w", checkErr)
	}
	if f.Name == "local" {
		facts.Environment = append(facts.Environment, tg.residents(ctx)...)
	}
	if try && checkErr == nil {
		var said string
		if said, checkErr = tryTarget(ctx, t, &facts, tg.Now(), func(format string, args ...any) {
			visible.Fprintf(tg.Err, format+"\n", args...)
		}); said != "" {
			facts.Notes = append(facts.Notes, said)
		}
	}
	if tg.JSON {
		if err := tg.PrintJSON(facts); err != nil {
			return err
		}
	} else if err := printFacts(tg.Console, facts); err != nil {
		return err
	}
	if checkErr != nil {
		return exit.Errorf(exit.Refused, "", "target: %w", checkErr)
	}
	return nil
}

// residents are the programs of this machine that loads need, and what is wrong with those that cannot be used.
func (tg *Targets) residents(ctx context.Context) (out []result.Fact) {
	engines := tg.Drivers.ByName()
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		if e, ok := engines[name].(workload.Resident); ok {
			f := result.Fact{Group: "programs", Name: name}
			tool, err := e.Here(ctx, nil)
			if f.Value = strings.TrimSpace(tool.Version + " " + tool.Path); err != nil {
				f.Missing = strings.TrimPrefix(err.Error(), name+": ")
			}
			out = append(out, f)
		}
	}
	return out
}

func printFacts(con *console.Console, f target.Facts) error {
	visible.Fprintf(con.Out, "%s: %s, cluster %s\n\n", f.Target, unit.Plural(len(f.Nodes), "node"), f.ClusterName)
	t := terminal.Table{Head: []string{"NODE", "NAME", "CORES", "MEMORY", "POWER"}}
	for _, n := range f.Nodes {
		memory := "-" // not known
		if n.MemoryBytes > 0 {
			memory = unit.Bytes(n.MemoryBytes).String()
		}
		t.Add(fmt.Sprint(n.Index), n.Name, fmt.Sprint(n.Cores), memory, n.Power)
	}
	if err := t.Write(con.Out); err != nil {
		return err
	}
	visible.Fprintf(con.Out, "\n")
	can := terminal.Table{Head: []string{"CAN", "HOW, OR WHY NOT"}}
	for _, c := range slices.Sorted(maps.Keys(f.Capabilities)) {
		can.Add("yes  "+string(c), f.Capabilities[c])
	}
	for _, c := range slices.Sorted(maps.Keys(f.Missing)) {
		can.Add("no   "+string(c), f.Missing[c])
	}
	if err := can.Write(con.Out); err != nil {
		return err
	}
	env := terminal.Table{Head: []string{"FACT", "VALUE"}}
	for _, e := range f.Environment {
		value := e.Value
		if e.Missing != "" {
			value = "missing: " + e.Missing
		}
		env.Add(e.Group+": "+e.Name, value)
	}
	visible.Fprintf(con.Out, "\n")
	if len(f.Environment) > 0 {
		if err := env.Write(con.Out); err != nil {
			return err
		}
		visible.Fprintf(con.Out, "\n")
	}
	if f.FreeBytes >= 0 {
		visible.Fprintf(con.Out, "room for disks: %s\n", unit.Bytes(f.FreeBytes))
	}
	for _, n := range f.Notes {
		visible.Fprintf(con.Out, "note: %s\n", n)
	}
	return nil
}
