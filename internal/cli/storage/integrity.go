package storage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/storage/direct"
	integrity "plimsoll/internal/workloads/integrity/driver"
	"plimsoll/unit"
)

func IntegrityCommand(con *console.Console) *cobra.Command {
	return console.Group("integrity", "Write blocks that say what they are, and find those that the storage lost or changed",
		integrityWriteCommand(con), integrityVerifyCommand(con))
}

func integrityWriteCommand(con *console.Console) *cobra.Command {
	m := integrity.Manifest{Passes: 1, Order: integrity.Sequential}
	var size, block, flush console.SizeFlag = 0, 4 << 10, 64 << 20
	var dir, pattern, consent string
	var same bool
	var threads int
	c := &cobra.Command{
		Use: "write PATH", Short: "Write stamped blocks, and keep what was acknowledged elsewhere",
		Args: console.Args(1, 1, "path"),
		Long: `Write makes a new file of blocks of which every 512 bytes say to which run they belong, where they belong and
which generation they are, with a checksum. Each of --passes writes every block anew. After every --flush the storage is
told to make safe what it has (fsync), and that is noted as acknowledged, beside the manifest in the folder --manifest.

The manifest is what verify needs, so it may not lie on the file system that is tested. A write that is interrupted, or
cut off by a crash, leaves a manifest that says how far it came, and what was written stays.

No file is overwritten. A block device is written only when nobody uses or has marked it, and with its consent phrase;
see plimsoll device check.

With --pattern there is nothing but the pattern: what changed is found, but not blocks that are swapped or old.`,
		Example: `  plimsoll integrity write /mnt/under-test/stamped --size 4GiB --manifest kept
  plimsoll integrity write /mnt/under-test/stamped --size 4GiB --manifest kept --passes 3 --order random --flush 1MiB`,
		RunE: func(_ *cobra.Command, given []string) error {
			p, err := patternOf(pattern)
			if err != nil {
				return exit.Usagef("", "integrity write: --pattern: %w", err)
			}
			if m.Path, err = filepath.Abs(given[0]); err != nil {
				return err
			}
			m.Pattern = hex.EncodeToString(p)
			m.Bytes, m.BlockBytes, m.FlushBytes = int64(size), int(min(int64(block), 1<<30)), int64(flush)
			return integrityWrite(con, given[0], m, dir, consent, same, threads)
		},
	}
	flags := c.Flags()
	flags.Var(&size, "size", "`size` of the file, like 4GiB; of a device all unless given")
	flags.StringVar(&consent, "consent", "", consentUsage)
	flags.StringVar(&dir, "manifest", "", "`folder` that keeps the manifest, elsewhere than on what is tested")
	flags.BoolVar(&same, "same-device", false, "keep the manifest there though it is lost with what is tested")
	flags.Var(&block, "block-size", "`size` of a block: a power of two, 512 to 1MiB")
	flags.IntVar(&m.Passes, "passes", 1, "`number` of times that every block is written")
	flags.StringVar(&m.Order, "order", m.Order, "`order` of the blocks of a pass: sequential, random")
	flags.Var(&flush, "flush", "flush and acknowledge after this `size`")
	flags.StringVar(&pattern, "pattern", "", "write these `bytes` over and over, like 0xdeadbeef, in place of stamps")
	flags.IntVar(&m.CompressibilityPercent, "compressibility", 0,
		"`percent` that compressors save of what is between the stamps")
	flags.IntVar(&threads, "threads", 0, "`number` of writes at once (default one a processor, at most 8)")
	_ = c.RegisterFlagCompletionFunc("order", cobra.FixedCompletions([]string{integrity.Sequential, integrity.Random},
		cobra.ShellCompDirectiveNoFileComp))
	return c
}

func integrityWrite(con *console.Console, name string, m integrity.Manifest, dir, consent string, same bool,
	threads int) error {
	const phase = "integrity write"
	if dir == "" {
		return exit.Usagef("for example --manifest ~/kept",
			"%s: where is the manifest to be kept? give --manifest FOLDER", phase)
	}
	if threads < 0 || threads > 1024 {
		return exit.Usagef("", "%s: --threads: %d: want 1 to 1024", phase, threads)
	}
	keep, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	beside, err := direct.Beside(keep, name)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if beside && !same {
		return exit.Errorf(exit.Refused, "give a folder on another one, or --same-device when it is only to be tried out",
			"%s: --manifest %s: it lies on the file system that is tested, and would be lost with it", phase, dir)
	}
	ctx, stop := con.Interruptible()
	defer stop()
	f, err := openToWrite(ctx, phase, name, consent, m.Bytes, false, keep)
	if err != nil {
		return err
	}
	if m.Bytes == 0 && m.BlockBytes > 0 {
		m.Bytes = f.size / int64(m.BlockBytes) * int64(m.BlockBytes)
	}
	l, err := integrity.Create(dir, m, con.Now())
	if err != nil {
		return exit.Usagef("", "%s: %w", phase, errors.Join(err, f.remove()))
	}
	defer l.Close() //nolint:errcheck // what is in it was synced
	began := con.Now()
	err = integrity.Write(ctx, f, l, integrity.Options{Workers: threads, Now: con.Now,
		Progress: con.Amount(phase).Tell})
	if err = errors.Join(err, f.finish(), f.Close()); err != nil {
		return exit.Errorf(console.StoppedOrFailed(ctx), "plimsoll integrity verify "+name+" --manifest "+l.Name+
			" holds the storage to what it had acknowledged", "%s: %s: %w", phase, name, err)
	}
	seconds := con.Now().Sub(began).Seconds()
	if con.JSON {
		return con.PrintJSON(struct {
			Path     string  `json:"path"`
			Manifest string  `json:"manifest"`
			Run      string  `json:"run"`
			Bytes    int64   `json:"bytes"`
			Passes   int     `json:"passes"`
			Seconds  float64 `json:"seconds"`
			Direct   bool    `json:"direct"`
		}{m.Path, l.Name, l.Manifest.Run, m.Bytes, m.Passes, seconds, f.Direct})
	}
	_, err = visible.Fprintf(con.Out, "%s: %s in blocks of %s, passes: %d, all acknowledged; written %s, %s\nmanifest: %s\n",
		name, unit.Bytes(m.Bytes), unit.Bytes(m.BlockBytes), m.Passes, bypassed(f.File),
		unit.Bandwidth(float64(m.Bytes)*float64(m.Passes)/max(seconds, 1e-9)).Decimal(), l.Name)
	return err
}

func integrityVerifyCommand(con *console.Console) *cobra.Command {
	var manifest string
	var threads int
	c := &cobra.Command{
		Use: "verify PATH", Short: "Find what the storage lost or changed of what it had acknowledged",
		Args: console.Args(1, 1, "path"),
		Long: `Verify reads what integrity write wrote, past the page cache where it can, and names every range that is not
what the storage had acknowledged:

  misdirected  blocks of this run that belong elsewhere
  stale        an older generation, though a later one was acknowledged
  torn         the older part of a block that was written in part
  zeroed       zeros: never written, or overwritten since
  foreign      sound blocks of another run
  corrupt      no sound stamp, or not the pattern
  ahead        a later generation than was begun: the manifest is an older copy
  missing      behind the end of the file
  unreadable   an error in place of data; the rest is read

What was only under way when the write ended may be old, new or both. The exit code is 5 when anything is damaged.
Addresses are bytes from the start, the second the first byte behind the range. It writes nothing.`,
		Example: `  plimsoll integrity verify /mnt/under-test/stamped --manifest kept
  plimsoll integrity verify /mnt/copy/stamped --manifest kept/integrity-0123456789abcdef.json`,
		RunE: func(_ *cobra.Command, given []string) error {
			if manifest == "" {
				return exit.Usagef("integrity write printed its name",
					"integrity verify: what was acknowledged? give --manifest")
			}
			if threads < 0 || threads > 1024 {
				return exit.Usagef("", "integrity verify: --threads: %d: want 1 to 1024", threads)
			}
			return integrityVerify(con, given[0], manifest, threads)
		},
	}
	c.Flags().StringVar(&manifest, "manifest", "", "what integrity write made: the `file`, or "+
		"the folder that it is in")
	c.Flags().IntVar(&threads, "threads", 0, "`number` of reads at once (default one a processor, at most 8)")
	return c
}

// manifestOf finds the manifest of a file in a folder of manifests; a manifest itself is it.
func manifestOf(given, name string) (string, error) {
	if info, err := os.Stat(given); err != nil || !info.IsDir() {
		return given, nil // said when it is read
	}
	all, err := fs.Glob(os.DirFS(given), "integrity-*.json")
	if err != nil {
		return "", err
	}
	if len(all) == 1 {
		return filepath.Join(given, all[0]), nil
	}
	name, err = filepath.Abs(name)
	if err != nil {
		return "", err
	}
	var of []string
	for _, base := range all {
		file := filepath.Join(given, base)
		if m, _, err := integrity.Read(file); err == nil && m.Path == name {
			of = append(of, file)
		}
	}
	if len(of) != 1 {
		return "", fmt.Errorf("%s: of its %s, %d are of %s: name the one meant", given,
			unit.Plural(len(all), "manifest"), len(of), name)
	}
	return of[0], nil
}

// integrityDocument holds what integrity verify prints.
type integrityDocument struct {
	Path         string  `json:"path"`
	Manifest     string  `json:"manifest"`
	Direct       bool    `json:"direct"`
	WhyNotDirect string  `json:"why_not_direct,omitempty"`
	Seconds      float64 `json:"seconds"`
	*integrity.Report
}

func integrityVerify(con *console.Console, name, manifest string, threads int) error {
	const phase = "integrity verify"
	manifest, err := manifestOf(manifest, name)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	m, acknowledged, err := integrity.Read(manifest)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	f, err := direct.OpenRead(name)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	defer f.Close()
	if !f.Direct {
		_ = f.Forget() // said below
	}
	ctx, stop := con.Interruptible()
	defer stop()
	d := integrityDocument{Path: name, Manifest: manifest, Direct: f.Direct, WhyNotDirect: f.Why}
	began := con.Now()
	d.Report, err = integrity.Verify(ctx, f, f.Bytes, m, acknowledged, integrity.Options{Workers: threads,
		Progress: con.Amount(phase).Tell})
	if err != nil {
		return exit.Errorf(console.StoppedOrFailed(ctx), "", "%s: %s: %w", phase, name, err)
	}
	d.Seconds = con.Now().Sub(began).Seconds()
	if con.JSON {
		err = con.PrintJSON(d)
	} else {
		err = d.text(con.Out, f, m)
	}
	if err != nil {
		return err
	}
	if total := d.total(); total > 0 {
		return exit.Errorf(exit.Threshold, "", "%s: %s: %s of %s acknowledged are damaged", phase, name,
			unit.Bytes(total), unit.Bytes(d.claimed(m)))
	}
	return nil
}

// total is how many bytes are damaged.
func (d *integrityDocument) total() (n int64) {
	for _, bytes := range d.Damaged {
		n += bytes
	}
	return n
}

// claimed is how many bytes were ever acknowledged.
func (d *integrityDocument) claimed(m *integrity.Manifest) int64 {
	if d.Acknowledged.Pass > 1 {
		return m.Bytes
	}
	return d.Acknowledged.Blocks * int64(m.BlockBytes)
}

// mostShown is how many ranges are printed for people.
const mostShown = 50

func (d *integrityDocument) text(w io.Writer, f *direct.File, m *integrity.Manifest) error {
	visible.Fprintf(w, "%s: run %s of %s; read %s, %s\n", d.Path, d.Run, m.Made.Format("2006-01-02 15:04:05 MST"),
		bypassed(f), unit.Bandwidth(float64(d.Bytes)/max(d.Seconds, 1e-9)).Decimal())
	visible.Fprintf(w, "acknowledged: %s of %s blocks of %s in pass %d of %d\n",
		unit.Thousands(d.Acknowledged.Blocks), unit.Thousands(d.Blocks), unit.Bytes(m.BlockBytes), d.Acknowledged.Pass,
		m.Passes)
	visible.Fprintf(w, "intact: %s", unit.Thousands(d.Intact))
	if d.UnderWay > 0 {
		visible.Fprintf(w, " (%s partly written when the write ended)", unit.Thousands(d.UnderWay))
	}
	if d.Unclaimed > 0 {
		visible.Fprintf(w, "; never acknowledged: %s", unit.Thousands(d.Unclaimed))
	}
	visible.Fprintf(w, "\n")
	for _, k := range integrity.Kinds() {
		if n := d.Damaged[k]; n > 0 {
			visible.Fprintf(w, "%s: %s\n", k, unit.Bytes(n))
		}
	}
	if len(d.Damages) == 0 {
		_, err := visible.Fprintf(w, "no damage\n")
		return err
	}
	visible.Fprintf(w, "\n")
	t := terminal.Table{Head: []string{"FROM BYTE", "TO", "DAMAGE", "WHAT"}, Right: []bool{true, true}}
	for _, r := range d.Damages[:min(mostShown, len(d.Damages))] {
		t.Add(fmt.Sprint(r.From), fmt.Sprint(r.To), string(r.Kind), r.About())
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if more := int64(len(d.Damages)) - mostShown + d.Unlisted; more > 0 {
		visible.Fprintf(w, "and %s more ranges; --json has %s of them\n", unit.Thousands(more),
			unit.Thousands(more-d.Unlisted))
	}
	return nil
}
