package cli

import (
	"bufio"
	"bytes"
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

	"plimsoll/internal/exit"
	"plimsoll/internal/importer"
	"plimsoll/internal/regular"
	"plimsoll/internal/report"
	"plimsoll/internal/table"
	"plimsoll/internal/terminal"
	"plimsoll/internal/visible"
	"plimsoll/result"
)

func (a *app) importCommand() *cobra.Command {
	var o importer.Options
	var list bool
	c := &cobra.Command{
		Use: "import FILE|-...", Short: "Make a run folder of what other tools left", Args: func(c *cobra.Command,
			given []string) error {
			if list {
				return args(0, 0, "file")(c, given)
			}
			return args(1, 100, "file")(c, given)
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
				return a.listForms()
			}
			if o.Interval < 0 {
				return exit.Usagef("", "import: --interval: %v is not above 0", o.Interval)
			}
			return a.importFiles(given, o)
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

func (a *app) listForms() error {
	if a.json {
		return a.printJSON(importer.Forms())
	}
	t := terminal.Table{Head: []string{"TOOL", "WHAT"}}
	for _, f := range importer.Forms() {
		t.Add(f.Name, f.Holds)
	}
	return t.Write(a.out)
}

func (a *app) importFiles(given []string, o importer.Options) error {
	ctx, stop := a.interruptible()
	defer stop()
	folder, err := a.importTo(ctx, "import", a.runsDir, given, o)
	if err != nil {
		return err
	}
	defer folder.Close()
	m := folder.Manifest()
	if a.json {
		return a.printJSON(struct {
			RunID    string            `json:"run_id"`
			Dir      string            `json:"dir"`
			Imported []result.Imported `json:"imported"`
			Problems []string          `json:"problems,omitempty"`
		}{m.RunID, folder.Dir(), m.Imported, problemsOf(folder)})
	}
	for i, f := range m.Imported {
		if i > 0 && m.Imported[i-1].VM == f.VM {
			continue
		}
		var of []result.Imported // of one file, which may hold several runs
		var runs []string
		for _, o := range m.Imported[i:] {
			if o.VM == f.VM {
				of, runs = append(of, o), append(runs, o.Workload)
			}
		}
		visible.Fprintf(a.out, "%s: %s by %s\n", f.File, f.As, f.Tool)
		visible.Fprintf(a.out, "  dated by %s\n", f.Dated)
		if len(of) > 1 {
			visible.Fprintf(a.out, "  %d runs, one after another: %s\n", len(of), strings.Join(runs, ", "))
		}
		notes, unseen := importer.Told(of)
		for _, n := range notes {
			visible.Fprintf(a.out, "  mind: %s\n", strings.TrimPrefix(n, f.File+": "))
		}
		for _, n := range unseen {
			visible.Fprintf(a.out, "  not looked at: %s\n", strings.TrimPrefix(n, f.File+": "))
		}
	}
	for _, p := range problemsOf(folder) {
		visible.Fprintf(a.err, "warning: import: %s\n", p)
	}
	visible.Fprintf(a.out, "run %s\nreport: %s\n", m.RunID, folder.ReportPath())
	return nil
}

func problemsOf(folder *result.Folder) []string {
	data, err := folder.Data()
	if err != nil {
		return []string{err.Error()}
	}
	return data.Problems
}

// importTo makes a run folder of files and collects it.
func (a *app) importTo(
	ctx context.Context,
	phase, root string,
	given []string,
	o importer.Options,
) (*result.Folder, error) {
	var files []importer.File
	var objections []error
	var spare []string // what a folder holds beside: no objection when it holds nothing
	for i := 0; i < len(given); i++ {
		if main, beside := outputFolder(given[i]); main != "" {
			given = slices.Concat(given[:i], []string{main}, beside, given[i+1:])
			spare = append(spare, beside...)
		}
	}
	var ended time.Time
	for i, name := range given {
		if slices.Contains(given[:i], name) {
			return nil, exit.Usagef("", "%s: %q is given twice", phase, name)
		}
		f, done, err := a.openOutput(name)
		if err != nil {
			objections = append(objections, fmt.Errorf("%s: %w", phase, err))
			continue
		}
		defer done()
		of := o
		if slices.Contains(spare, name) {
			of.Ended = ended
		}
		readings, err := importer.Prepare(f.Name, f.Content, f.Modified, of)
		if err != nil && slices.Contains(spare, name) {
			visible.Fprintf(a.err, "warning: %s: left out: %v\n", phase, err)
			continue
		}
		if err != nil {
			objections = append(objections, fmt.Errorf("%s: %w", phase, err))
			continue
		}
		for _, d := range readings {
			ended = d.End
			f.Reading = d
			files = append(files, f)
		}
	}
	if len(objections) > 0 {
		return nil, exit.Errorf(exit.Failed, "plimsoll import --list says what can be read", "%w",
			errors.Join(objections...))
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	folder, err := importer.Folder(root, buildVersion().String(), files)
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
	if err := a.recollect(ctx, folder); err != nil {
		visible.Fprintf(a.err, "warning: %s: %v\n", phase, err)
	}
	if root == a.runsDir {
		doc, err := report.Build(folder)
		if err == nil {
			err = writeFile(folder.ReportPath(), func(w io.Writer) error { return report.HTML(w, doc) })
		}
		if err != nil {
			visible.Fprintf(a.err, "warning: %s: report: %v\n", phase, err)
		}
	}
	if ctx.Err() != nil {
		return nil, errors.Join(exit.Errorf(exit.Interrupted, "", "%s: %w", phase, context.Cause(ctx)), folder.Close())
	}
	return folder, nil
}

// openOutput opens a file for import. What comes as a stream is kept in a temporary file, since it is read more than
// once.
func (a *app) openOutput(name string) (importer.File, func(), error) {
	in, err := a.openGiven(name)
	if err != nil {
		return importer.File{}, nil, err
	}
	f, ok := in.(*os.File)
	if ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return importer.File{Name: name, Content: f, Modified: info.ModTime()}, func() { _ = f.Close() }, nil
		}
	}
	defer in.Close() //nolint:errcheck // read only
	spool, err := os.CreateTemp("", "plimsoll-import-")
	if err != nil {
		return importer.File{}, nil, err
	}
	done := func() { _ = errors.Join(spool.Close(), os.Remove(spool.Name())) }
	const most = 4 << 30
	n, err := io.Copy(spool, io.LimitReader(in, most+1))
	if err == nil && n > most {
		err = regular.TooLarge(most)
	}
	if err != nil {
		done()
		return importer.File{}, nil, fmt.Errorf("read %s: %w", name, err)
	}
	return importer.File{Name: name, Content: spool, Modified: a.now()}, done, nil
}

// imports are the folders made of files that stand in the place of runs; they are gone when the command line has ended.
type imports struct {
	root string
	dirs map[string]string // by the file given
}

func (i *imports) remove() {
	if i.root != "" {
		_ = os.RemoveAll(i.root)
	}
}

// importedNow is the folder of an output that stands in the place of a run. A baseline is to last, and so is its run.
func (a *app) importedNow(phase, name string) (string, error) {
	if dir, ok := a.imported.dirs[name]; ok {
		return dir, nil
	}
	root := a.runsDir
	if phase != "baseline set" {
		if a.imported.root == "" {
			dir, err := os.MkdirTemp("", "plimsoll-import-")
			if err != nil {
				return "", exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
			}
			a.imported.root, a.imported.dirs = dir, map[string]string{}
		}
		root = filepath.Join(a.imported.root, strconv.Itoa(len(a.imported.dirs)))
	}
	ctx, stop := a.interruptible()
	defer stop()
	folder, err := a.importTo(ctx, phase, root, []string{name}, importer.Options{})
	if err != nil {
		return "", err
	}
	if a.imported.dirs == nil {
		a.imported.dirs = map[string]string{}
	}
	a.imported.dirs[name] = folder.Dir()
	if root == a.runsDir {
		visible.Fprintf(a.notes(), "%s: %s is imported as run %s\n", phase, name, folder.Manifest().RunID)
	}
	for _, p := range problemsOf(folder) {
		visible.Fprintf(a.err, "warning: %s: %s: %s\n", phase, name, p)
	}
	return folder.Dir(), folder.Close()
}

// outputFolder is what of vdbench's output folder is read: of its reports on the intervals, which say the same in
// several ways, the one that says most, and the histogram beside it. main is "" of any other folder or file.
func outputFolder(name string) (main string, beside []string) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return "", nil
	}
	there := func(file string) bool {
		_, _, known, advice := recognise(filepath.Join(name, file))
		return known && advice == ""
	}
	for _, file := range []string{"flatfile.html", "summary.html", "logfile.html", "totals.html"} {
		if there(file) {
			if there("histogram.html") {
				beside = []string{filepath.Join(name, "histogram.html")}
			}
			return filepath.Join(name, file), beside
		}
	}
	return "", nil
}

// recognise says what a file holds by its beginning; not known where it cannot be read.
func recognise(name string) (as string, host, known bool, advice string) {
	f, err := regular.Open(name, os.O_RDONLY)
	if err != nil {
		return "", false, false, ""
	}
	defer f.Close() //nolint:errcheck // read only
	head, err := io.ReadAll(io.LimitReader(f, importer.HeadBytes))
	if err != nil {
		return "", false, false, ""
	}
	return importer.Recognise(head)
}

// isOutput reports whether a file holds what a tool left of a load, so that it stands for a run rather than for a
// table.
func isOutput(name string) bool {
	if name == "-" || strings.HasPrefix(name, "@") || strings.HasPrefix(name, "/dev/") ||
		strings.HasPrefix(name, "/proc/") {
		return false
	}
	if main, _ := outputFolder(name); main != "" {
		return true
	}
	_, host, known, advice := recognise(name)
	return known && !host && advice == ""
}

// readTable reads a table, or what a tool counted of a machine as one. A stream that holds what a load generator
// printed is refused with what to do.
func readTable(phase, label string, in io.Reader) (*table.Table, error) {
	b := bufio.NewReaderSize(in, importer.HeadBytes)
	head, err := b.Peek(importer.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	name, host, known, advice := importer.Recognise(head)
	switch {
	case !known:
		return table.Read(b)
	case advice != "":
		return nil, exit.Errorf(exit.Failed, advice, "%s: %s: it is output of a tool (%s) that is no table", phase,
			label, name)
	case !host:
		return nil, exit.Errorf(exit.Failed, "save it to a file and give that",
			"%s: %s: it is output of %s, which stands for a run", phase, label, name)
	}
	const most = 256 << 20
	data, err := io.ReadAll(io.LimitReader(b, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > most:
		return nil, regular.TooLarge(most)
	}
	names, rows, _, err := importer.HostTable(bytes.NewReader(data), label)
	if err != nil {
		return nil, err
	}
	t := &table.Table{Source: label, Named: true, Names: names, Unit: "sample"}
	for i, row := range rows {
		cells := make([]string, len(row))
		for j, v := range row {
			if cells[j] = strconv.FormatFloat(v, 'f', -1, 64); v != v { // NaN: a gap
				cells[j] = ""
			}
		}
		t.Rows, t.Lines = append(t.Rows, cells), append(t.Lines, i+1)
	}
	if len(t.Rows) == 0 {
		return nil, errors.New("no samples")
	}
	return t, nil
}
