package runs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/importer"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/plaintext"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/scratch"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
)

func (st *Store) ImportCommand() *cobra.Command {
	var o importer.Options
	var list bool
	c := &cobra.Command{
		Use: "import FILE|-...", Short: "Make a run folder of what other tools left", Args: func(c *cobra.Command,
			given []string) error {
			if list {
				return console.Args(0, 0, "file")(c, given)
			}
			return console.Args(1, 1000, "file")(c, given)
		},
		Long: `Import reads what fio, vdbench, elbencho, DISKSPD, HammerDB, sysbench, pgbench, vmstat, iostat, sar and others left
and makes a run folder of it, on which report, analyze, compare, steady, baseline and the others work as on any run.
The files are kept as they are. vdbench's output folder may be given as a whole.

Of a file that holds several runs, one after another (vdbench's run definitions, elbencho's phases, HammerDB's tests),
each is a workload of its own.

What a file is, is recognised by its content; --as says it where that is not enough (fio's logs have no header). Files
given together become one run: one test, and what the machines did meanwhile. Import repeats one by one.

Times are the tool's own, or the file's where the tool printed none. What such a file cannot show is listed.

The other commands take such files directly as well: plimsoll report out.json.`,
		Example: `  plimsoll import out.json vmstat.log iostat.log
  plimsoll import fio_iops.1.log --as fio-iops
  plimsoll import --list
  plimsoll import vdbench/output
  pgbench -T 60 -P 1 2>&1 | plimsoll import -`,
		RunE: func(_ *cobra.Command, given []string) error {
			if list {
				return listForms(st.Console)
			}
			if o.Interval < 0 {
				return exit.Usagef("", "import: --interval: %v is not above 0", o.Interval)
			}
			return st.importFiles(given, o)
		},
	}
	c.Flags().StringVar(&o.As, "as", "", "the files are what this `tool` left, whatever they look like")
	c.Flags().
		DurationVar(&o.Interval, "interval", 0, "`time` between samples of files that do not say it (vmstat without -t)")
	c.Flags().BoolVar(&list, "list", false, "list what can be read")
	var forms []string
	for _, f := range importer.Forms() {
		forms = append(forms, f.Name)
	}
	_ = c.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func listForms(con *console.Console) error {
	if con.JSON {
		return con.PrintJSON(importer.Forms())
	}
	t := terminal.Table{Head: []string{"TOOL", "WHAT"}}
	for _, f := range importer.Forms() {
		t.Add(f.Name, f.Holds)
	}
	return t.Write(con.Out)
}

func (st *Store) importFiles(given []string, o importer.Options) error {
	ctx, stop := st.Interruptible()
	defer stop()
	folder, err := st.importTo(ctx, "import", st.RunsDir, given, o)
	if err != nil {
		return err
	}
	defer folder.Close()
	m := folder.Manifest()
	if st.JSON {
		return st.PrintJSON(struct {
			RunID    string            `json:"run_id"`
			Dir      string            `json:"dir"`
			Imported []result.Imported `json:"imported"`
			Problems []string          `json:"problems,omitempty"`
		}{m.RunID, folder.Dir(), m.Imported, problemsOf(folder)})
	}
	printImported(st.Out, m.Imported)
	for _, p := range problemsOf(folder) {
		visible.Fprintf(st.Err, "warning: import: %s\n", p)
	}
	visible.Fprintf(st.Out, "run %s\nreport: %s\n", m.RunID, folder.ReportPath())
	return nil
}

// printImported says of each file how it was read; files of which all the same is said are told once.
func printImported(w io.Writer, imported []result.Imported) {
	files := map[string][]string{} // by what is said of them
	var order []string
	for i, f := range imported {
		if i > 0 && imported[i-1].VM == f.VM {
			continue
		}
		var of []result.Imported // of one file, which may hold several runs
		var runs []string
		for _, o := range imported[i:] {
			if o.VM == f.VM {
				of, runs = append(of, o), append(runs, o.Workload)
			}
		}
		lines := []string{fmt.Sprintf("%s by %s", f.As, f.Tool), "dated by " + f.Dated}
		if len(of) > 1 {
			lines = append(lines, fmt.Sprintf("%d workloads: %s", len(of), strings.Join(runs, ", ")))
		}
		notes, unseen := importer.Told(of)
		for _, n := range notes {
			lines = append(lines, "mind: "+strings.TrimPrefix(n, f.File+": "))
		}
		for _, n := range unseen {
			lines = append(lines, "not looked at: "+strings.TrimPrefix(n, f.File+": "))
		}
		said := strings.Join(lines, "\n")
		if files[said] == nil {
			order = append(order, said)
		}
		files[said] = append(files[said], f.File)
	}
	for _, said := range order {
		for i, line := range strings.Split(said, "\n") {
			if i == 0 {
				line = importer.Several(files[said]) + ": " + line
			} else {
				line = "  " + line
			}
			visible.Fprintf(w, "%s\n", line)
		}
	}
}

func problemsOf(folder *result.Folder) []string {
	data, err := folder.Data()
	if err != nil {
		return []string{err.Error()}
	}
	return data.Problems
}

// importTo makes a run folder of files and collects it.
func (st *Store) importTo(
	ctx context.Context,
	phase, root string,
	given []string,
	o importer.Options,
) (*result.Folder, error) {
	var files []importer.File
	var objections []error
	var spare []string // what a folder holds beside: no objection when it holds nothing
	var found []string // in a folder that was given, so nobody asked for each of them
	for i := 0; i < len(given); i++ {
		if main, beside, passed := recognise.Outputs(given[i]); main != nil {
			if len(passed) > 0 {
				visible.Fprintf(st.Err, "warning: %s: not read, no outputs that are known: %s\n", phase,
					several(passed))
			}
			given = slices.Concat(given[:i], main, beside, given[i+1:])
			i += len(main) + len(beside) - 1
			spare = append(spare, beside...)
			found = slices.Concat(found, main, beside)
		}
	}
	unread := false
	var ended time.Time
	lengths := map[string]time.Duration{}
	for i, name := range given {
		if slices.Contains(given[:i], name) {
			return nil, exit.Usagef("", "%s: %q is given twice", phase, name)
		}
		f, made, done, err := openOutput(st.Console, name)
		if err != nil {
			objections = append(objections, fmt.Errorf("%s: %w", phase, err))
			continue
		}
		defer done()
		of := o
		if slices.Contains(spare, name) {
			of.Ended, of.Lengths = ended, lengths
		}
		readings, err := importer.Prepare(f.Name, f.Content, f.Modified, of)
		if err != nil && (slices.Contains(found, name) || errors.Is(err, importer.ErrEmpty) && len(given) > 1) {
			visible.Fprintf(st.Err, "warning: %s: left out: %v\n", phase, err)
			unread = unread || !errors.Is(err, importer.ErrEmpty)
			continue
		}
		if err != nil {
			objections = append(objections, fmt.Errorf("%s: %w", phase, err))
			continue
		}
		for _, d := range readings {
			ended, lengths[d.Workload] = d.End, d.End.Sub(d.Start)
			if made != "" {
				d.Notes = append(d.Notes, "what is kept of it, and its sum, is "+made)
			}
			f.Reading = d
			files = append(files, f)
		}
	}
	if len(objections) == 0 && len(files) == 0 {
		why := "all files are empty"
		if unread {
			why = "no file could be read"
		}
		objections = append(objections, fmt.Errorf("%s: %s", phase, why))
	}
	if len(objections) > 0 {
		return nil, exit.Errorf(exit.Failed, "plimsoll import --list says what can be read", "%w",
			errors.Join(objections...))
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	folder, err := importer.Folder(root, console.BuildVersion().String(), files)
	var there *importer.ThereError
	switch {
	case errors.As(err, &there) && phase != "import":
		return result.Open(there.Dir)
	case errors.As(err, &there):
		return nil, exit.Errorf(exit.Failed,
			"plimsoll report "+there.RunID+" shows it; plimsoll runs rm "+there.RunID+" removes it", "%s: %w", phase,
			err)
	case err != nil:
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	err = st.recollect(ctx, folder)
	if ctx.Err() != nil { // or the same files would be said to be there already
		return nil, errors.Join(exit.Errorf(exit.Interrupted, "", "%s: %w: nothing is kept", phase, context.Cause(ctx)),
			folder.Close(), os.RemoveAll(folder.Dir()))
	}
	if err != nil {
		visible.Fprintf(st.Err, "warning: %s: %v\n", phase, err)
	}
	if root == st.RunsDir {
		doc, err := report.Build(folder)
		if err == nil {
			err = folder.WriteReport(func(w io.Writer) error { return report.HTML(w, doc) })
		}
		if err != nil {
			visible.Fprintf(st.Err, "warning: %s: report: %v\n", phase, err)
		}
	}
	return folder, nil
}

// several names a few of many.
func several(names []string) string {
	const most = 10
	if n := len(names) - most; n > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// openOutput opens a file for import, to be read more than once. What comes as a stream, is packed or no plain UTF-8,
// or stands behind the words of a log, is kept in a temporary file; made says what was made of it, "" of plain text.
func openOutput(con *console.Console, name string) (out importer.File, made string, done func(), err error) {
	in, err := con.OpenGiven(name)
	if err != nil {
		return out, "", nil, err
	}
	out = importer.File{Name: name, Modified: con.Now()}
	at := in
	defer func() {
		if done = func() { _ = at.Close() }; err != nil {
			done()
			out, done = importer.File{}, nil
		}
	}()
	keep := func(text io.Reader, why string) error {
		spool, err := spooled(name, text)
		if err != nil {
			return err
		}
		_ = at.Close()
		if at, out.Content = spool, spool; made != "" && why != "" {
			made += ", "
		}
		made += why
		return nil
	}
	begins := bufio.NewReader(in)
	unpacked, free, err := plaintext.Unpack(begins)
	if err != nil {
		return out, "", nil, fmt.Errorf("%s: %w", name, err)
	}
	defer free()
	packed := unpacked != io.Reader(begins)
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			out.Content, out.Modified = f, info.ModTime()
		}
	}
	if packed || out.Content == nil {
		if err := keep(unpacked, map[bool]string{true: "unpacked"}[packed]); err != nil {
			return out, "", nil, err
		}
	}
	rewind := func() error { _, err := out.Content.Seek(0, io.SeekStart); return err }
	if err := rewind(); err != nil {
		return out, "", nil, fmt.Errorf("read %s: %w", name, err)
	}
	encoding, err := plaintext.Look(out.Content)
	if err := errors.Join(err, rewind()); err != nil {
		return out, "", nil, fmt.Errorf("read %s: %w", name, err)
	}
	if encoding != plaintext.Plain {
		why := "turned from " + string(encoding) + " into UTF-8"
		if err := keep(plaintext.Decode(out.Content, encoding), why); err != nil {
			return out, "", nil, err
		}
	}
	head, err := io.ReadAll(io.LimitReader(out.Content, importer.HeadBytes))
	if err := errors.Join(err, rewind()); err != nil {
		return out, "", nil, fmt.Errorf("read %s: %w", name, err)
	}
	log, err := recognise.Logged(head)
	if err != nil {
		return out, "", nil, fmt.Errorf("%s: %w", name, err)
	}
	if log != nil {
		err = keep(log.Text(out.Content), fmt.Sprintf("freed of what a log put before its lines (%q)", log))
	}
	return out, made, nil, err
}

// spooled is a stream in a temporary file.
func spooled(name string, in io.Reader) (*os.File, error) {
	spool, err := os.CreateTemp("", "plimsoll-import-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(spool.Name()); err != nil { // open it stays, and a kill leaves nothing
		return nil, errors.Join(err, spool.Close())
	}
	const most = 4 << 30
	n, err := io.Copy(spool, io.LimitReader(in, most+1))
	if err == nil && n > most {
		err = regular.TooLarge(most)
	}
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), spool.Close())
	}
	return spool, nil
}

// imports are the folders made of files that stand in the place of runs; they are gone when the command line has ended.
type imports struct {
	root *scratch.Dir
	dirs map[string]string // by the file given
}

// Close removes what was made of outputs that were given in the place of runs.
func (st *Store) Close() {
	if st.imported.root != nil {
		_ = st.imported.root.Remove()
	}
}

// ImportedNow is the folder of outputs that stand in the place of a run. A baseline is to last, and so is its run.
func (st *Store) ImportedNow(phase string, names ...string) (string, error) {
	name := strings.Join(names, ", ")
	if dir, ok := st.imported.dirs[name]; ok {
		return dir, nil
	}
	root := st.RunsDir
	if phase != "baseline set" {
		if st.imported.root == nil {
			dir, err := scratch.Make("import")
			if err != nil {
				return "", exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
			}
			st.imported.root, st.imported.dirs = dir, map[string]string{}
		}
		root = filepath.Join(st.imported.root.Path, strconv.Itoa(len(st.imported.dirs)))
	}
	ctx, stop := st.Interruptible()
	defer stop()
	folder, err := st.importTo(ctx, phase, root, names, importer.Options{})
	if err != nil {
		return "", err
	}
	if st.imported.dirs == nil {
		st.imported.dirs = map[string]string{}
	}
	st.imported.dirs[name] = folder.Dir()
	if root == st.RunsDir {
		visible.Fprintf(st.Notes(), "%s: %s is imported as run %s\n", phase, name, folder.Manifest().RunID)
	}
	for _, p := range problemsOf(folder) {
		visible.Fprintf(st.Err, "warning: %s: %s: %s\n", phase, name, p)
	}
	return folder.Dir(), folder.Close()
}
