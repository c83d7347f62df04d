// Package machines is the commands about machines and what counts of them: targets, exporters, Nutanix, the lab; and
// how flags make a target.
package machines

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/storage"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
)

// Targets are the places that machines come from.
type Targets struct {
	*console.Console
	Drivers drivers.Registry
	RunsDir string // --dir, the folder of run folders
}

// maxScale bounds --time-scale and --size-scale from above.
const maxScale = 1000

// Factor is a scale: a number above 0, at most maxScale.
type Factor float64

// String implements pflag.Value.
func (f *Factor) String() string { return strconv.FormatFloat(float64(*f), 'g', -1, 64) }

// Type implements pflag.Value.
func (f *Factor) Type() string { return "factor" }

// Set implements pflag.Value.
func (f *Factor) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v <= maxScale) {
		return fmt.Errorf("want a number above 0 and at most %d, like 0.02", maxScale)
	}
	*f = Factor(v)
	return nil
}

// targetFlags say where machines come from and how a scenario is made to fit.
type Flags struct {
	Name              string
	Options           []string
	TimeScale         Factor
	SizeScale         Factor
	AllowHostCommands bool
	Disks             []string
	Consents          []string
}

func (f *Flags) Register(known drivers.Registry, c *cobra.Command) {
	f.TimeScale, f.SizeScale = 1, 1
	flags := c.Flags()
	flags.StringVar(&f.Name, "target", known.Targets[0].Name(),
		"`where` the machines come from; see plimsoll targets list")
	flags.StringArrayVar(
		&f.Disks,
		"disk",
		nil,
		"`folder` whose file system the data disks are put on (target local), or a block device that is one data disk "+
			"and is overwritten; the load goes there; repeatable: disks are dealt out in turn",
	)
	flags.StringArrayVar(&f.Consents, "consent", nil, storage.ConsentHelp+"; repeatable, one for each device")
	flags.StringArrayVar(&f.Options, "target-opt", nil, "set an option of the target, `NAME=VALUE`; repeatable")
	flags.Var(&f.TimeScale, "time-scale", "multiply the scenario's durations by this `factor`")
	flags.Var(&f.SizeScale, "size-scale", "multiply sizes of disks and files by this `factor`")
	flags.BoolVar(&f.AllowHostCommands, "allow-host-commands", false,
		"permit steps that run the author's commands on this machine")
	_ = c.RegisterFlagCompletionFunc(
		"target",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, p := range known.Targets {
				names = append(names, p.Name()+"\t"+p.Summary())
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	)
}

// clockedTarget is a target with the clock that a run on it goes by.
type Clocked struct {
	target.Target
	Options map[string]string
	Clock   clock.Clock
}

// Target makes the target of the flags. It touches nothing yet.
func (tg *Targets) Target(f Flags, nodes int) (*Clocked, error) {
	provider, ok := tg.Drivers.Target(f.Name)
	if !ok {
		return nil, exit.Usagef("there are: "+strings.Join(tg.Drivers.TargetNames(), ", "),
			"target: no target called %q", f.Name)
	}
	options, err := console.Pairs("--target-opt", f.Options)
	if err != nil {
		return nil, err
	}
	if len(f.Consents) > 0 {
		if len(f.Disks) == 0 {
			return nil, exit.Usagef("", "--consent goes with --disk and a block device")
		}
		options[ConsentOption] = strings.Join(f.Consents, "\n")
	}
	if len(f.Disks) > 0 {
		if err := onDisk(f, provider, options); err != nil {
			return nil, err
		}
	}
	if nodes < 0 {
		return nil, exit.Usagef("", "--nodes: %d is not a number of nodes", nodes)
	}
	p := &Clocked{Options: options, Clock: tg.Clock}
	if keeper, ok := provider.(target.Timekeeper); ok {
		p.Clock = keeper.Clock()
	}
	p.Target, err = provider.New(target.Config{Nodes: nodes, Options: options, Clock: p.Clock, RunsDir: tg.RunsDir,
		PowerKinds: tg.Drivers.PowerKinds, AllowHostCommands: f.AllowHostCommands})
	if err != nil &&
		slices.ContainsFunc(f.Disks, func(dir string) bool { return strings.HasPrefix(err.Error(), dir) }) {
		return nil, exit.Usagef("", "--disk %w", err)
	}
	if err != nil {
		return nil, exit.Usagef(`run "plimsoll targets list" for the options there are`, "target: %s: %w", f.Name, err)
	}
	return p, nil
}

// Options of a target that say where its data disks lie, and that devices there may be overwritten.
const (
	DirOption     = "dir"
	ConsentOption = "consent"
)

// onDisk puts the data disks where --disk says. Nothing there is touched but a folder of the run's own, which clean-up
// removes.
func onDisk(f Flags, provider target.Provider, options map[string]string) error {
	if !slices.ContainsFunc(provider.Options(), func(o target.Option) bool { return o.Name == DirOption }) {
		return exit.Usagef("leave it out, or use --target local", "--disk: target %s has no disks on this machine",
			provider.Name())
	}
	if options[DirOption] != "" {
		return exit.Usagef("give one of them", "--disk and --target-opt %s both say where the disks lie", DirOption)
	}
	for _, dir := range f.Disks {
		if strings.Contains(dir, ":") && len(f.Disks) > 1 {
			return exit.Usagef("give it a name without one, or a symbolic link of such a name",
				`--disk %s: with several folders, none may have a ":" in its name`, dir)
		}
	}
	options[DirOption] = strings.Join(f.Disks, ":")
	return nil
}
