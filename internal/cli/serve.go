package cli

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

func serveCommand(st *runs.Store) *cobra.Command {
	var address, token string
	c := &cobra.Command{
		Use: "serve [RUN...]", Short: "Serve runs to a browser and to Grafana, also while they go on",
		Args: console.Args(0, 1000, "run"),
		Long: `Serve answers over HTTP until it is interrupted: pages that list runs and experiments, show what a run does while
it goes on, hold reports and compare what is ticked; and Prometheus' query API over the metrics of all runs, each series with the label run. In Grafana,
add a data source of type Prometheus with the address that is printed. Without a RUN it serves every run there is, those
of experiments and those made later included. Nothing in a run folder is changed.

Only this machine can reach it, unless --listen says otherwise; then readers must send a token, as
"Authorization: Bearer TOKEN" or as the password of any user name, and --token says where that is. The token is sent as
it is: encrypt where the network is not trusted.

` + runs.RunHelp,
		Example: `  plimsoll serve
  plimsoll serve latest --listen 127.0.0.1:9999
  plimsoll serve --listen 0.0.0.0:9095 --token file:/etc/plimsoll.token`,
		ValidArgsFunction: st.CompleteRun,
		RunE: func(cmd *cobra.Command, runs []string) error {
			return serveRuns(st, console.Phase(cmd), runs, address,
				token)
		},
	}
	c.Flags().
		StringVar(&address, "listen", "127.0.0.1:9095", "`address` to serve at, HOST:PORT; port 0 takes a free one")
	const where = "`where` the token is that readers must send: env:NAME, file:PATH, command:PROGRAM"
	c.Flags().StringVar(&token, "token", "", where)
	return c
}

// serveMemory is from where on memory is collected rather than taken from the machine. It stops nothing: the site does.
const serveMemory = 250 << 20

func serveRuns(st *runs.Store, phase string, runs []string, address, token string) error {
	ctx, stop := st.Interruptible()
	defer stop()
	folders := st.AllFolders
	if len(runs) > 0 {
		var dirs []string
		for _, run := range runs {
			dir, err := st.Find("serve", run)
			if err != nil {
				return err
			}
			if dir, err = filepath.Abs(dir); err != nil {
				return exit.Errorf(exit.Failed, "", "%srun %q: %w", phase, run, err)
			}
			dirs = append(dirs, dir)
		}
		folders = func() ([]string, error) { return dirs, nil }
	}
	secret, err := machines.TokenFrom(ctx, token)
	if err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // else the environment says one
		debug.SetMemoryLimit(serveMemory)
	}
	site := web.New(web.Options{Folders: folders, Now: st.Now, Version: console.BuildVersion().Program,
		Library: library(st, len(runs) == 0)})
	s := listen.Server{
		Address: address, Token: secret, Open: web.Open, Stopping: site.Stopping,
		Listening: func(at string) {
			visible.Fprintf(st.Err, "serving http://%s/ (a Prometheus data source for Grafana, too); Ctrl-C ends it\n",
				at)
		},
	}
	if err := s.Check(); err != nil {
		return exit.Usagef("--token says where a token is, like env:NAME or file:PATH", "%s%w", phase, err)
	}
	err = s.Serve(ctx, site.Handler())
	if err = errors.Join(err, site.Close()); err != nil {
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	}
	return nil
}

// silent looks at runs for one request: it says nothing on the terminal and shares nothing with others.
func silent(st *runs.Store) *judge.Sides {
	con := &console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Clock: st.Clock, Quiet: true}
	return &judge.Sides{Store: &runs.Store{Targets: &machines.Targets{Console: con, RunsDir: st.RunsDir,
		Drivers: st.Drivers}}}
}

// library is what pages that take more than one run are made of. Experiments are served with all runs, or not at all.
func library(st *runs.Store, all bool) web.Library {
	l := web.Library{Compare: func(sides []web.Side, anyway bool) (*compare.Document, error) {
		return silent(st).CompareServed(sides, anyway)
	}}
	if !all {
		return l
	}
	l.Examine = func(dir string) (*compare.Experiment, error) {
		folder, err := experiment.Open(dir)
		if err != nil {
			return nil, err
		}
		return silent(st).ExperimentDocument(folder, compare.DefaultThreshold)
	}
	l.Experiments = func() ([]web.Experiment, error) {
		dirs, err := experiment.List(st.RunsDir)
		list := make([]web.Experiment, 0, len(dirs))
		for _, dir := range dirs {
			e := web.Experiment{ID: filepath.Base(dir), Dir: dir, Made: experiment.Touched(dir)}
			labels, bad := result.ReadLabels(dir)
			folder, unread := experiment.Open(dir)
			if e.Labels = labels; unread == nil {
				r := folder.Record()
				progress, err := folder.Progress()
				e.Scenario, e.Target = r.ScenarioName, r.Settings.Target
				e.Planned, e.Done = len(r.Sequence), len(progress.Done)
				unread = err
			}
			if bad = errors.Join(bad, unread); bad != nil {
				e.Problem = bad.Error()
			}
			list = append(list, e)
		}
		return list, err
	}
	return l
}
