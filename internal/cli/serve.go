package cli

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

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
		Long: `Serve answers over HTTP until it is interrupted: pages that list the runs, show what a run does while it goes on
and hold its report; and Prometheus' query API over the metrics of all runs, each series with the label run. In Grafana,
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
	folders := a.allFolders
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
	site := web.New(web.Options{Folders: folders, Now: a.now, Version: buildVersion().Program})
	s := listen.Server{
		Address: address, Token: secret, Open: web.Open, Stopping: site.Stopping,
		Listening: func(at string) {
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

// allFolders are the folders of all runs, those of experiments included.
func (a *app) allFolders() ([]string, error) {
	dirs, err := result.Folders(a.runsDir)
	if err != nil {
		return nil, err
	}
	experiments, err := experiment.List(a.runsDir)
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	for _, e := range experiments {
		inside, err := result.Folders(filepath.Join(e, experiment.RunsFolder))
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, inside...)
	}
	return dirs, nil
}
