package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/storage"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/workloads/probe"
	"plimsoll/unit"
)

// probeFlags are what commands have in common that load devices with job files of our own.
type probeFlags struct {
	tf       machines.Flags
	rf       runFlags
	dry      bool
	repeats  int
	duration string
	warmUp   string
	size     string
}

func (f *probeFlags) register(c *cobra.Command, duration string) {
	f.tf.TimeScale, f.tf.SizeScale = 1, 1
	flags := c.Flags()
	flags.StringVar(&f.duration, "duration", duration, "`time` that is measured at every point")
	flags.StringVar(&f.warmUp, "warm-up", "2s", "`time` of load before it that is left out")
	flags.IntVar(&f.repeats, "repeats", 3, "`number` of runs of everything, in an order mixed anew each time")
	flags.BoolVar(&f.dry, "dry-run", false, "say what would be done and for how long, print the job file, and touch nothing")
	flags.StringVar(&f.tf.Name, "target", "local", "`where` it runs: local, or sim, where paths are only names")
	flags.StringArrayVar(&f.tf.Options, "target-opt", nil, "set an option of the target, `NAME=VALUE`; repeatable")
	f.rf.waitFlags.register(c)
	flags.StringArrayVar(&f.tf.Consents, "consent", nil,
		storage.ConsentHelp+"; without it devices are only read; repeatable")
	f.rf.LabelFlags.Register(c)
}

// reads reports whether a path is a block device without consent to be overwritten, which is then only read.
func (f *probeFlags) reads(paths []string) bool {
	return len(f.tf.Consents) == 0 && f.tf.Name == "local" && slices.ContainsFunc(paths, func(p string) bool {
		info, err := os.Stat(p)
		return err == nil && info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice
	})
}

// times reads the lengths of time among the flags.
func (f *probeFlags) times() (duration, warmUp time.Duration, _ error) {
	d, err1 := unit.ParseDuration(f.duration)
	if err1 != nil {
		err1 = fmt.Errorf("--duration: %w", err1)
	}
	w, err2 := unit.ParseDuration(f.warmUp)
	if err2 != nil {
		err2 = fmt.Errorf("--warm-up: %w", err2)
	}
	return time.Duration(d), time.Duration(w), errors.Join(err1, err2)
}

type sweepFlags struct {
	probeFlags
	what      []string
	levels    []string
	block     string
	depth     int
	rw        string
	access    string
	jobs      int
	readShare int
	buffered  bool
}

func (rn *runner) sweepCommand() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep PATH...",
		Short: "Measure curves over queue depth, block size, working set or mix",
		Args:  console.Args(1, 16, "path"),
		Long: `Sweep loads a device with fio at several levels of one thing, or of several as a grid, and reports the curves of
throughput and latency with intervals over the repeats: the knee, the ceiling, whether each point was steady, and of
working sets at what sizes caches end.

A PATH is a folder: a file is made on its file system, filled, worked on, and removed; nothing else there is touched.
Or it is a block device, which is only read, unless its --consent is given: then it is overwritten. Of one that is only
read some blocks are sampled, since reads of what was never written or was trimmed say nothing. Several PATHs are loaded one after the other, and stand on one chart.

What is not swept is --rw randread, --bs 4k (1m where it is sequential), --iodepth 16 (1 when working sets are swept),
--size 1GiB (4GiB when working sets are swept). Random offsets are drawn evenly unless --access says otherwise.

A sweep is an experiment: "plimsoll resume" goes on after a stop, "plimsoll report" prints it again.`,
		Example: `  plimsoll device sweep /mnt/under-test --what iodepth
  plimsoll device sweep /mnt/ssd /mnt/disk --what wss --bs 8k --size 32GiB
  plimsoll device sweep /mnt/under-test --what bs,iodepth --levels bs=4k,64k --levels iodepth=1,8,64
  plimsoll device sweep /mnt/under-test --what mix --bs 8k --iodepth 32 --dry-run`,
		RunE: func(cmd *cobra.Command, given []string) error {
			if !cmd.Flags().Changed("size") && slices.Contains(f.what, "wss") {
				f.size = "4GiB"
			}
			if !cmd.Flags().Changed("iodepth") && slices.Contains(f.what, "wss") {
				f.depth = 1
			}
			if !cmd.Flags().Changed("rw") && slices.Contains(f.what, "mix") {
				f.rw = "randrw"
			}
			return rn.deviceSweep(given, f)
		},
	}
	f.register(c, "30s")
	flags := c.Flags()
	flags.StringSliceVar(&f.what, "what", []string{"iodepth"}, "what takes several values: `iodepth`, bs, wss "+
		"(working set) or mix (share of reads); several make a grid")
	flags.StringArrayVar(&f.levels, "levels", nil, "the values, `VALUE,VALUE,...`, or WHAT=VALUE,... of one of several; "+
		"repeatable")
	flags.StringVar(&f.block, "bs", "", "`size` of every operation")
	flags.IntVar(&f.depth, "iodepth", 16, "`operations` outstanding per process")
	flags.StringVar(&f.rw, "rw", "randread", "`kind` of operations: read, write, randread, randwrite, rw, randrw")
	flags.StringVar(&f.access, "access", "uniform", "how unevenly random offsets fall: uniform, `zipf:1.2`, pareto:0.9, "+
		"normal:20")
	flags.StringVar(&f.size, "size", "1GiB", "`size` of what is worked on; of working sets the largest")
	flags.IntVar(&f.jobs, "numjobs", 1, "`processes` that load a device at once")
	flags.IntVar(&f.readShare, "read-share", 50, "`percent` of reads of --rw rw and randrw")
	flags.BoolVar(&f.buffered, "buffered", false, "go through the page cache, which is refused where the memory could "+
		"hold all of it")
	return c
}

// deviceSweep runs a sweep as an experiment.
func (rn *runner) deviceSweep(paths []string, f sweepFlags) error {
	s, err := f.sweep(paths)
	if err != nil {
		return err
	}
	request, err := s.Request()
	if err != nil {
		return exit.Usagef("", "device sweep: %w", err)
	}
	return rn.probe("device sweep", paths, request, f.probeFlags, func(p *prepared) error {
		if f.buffered {
			return cached(p, int64(s.Size))
		}
		return needsDirectIO(p)
	})
}

// sweep reads the flags.
func (f *sweepFlags) sweep(paths []string) (probe.Sweep, error) {
	sequential := !strings.HasPrefix(f.rw, "rand")
	block, err1 := unit.ParseBytes(cmp.Or(f.block, map[bool]string{true: "1m", false: "4k"}[sequential]))
	size, err2 := unit.ParseBytes(f.size)
	duration, warmUp, err3 := f.times()
	var bad []error
	for name, err := range map[string]error{"--bs: ": err1, "--size: ": err2} {
		if err != nil {
			bad = append(bad, fmt.Errorf("%s%w", name, err))
		}
	}
	if err3 != nil {
		bad = append(bad, err3)
	}
	s := probe.Sweep{Devices: deviceLabels(paths), ReadWrite: f.rw, Access: f.access, Block: block, Size: size,
		Depth: f.depth, Processes: f.jobs, ReadShare: f.readShare, Buffered: f.buffered, Duration: duration,
		WarmUp: warmUp, Repeats: f.repeats, ReadOnly: f.reads(paths)}
	levels := map[string][]string{}
	for _, text := range f.levels {
		what, list, named := strings.Cut(text, "=")
		if !named {
			what, list = f.what[0], text
			if len(f.what) > 1 {
				bad = append(bad, fmt.Errorf("--levels %q: of which of %s? write %s=%s", text,
					strings.Join(f.what, ", "), f.what[0], text))
			}
		}
		if !slices.Contains(f.what, what) || levels[what] != nil {
			bad = append(bad, fmt.Errorf("--levels %q: %q is not swept, or has levels already; --what has %s", text, what,
				strings.Join(f.what, ", ")))
		}
		levels[what] = strings.Split(list, ",")
	}
	for _, what := range f.what {
		s.Factors = append(s.Factors, probe.Factor{What: strings.TrimSpace(what), Levels: levels[what]})
	}
	if len(bad) > 0 {
		slices.SortFunc(bad, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
		return s, exit.Usagef("", "device sweep: %w", errors.Join(bad...))
	}
	return s, nil
}

var notInLabels = lazyregexp.New(`[^A-Za-z0-9_.-]+`)

// deviceLabels are short names of paths, each once.
func deviceLabels(paths []string) (names []string) {
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		base := strings.Trim(notInLabels.ReplaceAllString(filepath.Base(p), "-"), "-.")
		base = cmp.Or(base[:min(len(base), 40)], "root")
		name := base
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		names = append(names, name)
	}
	return names
}

// probe runs a job file of our own on paths as an experiment, or says what it would do. fits objects to a place that
// cannot give what is asked.
func (rn *runner) probe(phase string, paths []string, request workload.OwnRequest, f probeFlags,
	fits func(*prepared) error) error {
	limit, err := console.TimeLimit(f.rf.limit)
	if err != nil {
		return err
	}
	if err := f.rf.Check(rn.Store, phase); err != nil {
		return err
	}
	reader, ok := rn.ownReader(request.Name)
	if !ok {
		return exit.Errorf(exit.Failed, "", "%s: no load generator reads %s", phase, request.Name)
	}
	made, err := reader.ReadOwn(request)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	given := phase + " " + strings.Join(paths, " ")
	rn.made = map[string]fs.FS{given: made.Files}
	if f.tf.Name == "local" {
		f.tf.Disks = paths
		if request.ReadOnly {
			f.tf.Options = append(f.tf.Options, "devices=read")
		}
	}
	stop := rn.Stoppable()
	defer stop.Release()
	sf := scenarioFlags{nodes: 1}
	p, err := rn.prepare(stop.Ctx, phase, given, sf, f.tf)
	if p != nil {
		defer p.close()
	}
	if err != nil {
		if stop.Ctx.Err() != nil {
			return exit.Errorf(exit.Interrupted, "nothing was started", "%s: %w", phase, console.ErrInterrupted)
		}
		return err
	}
	if err := fits(p); err != nil {
		return exit.Errorf(exit.Refused, "", "%s: %w", phase, err)
	}
	if f.dry {
		visible.Fprintf(rn.Out, "%s\n", visible.Lines(request.Data))
		return rn.sayPlan(stop.Ctx, p, sf, f.tf)
	}
	return rn.startExperiment(stop, p, sf, f.tf, f.rf, limit)
}

// needsDirectIO objects to file systems that answer from the page cache whatever is asked.
func needsDirectIO(p *prepared) error {
	var bad []error
	for _, f := range p.facts.Environment {
		if f.Name == "direct I/O" && f.Value == "not supported" {
			bad = append(bad, fmt.Errorf("%s: no direct I/O there: the page cache would answer in the place of a device; "+
				"name a folder on another file system, or give --buffered with a --size that the memory cannot hold", f.Group))
		}
	}
	return errors.Join(bad...)
}

// cached objects to sizes that the page cache of a node could hold.
func cached(p *prepared, size int64) error {
	for _, n := range p.facts.Nodes {
		if size < 2*n.MemoryBytes {
			return fmt.Errorf("--buffered: %s fit into the page cache (%s of memory on %s), which would answer in the place of "+
				"the device: leave out --buffered, or give --size %s or more", unit.Bytes(size), unit.Bytes(n.MemoryBytes), n.Name,
				unit.Bytes(2*n.MemoryBytes))
		}
	}
	return nil
}
