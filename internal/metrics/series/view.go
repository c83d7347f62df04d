package series

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/scratch"
)

// makeView makes a folder through which the database in dir can be opened.
func makeView(dir string) (*scratch.Dir, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	view, err := scratch.Make("metrics")
	if err != nil {
		return nil, err
	}
	if err := linkTree(abs, view.Path); err != nil {
		return nil, errors.Join(err, view.Remove())
	}
	return view, nil
}

// linkTree makes to a view of from: folders made anew, files as links. The database changes existing files only by
// removing or replacing them, which concerns the links alone; the last file of the logs and of the head's chunks, to
// which a live writer still appends, is copied, so that it does not change while it is read. Links are symbolic: hard
// ones would write to the folder's own files, if only their number of links, and cannot lead to another file system.
func linkTree(from, to string) error {
	last := map[string]string{} // by folder: files of this name and later ones are copied
	for _, dir := range []string{"wal", "wbl", "chunks_head"} {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		last[dir] = ""
		for _, e := range entries { // their names are numbers of one width
			if !e.IsDir() {
				last[dir] = max(last[dir], e.Name())
			}
		}
	}
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
		}
		if first, grows := last[filepath.Dir(rel)]; !grows || d.Name() < first {
			return os.Symlink(path, dst)
		}
		if err := copyFile(path, dst); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func copyFile(from, to string) error {
	in, err := regular.Open(from, os.O_RDONLY|regular.NoLinks)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
