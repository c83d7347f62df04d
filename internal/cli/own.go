package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/convert"
	"plimsoll/internal/exit"
	"plimsoll/internal/visible"
	"plimsoll/internal/workload"
	"plimsoll/unit"
)

// ownFlags say how a generator's own job file becomes a scenario.
type ownFlags struct {
	sweeps  []string
	repeats int
	runtime string
	size    string
	// precondition: see workload.OwnRequest
	precondition bool
}

func (f *ownFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&f.sweeps, "sweep", nil,
		"of a job file: run it with each `OPTION=VALUE,VALUE,...`; repeatable")
	flags.IntVar(&f.repeats, "repeat", 0, "of a job file: `number` of runs of every combination")
	flags.StringVar(&f.runtime, "runtime", "", "of a job file: let its jobs run this `time` instead of their own")
	flags.BoolVar(&f.precondition, "precondition", false,
		"of a job file: before it is measured write all of its disks twice, then do rounds of it until they are steady")
	flags.StringVar(&f.size, "job-size", "", "of a job file: `size` of jobs that say none")
}

// given reports whether any of them is.
func (f ownFlags) given() bool {
	return len(f.sweeps) > 0 || f.repeats != 0 || f.runtime != "" || f.size != "" || f.precondition
}

// ownReader is the generator whose job files end as this name does.
func (a *app) ownReader(name string) (workload.OwnReader, bool) {
	for _, engine := range a.drivers.ByName() {
		if r, ok := engine.(workload.OwnReader); ok &&
			slices.Contains(r.Suffixes(), strings.ToLower(filepath.Ext(name))) {
			return r, true
		}
	}
	return nil, false
}

// own makes a scenario of a generator's own job file, where that is what was given; it is opened by the same name from
// then on.
// Values of --set that the file itself takes are taken out of the scenario's.
func (a *app) own(given string, sf *scenarioFlags) error {
	reader, ok := a.ownReader(given)
	foreign, isForeign := convert.ByFile(given)
	if isForeign = isForeign && !ok; isForeign {
		reader, ok = a.ownReader(convertedName)
	}
	if info, err := os.Stat(given); !ok || err != nil || info.IsDir() {
		if sf.own.given() {
			return exit.Usagef("in a scenario, write experiment: with its factors, or workload.Precondition; see docs/how-to/experiment.md",
				"--sweep, --repeat, --runtime, --job-size and --precondition go with a job file such as my.fio, which %q is not", given)
		}
		return nil
	}
	data, err := a.readGiven(given, 1<<20)
	if err != nil {
		return exit.Errorf(exit.Scenario, "", "open: %w", err)
	}
	r := workload.OwnRequest{Name: given, Data: data, Repeats: sf.own.repeats, Set: map[string]string{},
		Precondition: sf.own.precondition}
	var bad []error
	if sf.own.repeats < 0 || sf.own.repeats > 1000 {
		bad = append(bad, fmt.Errorf("--repeat: %d is not a number of runs from 1 to 1000", sf.own.repeats))
	}
	if r.Runtime, err = timeLimit(sf.own.runtime); err != nil {
		bad = append(bad, errors.New(strings.Replace(err.Error(), "--time-limit", "--runtime", 1)))
	}
	if sf.own.size != "" {
		size, err := unit.ParseBytes(sf.own.size)
		if r.Size = int64(size); err != nil || r.Size <= 0 {
			bad = append(bad, fmt.Errorf("--job-size: %q is not a size above 0, like 10GiB", sf.own.size))
		}
	}
	for _, text := range sf.own.sweeps {
		key, values, ok := strings.Cut(text, "=")
		if !ok {
			bad = append(bad, fmt.Errorf("--sweep %q: want OPTION=VALUE,VALUE,..., like iodepth=1,2,4", text))
			continue
		}
		r.Sweeps = append(r.Sweeps, workload.Sweep{Key: strings.TrimSpace(key), Values: strings.Split(values, ",")})
	}
	if len(bad) > 0 {
		return exit.Usagef("", "%w", errors.Join(bad...))
	}
	for name, value := range sf.values {
		r.Set[name] = fmt.Sprint(value)
	}
	var used []string
	if isForeign {
		made, err := a.converted(given, data, foreign, r.Set)
		if err != nil {
			return err
		}
		r.Data, r.Stages, used = []byte(made.Text), made.Stages, made.Used
	}
	made, err := reader.Own(r)
	if err != nil && isForeign {
		return exit.Errorf(
			exit.Scenario,
			"plimsoll convert "+given+" --to fio shows it",
			"as a job file of fio: %w",
			err,
		)
	}
	if err != nil {
		return exit.Errorf(exit.Scenario, "", "%w", err)
	}
	for _, name := range append(made.Used, used...) {
		delete(sf.values, name)
	}
	if sf.nodes == 0 {
		sf.nodes = 1
	}
	for _, note := range made.Notes {
		visible.Fprintf(a.notes(), "%s: note: %s\n", given, note)
	}
	if a.made == nil {
		a.made = map[string]fs.FS{}
	}
	a.made[given] = made.Files
	return nil
}

// convertedName ends as the files do that other tools' files are made into, to be run.
const convertedName = "converted.fio"

// converted makes a job file of fio of another tool's file, and tells what is not the same.
func (a *app) converted(given string, data []byte, from convert.Tool, set map[string]string) (convert.Result, error) {
	to, err := convert.ByName("fio")
	if err != nil {
		return convert.Result{}, err
	}
	made, err := convert.Convert(convert.Request{Name: given, Data: data, From: from, To: to, Set: set,
		Include: a.besides(given)})
	if err != nil {
		return made, exit.Errorf(exit.Scenario, "", "%w", err)
	}
	a.tell(made.Notes)
	return made, nil
}

// openMade opens a scenario that was made of a job file.
func (a *app) openMade(given string) (*source, bool) {
	files, ok := a.made[given]
	return &source{given: given, fsys: files, file: "test.yml", made: true, close: func() {}}, ok
}
