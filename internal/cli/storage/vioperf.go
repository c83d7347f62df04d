package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/storage/device/guard"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
	"plimsoll/unit"
)

// vioperfFlags are those that are texts on the command line.
type vioperfFlags struct {
	block, rate, reserve string
	disableCRC           bool
	compare              bool
	consent              string
	rounds               int
}

func (dv *Devices) VioperfCommand() *cobra.Command {
	o := vioperf.Defaults()
	var f vioperfFlags
	c := &cobra.Command{
		Use: "vioperf FOLDER|DEVICE", Short: "Write large blocks to growing files, as a column store loads, and say what it took",
		Args: console.Args(1, 1, "folder or device"),
		Long: `Vioperf has every thread extend a file of its own with blocks of 1 MiB, one after the other, each with a
CRC-64/NVME in its header: past the page cache where the file system can, with data of which no two sectors are equal
and nothing compresses. Making data and checksums goes on while other blocks are written.

The main figure is MB/s per core: what all threads wrote (1 MB is 1,000,000 bytes) over the number of processors that
this process may use. Beside it stand the processor time per GB, and what the device saw, as iostat would say it:
request size, outstanding requests, wait, utilization.

It makes a folder in FOLDER and removes it at the end. It leaves a reserve free, 5 % of the file system and 1 GiB at
least, and stops there, or with --when-full wrap goes on at the start of its files. What was measured until a disk is
full, fails or the run is interrupted is printed, and says so.

A block device is written over, a part of it by each thread, once nothing stands against that (plimsoll device check)
and --consent names it.

With --compare-fio the same pattern is written by turns with fio: the ratio of each round, and where a difference
comes from.`,
		Example: `  plimsoll vioperf /mnt/under-test
  plimsoll vioperf /mnt/under-test --thread-count 8 --duration 5m --verify
  plimsoll vioperf /mnt/under-test --rate 200MB/s --when-full wrap --duration 1h
  plimsoll vioperf /mnt/under-test --compare-fio --duration 5s`,
		RunE: func(_ *cobra.Command, given []string) error {
			o.Dir = given[0]
			if err := f.into(&o); err != nil {
				return err
			}
			return dv.vioperf(o, f)
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.Threads, "thread-count", o.Threads, "`number` of threads, each with a file")
	flags.DurationVar(&o.Duration, "duration", o.Duration, "`time` to write for, of each run with --compare-fio")
	flags.StringVar(&f.block, "block-size", "1MiB", "`bytes` of one write: a multiple of 4KiB")
	flags.IntVar(&o.QueueDepth, "queue-depth", o.QueueDepth, "most writes of a thread outstanding at once")
	flags.StringVar(&f.rate, "rate", "", "offered by all threads together, like 200MB/s; else as fast as it goes")
	flags.BoolVar(&f.disableCRC, "disable-crc", false, "no checksums")
	flags.BoolVar(&o.Buffered, "buffered", false, "through the page cache")
	flags.BoolVar(&o.Verify, "verify", false, "read everything back and hold it against its checksums")
	flags.BoolVar(&o.Keep, "keep", false, "leave the files")
	flags.StringVar(&f.reserve, "reserve", "", "`bytes` that stay free (default 5 %, 1GiB at least)")
	flags.StringVar(&o.WhenFull, "when-full", o.WhenFull, "at the reserve: stop, or wrap to the start of each file")
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "the data's; the same one writes the same")
	flags.IntVar(&o.CompressibilityPercent, "compressibility", 0, "`percent` of the data that a compressor "+
		"saves, 0 to 95")
	flags.BoolVar(&f.compare, "compare-fio", false, "write the same with fio by turns, and compare")
	flags.IntVar(&f.rounds, "rounds", 3, "with --compare-fio, rounds of eight runs")
	flags.StringVar(&f.consent, "consent", "", "for a block device: its `phrase`, as plimsoll device inspect prints it")
	_ = c.RegisterFlagCompletionFunc("when-full", cobra.FixedCompletions([]string{vioperf.Stop, vioperf.Wrap},
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (dv *Devices) vioperf(o vioperf.Options, f vioperfFlags) error {
	ctx, stop := dv.Interruptible()
	defer stop()
	signal.Ignore(syscall.SIGXFSZ) // the write that a limit refuses says it, too
	if info, err := os.Stat(o.Dir); err == nil && info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice {
		if f.compare {
			return exit.Usagef("make a file system on it and give its folder", "vioperf: %s: fio is compared with in "+
				"files that grow, not on a device", o.Dir)
		}
		path, err := filepath.Abs(o.Dir)
		if err != nil {
			return fmt.Errorf("vioperf: %w", err)
		}
		claim, err := guard.ForWriting(ctx, dv.System, path, f.consent)
		if err != nil {
			return fmt.Errorf("vioperf: %w", err)
		}
		defer claim.Release() //nolint:errcheck // the process ends, and with it the claim
		d := claim.Device()
		o.Disk = &vioperf.Disk{Path: claim.Path(), Name: d.Name, Bytes: d.SizeBytes, Recheck: claim.Recheck}
	}
	noteLeft(dv.Console, o.Dir)
	var res *vioperf.Result
	var c *vioperf.Comparison
	var err error
	if f.compare {
		res, c, err = vioperf.Compare(ctx, o, f.rounds, func(l vioperf.Leg) {
			visible.Fprintf(dv.Notes(), "%-48s %9s MB/s  %.3f CPU s/GB\n", l.What, megabytes(l.BytesPerSecond),
				l.CPUPerGB)
		})
	} else {
		o.Begin = func(p vioperf.Place, reserve int64) {
			on := ""
			if p.Device != "" {
				on = " on " + p.Device
			}
			visible.Fprintf(dv.Notes(), "writes new files in %s (%s%s): %s are free, of which %s stay so\n", p.Path,
				p.Type, on, unit.Bytes(p.FreeBytes), unit.Bytes(reserve))
		}
		o.Progress = vioperfSeconds(dv.Console)
		res, err = vioperf.Write(ctx, o)
	}
	var left *vioperf.LeftError
	switch {
	case errors.As(err, &left):
		err = exit.Errorf(exit.Uncleaned, "", "vioperf: %w", err)
	case err != nil && ctx.Err() == nil:
		err = exit.Errorf(exit.Failed, "", "vioperf: %w", err)
	case ctx.Err() != nil:
		err = exit.Errorf(exit.Interrupted, "", "vioperf: %w", console.ErrInterrupted)
	case res != nil && res.Ended == vioperf.Failed:
		err = exit.Errorf(exit.Failed, "", "vioperf: %s: %s", o.Dir, res.Error)
	case res != nil && res.Verification.Wrong() > 0:
		err = exit.Errorf(exit.Failed, "", "vioperf: %s: %s not what was written", o.Dir,
			unit.Plural(int(res.Verification.Wrong()), "block"))
	}
	if res == nil {
		return err
	}
	if dv.JSON {
		return errors.Join(printVioperfJSON(dv.Console, res, c), err)
	}
	said := printVioperf(dv.Out, res)
	if c != nil {
		said = errors.Join(said, printBesideFio(dv.Out, c))
	}
	return errors.Join(said, err)
}

// into reads the flags that are texts, and checks all of them together.
func (f vioperfFlags) into(o *vioperf.Options) error {
	var wrong []error
	size := func(flag, text string) int64 {
		n, err := unit.ParseBytes(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--%s: %w", flag, err))
		}
		return int64(n)
	}
	o.Checksum = !f.disableCRC
	o.BlockBytes = int(min(size("block-size", f.block), 1<<40))
	if f.reserve != "" {
		o.Reserve = size("reserve", f.reserve)
	}
	if f.rate != "" {
		rate, err := unit.ParseBandwidth(f.rate)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--rate: %w", err))
		}
		o.Rate = float64(rate)
	}
	if f.compare && f.rounds < 1 {
		wrong = append(wrong, fmt.Errorf("--rounds: %d is not 1 or more", f.rounds))
	}
	if len(wrong) == 0 {
		wrong = append(wrong, o.Check())
	}
	if err := errors.Join(wrong...); err != nil {
		return exit.Usagef(`run "plimsoll vioperf --help" for what each flag wants`, "vioperf: %s",
			strings.ReplaceAll(err.Error(), "\n", "\nvioperf: "))
	}
	return nil
}

func printVioperfJSON(con *console.Console, res *vioperf.Result, c *vioperf.Comparison) error {
	return con.PrintJSON(struct {
		*vioperf.Result
		Comparison *vioperf.Comparison `json:"beside_fio,omitempty"`
	}{res, c})
}

// noteLeft tells of folders of runs that were killed.
func noteLeft(con *console.Console, dir string) {
	left, _ := fs.Glob(os.DirFS(dir), vioperf.FolderPrefix+"*") // the pattern is right
	for _, name := range left {
		folder := filepath.Join(dir, name)
		if info, err := os.Lstat(folder); err == nil && info.IsDir() {
			visible.Fprintf(con.Err, "warning: %s is of another run of vioperf: unless that goes on, or its files were to be "+
				"kept, remove it\n", folder)
		}
	}
}

// vioperfSeconds prints a line a second, as iostat does.
func vioperfSeconds(con *console.Console) func(vioperf.Second) {
	w := con.Notes()
	if w == io.Discard {
		return nil
	}
	lines := 0
	return func(s vioperf.Second) {
		if lines%20 == 0 {
			visible.Fprintf(w, "%6s %9s %9s %9s %9s %8s %7s %6s\n", "second", "MB/s", "device", "w/s", "wareq-sz",
				"w_await", "aqu-sz", "%util")
		}
		lines++
		if d := s.Device; d != nil {
			visible.Fprintf(w, "%6.0f %9s %9s %9.0f %9s %8s %7.1f %6.1f\n", s.Seconds, megabytes(s.BytesPerSecond),
				megabytes(d.BytesPerSecond), d.Writes, unit.Bytes(d.RequestBytes), seconds(d.Await), d.Queue,
				100*d.Utilization)
			return
		}
		visible.Fprintf(w, "%6.0f %9s\n", s.Seconds, megabytes(s.BytesPerSecond))
	}
}

// megabytes prints bytes per second in MB/s without the unit.
func megabytes(bytesPerSecond float64) string {
	if v := bytesPerSecond / 1e6; v < 99.5 {
		return fmt.Sprintf("%.1f", v)
	}
	return unit.Thousands(int64(bytesPerSecond/1e6 + 0.5))
}

func seconds(s float64) string { return unit.Duration(s * float64(time.Second)).String() }

func printVioperf(w io.Writer, res *vioperf.Result) error {
	on, how := res.Type, "direct I/O"
	switch {
	case on == "":
		on = "block device " + res.Device
	case res.Device != "":
		on += " on " + res.Device
	}
	if !res.Direct {
		how = "through the page cache (" + res.WhyBuffered + ")"
	}
	sums, data := "CRC-64/NVME", "no two sectors equal"
	if !res.Checksum {
		sums = "no checksums"
	}
	if res.Compressibility > 0 {
		data = fmt.Sprintf("data compressible by %d %%", res.Compressibility)
	}
	visible.Fprintf(w, "%s (%s): %s, blocks of %s, at most %d outstanding each, %s, %s, %s\n", res.Path, on,
		unit.Plural(res.Threads, "thread"), unit.Bytes(res.BlockBytes), res.QueueDepth, how, sums, data)
	visible.Fprintf(w, "%s\n\n", res.Rule())
	visible.Fprintf(w, "%s MB/s per core: throughput over the %s that this process may use\n\n",
		megabytes(res.PerCore), unit.Plural(res.Cores, "processor"))
	t := terminal.Table{Head: []string{"WHAT", "MEASURED"}}
	t.Add("throughput", fmt.Sprintf("%s MB/s: %.3f GB in %.2f s, then %s until all was on the device",
		megabytes(res.BytesPerSecond), float64(res.Bytes)/1e9, res.Seconds, seconds(res.SyncSeconds)))
	if gb := float64(res.Bytes) / 1e9; gb > 0 {
		t.Add("processor", fmt.Sprintf("%.3f s per GB (user %.3f, system %.3f); the whole machine %.3f", res.CPUPerGB,
			res.User/gb, res.System/gb, res.MachinePerGB))
	}
	t.Add("service time", timesLine(res.Service))
	if res.Response != nil {
		t.Add("response time", timesLine(*res.Response)+", from when each block was due")
	}
	if d := res.DeviceSaw; d != nil {
		t.Add("device "+res.Device, fmt.Sprintf("%s MB/s, %.0f w/s, wareq-sz %s (avgrq-sz %.0f sectors), w_await %s, "+
			"aqu-sz %.2f, util %.0f %%", megabytes(d.BytesPerSecond), d.Writes, unit.Bytes(d.RequestBytes),
			d.RequestBytes/512, seconds(d.Await), d.Queue, 100*d.Utilization))
	}
	if v := res.Verification; v != nil {
		t.Add("read back", v.String())
	}
	err := t.Write(w)
	visible.Fprintf(w, "\n")
	for _, text := range append(append([]string{res.Ending()}, res.Relation...), res.Notes...) {
		visible.Fprintf(w, "%s\n", text)
	}
	if v := res.Verification; v != nil {
		for _, b := range v.Found {
			visible.Fprintf(w, "%s, byte %d: %s\n", b.File, b.At, b.What)
		}
	}
	return err
}

func timesLine(t vioperf.Times) string {
	text := "mean " + seconds(t.Mean)
	for _, p := range []struct {
		name string
		at   *float64
	}{{"p50", t.P50}, {"p99", t.P99}, {"p99.9", t.P999}} {
		if p.at != nil {
			text += ", " + p.name + " " + seconds(*p.at)
		}
	}
	return text + ", longest " + seconds(t.Max)
}

func printBesideFio(w io.Writer, c *vioperf.Comparison) error {
	visible.Fprintf(w, "\nbeside %s (%s", c.FioVersion, unit.Plural(c.Rounds, "round"))
	if c.Stopped {
		visible.Fprintf(w, ", interrupted")
	}
	visible.Fprintf(w, "); median, lowest and highest round\n\n")
	t := terminal.Table{Head: []string{"VIOPERF AGAINST", "RATIO"}}
	t.Add("fio, throughput", c.Throughput.String())
	t.Add("itself without checksums, throughput", c.Checksum.String())
	t.Add("fio, processor time per GB", c.CPU.String())
	t.Add("fio with refill_buffers, processor time per GB", c.CPURefilled.String())
	t.Add("fio with refill_buffers and verify=crc32c, processor time per GB", c.CPUSummed.String())
	err := t.Write(w)
	visible.Fprintf(w, "\n")
	for _, text := range c.Diagnosis {
		visible.Fprintf(w, "%s\n", text)
	}
	visible.Fprintf(w, "fio was run as: %s\n", strings.Join(c.FioCommand, " "))
	return err
}
