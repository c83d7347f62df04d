package storage

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/blocktrace"
	"plimsoll/internal/storage/trace"
	"plimsoll/internal/storage/trace/live"
	"plimsoll/internal/storage/trace/read"
	"plimsoll/unit"
)

// traceFlags are what trace is asked.
type traceFlags struct {
	output   console.Output
	from     string // --from
	device   string
	level    string
	block    string
	sample   int
	job      string
	series   string
	save     string
	duration time.Duration
	buffer   string
}

func TraceCommand(con *console.Console) *cobra.Command {
	var f traceFlags
	c := &cobra.Command{
		Use:   "trace FILE...|DEVICE|-",
		Short: "Say what a stream of block I/O is, from a trace or from a device at work",
		Long: `Trace reads what a device was asked for and says what kind of load that is, as a storage controller would sort
it: sizes, reads and writes, sequential and random (several sequential streams at once are not random), how often blocks
come back and what caches of each size would miss, bursts, queue depth over time, service and response time, processes.

FILE is a trace by blktrace (binary; give the files of all CPUs together), blkparse (text), the kernel's tracefs or perf
script (text), fio (write_iolog, or a log of single operations with log_offset=1), or a table in CSV: Microsoft Research
Cambridge, Alibaba, Tencent, or any with a header that names time, operation, offset and size. Each is recognised by
content and may be packed with gzip or zstd. "-" is standard input.

DEVICE, like /dev/sdb, is traced while it works, for --duration, through a tracefs instance of its own that is removed
at the end; that wants root. eBPF is not used.

Service time is from issue to completion, response time from queueing to completion. Memory does not grow with the
trace. What is wrong with a trace is counted and named, and the rest of it stands.`,
		Example: `  plimsoll trace sda.blktrace.0 sda.blktrace.1
  plimsoll trace vdb.blkparse.txt --fio like-it.fio
  plimsoll trace volume.csv.gz -o json
  plimsoll trace /dev/sdb --duration 30s`,
		Args: console.Args(1, 1024, "file or device"),
		RunE: func(_ *cobra.Command, given []string) error { return analyseTrace(con, given, f) },
	}
	flags := c.Flags()
	f.output.Register(c, "text", "csv", "html", "json")
	flags.StringVar(&f.from, "from", "", "what the files are: `"+strings.Join(read.Formats(), ", ")+
		"` (default: what they prove to be)")
	flags.StringVar(&f.device, "device", "", "only the device of this `name`, of a trace of several")
	flags.StringVar(&f.level, "level", "",
		"requests as they were `issued or queued` (default: issued, where a device has a "+
			"queue)")
	flags.StringVar(&f.block, "block", "4KiB", "`size` of the blocks of the working set")
	flags.IntVar(&f.sample, "sample", 0,
		"blocks that the working set is told from at most, as a `number` (default 16384)")
	flags.StringVar(&f.job, "fio", "", "write a fio job that resembles the load to this `file`")
	flags.StringVar(&f.series, "series", "", "write what happened over time as CSV to this `file`")
	flags.StringVar(&f.save, "save", "", "of a DEVICE: keep the trace in this `file`, as text")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "of a DEVICE: how `long`")
	flags.StringVar(&f.buffer, "buffer", "8MiB", "of a DEVICE: `size` of the kernel's buffer of each CPU")
	return c
}

var traceFormats = map[string]func(io.Writer, *trace.Result) error{"text": blocktrace.Text, "csv": blocktrace.CSV,
	"json": nil,
	"html": blocktrace.Page}

func analyseTrace(con *console.Console, given []string, f traceFlags) error {
	write, err := console.FormatOf(con, "trace", f.output, traceFormats)
	if err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	ctx, stop := con.Interruptible()
	defer stop()
	var r *trace.Result
	if device, ok := live.Device(given[0]); ok {
		if len(given) > 1 {
			return exit.Usagef("one at a time", "trace: %q is a device, and only one is traced", given[0])
		}
		r, err = traceDevice(ctx, con, device, f, options)
	} else {
		r, err = traceFiles(ctx, con, given, f, options)
	}
	if r == nil {
		return err
	}
	return errors.Join(traced(con, r, f, write), err)
}

func (f *traceFlags) options() (o trace.Options, err error) {
	block, err := unit.ParseBytes(f.block)
	if err != nil || block < 512 || block > 1<<30 || block%512 != 0 {
		return o, exit.Usagef("like 4KiB or 64KiB", "trace: --block %q: want a multiple of 512 bytes, at most 1 GiB",
			f.block)
	}
	if f.sample < 0 || f.sample > 1<<24 {
		return o, exit.Usagef("", "trace: --sample %d: want a number from 1 to 16777216", f.sample)
	}
	o = trace.Options{Device: f.device, BlockBytes: uint64(block), Sampled: f.sample}
	switch f.level {
	case "":
	case "issued":
		o.Level = trace.Issue
	case "queued":
		o.Level = trace.Queue
	default:
		return o, exit.Usagef("there are: issued, queued", "trace: --level: no such %q", f.level)
	}
	return o, nil
}

// traceFiles reads files, each once.
func traceFiles(ctx context.Context, con *console.Console, given []string, f traceFlags,
	o trace.Options) (*trace.Result, error) {
	var inputs []read.Input
	var failed []error
	for _, name := range given {
		in, err := con.OpenGiven(name)
		if err != nil {
			failed = append(failed, exit.Errorf(exit.Failed, "", "trace: %w", err))
			continue
		}
		defer in.Close()
		label := name
		if name == "-" {
			label = "standard input"
		}
		inputs = append(inputs, read.Input{Name: label, From: in})
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	t, err := read.Open(inputs, f.from)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "plimsoll trace --help says what is read", "trace: %w", err)
	}
	defer t.Close()
	r, err := trace.Analyze(t, o, t.Names, t.Problems, func() error { return context.Cause(ctx) })
	r.Sources, r.Format = given, strings.Join(slices.Compact(slices.Sorted(slices.Values(t.Formats))), ", ")
	if f.device != "" && r.Events > 0 && r.LeftOut == r.Events {
		return nil, exit.Usagef("it has: "+deviceNames(r), "trace: --device: no device %q in the trace", f.device)
	}
	return r, err
}

func deviceNames(r *trace.Result) string {
	var names []string
	for _, d := range r.Devices {
		names = append(names, d.Name)
	}
	return unit.List(names, 10)
}

// traceDevice looks on while a device works.
func traceDevice(ctx context.Context, con *console.Console, device live.Block, f traceFlags,
	o trace.Options) (*trace.Result,
	error) {
	buffer, err := unit.ParseBytes(f.buffer)
	if err != nil || buffer < 64<<10 || buffer > 1<<30 {
		return nil, exit.Usagef("like 8MiB", "trace: --buffer %q: want from 64 KiB to 1 GiB", f.buffer)
	}
	if f.duration <= 0 {
		return nil, exit.Usagef("like 30s", "trace: --duration %v: want more than nothing", f.duration)
	}
	visible.Fprintf(con.Notes(), "trace: %s (%s) for %v; Ctrl-C ends it earlier, and what was seen until then counts\n",
		device.Path, device.Numbers(), f.duration)
	session, err := live.Start(ctx, device, live.Options{Duration: f.duration, BufferBytes: int64(buffer)})
	if err != nil {
		return nil, exit.Errorf(exit.Refused, "trace files are read without any of this", "trace: %s: %w", device.Path,
			err)
	}
	var from io.Reader = session
	var saved *outfile.File
	if f.save != "" {
		kept, err := outfile.Grow(f.save)
		if err != nil {
			return nil, errors.Join(exit.Errorf(exit.Failed, "", "trace: --save: %w", err), session.Close())
		}
		from = io.TeeReader(session, kept)
		saved = kept
	}
	r, err := analyseSession(from, device, o)
	if saved != nil { // whatever came of reading it, the trace was made
		if kept := saved.Commit(); kept != nil {
			err = errors.Join(err, exit.Errorf(exit.Failed, "", "trace: --save: %w", kept))
		}
	}
	if closed := session.Close(); closed != nil {
		err = errors.Join(err, exit.Errorf(exit.Uncleaned, "as root: rmdir "+session.Dir(), "trace: %w", closed))
	}
	return r, err
}

func analyseSession(from io.Reader, device live.Block, o trace.Options) (*trace.Result, error) {
	t, err := read.Open([]read.Input{{Name: device.Path, From: from}}, "tracefs")
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "was it at work? --duration gives it longer",
			"trace: %s: nothing was seen: %w", device.Path, err)
	}
	defer t.Close()
	t.Names.Devices[device.ID()] = device.Path
	r, err := trace.Analyze(t, o, t.Names, t.Problems, func() error { return nil })
	r.Sources, r.Format = []string{device.Path}, "tracefs, live"
	return r, err
}

// traced writes the documents that were asked for.
func traced(con *console.Console, r *trace.Result, f traceFlags, write func(io.Writer, *trace.Result) error) error {
	for _, p := range r.Problems {
		where := ""
		if p.First != "" {
			where = "; the first: " + p.First
		}
		visible.Fprintf(con.Err, "warning: trace: %s (%s)%s\n", p.What, unit.Thousands(int64(p.Count)), where)
	}
	for _, file := range []struct {
		name, what string
		write      func(io.Writer) error
	}{
		{f.job, "fio job", r.FioJob},
		{f.series, "series", func(w io.Writer) error { return blocktrace.CSV(w, r) }},
	} {
		if file.name == "" {
			continue
		}
		if err := con.Print("trace: "+file.what, file.what, console.Output{File: file.name}, file.write); err != nil {
			return err
		}
	}
	return con.Print("trace", "trace", f.output, func(w io.Writer) error {
		if write == nil {
			return con.PrintJSON(r)
		}
		return write(w, r)
	})
}
