package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Open reads a run folder, also while its run goes on, after it was killed, or when files in it are damaged: what
// cannot be read is listed by Problems. It fails when dir is no run folder, cannot be read, or was written in a newer
// format (*NewerError).
func Open(dir string) (*Folder, error) { return open(dir, true) }

// Glance is Open for lists of many runs: of a run that has ended it reads no journal, and so does not say what is wrong
// with that.
func Glance(dir string) (*Folder, error) { return open(dir, false) }

func open(dir string, journal bool) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	b, err := readDocument(filepath.Join(abs, manifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !looksLikeRun(abs) {
			return nil, fmt.Errorf("run folder: %s: no run folder (it has no %s)", dir, manifestFile)
		}
	case err != nil:
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f := &Folder{dir: abs, disk: (*os.File).Sync}
	damaged, err := f.readManifest(b)
	if err != nil {
		return nil, fmt.Errorf("run folder: %s: %w", dir, err)
	}
	if !journal && !damaged && !f.manifest.Ended.IsZero() {
		return f, nil
	}
	events, skipped, err := f.Events()
	if err != nil {
		f.problems = append(f.problems, err.Error())
	} else {
		f.problems = append(f.problems, skipped...)
	}
	if damaged {
		f.manifest.recover(events)
		f.base = f.manifest.Created
	}
	return f, nil
}

// recover fills what a damaged manifest does not say any more from the journal; verdicts are nowhere else.
func (m *Manifest) recover(events []Event) {
	for _, v := range []*Verdict{&m.Measured, &m.Collected, &m.Cleaned} {
		if v.State == "" {
			*v = Verdict{State: "unknown", Reason: manifestFile + " is damaged"}
		}
	}
	for _, e := range events {
		switch e.Kind {
		case KindRunStart:
			if m.Created.IsZero() {
				m.Created = e.Time
			}
			m.Scenario.Name = cmp.Or(m.Scenario.Name, e.Data.Scenario)
			m.Target = cmp.Or(m.Target, e.Data.Target)
		case KindRunEnd:
			m.Ended = e.Time
			if slices.Contains([]string{StatusSucceeded, StatusFailed, StatusStopped}, e.Data.State) {
				m.Status = e.Data.State
			}
		}
	}
}

// readManifest fails only for a newer version.
func (f *Folder) readManifest(b []byte) (damaged bool, err error) {
	var newer *NewerError
	verErr := checkVersion(b)
	if errors.As(verErr, &newer) {
		return false, newer
	}
	m := Manifest{}
	if err := json.Unmarshal(b, &m); err != nil || verErr != nil {
		damaged = true
		what := "it has no format version"
		switch {
		case len(b) == 0:
			what = "it is empty or missing"
		case err != nil:
			what = err.Error()
		}
		f.problems = append(f.problems, fmt.Sprintf("%s is damaged: %s", manifestFile, what))
		// What decoded before the damage is kept; what a reader must have is filled in.
		m.Version = FormatVersion
		if m.Status == "" {
			m.Status = StatusExecuting
		}
	}
	if checkRunID(m.RunID) != nil {
		m.RunID = filepath.Base(f.dir)
	}
	m.upgrade()
	f.manifest, f.base = m, m.Created
	return damaged, nil
}

func looksLikeRun(dir string) bool {
	for _, name := range []string{journalFile, LockFile, rawDir} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Folders returns the run folders in root, in the order of their names. A root that does not exist holds none.
func Folders(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	var dirs []string
	for _, d := range entries {
		dir := filepath.Join(root, d.Name())
		if !d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if IsFolder(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// IsFolder reports whether a folder is one of a run.
func IsFolder(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, manifestFile))
	return err == nil || looksLikeRun(dir)
}

// Size sums the regular files below a folder, each as it is allocated or as it reads, whichever is smaller; what cannot
// be read counts nothing.
func Size(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += diskBytes(info)
		}
		return nil
	})
	return sum
}

// Made is when a run was made, by the clock of the machine that holds it. The times of simulated runs and of those that
// were imported are others': they were made when the journal was last written.
func Made(dir string, m Manifest) time.Time {
	if m.Simulated || m.Created.IsZero() || len(m.Imported) > 0 {
		if info, err := os.Stat(filepath.Join(dir, journalFile)); err == nil {
			return info.ModTime().UTC()
		}
	}
	return m.Created
}

// Remove deletes a run folder with everything in it. It refuses one whose run is still executing, one whose machines
// were not cleaned up (state left behind; force overrides that), and anything that is no run folder.
func Remove(dir string, force bool) error {
	f, err := Open(dir)
	var newer *NewerError
	if err != nil && !errors.As(err, &newer) {
		return err
	}
	lock, err := takeLock(filepath.Join(dir, LockFile))
	if err != nil {
		return fmt.Errorf("remove run: %s: %w", dir, err)
	}
	defer lock.Close() // the file is being removed
	if left, _ := os.ReadDir(filepath.Join(dir, stateDir)); len(left) > 0 && !force &&
		(f == nil || f.Manifest().Cleaned.State != "yes") {
		return fmt.Errorf("remove run: %s: what the run made was not cleaned up yet; run `plimsoll cleanup` first", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove run: %w", err)
	}
	return nil
}

// TryLock takes the lock of a folder opened for reading, so that a clean-up or a re-collection can write to it; ErrBusy
// when its run is still executing. Close gives it up.
func (f *Folder) TryLock() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock != nil {
		return nil
	}
	lock, err := takeLock(filepath.Join(f.dir, LockFile))
	if err != nil {
		return fmt.Errorf("run folder: %s: %w", f.dir, err)
	}
	f.lock = lock
	if f.manifest.Status == StatusExecuting {
		f.manifest.Status = StatusInterrupted
	}
	return nil
}
