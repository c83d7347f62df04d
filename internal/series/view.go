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

// linkTree makes to a copy of from: folders made anew, files as hard links where the file system allows it. The
// database changes existing files only by removing or replacing them, so links leave the originals as they are; the
// logs and the head's chunk files, to which a live writer still appends, are copied.
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
		case !appendedTo(rel) && os.Link(path, dst) == nil:
			return nil
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
