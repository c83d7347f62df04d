package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

func (a *app) serveCommand() *cobra.Command {
	var address, token string
	c := &cobra.Command{
		Use: "serve [RUN...]", Short: "Serve runs to a browser and to Grafana, also while they go on",
		Args: args(0, 1000, "run"),
		Long: `Serve answers over HTTP until it is interrupted: pages that list runs and experiments, show what a run does while
it goes on, hold reports and compare what is ticked; and Prometheus' query API over the metrics of all runs, each series with the label run. In Grafana,
add a data source of type Prometheus with the address that is printed. Without a RUN it serves every run there is, those
of experiments and those made later included. Nothing in a run folder is changed.

Only this machine can reach it, unless --listen says otherwise; then readers must send a token, as
"Authorization: Bearer TOKEN" or as the password of any user name, and --token says where that is. The token is sent as
it is: encrypt where the network is not trusted.

` + runHelp,
		Example: `  plimsoll serve
  plimsoll serve latest --listen 127.0.0.1:9999
  plimsoll serve --listen 0.0.0.0:9095 --token file:/etc/plimsoll.token`,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, runs []string) error {
			return a.serve(phase(cmd), runs, address,
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

func (a *app) serve(phase string, runs []string, address, token string) error {
	ctx, stop := a.interruptible()
	defer stop()
	folders := newFolderIndex(a.runsDir).folders
	if len(runs) > 0 {
		var dirs []string
		for _, run := range runs {
			dir, err := a.find("serve", run)
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
	secret, err := tokenFrom(ctx, token)
	if err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // else the environment says one
		debug.SetMemoryLimit(serveMemory)
	}
	site := web.New(web.Options{Folders: folders, Now: a.now, Version: buildVersion().Program,
		Library: a.library(len(runs) == 0)})
	s := listen.Server{
		Address: address, Token: secret, Open: web.Open, Stopping: site.Stopping,
		Listening: func(at string) {
			go site.Look() // before anybody waits for it
			visible.Fprintf(a.err, "serving http://%s/ (a Prometheus data source for Grafana, too); Ctrl-C ends it\n",
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

// reader is what looks at runs for one request: it says nothing on the terminal and shares nothing with others.
func (a *app) reader() *app {
	return &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, clock: a.clock, drivers: a.drivers,
		runsDir: a.runsDir, system: a.system, quiet: true}
}

// library is what pages that take more than one run are made of. Experiments are served with all runs, or not at all.
func (a *app) library(all bool) web.Library {
	l := web.Library{Compare: func(sides []web.Side, o compare.Options) (*compare.Document, error) {
		return a.reader().compareServed(sides, o)
	}}
	if !all {
		return l
	}
	l.Examine = func(dir string) (*compare.Experiment, error) {
		folder, err := experiment.Open(dir)
		if err != nil {
			return nil, err
		}
		return a.reader().experimentDocument(folder, compare.DefaultThreshold)
	}
	known, index := map[string]web.Experiment{}, newFolderIndex(a.runsDir)
	l.Experiments = func() ([]web.Experiment, error) { // asked by one at a time
		_, dirs, err := index.look()
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

// compareServed compares runs and experiments by their folders, under the names that are given.
func (a *app) compareServed(chosen []web.Side, o compare.Options) (*compare.Document, error) {
	searches, err := a.searchesAmong("compare", chosen)
	if err != nil {
		return nil, err
	}
	if len(searches) > 0 {
		return compare.OfSearches(searches, o)
	}
	var sides []compare.Side
	for _, c := range chosen {
		side, err := a.side("compare", c.Dir)
		if err != nil {
			return nil, err
		}
		side.Name = c.Name
		sides = append(sides, side)
	}
	return compare.Of(sides, o)
}

// allFolders are the folders of all runs, those of experiments included.
func (a *app) allFolders() ([]string, error) { return newFolderIndex(a.runsDir).folders() }

// folderIndex knows what lies in a folder of run folders. Asked again, it looks at the folder itself and at what it
// could not tell before: a folder of ten thousand runs is not gone through each time.
type folderIndex struct {
	root   string
	mu     sync.Mutex
	read   time.Time               // when
	marked time.Time               // the folder's own time then
	kinds  map[string]folderIs     // by name
	names  []string                // in order
	inside map[string]*folderIndex // of runs of experiments
}

type folderIs int

const (
	unknownFolder folderIs = iota // it may become something
	runFolder
	experimentFolder
)

// oldEnough is how old the last change of a folder must be for its time to tell whether there was another.
const oldEnough = 2 * time.Second

func newFolderIndex(root string) *folderIndex { return &folderIndex{root: root} }

// look returns the folders of runs and of experiments, in the order of their names.
func (x *folderIndex) look() (runs, experiments []string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info, err := os.Stat(x.root)
	if errors.Is(err, fs.ErrNotExist) {
		x.kinds, x.names = nil, nil
		return nil, nil, nil
	}
	if err == nil && (x.kinds == nil || !info.ModTime().Equal(x.marked) || x.read.Sub(x.marked) < oldEnough) {
		err = x.list(info.ModTime())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("runs: %w", err)
	}
	for _, name := range x.names {
		dir := filepath.Join(x.root, name)
		if x.kinds[name] == unknownFolder {
			x.kinds[name] = kindOfFolder(dir)
		}
		switch x.kinds[name] {
		case runFolder:
			runs = append(runs, dir)
		case experimentFolder:
			experiments = append(experiments, dir)
		}
	}
	return runs, experiments, nil
}

func (x *folderIndex) list(marked time.Time) error {
	x.read, x.marked = time.Now(), marked
	entries, err := os.ReadDir(x.root)
	if err != nil {
		return err
	}
	known := x.kinds
	x.kinds, x.names = make(map[string]folderIs, len(entries)), x.names[:0]
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && !strings.HasPrefix(name, ".") {
			x.kinds[name] = known[name]
			x.names = append(x.names, name)
		}
	}
	return nil
}

func kindOfFolder(dir string) folderIs {
	switch {
	case result.IsFolder(dir):
		return runFolder
	case experiment.Is(dir):
		return experimentFolder
	}
	return unknownFolder
}

// folders are the folders of all runs, those of experiments included.
func (x *folderIndex) folders() ([]string, error) {
	dirs, experiments, err := x.look()
	if err != nil {
		return nil, err
	}
	if x.inside == nil {
		x.inside = map[string]*folderIndex{}
	}
	for _, e := range experiments {
		if x.inside[e] == nil {
			x.inside[e] = newFolderIndex(filepath.Join(e, experiment.RunsFolder))
		}
		inside, _, err := x.inside[e].look()
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, inside...)
	}
	return dirs, nil
}
