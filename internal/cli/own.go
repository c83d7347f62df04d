package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/storage"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/formats/convert"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/untyped"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/storage/device"
	"plimsoll/result"
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
	keepMix      bool // see workload.KeepMix
	curveMax     float64
	measures     bool                    // the command can make a run that tells what a curve's points are shares of
	first        bool                    // of a curve there is the run that tells it
	values       untyped.Object          // as they were given, for what follows then
	deviceBytes  func(name string) int64 // see workload.OwnRequest
}

func (f *ownFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&f.sweeps, "sweep", nil,
		"of a job file: run it with each `OPTION=VALUE,VALUE,...`; repeatable")
	flags.IntVar(&f.repeats, "repeat", 0, "of a job file: `number` of runs of every combination")
	flags.StringVar(&f.runtime, "runtime", "", "of a job file: let its jobs run this `time` instead of their own")
	flags.BoolVar(&f.precondition, "precondition", false,
		"of a job file: before it is measured write all of its disks twice, then do rounds of it until they are steady")
	flags.Float64Var(&f.curveMax, "curve-max", 0,
		"of a vdbench file: the `rate` in operations a second of which the points of a curve are shares")
	flags.StringVar(&f.size, "job-size", "", "of a job file: `size` of jobs that say none")
}

// devicesOf says how large a device is that a job names: where the load of this command line goes.
func devicesOf(flags *pflag.FlagSet) func(name string) int64 {
	disks, _ := flags.GetStringArray("disk") // commands without it make no run
	if where, err := flags.GetString("target"); err == nil && where != "local" || len(disks) > 1 {
		return nil
	}
	system := os.DirFS("/")
	return func(name string) int64 {
		if len(disks) > 0 {
			name = disks[0]
		}
		if full, err := filepath.Abs(name); err == nil {
			name = full
		}
		at, _ := device.Find(system, name)
		if at.Mount != nil { // a folder or file
			return 0
		}
		d, _ := device.Read(system, at.Device)
		return d.SizeBytes
	}
}

// given reports whether any of them is.
func (f ownFlags) given() bool {
	return len(f.sweeps) > 0 || f.repeats != 0 || f.runtime != "" || f.size != "" || f.precondition || f.curveMax != 0
}

// withCall makes one argument of the command line of a tool that stands behind --, where a job file would be named.
func withCall(args []string) []string {
	i := slices.Index(args, "--")
	if i < 1 || !slices.Contains([]string{"run", "plan", "check", "mark"}, args[0]) || len(args) < i+3 {
		return args
	}
	if call := string(convert.CommandLine(args[i+1:])); recognise.IsCall(call) {
		return append(slices.Clone(args[:i]), "--", call)
	}
	return args
}

// ownReader is the generator whose job files end as this name does.
func (pl *planner) ownReader(name string) (workload.OwnReader, bool) {
	for _, engine := range pl.Drivers.ByName() {
		if r, ok := engine.(workload.OwnReader); ok &&
			slices.Contains(r.Suffixes(), strings.ToLower(filepath.Ext(name))) {
			return r, true
		}
	}
	return nil, false
}

// scenarioOfJobs makes a scenario of a generator's own job file, where that is what was given; it is opened by the same
// name from then on.
// Values of --set that the file itself takes are taken out of the scenario's.
func (pl *planner) scenarioOfJobs(given string, sf *scenarioFlags) error {
	reader, ok := pl.ownReader(given)
	foreign, isForeign := recognise.Tool(given)
	if !ok && isForeign && foreign.Name == "fio" { // of another name than its job files have
		reader, ok = pl.ownReader(convertedName)
	}
	if isForeign = isForeign && !ok; isForeign {
		reader, ok = pl.ownReader(convertedName)
	}
	info, err := os.Stat(given)
	call := err != nil && ok && recognise.IsCall(given)
	if !call && (!ok || err != nil || info.IsDir()) {
		if sf.own.given() {
			return exit.Usagef("in a scenario, write experiment: with its factors, or workload.Precondition; see docs/how-to/experiment.md",
				"--sweep, --repeat, --runtime, --job-size, --precondition and --curve-max go with a job file such as my.fio, which "+
					"%q is not", given)
		}
		return nil
	}
	name, data := "command line", []byte(given)
	if !call {
		name = given
		if data, err = pl.ReadGiven(given, 1<<20); err != nil {
			if at, ok := errors.AsType[*fs.PathError](err); ok {
				err = at.Err
			}
			return exit.Errorf(exit.Scenario, "", "open: %q: %w", given, err)
		}
	}
	r := workload.OwnRequest{Name: name, Data: data, Repeats: sf.own.repeats, Set: map[string]string{},
		Precondition: sf.own.precondition, KeepMix: sf.own.keepMix, DeviceBytes: sf.own.deviceBytes}
	var bad []error
	if sf.own.repeats < 0 || sf.own.repeats > 1000 {
		bad = append(bad, fmt.Errorf("--repeat: %d is not a number of runs from 1 to 1000", sf.own.repeats))
	}
	if r.Runtime, err = console.TimeLimit(sf.own.runtime); err != nil {
		bad = append(bad, errors.New(strings.Replace(err.Error(), "--time-limit", "--runtime", 1)))
	}
	if m := sf.own.curveMax; !(m >= 0 && m <= 1e12) {
		bad = append(bad, fmt.Errorf("--curve-max: %v is not a rate above 0", m))
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
	sf.own.values = maps.Clone(sf.values)
	var used, named []string
	if isForeign {
		max := sf.own.curveMax
		if sf.own.first = sf.own.measures && max == 0 && firstOfCurve(pl.Console, given, data, foreign,
			r.Set); sf.own.first {
			max = -1
		}
		made, err := converted(pl.Console, given, data, foreign, r.Set, max)
		if err != nil {
			return err
		}
		r.Data, r.Stages, used = []byte(made.Text), made.Stages, made.Used
	}
	if !isForeign {
		beside := given
		if call {
			beside = "."
		}
		jobs, err := convert.JobFile(convert.Asked{Name: name, Data: r.Data, Set: r.Set,
			Read: storage.Besides(pl.Console, beside)})
		if err != nil {
			return exit.Errorf(exit.Scenario, "", "%w", err)
		}
		r.Name, r.Data, r.ReadOnly, used, named = jobs.Name, jobs.Data, jobs.ReadOnly, jobs.Used, jobs.Named
		storage.Tell(pl.Console, jobs.Notes)
	}
	r.Include = storage.Besides(pl.Console, given)
	made, err := reader.ReadOwn(r)
	if asked := r.ReadOnly; asked && err == nil {
		if slices.ContainsFunc(made.Places, func(p workload.Place) bool { return p.Writes }) {
			return exit.Errorf(exit.Scenario, "", "%s: its jobs write, which --readonly has fio refuse: take out one of them",
				name)
		}
		// Files are new, and what is read of them has to be written before; devices stay as they are.
		if r.ReadOnly = !slices.ContainsFunc(made.Places, func(p workload.Place) bool {
			_, device, err := lies(p)
			return err != nil || !device
		}); !r.ReadOnly {
			made, err = reader.ReadOwn(r)
		}
	}
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
		visible.Fprintf(pl.Notes(), "%s: note: %s\n", given, note)
	}
	if pl.made == nil {
		pl.made, pl.places = map[string]fs.FS{}, map[string][]workload.Place{}
	}
	for i, p := range made.Places {
		if isForeign { // a line of the job file that was made of it is none of the user's
			made.Places[i].Where = given
		}
		if dir, file := filepath.Split(p.Name); slices.Contains(named, file) { // of which nobody has asked
			made.Places[i].Name, made.Places[i].Folder = filepath.Clean(dir), dir != ""
			if dir == "" {
				made.Places[i].Name = ""
			}
		}
	}
	pl.made[given], pl.places[given] = made.Files, made.Places
	if r.ReadOnly {
		pl.readOnly = append(pl.readOnly, given)
	}
	return nil
}

// convertedName ends as the files do that other tools' files are made into, to be run.
const convertedName = "converted.fio"

// converted makes a job file of fio of another tool's file, and tells what is not the same.
func converted(con *console.Console, given string, data []byte, from convert.Tool, set map[string]string,
	curveMax float64,
) (convert.Result, error) {
	to, err := convert.ByName("fio")
	if err != nil {
		return convert.Result{}, err
	}
	made, err := convert.Convert(convert.Request{Name: given, Data: data, From: from, To: to, Set: set,
		CurveMax: curveMax, Include: storage.Besides(con, given)})
	if err != nil {
		return made, exit.Errorf(exit.Scenario, "", "%w", err)
	}
	storage.Tell(con, made.Notes)
	return made, nil
}

// openMade opens a scenario that was made of a job file.
func (pl *planner) openMade(given string) (*source, bool) {
	files, ok := pl.made[given]
	return &source{given: given, fsys: files, file: "test.yml", made: true, close: func() {}}, ok
}

// dealOption says which of the folders or devices of dirOption holds each data disk.
const dealOption = "deal"

// placed puts the data disks of a job file where the file says. A device or folder that it names is used, under the
// guard, or refused by name, unless the user says with --disk or another target where the load goes: then it is told
// what is not used. The facts are for the record.
func (pl *planner) placed(phase, given string, tf machines.Flags) (machines.Flags, []result.Fact, error) {
	places := pl.places[given]
	here := tf.Name == "local"
	asked := !here || len(tf.Disks) > 0 || slices.ContainsFunc(tf.Options, func(o string) bool {
		return strings.HasPrefix(o, machines.DirOption+"=")
	})
	if !slices.ContainsFunc(places, func(p workload.Place) bool { return p.Name != "" }) {
		return tf, nil, nil
	}
	untouched := slices.Contains(pl.readOnly, given)
	if untouched && asked && here {
		return tf, nil, exit.Usagef("", "--readonly: what the job names is read as it is, and nothing else: leave out "+
			"--disk, or --readonly, for another place has nothing to read before it is written")
	}
	if untouched && here {
		tf.Options = append(slices.Clone(tf.Options), "devices=read")
	}
	if asked {
		deal, facts := unused(places, tf, here)
		if deal != nil {
			tf.Options = append(slices.Clone(tf.Options), dealOption+"="+strings.Join(deal, ","))
		}
		return tf, facts, nil
	}
	var refused refusals
	var at, disks, deal []string
	devices := 0
	for _, p := range places {
		where, device, err := lies(p)
		if err != nil {
			refused.add(p, err)
			continue
		}
		if device {
			devices++
		}
		at = append(at, where)
	}
	bad := refused.errors()
	if len(bad) == 0 && devices > 0 && devices < len(places) {
		bad = append(bad, fmt.Errorf("%s: the file works on devices and on files as well, which cannot be had at once: "+
			"make two job files of it", given))
	}
	if len(bad) > 0 && phase != "run" {
		for _, err := range bad {
			visible.Fprintf(pl.Err, "warning: %s: a run refuses this: %v\n", phase, err)
		}
		return tf, nil, nil
	}
	if len(bad) > 0 {
		return tf, nil, exit.Errorf(exit.Refused, "nothing is put in the place of what a job names, unless you say so: "+
			"--disk FOLDER or --disk DEVICE says where the load goes", "run: %w", errors.Join(bad...))
	}
	if !slices.ContainsFunc(at, func(dir string) bool { return dir != "" }) {
		return tf, nil, nil // as files without a folder: beside the run
	}
	for i, dir := range at {
		if dir == "" { // a bare name, which lies where the user is
			dir = "."
		}
		k := slices.Index(disks, dir)
		if k < 0 {
			k, disks = len(disks), append(disks, dir)
		}
		deal = append(deal, strconv.Itoa(k+1))
		if p := places[i]; devices == 0 && !p.Folder && p.Name != "" {
			state := "left as it is"
			if _, err := os.Lstat(p.Name); errors.Is(err, fs.ErrNotExist) {
				state = "not made"
			}
			visible.Fprintf(pl.Notes(), "%s: note: %s is %s: the load goes to a new file in %s\n", given, p.Name, state,
				dir)
		}
	}
	if devices > 0 && !untouched && !slices.ContainsFunc(places, func(p workload.Place) bool { return p.Writes }) {
		visible.Fprintf(pl.Notes(), "%s: note: its jobs only read, and the device is written before, for reads of what was "+
			"never written prove little; a command line with fio's --readonly has it read as it is\n", given)
	}
	tf.Disks = disks
	if len(disks) > 1 || devices > 0 {
		tf.Options = append(slices.Clone(tf.Options), dealOption+"="+strings.Join(deal, ","))
	}
	return tf, nil, nil
}

// refusals are what keeps places from being used, each said once of all the jobs that it is so of.
type refusals []refusal

type refusal struct {
	where, says, why string
	jobs             []string
}

func (r *refusals) add(p workload.Place, why error) {
	i := slices.IndexFunc(*r, func(o refusal) bool {
		return o.where == p.Where && o.says == p.Says && o.why == why.Error()
	})
	if i < 0 {
		i, *r = len(*r), append(*r, refusal{where: p.Where, says: p.Says, why: why.Error()})
	}
	if one := &(*r)[i]; !slices.Contains(one.jobs, p.Job) {
		one.jobs = append(one.jobs, p.Job)
	}
}

func (r refusals) errors() (list []error) {
	for _, o := range r {
		more := ""
		if n := len(o.jobs) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		list = append(list, fmt.Errorf("%s: [%s]%s %s: %s", o.where, o.jobs[0], more, o.says, o.why))
	}
	return list
}

// sayPlaced tells what a job names and is not used, when it is known that the load can go where it goes instead.
func sayPlaced(con *console.Console, given string, facts []result.Fact) {
	for _, f := range facts {
		visible.Fprintf(con.Notes(), "%s: %s is %s\n", given, f.Name, f.Value)
	}
}

// lies is where a data disk of a job is to be on this machine: a folder, a block device, or "" for a bare name.
func lies(p workload.Place) (where string, device bool, err error) {
	refuse := func(format string, args ...any) (string, bool, error) {
		return "", false, fmt.Errorf("%q %s", p.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case p.Name == "":
		return "", false, nil
	case p.Unclear != "":
		return refuse("is not used: %s", p.Unclear)
	case strings.Contains(p.Name, `\`) || len(p.Name) > 1 && p.Name[1] == ':':
		return refuse("is a name of Windows, and leads nowhere here")
	case p.Name == "-":
		return refuse("is no file but standard input or output")
	}
	info, err := os.Stat(p.Name)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return refuse("cannot be looked at: %v", err)
	case missing && (p.Folder || strings.HasPrefix(p.Name, "/dev/")):
		return refuse("is not there")
	case err == nil && info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice:
		return p.Name, true, nil
	case err == nil && p.Folder && !info.IsDir():
		return refuse("is no folder")
	case p.Folder:
		return p.Name, false, nil
	case err == nil && !info.Mode().IsRegular():
		return refuse("is neither a file nor a block device")
	case !strings.ContainsRune(p.Name, filepath.Separator):
		return "", false, nil
	}
	dir := filepath.Dir(p.Name)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return refuse("has no folder: %s is not there", dir)
	}
	return dir, false, nil
}

// unused says which names of a job file are not used because the user says where the load goes. Devices given with
// --disk are those of their names, whatever the order they are given in.
func unused(places []workload.Place, tf machines.Flags, here bool) (deal []string,
	facts []result.Fact) {
	taken := map[int]bool{}
	of := make([]int, len(places))
	for i, p := range places {
		of[i] = -1
		for k, disk := range tf.Disks {
			x, err1 := os.Stat(p.Name)
			y, err2 := os.Stat(disk)
			if here && p.Name != "" && errors.Join(err1, err2) == nil && os.SameFile(x, y) {
				of[i], taken[k] = k, true
			}
		}
	}
	next := 0
	for i, p := range places {
		if of[i] >= 0 {
			continue
		}
		for next < len(tf.Disks) && taken[next] {
			next++
		}
		if next < len(tf.Disks) {
			of[i] = next
			next++
		}
		if p.Name == "" {
			continue
		}
		to := "a data disk of target " + tf.Name
		if here && of[i] >= 0 {
			to = tf.Disks[of[i]]
		} else if here {
			to = "the places given with --disk, in turn"
		}
		text := fmt.Sprintf("not used: the load goes to %s", to)
		facts = append(facts, result.Fact{Group: "load", Name: p.Name + " of the job", Value: text})
	}
	if !here || len(taken) == 0 || slices.Contains(of, -1) {
		return nil, facts
	}
	for _, k := range of {
		deal = append(deal, strconv.Itoa(k+1))
	}
	return deal, facts
}
