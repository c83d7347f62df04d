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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/usage"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
)

// app is what commands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	clock    clock.Clock
	drivers  drivers.Registry
	signals  <-chan os.Signal            // instead of the process's own; for tests
	stops    atomic.Int32                // signals that this command line was sent while it listened
	args     []string                    // the command line
	teller   *teller                     // who waits for the folder of a detached run; nil for nobody
	heard    sync.Mutex                  // guards lastStop
	lastStop time.Time                   // when the last of them came
	leave    chan error                  // told when it must not wait any more
	runsDir  string                      // --dir
	json     bool                        // --json
	quiet    bool                        // --quiet
	trust    bool                        // --trust, of what compares runs
	where    []string                    // --where, of what reads tables
	config   string                      // --config
	made     map[string]fs.FS            // scenarios made of job files, by the name given
	places   map[string][]workload.Place // where their files want their data disks
	system   fs.FS                       // the machine whose devices are looked at, for tests; nil is this one
	imported imports                     // outputs of other tools that were given in the place of runs
	warned   map[string]bool             // what was said of an experiment's scenario; nil outside of experiments
}

// Main runs one command line, without the program's name, and returns its exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{in: stdin, out: stdout, err: stderr, clock: clock.Real{}, drivers: drivers.All()}
	return a.main(args)
}

func (a *app) main(args []string) int {
	out, errs := visible.NewWriter(terminal.Paint(a.out)), visible.NewWriter(terminal.Paint(a.err))
	a.out, a.err = out, errs
	defer func() {
		_ = errors.Join(out.Close(), errs.Close()) // what is left of a character has nobody to complain to
	}()
	defer a.imported.remove()
	a.args, a.teller = args, detached()
	root := a.root()
	root.SetArgs(withCall(args))
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := a.untilLeft(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				visible.Fprintf(a.err, "plimsoll: internal error, please report it: %v\n%s", p,
					visible.Lines(debug.Stack()))
				err = &exit.Error{Code: exit.Failed, Err: errors.New("internal error"), Said: true}
			}
		}()
		return root.ExecuteContext(context.Background())
	})
	if err != nil {
		complain(a.err, err)
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
unlike runs compared), 5 ran with a failed threshold, 6 something could not be removed, 130 interrupted.`,
		Example: `  plimsoll run db-colocation --time-scale 0.02 --size-scale 0.002
  plimsoll check ./my-scenario
  plimsoll report latest -o md`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.needVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := fmt.Sprintf("run %q for the flags there are", cmd.CommandPath()+" --help")
		if near := nearestFlag(cmd, err); near != "" {
			hint = "did you mean --" + near + "?"
		}
		return exit.Usagef(hint, "%s%w", phase(cmd), plainNumber(err))
	})
	// Completion, before which nothing is configured, has the folder of the environment.
	dir := cmp.Or(os.Getenv("PLIMSOLL_DIR"), os.Getenv("PLIMSOLL_RUNS"), "plimsoll-runs")
	root.PersistentFlags().StringVar(&a.runsDir, "dir", dir, "`folder` of run folders (environment: PLIMSOLL_DIR)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print data as JSON")
	root.SetHelpCommand(a.helpCommand())
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no notes; warnings and errors stay")
	root.PersistentFlags().StringVar(&a.config, "config", "", "configuration `file`; see plimsoll config --help")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) }
	root.Version = buildVersion().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(a.checkCommand(), a.planCommand(), a.runCommand(), a.markCommand(), a.runsCommand(),
		a.reportCommand(),
		a.importCommand(), a.convertCommand(), a.cleanupCommand(), a.scenariosCommand(), a.metricsCommand(),
		a.serveCommand(),
		a.targetsCommand(), a.exporterCommand(), a.schemaCommand(), a.versionCommand(), a.configCommand(),
		a.manCommand(), a.analyzeCommand(), a.uslCommand(), a.steadyCommand(), a.changesCommand(), a.historyCommand(),
		a.compareCommand(),
		a.baselineCommand(), a.resumeCommand(), a.attachCommand(), a.deviceCommand(), a.contentCommand(),
		a.integrityCommand(),
		a.vioperfCommand(), a.traceCommand(), a.dbCommand(), a.nutanixCommand(), a.dashboardsCommand())
	root.AddCommand(append(a.workerCommands(), a.labCommands()...)...)
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

// needVerb refuses words that are no command, and offers the nearest.
func (a *app) needVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := fmt.Sprintf("run %q for the commands there are", cmd.CommandPath()+" --help")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near[0])
	}
	return exit.Usagef(hint, "%sunknown command %q", phase(cmd), args[0])
}

// group is a command that only holds others.
func (a *app) group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: a.needVerb, RunE: func(cmd *cobra.Command, _ []string) error {
		return cmd.Help()
	}}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(verbs...)
	return c
}

// args demands between low and high arguments and names what they are.
func args(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) >= low && len(given) <= high {
			return nil
		}
		hint := fmt.Sprintf("run %q", cmd.CommandPath()+" --help")
		switch {
		case len(given) < low:
			return exit.Usagef(hint, "%sno %s given", phase(cmd), what)
		case high == 0:
			return exit.Usagef(hint, "%s%q is too much: no argument is wanted", phase(cmd), given[0])
		}
		return exit.Usagef(hint, "%s%d arguments are too many, want one %s (quote names with blanks)", phase(cmd),
			len(given), what)
	}
}

// phase is a command as errors begin with it: without the program's name, which every error has in front.
func phase(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": "
}

// printJSON writes v indented, as every --json does.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// notes is where a person is told what goes on; nowhere with --quiet.
func (a *app) notes() io.Writer {
	if a.quiet {
		return io.Discard
	}
	return a.err
}

// now is the time of the machine, for identities and file names.
func (a *app) now() time.Time { return a.clock.Now() }
