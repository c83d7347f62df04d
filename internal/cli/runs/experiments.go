package runs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

func (st *Store) CompleteExperiment(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	dirs, err := experiment.List(st.RunsDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := []string{"latest"}
	for _, d := range dirs {
		names = append(names, filepath.Base(d))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// FindExperiment returns the folder of an experiment as the user names it; ok is false when there is none, or when a
// run may be meant as well.
func (st *Store) FindExperiment(given string) (dir string, ok bool) {
	runs, err := result.Folders(st.RunsDir)
	if err != nil {
		return "", false
	}
	return st.FindExperimentAmong(given, runs)
}

// FindExperimentAmong finds an experiment where these other folders may be meant, too.
func (st *Store) FindExperimentAmong(given string, others []string) (dir string, ok bool) {
	if strings.ContainsRune(given, filepath.Separator) {
		return given, experiment.Is(given)
	}
	dirs, err := experiment.List(st.RunsDir)
	if err != nil || given == "" {
		return "", false
	}
	if given == "latest" {
		return st.latestExperiment(dirs)
	}
	found := matching(given, slices.Concat(dirs, others))
	if len(found) != 1 || !slices.Contains(dirs, found[0]) {
		return "", false
	}
	return found[0], true
}

// latestExperiment is the one that came on last, unless a run was made since.
func (st *Store) latestExperiment(dirs []string) (string, bool) {
	if len(dirs) == 0 {
		return "", false
	}
	newest := slices.MaxFunc(dirs, func(x, y string) int {
		return experiment.Touched(x).Compare(experiment.Touched(y))
	})
	listed, err := st.listed()
	later := slices.ContainsFunc(listed, func(l web.Listed) bool { return l.Made.After(experiment.Touched(newest)) })
	return newest, err == nil && !later
}
