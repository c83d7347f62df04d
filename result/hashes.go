package result

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"plimsoll/internal/kit/regular"
)

// hashedDirs hold what was measured, from which all else can be made again.
var hashedDirs = []string{rawDir, metricsDir}

// Hash computes the SHA-256 of every file of raw output and metrics, which must not be written any more, and stores
// them in the manifest.
func (f *Folder) Hash(ctx context.Context) error {
	names, err := f.measuredFiles()
	if err != nil {
		return fmt.Errorf("run folder: hash: %w", err)
	}
	hashes := make(map[string]string, len(names))
	names = slices.DeleteFunc(names, func(name string) bool {
		sum, taken := f.sums.Load(name)
		if taken {
			hashes[name] = sum.(string)
		}
		return taken
	})
	sums, errs := f.hashAll(ctx, names)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("run folder: hash: %w", err)
	}
	for i, name := range names {
		hashes[name] = sums[i]
	}
	return f.Update(func(m *Manifest) { m.Hashes = hashes })
}

// Hashed takes the sum of a file by its path in the folder, with slashes, as what wrote it had it: Hash then need not
// read it.
func (f *Folder) Hashed(name, sum string) { f.sums.Store(name, sum) }

// VerifyHashes compares raw output and metrics with the manifest and returns what differs, in words: files that
// changed, are gone, cannot be read, or were not there. nil when all agree, and for what the manifest has no hashes
// of: a run that was killed, metrics of older runs.
func (f *Folder) VerifyHashes(ctx context.Context) []string {
	hashes := f.Manifest().Hashes
	if len(hashes) == 0 {
		return nil
	}
	var bad []string
	present, err := f.measuredFiles()
	if err != nil {
		bad = append(bad, err.Error())
	}
	names := slices.Sorted(maps.Keys(hashes))
	recorded := map[string]bool{}
	for _, name := range names {
		recorded[top(name)] = true
	}
	for _, name := range present {
		if _, known := hashes[name]; !known && recorded[top(name)] {
			bad = append(bad, name+": was not there when the run ended")
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		outside := !filepath.IsLocal(name)
		if outside {
			bad = append(bad, fmt.Sprintf("%q is not a path inside the folder", name))
		}
		return outside
	})
	sums, errs := f.hashAll(ctx, names)
	for i, name := range names {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist):
			bad = append(bad, name+": is gone since the run")
		case errs[i] != nil:
			bad = append(bad, fmt.Sprintf("%s: %v", name, errs[i]))
		case sums[i] != hashes[name]:
			const say = "%s: changed since the run (sha256 %.12s, recorded %.12s)"
			bad = append(bad, fmt.Sprintf(say, name, sums[i], hashes[name]))
		}
	}
	return bad
}

// top is the folder at the beginning of a path.
func top(name string) string {
	dir, _, _ := strings.Cut(name, "/")
	return dir
}

// measuredFiles are the regular files of raw output and metrics, in order, by their path in the folder, with slashes.
func (f *Folder) measuredFiles() (names []string, err error) {
	for _, dir := range hashedDirs {
		err = errors.Join(err, f.walk(dir, func(path string, _ fs.DirEntry) error {
			name, err := filepath.Rel(f.dir, path)
			names = append(names, filepath.ToSlash(name))
			return err
		}))
	}
	return names, err
}

// walk calls to with every regular file below a folder of this one.
func (f *Folder) walk(dir string, to func(path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(filepath.Join(f.dir, dir), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // whoever reads it says so
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return to(path, d)
	})
}

// MeasuredOver says whether raw output and metrics take more bytes than these on the disk; what cannot be looked at is
// not counted, as Hash says what is wrong. Metrics are few files, so that they are looked at first.
func (f *Folder) MeasuredOver(most int64) bool {
	for _, dir := range []string{metricsDir, rawDir} {
		_ = f.walk(dir, func(_ string, d fs.DirEntry) error {
			if info, err := d.Info(); err == nil {
				most -= info.Size()
			}
			if most < 0 {
				return fs.SkipAll
			}
			return nil
		})
	}
	return most < 0
}

// hashAll hashes files of the folder, on all processors. It returns the sum or the error of each.
func (f *Folder) hashAll(ctx context.Context, names []string) (sums []string, errs []error) {
	sums, errs = make([]string, len(names)), make([]error, len(names))
	var g sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), len(names))
	for w := range workers {
		g.Go(func() {
			for i := w; i < len(names); i += workers {
				sums[i], errs[i] = HashFile(ctx, filepath.Join(f.dir, filepath.FromSlash(names[i])))
			}
		})
	}
	g.Wait()
	return sums, errs
}

// HashFile is the SHA-256 of a file in hexadecimal digits.
func HashFile(ctx context.Context, path string) (string, error) {
	file, err := regular.Open(path, os.O_RDONLY|regular.NoLinks)
	if err != nil {
		return "", err
	}
	defer file.Close()
	// A file with a hole may claim any size, and would be read for days. What is hashed here is compressed, so that it
	// fills its blocks.
	if info, err := file.Stat(); err != nil {
		return "", err
	} else if info.Size() > 1<<30 && diskBytes(info) < info.Size()/16 {
		return "", fmt.Errorf("it says that it holds %d bytes, and holds %d at most", info.Size(), diskBytes(info))
	}
	h := sha256.New()
	for {
		switch _, err := io.CopyN(h, file, 64<<20); {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}
