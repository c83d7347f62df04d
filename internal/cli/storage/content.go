package storage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/storage/content"
	"plimsoll/internal/storage/direct"
	"plimsoll/unit"
)

func ContentCommand(con *console.Console) *cobra.Command {
	return console.Group("content", "Make data of a given reducibility, and see what data can be reduced to",
		contentWriteCommand(con), contentCheckCommand(con))
}

func contentWriteCommand(con *console.Console) *cobra.Command {
	var o content.Options
	var size, block console.SizeFlag = 0, 4 << 10
	var pattern, consent string
	c := &cobra.Command{
		Use: "write PATH", Short: "Make a file of data that compress and repeat as asked", Args: console.Args(1, 1,
			"path"),
		Long: `Write makes a new file of data of which compressors save --compressibility percent, evenly throughout and
without zeros, and of whose blocks --dedupe percent repeat others. Unless asked, nothing of it compresses and no block
of 512 bytes comes twice. The same options give the same data.

No file is overwritten, and one has its name only once it is whole. A block device is written only when nobody uses
or has marked it, and with its consent phrase; see plimsoll device check.`,
		Example: `  plimsoll content write data --size 4GiB
  plimsoll content write data --size 4GiB --compressibility 50 --dedupe 30 --dedupe-block 8KiB
  plimsoll content write data --size 1GiB --pattern 0xdeadbeef`,
		RunE: func(c *cobra.Command, given []string) error {
			o.DedupeBlockBytes = int(min(int64(block), 1<<30))
			var err error
			if o.Pattern, err = patternOf(pattern); err != nil {
				return exit.Usagef("", "content write: --pattern: %w", err)
			}
			if len(o.Pattern) > 0 && !c.Flags().Changed("compressibility") {
				o.CompressibilityPercent = 100
			}
			g, err := content.New(o)
			if err != nil {
				return exit.Usagef("", "content write: %s", strings.ReplaceAll(err.Error(), "content: ", ""))
			}
			return contentWrite(con, given[0], consent, int64(size), g)
		},
	}
	flags := c.Flags()
	flags.Var(&size, "size", "`size` of the file, like 4GiB; of a device all unless given")
	flags.StringVar(&consent, "consent", "", consentUsage)
	flags.Uint64Var(&o.Seed, "seed", 1, "`number` that tells contents apart")
	flags.IntVar(&o.CompressibilityPercent, "compressibility", 0, "`percent` that compressors save: 0 to 95")
	flags.IntVar(&o.DedupePercent, "dedupe", 0, "`percent` of the blocks that repeat others: 0 to 99")
	flags.Var(&block, "dedupe-block", "`size` of those blocks: a power of two, 512 to 1MiB")
	flags.StringVar(&pattern, "pattern", "", "what compresses is these `bytes`, like 0xdeadbeef, in place of words; "+
		"without --compressibility it is all there is")
	return c
}

// patternOf reads bytes in hexadecimal digits.
func patternOf(text string) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	b, err := hex.DecodeString(digits)
	if text != "" && (!ok || err != nil || len(b) == 0) {
		return nil, fmt.Errorf("%q: want bytes in hexadecimal digits, like 0xdeadbeef", text)
	}
	return b, nil
}

func contentWrite(con *console.Console, name, consent string, size int64, g *content.Generator) error {
	const phase = "content write"
	ctx, stop := con.Interruptible()
	defer stop()
	f, err := openToWrite(ctx, phase, name, consent, size, true)
	if err != nil {
		return err
	}
	size = f.size
	began, progress := con.Now(), con.Amount(phase)
	var done atomic.Int64
	if err = g.Write(ctx, f, size, 2, func(n int64) { progress.Tell(done.Add(n), size) }); err == nil {
		err = f.finish()
	}
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", phase, name, err)
		if e := f.remove(); e != nil {
			err = errors.Join(err, e)
		} else if !f.Device {
			visible.Fprintf(con.Notes(), "%s: %s was not finished, and is removed\n", phase, name)
		}
		return exit.Errorf(console.StoppedOrFailed(ctx), "", "%w", err)
	}
	if err := f.Close(); err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	took := con.Now().Sub(began)
	if con.JSON {
		o := g.Options()
		return con.PrintJSON(struct {
			Path                   string  `json:"path"`
			Bytes                  int64   `json:"bytes"`
			Seconds                float64 `json:"seconds"`
			Direct                 bool    `json:"direct"`
			Seed                   uint64  `json:"seed"`
			CompressibilityPercent int     `json:"compressibility_percent"`
			DedupePercent          int     `json:"dedupe_percent"`
			DedupeBlockBytes       int     `json:"dedupe_block_bytes"`
		}{name, size, took.Seconds(), f.Direct, o.Seed, o.CompressibilityPercent, o.DedupePercent,
			o.DedupeBlockBytes})
	}
	_, err = visible.Fprintf(con.Out, "%s: %s written %s, %s\n", name, unit.Bytes(size), bypassed(f.File),
		unit.Bandwidth(float64(size)/max(took.Seconds(), 1e-9)).Decimal())
	return err
}

func contentCheckCommand(con *console.Console) *cobra.Command {
	var o content.CheckOptions
	e := content.Expectation{CompressibilityPercent: -1, DedupePercent: -1}
	var sample, compress, block console.SizeFlag = 0, 64 << 20, 4 << 10
	c := &cobra.Command{
		Use: "check PATH", Short: "See what a file or device holds: holes, zeros, repeats, what compresses",
		Args: console.Args(1, 1, "path"),
		Long: `Check reads a file or a block device, past the page cache where it can, and tells how much of it was never
written, how much is zeros, how many blocks repeat others, and how far two compressors get with chunks of it as storage
would compress them. It writes nothing.

Repeats are counted exactly up to 524,288 different blocks of a size, and estimated beyond that, with the error stated.
Compression is measured on --compress of the data, drawn evenly. With --sample the rest is not read either, and repeats
are then at least what is told.

With --expect-compressibility or --expect-dedupe the exit code is 5 when the data are not what was asked, or are zeros:
a load generator that ignored an option in silence is caught so.`,
		Example: `  plimsoll content check data
  plimsoll content check data --expect-compressibility 50 --expect-dedupe 30 --dedupe-block 8KiB
  plimsoll content check /dev/sdb --sample 4GiB`,
		RunE: func(c *cobra.Command, given []string) error {
			for name, v := range map[string]float64{"expect-compressibility": e.CompressibilityPercent,
				"expect-dedupe": e.DedupePercent, "tolerance": e.TolerancePoints} {
				if c.Flags().Changed(name) && !(v >= 0 && v <= 100) {
					return exit.Usagef("", "content check: --%s: %g: want 0 to 100", name, v)
				}
			}
			o.MostBytes, o.CompressBytes = int64(sample), int64(compress)
			e.DedupeBlockBytes = int(min(int64(block), 1<<30))
			if c.Flags().Changed("dedupe-block") {
				o.DedupeBlockBytes = []int{e.DedupeBlockBytes}
			}
			return contentCheck(con, given[0], o, e)
		},
	}
	flags := c.Flags()
	flags.Float64Var(&e.CompressibilityPercent, "expect-compressibility", -1, "`percent` that compressors are to save")
	flags.Float64Var(&e.DedupePercent, "expect-dedupe", -1, "`percent` of the blocks that are to repeat others")
	flags.Float64Var(&e.TolerancePoints, "tolerance", 3, "percentage `points` that either may be off")
	flags.Var(&block, "dedupe-block", "`size` of those blocks; others are not looked at when it is given")
	flags.Var(&sample, "sample", "read at most this `size`, spread evenly (default all)")
	flags.Var(&compress, "compress", "compress at most this `size` of what is read, spread evenly")
	for _, name := range []string{"expect-compressibility", "expect-dedupe"} {
		flags.Lookup(name).DefValue = "" // none
	}
	return c
}

// contentDocument holds what content check prints.
type contentDocument struct {
	Path           string            `json:"path"`
	Device         bool              `json:"device"`
	AllocatedBytes int64             `json:"allocated_bytes"` // -1 unknown
	Direct         bool              `json:"direct"`
	WhyNotDirect   string            `json:"why_not_direct,omitempty"`
	Seconds        float64           `json:"seconds"`
	Verdicts       []content.Verdict `json:"verdicts"`
	*content.Report
}

func contentCheck(con *console.Console, name string, o content.CheckOptions, e content.Expectation) error {
	const phase = "content check"
	f, err := direct.OpenRead(name)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	defer f.Close()
	if f.Bytes == 0 {
		return exit.Errorf(exit.Failed, "", "%s: %s: it is empty", phase, name)
	}
	if !f.Direct {
		_ = f.Forget() // said below
	}
	d := contentDocument{Path: name, Device: f.Device, Direct: f.Direct, WhyNotDirect: f.Why,
		Verdicts: []content.Verdict{}}
	if d.AllocatedBytes, err = f.Allocated(); err != nil {
		d.AllocatedBytes = -1
	}
	ctx, stop := con.Interruptible()
	defer stop()
	began := con.Now()
	o.Progress = con.Amount(phase).Tell
	if d.Report, err = content.Check(ctx, f, f.Bytes, o); err != nil {
		if ctx.Err() == nil {
			return exit.Usagef("", "%s: %s", phase, strings.ReplaceAll(err.Error(), "content: ", ""))
		}
		return exit.Errorf(exit.Interrupted, "", "%s: %s: %w", phase, name, err)
	}
	d.Seconds = con.Now().Sub(began).Seconds()
	if e.CompressibilityPercent >= 0 || e.DedupePercent >= 0 {
		d.Verdicts = d.Judge(e)
	}
	if con.JSON {
		err = con.PrintJSON(d)
	} else {
		err = d.text(con.Out, f)
	}
	if err != nil {
		return err
	}
	if d.UnreadableBytes > 0 {
		return exit.Errorf(exit.Failed, "", "%s: %s: %s could not be read: %s", phase, name,
			unit.Bytes(d.UnreadableBytes), d.FirstError)
	}
	var failed []error
	for _, v := range d.Verdicts {
		if v.Met != content.Yes {
			failed = append(failed, fmt.Errorf("%s: %s: %s %s: %s", phase, name, v.Subject, v.Met, v.Sentence))
		}
	}
	if len(failed) > 0 {
		return exit.Errorf(exit.Threshold, "", "%w", errors.Join(failed...))
	}
	return nil
}

func (d *contentDocument) text(w io.Writer, f *direct.File) error {
	what := "file"
	if d.Device {
		what = "block device"
	}
	part := "all of it"
	if d.Sampled {
		part = unit.Bytes(d.ReadBytes).String() + " of it, spread evenly,"
	}
	visible.Fprintf(w, "%s: %s of %s; read %s %s in %s\n\n", filepath.Clean(d.Path), what,
		unit.Bytes(d.LogicalBytes), part, bypassed(f), time.Duration(d.Seconds*1e9).Round(time.Millisecond))
	looked := float64(d.ReadBytes + max(d.HoleBytes, 0))
	share := func(n int64) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/max(looked, 1)) }
	t := terminal.Table{Head: []string{"WHAT", "BYTES", "SHARE"}, Right: []bool{false, true, true}}
	if d.AllocatedBytes >= 0 && !d.Device {
		t.Add("allocated, of the whole file", unit.Bytes(d.AllocatedBytes).String(),
			fmt.Sprintf("%.1f %%", 100*float64(d.AllocatedBytes)/float64(d.LogicalBytes)))
	}
	if d.HoleBytes >= 0 && !d.Device {
		t.Add("never written", unit.Bytes(d.HoleBytes).String(), share(d.HoleBytes))
	}
	t.Add("blocks of zeros (4 KiB)", unit.Bytes(d.ZeroBytes).String(), share(d.ZeroBytes))
	t.Add("zeros within other blocks (64 bytes and more)", unit.Bytes(d.ZeroLineBytes-d.ZeroBytes).String(),
		share(d.ZeroLineBytes-d.ZeroBytes))
	if err := t.Write(w); err != nil {
		return err
	}
	visible.Fprintf(w, "\n")
	t = terminal.Table{Head: []string{"BLOCKS OF", "NOT ZEROS", "DIFFERENT", "REPEAT OTHERS"},
		Right: []bool{true, true, true, true}}
	for _, n := range d.Duplicates {
		repeat := fmt.Sprintf("%.1f %%", 100*n.Share)
		if n.Error95 > 0 {
			repeat += fmt.Sprintf(" ± %.2g", 100*n.Error95)
		}
		if n.AtLeast {
			repeat = "at least " + repeat
		}
		t.Add(unit.Bytes(n.BlockBytes).String(), unit.Thousands(n.Blocks), unit.Thousands(n.Distinct), repeat)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	visible.Fprintf(w, "\n")
	t = terminal.Table{Head: []string{"COMPRESSOR", "CHUNKS OF", "TRIED ON", "SAVES", "RATIO"},
		Right: []bool{false, true, true, true, true}}
	for _, n := range d.Compression {
		saves, ratio := "-", "-"
		if n.InBytes > 0 {
			saves, ratio = fmt.Sprintf("%.1f %%", 100*n.Share), fmt.Sprintf("%.2f", n.Ratio())
		}
		if n.Error95 > 0 {
			saves += fmt.Sprintf(" ± %.2g", 100*n.Error95)
		}
		t.Add(n.Codec, unit.Bytes(n.ChunkBytes).String(), unit.Bytes(n.InBytes).String(), saves, ratio)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for i, v := range d.Verdicts {
		if i == 0 {
			visible.Fprintf(w, "\n")
		}
		visible.Fprintf(w, "%s %s: %s\n", v.Subject, v.Met, v.Sentence)
	}
	return nil
}
