package series

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"plimsoll/internal/regular"
)

// makeView makes a folder through which the database in dir can be opened, and returns its name.
func makeView(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	view, err := os.MkdirTemp("", "plimsoll-metrics-")
	if err != nil {
		return "", err
	}
	if err := linkTree(abs, view); err != nil {
		return "", errors.Join(err, os.RemoveAll(view))
	}
	return view, nil
}

// linkTree makes to a view of from: folders made anew, files as links. The database changes existing files only by
// removing or replacing them, which concerns the links alone; the logs and the head's chunk files, to which a live
// writer still appends, are copied. Links are symbolic: hard ones would write to the folder's own files, if only their
// number of links, and cannot lead to another file system.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a live database removed it meanwhile
			}
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		dst := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(dst, 0o755)
		case !d.Type().IsRegular() || d.Name() == "lock":
			return nil
		case !appendedTo(rel):
			return os.Symlink(path, dst)
		}
		if err := copyFile(path, dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// appendedTo reports whether a writer may still append to the file.
func appendedTo(rel string) bool {
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return top == "wal" || top == "wbl" || top == "chunks_head"
}

func copyFile(from, to string) error {
	in, err := regular.Open(from, os.O_RDONLY|regular.NoLinks)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
