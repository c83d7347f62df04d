package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/scratch"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

func (st *Store) CleanupCommand() *cobra.Command {
	var tagged tagged
	c := &cobra.Command{
		Use:   "cleanup [RUN...]",
		Short: "Remove what stopped or killed runs have left behind",
		Long: `Cleanup removes the machines, processes and files that runs have made and not removed, from the record each
run keeps in its folder. Without arguments it looks at every run in --dir, and removes temporary files that processes
which are gone have left in TMPDIR and, beside what they were writing, in --dir, in the folder you are in and in
the lab (environment: PLIMSOLL_LAB). What was measured stays. It may be called again at any time; runs that are going
on are left alone.

With --target it goes by the tags of what is there instead, for runs whose folder is lost: it lists them and removes
those whose lease is over, which is five minutes after their process has ended; all others only with --all --yes.

` + RunHelp,
		Example: "  plimsoll cleanup\n  plimsoll cleanup latest\n" +
			"  plimsoll cleanup --target kubernetes --target-opt file=fleet.yaml",
		Args:              console.Args(0, 1000, "run"),
		ValidArgsFunction: st.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			if tagged.asked() {
				return st.cleanTagged(tagged, given)
			}
			return st.cleanup(given)
		},
	}
	tagged.register(c)
	return c
}

// cleaned is one line of cleanup --json.
type cleaned struct {
	RunID   string   `json:"run_id"` // "" of temporary files of a process that is gone
	Dir     string   `json:"dir"`
	State   string   `json:"state"` // "cleaned", "clean already", "going on", "failed"
	Remains []string `json:"remains,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func (st *Store) cleanup(runs []string) error {
	dirs, err := st.toClean(runs)
	if err != nil {
		return err
	}
	ctx, stop := st.Interruptible()
	defer stop()
	list := []cleaned{}
	var errs []error
	for _, dir := range dirs {
		c, err := st.CleanOne(ctx, dir, len(runs) > 0)
		if c.State == "clean already" && len(runs) == 0 {
			continue
		}
		list = append(list, c)
		if err != nil {
			errs = append(errs, err)
		}
		if !st.JSON {
			visible.Fprintf(st.Out, "%s: %s\n", c.RunID, c.State)
			for _, r := range c.Remains {
				visible.Fprintf(st.Out, "  remains: %s\n", r)
			}
		}
	}
	left, err := st.cleanTemporary(dirs, len(runs) == 0)
	if err != nil {
		errs = append(errs, exit.Errorf(exit.Uncleaned, "", "cleanup: %w", err))
	}
	for _, name := range left {
		list = append(list, cleaned{Dir: name, State: "cleaned"})
		if !st.JSON {
			visible.Fprintf(st.Out, "%s: temporary files of a process that is gone: cleaned\n", name)
		}
	}
	if st.JSON {
		errs = append(errs, st.PrintJSON(list))
	} else if len(list) == 0 {
		visible.Fprintf(st.Out, "nothing to clean up in %s\n", st.RunsDir)
	}
	return errors.Join(errs...)
}

// cleanTemporary removes what killed processes were writing into these run folders; with all, what they have left
// elsewhere, too, as far as that can be known: beside the runs and in what is kept there, where the user is, in the
// lab, and in TMPDIR.
func (st *Store) cleanTemporary(dirs []string, all bool) (removed []string, err error) {
	var errs []error
	clean := func(f func() ([]string, error)) {
		names, err := f()
		removed, errs = append(removed, names...), append(errs, err)
	}
	for _, dir := range dirs {
		errs = append(errs, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				clean(func() ([]string, error) { return outfile.Clean(path) })
			}
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil // removed meanwhile, or of a server that ran as another user
			}
			return err
		}))
	}
	if !all {
		return removed, errors.Join(errs...)
	}
	places := []string{st.RunsDir}
	for _, kept := range []string{result.BaselineDir, result.CatalogueDir, result.HistoryDir} {
		places = append(places, filepath.Join(st.RunsDir, kept))
	}
	places = append(places, ".")
	experiments, err := experiment.List(st.RunsDir)
	errs = append(errs, err)
	for _, place := range slices.Concat(places, experiments, machines.LabPlaces()) {
		clean(func() ([]string, error) { return outfile.Clean(place) })
	}
	clean(scratch.Clean)
	return removed, errors.Join(errs...)
}

// toClean lists the folders of the runs named, or of all.
func (st *Store) toClean(runs []string) ([]string, error) {
	var dirs []string
	if len(runs) == 0 {
		dirs, err := result.Folders(st.RunsDir)
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "", "cleanup: %w", err)
		}
		slices.Reverse(dirs) // newest first
		experiments, err := experiment.List(st.RunsDir)
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "", "cleanup: %w", err)
		}
		for _, dir := range experiments {
			inside, err := result.Folders(filepath.Join(dir, experiment.RunsFolder))
			if err != nil {
				return nil, exit.Errorf(exit.Failed, "", "cleanup: %w", err)
			}
			slices.Reverse(inside)
			dirs = append(dirs, inside...)
		}
		return dirs, nil
	}
	for _, r := range runs {
		dir, err := st.Find("cleanup", r)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// CleanOne cleans up after one run. A run that says it is clean and how far it measured, which comes last, is looked at
// only when it was named.
func (st *Store) CleanOne(ctx context.Context, dir string, named bool) (cleaned, error) {
	c := cleaned{RunID: dir, Dir: dir, State: "failed"}
	fail := func(err error) (cleaned, error) {
		c.Error = err.Error()
		return c, err
	}
	folder, err := result.Open(dir)
	if err != nil {
		return fail(fmt.Errorf("cleanup: %w", err))
	}
	defer folder.Close()
	m := folder.Manifest()
	c.RunID = m.RunID
	if m.Cleaned.State == "yes" && m.Measured.State != "pending" && !named {
		c.State = "clean already"
		return c, nil
	}
	t, err := st.Target(machines.Flags{Name: cmp.Or(m.Target, st.Drivers.Targets[0].Name())}, len(m.Nodes))
	if err != nil {
		return fail(err)
	}
	remains, err := run.Cleanup(ctx, folder, t)
	switch {
	case errors.Is(err, result.ErrBusy):
		c.State = "going on"
		return c, nil
	case err != nil:
		c.Remains = remains
		return fail(err)
	}
	c.State = "cleaned"
	return c, nil
}
