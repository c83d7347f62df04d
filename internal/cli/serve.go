package cli

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

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

// serveGarbage is how much memory may be garbage before it is collected, in percent of what is in use: 200 runs are
// then served within 150 MB.
const serveGarbage = 50

func serveRuns(st *runs.Store, phase string, given []string, address, token string) error {
	ctx, stop := st.Interruptible()
	defer stop()
	index := runs.NewFolderIndex(st.RunsDir)
	folders := index.Folders
	if len(given) > 0 {
		var dirs []string
		for _, run := range given {
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
		debug.SetGCPercent(serveGarbage)
	}
	records, kept := "", "" // who serves some runs shows nothing else
	if len(given) == 0 {
		records, kept = filepath.Join(st.RunsDir, result.CatalogueDir), st.IndexFile()
	}
	site := web.New(web.Options{Folders: folders, Now: st.Now, Version: console.BuildVersion().Program,
		Index: kept, Catalogue: records, Library: library(st, index, len(given) == 0)})
	s := listen.Server{
		Address: address, Token: secret, Open: web.Open, Stopping: site.Stopping,
		Listening: func(at string) {
			go site.Look() // before anybody waits for it
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

// library returns what pages that take more than one run are made of. Experiments are served with all runs, or not at
// all.
func library(st *runs.Store, index *runs.FolderIndex, all bool) web.Library {
	l := web.Library{Compare: func(sides []web.Side, o compare.Options) (*compare.Document, error) {
		return silent(st).CompareServed(sides, o)
	}}
	if !all {
		return l
	}
	l.Histories, l.History = silent(st).Histories, silent(st).History
	l.Examine = func(dir string) (*compare.Experiment, error) {
		folder, err := experiment.Open(dir)
		if err != nil {
			return nil, err
		}
		return silent(st).ExperimentDocument(folder, compare.DefaultThreshold)
	}
	known := map[string]web.Experiment{}
	l.Experiments = func() ([]web.Experiment, error) { // asked by one at a time
		_, dirs, err := index.Look()
		list := make([]web.Experiment, 0, len(dirs))
		for _, dir := range dirs {
			e, met := known[dir]
			labels, bad := result.ReadLabels(dir)
			if made := experiment.Touched(dir); !met || e.Problem != "" || !made.Equal(e.Made) {
				e = servedExperiment(dir, made)
			}
			if e.Labels = labels; bad != nil {
				e.Problem = strings.TrimSpace(e.Problem + " " + bad.Error())
			}
			known[dir] = e
			list = append(list, e)
		}
		return list, err
	}
	return l
}

// servedExperiment is an experiment as a list shows it.
func servedExperiment(dir string, made time.Time) web.Experiment {
	e := web.Experiment{ID: filepath.Base(dir), Dir: dir, Made: made}
	folder, err := experiment.Open(dir)
	if err == nil {
		r := folder.Record()
		var progress experiment.Progress
		progress, err = folder.Progress()
		e.Scenario, e.Title, e.Target = r.ScenarioName, r.DisplayName, r.Settings.Target
		e.Planned, e.Done, e.Failed = len(r.Sequence), len(progress.Done), len(progress.Failed)
	}
	if err != nil {
		e.Problem = err.Error()
	}
	return e
}
