// Package cli is the command line: one file per verb, flags in, text or JSON out, exit codes from one function.
//
// It stands at the very left and right of the pipeline: it opens scenarios, asks plan and run to act, and shows what
// result, analysis and report have made of it. It decides nothing about scenarios, targets or numbers itself. Main is
// given its arguments and streams and returns the exit code, so that every command is tested without a process.
//
// Data goes to standard output, everything else (progress, warnings, errors) to standard error. Every command that
// prints data takes --json. Both go through a visible.Writer, and lines are printed with visible.Fprintf: nothing that
// an author, a tool or a file says steers the terminal or forges a line.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/cli/storage"
	"plimsoll/internal/cli/usage"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
)

// app is the command line: what its commands work on.
type app struct {
	*console.Console
	*runs.Store
	sides   *judge.Sides
	planner *planner
	runner  *runner
	devices *storage.Devices
	configs *configs
}

// newApp puts the parts together.
func newApp(con *console.Console, registry drivers.Registry) *app {
	a := &app{Console: con, Store: &runs.Store{Targets: &machines.Targets{Console: con, Drivers: registry}},
		devices: &storage.Devices{Console: con}}
	a.configs = &configs{Console: con, drivers: registry}
	a.devices.RunsDir = &a.Store.RunsDir
	a.sides = &judge.Sides{Store: a.Store}
	a.planner = &planner{Store: a.Store}
	a.runner = &runner{planner: a.planner, sides: a.sides}
	return a
}

// planner reads scenarios and plans them.
type planner struct {
	*runs.Store
	made   map[string]fs.FS            // scenarios made of job files, by the name given
	places map[string][]workload.Place // where their files want their data disks
	// readOnly are those whose devices are read as they are
	readOnly []string
	warned   map[string]bool // what was said of an experiment's scenario; nil outside of experiments
}

// runner makes runs, alone or in experiments.
type runner struct {
	*planner
	sides  *judge.Sides
	teller *teller  // who waits for the folder of a detached run; nil for nobody
	args   []string // the command line
}

// configs reads the configuration file.
type configs struct {
	*console.Console
	drivers drivers.Registry
	config  string // --config
}

// Main runs one command line, without the program's name, and returns its exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(&console.Console{In: stdin, Out: stdout, Err: stderr, Clock: clock.Real{}}, drivers.All())
	return a.main(args)
}

func (a *app) main(args []string) int {
	out, errs := visible.NewWriter(terminal.Paint(a.Out)), visible.NewWriter(terminal.Paint(a.Err))
	a.Out, a.Err = out, errs
	defer func() {
		_ = errors.Join(out.Close(), errs.Close()) // what is left of a character has nobody to complain to
	}()
	defer a.Store.Close()
	a.runner.args, a.runner.teller = args, detached()
	root := a.root()
	root.SetArgs(withCall(args))
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := a.UntilLeft(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				visible.Fprintf(a.Err, "plimsoll: internal error, please report it: %v\n%s", p,
					visible.Lines(debug.Stack()))
				err = &exit.Error{Code: exit.Failed, Err: errors.New("internal error"), Said: true}
			}
		}()
		return root.ExecuteContext(context.Background())
	})
	if lost := out.Failed(); err == nil && !errors.Is(lost, syscall.EPIPE) { // whoever closes a pipe has read enough
		err = lost
	}
	if err != nil {
		complain(a.Err, err)
	}
	return exit.Code(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "plimsoll",
		Short: "Find how much load storage, databases and clusters bear, and say how sure that is",
		Long: `Plimsoll runs test scenarios: it builds the machines a scenario asks for, loads them, breaks
them on purpose, measures everything, and says in one report what was found and how sure it is.

A SCENARIO is a directory with a test.yml, that file itself, a zip of such a directory, or the name
of a scenario that comes with the program (plimsoll scenarios list). "plimsoll help scenario" prints
the reference of its language.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 scenario invalid, 4 refused (by the target, or
unlike runs compared), 5 ran with a failed threshold, 6 something could not be removed, 7 one run a
side decides nothing, 130 interrupted.`,
		Example: `  plimsoll run db-colocation --time-scale 0.02 --size-scale 0.002
  plimsoll check ./my-scenario
  plimsoll report latest -o md`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          console.NeedVerb,
		RunE:          console.Help,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := fmt.Sprintf("run %q for the flags there are", cmd.CommandPath()+" --help")
		if near := nearestFlag(cmd, err); near != "" {
			hint = "did you mean --" + near + "?"
		}
		return exit.Usagef(hint, "%s%w", console.Phase(cmd), plainFlag(err))
	})
	// Completion, before which nothing is configured, has the folder of the environment.
	dir := cmp.Or(os.Getenv("PLIMSOLL_DIR"), os.Getenv("PLIMSOLL_RUNS"), "plimsoll-runs")
	root.PersistentFlags().StringVar(&a.RunsDir, "dir", dir, "`folder` of run folders (environment: PLIMSOLL_DIR)")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print data as JSON")
	root.SetHelpCommand(helpCommand(a.Out, a.Store.Drivers))
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "no progress and no notes; warnings and errors stay")
	root.PersistentFlags().StringVar(&a.configs.config, "config", "",
		"configuration `file`; see plimsoll config --help")
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		a.Named = args
		if f := cmd.Flags().Lookup("detach"); f == nil || !f.Changed || os.Getenv(detachedVariable) != "" {
			keepInherited() // what is detached may read /dev/fd/63 yet
		}
		return a.configs.configure(cmd)
	}
	root.Version = console.BuildVersion().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(
		a.planner.checkCommand(),
		a.planner.planCommand(),
		a.runner.runCommand(),
		a.runner.markCommand(),
		a.RunsCommand(),
		a.sides.ReportCommand(),
		a.ImportCommand(),
		storage.ConvertCommand(a.Console),
		a.CleanupCommand(),
		a.planner.scenariosCommand(),
		a.MetricsCommand(),
		serveCommand(a.Store),
		a.Targets.Command(),
		machines.ExporterCommand(a.Console, a.Store.Drivers),
		schemaCommand(a.Console, a.Store.Drivers),
		versionCommand(a.Console),
		a.configs.configCommand(),
		manCommand(a.Console),
		a.sides.AnalyzeCommand(),
		a.sides.UslCommand(),
		a.sides.SteadyCommand(),
		a.sides.ChangesCommand(),
		a.sides.HistoryCommand(),
		a.sides.CompareCommand(),
		a.sides.BaselineCommand(),
		a.sides.CatalogueCommand(),
		a.runner.resumeCommand(),
		a.AttachCommand(),
		deviceCommand(a.devices, a.runner),
		storage.ContentCommand(a.Console),
		storage.IntegrityCommand(a.Console),
		a.devices.VioperfCommand(),
		storage.TraceCommand(a.Console),
		a.runner.dbCommand(),
		machines.NutanixCommand(a.Console),
		dashboardsCommand(a.Console),
	)
	root.AddCommand(append(workerCommands(a.Console), machines.LabCommands(a.Console)...)...)
	root.SetUsageFunc(usage.Print)
	return root
}

// complain prints an error as "plimsoll: phase: subject: cause" and its hint below. Joined errors get a line each.
func complain(w io.Writer, err error) {
	var f *exit.Error
	known := errors.As(err, &f)
	if known && f.Said {
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(result.PlainNames(err.Error()), "\n"), "\n") {
		visible.Fprintf(w, "plimsoll: %s\n", line)
	}
	if known && f.Hint != "" {
		visible.Fprintf(w, "hint: %s\n", f.Hint)
	}
}
