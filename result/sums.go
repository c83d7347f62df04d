package result

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// sumsFile has the SHA-256 of the documents of a run that has ended, as sha256sum writes and checks them: of all that a
// report is made from but raw output and metrics, whose sums are in the manifest. Whoever changes a document after the
// run renews its sum. Folders of older runs, and of those that were killed, have none.
const sumsFile = "SHA256SUMS"

// madeAgain are the documents that whoever reads a run makes of what was measured where they are not there.
var madeAgain = []string{dataFile, findingsFile, reportFile}

// sums are what a document may have: one sum, or while it is replaced the old and the new one, so that a process that
// is killed in between leaves nothing that looks damaged.
type sums map[string][]string

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([^\x00-\x1f\\]+)$`)

// readSums returns nil when a folder has none, and the lines that are none besides.
func readSums(dir string) (s sums, bad []string, err error) {
	b, err := readDocument(filepath.Join(dir, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s = sums{}
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if m := sumLine.FindStringSubmatch(line); m != nil {
			s[m[2]] = append(s[m[2]], m[1])
		} else {
			bad = append(bad, fmt.Sprintf("%s: line %d is not a sum and a name", sumsFile, i+1))
		}
	}
	return s, bad, nil
}

func (s sums) write(dir string, to disk) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for _, sum := range s[name] {
			fmt.Fprintf(&b, "%s  %s\n", sum, name)
		}
	}
	return to.write(filepath.Join(dir, sumsFile), b.Bytes())
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// intact says whether a document is as its sum has it.
func (s sums) intact(dir, name string) bool {
	is, err := HashFile(context.Background(), filepath.Join(dir, filepath.FromSlash(name)))
	return err == nil && slices.Contains(s[name], is)
}

// lockNames has the documents of a folder and their sums change together. The folder itself is the lock: whoever
// executes the run holds that of the file lock.
func lockNames(dir string, how int) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: lock: %w", dir, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // read only
}

// replace replaces a document as a whole, and its sum. What continues the old document, rather than being made anew,
// gets no new sum where the old one is damaged: the damage would be in it, and told by nothing.
func replace(dir, name string, data []byte, continues bool, to disk) error {
	unlock, err := lockNames(dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock()
	return replaceLocked(dir, name, data, continues, to)
}

// replaceLocked is replace of what is locked already. No data remove the document.
func replaceLocked(dir, name string, data []byte, continues bool, to disk) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	put := func() error {
		if data == nil {
			return removeIfThere(path)
		}
		return to.write(path, data)
	}
	s, bad, err := readSums(dir)
	if err != nil || s == nil || bad != nil || continues && s[name] != nil && !s.intact(dir, name) {
		return put() // whoever reads the sums says what is wrong with them
	}
	if data != nil {
		s[name] = append(s[name], sumOf(data))
		if err := s.write(dir, to); err != nil {
			return err
		}
	}
	if err := put(); err != nil {
		return err
	}
	if s[name] = []string{sumOf(data)}; data == nil {
		delete(s, name)
	}
	return s.write(dir, to)
}

// seal writes the sums of all documents of a run that has ended; a folder that has sums keeps them.
func (f *Folder) seal() error {
	unlock, err := lockNames(f.dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock()
	if s, _, err := readSums(f.dir); s != nil || err != nil {
		return err
	}
	names, err := f.documents()
	if err != nil {
		return err
	}
	all, errs := f.hashAll(context.Background(), names)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s := sums{}
	for i, name := range names {
		s[name] = []string{all[i]}
	}
	return s.write(f.dir, f.disk)
}

// documents are the files that have sums, in order, by their path in the folder, with slashes.
func (f *Folder) documents() (names []string, err error) {
	outside := append([]string{stateDir, workDir, LockFile, OutputFile, sumsFile, roomFile}, hashedDirs...)
	err = filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == f.dir {
			return err
		}
		name, err := filepath.Rel(f.dir, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case slices.Contains(outside, name) || strings.HasPrefix(name, "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular() && sumLine.MatchString(sumOf(nil)+"  "+name):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// openSums takes the sum of the journal away while lines are appended to it, and says whether it is to come back: not
// when the journal is damaged, which is then still told.
func (f *Folder) openSums() (again bool, err error) {
	unlock, err := lockNames(f.dir, unix.LOCK_EX)
	if err != nil {
		return false, err
	}
	defer unlock()
	s, bad, err := readSums(f.dir)
	if err != nil || s == nil || bad != nil || s[journalFile] != nil && !s.intact(f.dir, journalFile) {
		return false, err
	}
	delete(s, journalFile)
	return true, s.write(f.dir, f.disk)
}

// closeSums gives the journal its sum again.
func (f *Folder) closeSums() error {
	unlock, err := lockNames(f.dir, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer unlock()
	s, bad, err := readSums(f.dir)
	if err != nil || s == nil || bad != nil {
		return err
	}
	sum, err := HashFile(context.Background(), filepath.Join(f.dir, journalFile))
	if err != nil {
		return err
	}
	s[journalFile] = []string{sum}
	return s.write(f.dir, f.disk)
}

// VerifySums compares the documents of the run with their sums and returns what differs, in words; nil when all agree,
// and when the folder has no sums.
func (f *Folder) VerifySums() []string { return f.VerifySumsOf() }

// VerifySumsOf is VerifySums of some documents; of none, of all.
func (f *Folder) VerifySumsOf(only ...string) []string {
	if unlock, err := lockNames(f.dir, unix.LOCK_SH); err == nil { // where none can be had nobody writes either
		defer unlock()
	}
	s, bad, err := readSums(f.dir)
	switch {
	case err != nil:
		return []string{err.Error()}
	case s == nil:
		return nil
	case s[manifestFile] == nil:
		bad = append(bad, fmt.Sprintf("%s: it has no sum of %s", sumsFile, manifestFile))
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(name string) bool {
		return len(only) > 0 && !slices.Contains(only, name)
	})
	names = slices.DeleteFunc(names, func(name string) bool {
		outside := !filepath.IsLocal(name)
		if outside {
			bad = append(bad, fmt.Sprintf("%s: %q is not a path inside the folder", sumsFile, name))
		}
		return outside
	})
	all, errs := f.hashAll(context.Background(), names)
	for i, name := range names {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist) && slices.Contains(madeAgain, name):
		case errors.Is(errs[i], fs.ErrNotExist):
			bad = append(bad, fmt.Sprintf("%s: is gone, and %s has its sum", name, sumsFile))
		case errs[i] != nil:
			bad = append(bad, fmt.Sprintf("%s: %v", name, errs[i]))
		case !slices.Contains(s[name], all[i]):
			bad = append(bad, fmt.Sprintf("%s: changed since its sum was taken (sha256 %.12s, in %s %.12s)", name, all[i],
				sumsFile, s[name][0]))
		}
	}
	return bad
}
