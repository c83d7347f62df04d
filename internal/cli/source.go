package cli

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/regular"
	"plimsoll/result"
	"plimsoll/scenarios"
	"plimsoll/unit"
)

// A zip may hold this much; a scenario is a few small files, so more is a mistake or an attack.
const (
	maxZipFiles = 10_000
	maxZipBytes = unit.GiB
)

// source is a scenario as the user named it.
type source struct {
	given string // as typed
	fsys  fs.FS
	file  string // inside fsys; "" to look for the one test.yml
	made  bool   // of a job file
	close func()
}

// open finds the scenario behind an argument: a directory, a YAML file, a zip, or a name of the library. A path that
// exists goes before a name. Directories are opened so that no symbolic link leads out of them.
func (pl *planner) open(given string) (*source, error) {
	if s, ok := pl.openMade(given); ok {
		return s, nil
	}
	info, err := os.Stat(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return openLibrary(given)
	case err != nil:
		return nil, exit.Errorf(exit.Scenario, "", "open: %w", err)
	case info.IsDir():
		return pl.openDir(given, given, "")
	case !info.Mode().IsRegular():
		return nil, exit.Errorf(exit.Scenario, "", "open: %q: %w", given, regular.Kind(info.Mode().Type()))
	case strings.EqualFold(filepath.Ext(given), ".zip"):
		return openZip(given)
	case slices.Contains([]string{".yml", ".yaml"}, strings.ToLower(filepath.Ext(given))):
		if err := manifest(given); err != nil {
			return nil, err
		}
		return pl.openDir(given, filepath.Dir(given), filepath.Base(given))
	}
	return nil, exit.Errorf(exit.Scenario, "name a directory, its test.yml or a zip of it, or a job file: .fio, .vdb, .diskspd",
		"open: %q is neither a directory nor a .yml, .yaml or .zip file, nor does it hold a job of fio, vdbench or DISKSPD",
		given)
}

// callHint says what to type in the place of another tool's command line; not known: of a tool nobody has heard of.
func callHint(word string) (hint string, known bool) {
	switch strings.TrimSuffix(strings.TrimSuffix(filepath.Base(word), ".sh"), ".bat") {
	case "vdbench":
		return "give its parameter file itself: plimsoll run file.vdb", true
	case "pgbench":
		return "plimsoll db run pgbench --clients N --duration TIME runs it; plimsoll import FILE takes what it printed", true
	case "sysbench", "hammerdb", "hammerdbcli", "elbencho", "iozone", "bonnie++", "ior", "dd", "rados":
		return "run it, keep what it prints, and give that to plimsoll import; docs/how-to/run-any-program.md has it run " +
			"as a load among others", true
	}
	return "name a scenario or a job file, or give one command line of fio or DISKSPD in quotes", false
}

var (
	manifestKind = lazyregexp.New(`(?m)^kind:[ \t]*["']?(\w+)`)
	manifestAPI  = lazyregexp.New(`(?m)^apiVersion:[ \t]*\S`)
	manifestJob  = lazyregexp.New(`(?m)^[ \t]+\[[\w .-]+\][ \t]*$`)
	scenarioName = lazyregexp.New(`(?m)^(?:name|vms|run|setup):`)
)

// manifest objects to a manifest of Kubernetes in the place of a scenario, and says what of it is wanted.
func manifest(given string) error {
	head := recognise.Head(given)
	kind := manifestKind.FindSubmatch(head)
	if kind == nil || !manifestAPI.Match(head) || scenarioName.Match(head) {
		return nil
	}
	what := "give the command line of the generator that it runs alone, as  plimsoll run 'fio --name=...'"
	if manifestJob.Match(head) {
		what = "save the job of fio that it holds, without the blanks before its lines, as my.fio and give that"
	}
	return exit.Errorf(exit.Scenario, "with --target kubernetes it is run in a cluster",
		"open: %q is a manifest of Kubernetes (%s), no scenario: %s", given, kind[1], what)
}

func openLibrary(given string) (*source, error) {
	if fsys, ok := scenarios.Open(given); ok {
		return &source{given: given, fsys: fsys, close: func() {}}, nil
	}
	hint := `run "plimsoll scenarios list" for those that come with the program`
	if word, rest, _ := strings.Cut(given, " "); rest != "" {
		if advice, known := callHint(word); known || strings.Contains(given, " -") {
			return nil, exit.Errorf(exit.Scenario, advice, "open: %.100q is no scenario, nor a command line of fio or DISKSPD",
				given)
		}
	}
	if near := nearest.Of(given, scenarios.Names()); near != "" && !strings.ContainsAny(given, `/\`) {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return nil, exit.Errorf(exit.Scenario, hint, "open: %q: no such file or directory, and no scenario of that name",
		given)
}

func (pl *planner) openDir(given, dir, file string) (*source, error) {
	runs, _ := regular.Inside(dir, pl.RunsDir)
	s := &source{given: given, fsys: withoutRuns{regular.Dir(dir), runs}, file: file, close: func() {}}
	if _, err := fs.ReadDir(s.fsys, "."); err != nil {
		return nil, exit.Errorf(exit.Scenario, "", "open: %q: %w", given, err)
	}
	return s, nil
}

func openZip(given string) (*source, error) {
	z, err := zip.OpenReader(given)
	if err != nil {
		return nil, exit.Errorf(exit.Scenario, "", "open: %q: %w", given, err)
	}
	var total uint64
	for _, f := range z.File {
		total += min(f.UncompressedSize64, uint64(maxZipBytes)) // no overflow
	}
	if len(z.File) > maxZipFiles || total > uint64(maxZipBytes) {
		_ = z.Close()
		return nil, exit.Errorf(exit.Scenario, "unpack it and name the directory",
			"open: %q: %d files and %s are too much for a scenario (at most %d and %s)",
			given, len(z.File), unit.Bytes(min(total, 1<<62)), maxZipFiles, maxZipBytes)
	}
	return &source{given: given, fsys: z, close: func() { _ = z.Close() }}, nil
}

// withoutRuns is the directory of a scenario in which run folders cannot be seen, wherever they lie in it: a scenario
// must not hold the copies of itself that its runs keep.
type withoutRuns struct {
	fs.FS
	runs string // where runs are put now; "" when that is not in the directory
}

// hides reports whether a name is in a folder of runs, a run's or an experiment's.
func (w withoutRuns) hides(name string) bool {
	if w.runs != "" && (name == w.runs || strings.HasPrefix(name, w.runs+"/")) {
		return true
	}
	has := func(dir, file string) bool {
		info, err := fs.Stat(w.FS, path.Join(dir, file))
		return err == nil && info.Mode().IsRegular()
	}
	for dir := name; dir != "."; dir = path.Dir(dir) {
		if has(dir, "manifest.json") && (has(dir, "journal.jsonl") || has(dir, "lock")) ||
			has(dir, result.ExperimentFile) && has(dir, "lock.experiment") {
			return true
		}
	}
	return false
}

// Open implements fs.FS.
func (w withoutRuns) Open(name string) (fs.File, error) {
	if w.hides(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return w.FS.Open(name)
}

// Stat implements fs.StatFS: what is no regular file is looked at, and not opened.
func (w withoutRuns) Stat(name string) (fs.FileInfo, error) {
	if w.hides(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return fs.Stat(w.FS, name)
}

// ReadDir implements fs.ReadDirFS.
func (w withoutRuns) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return w.hides(path.Join(name, e.Name())) }), err
}
