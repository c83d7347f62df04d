package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/regular"
)

// disk has what is written survive a power cut: it is called with every file and folder once what is new in it must be
// on the device. nil forces nothing, for simulated runs, which can be repeated. Tests give one that drops all it was
// not called with.
type disk func(*os.File) error

func (d disk) sync(f *os.File) error {
	if d == nil {
		return nil
	}
	return d(f)
}

// syncFolder has the names in a folder survive.
func (d disk) syncFolder(dir string) error {
	if d == nil {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

// folder makes a folder and those above it; made is false when it was there.
func (d disk) folder(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := d.folder(filepath.Dir(dir)); err != nil {
			return false, err
		}
		err = os.Mkdir(dir, 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, d.syncFolder(filepath.Dir(dir))
}

// write replaces path by data as a whole: a temporary file beside it takes its place.
func (d disk) write(path string, data []byte) error {
	tmp, err := outfile.Temporary(filepath.Dir(path), 0o666)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = d.sync(tmp)
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(tmp.Name()))
	}
	return d.syncFolder(filepath.Dir(path))
}

// onePage bytes are written whole by a system call, or, when its process is killed before, not at all.
const onePage = 4 << 10

// overwrite replaces what a small file holds by what is not shorter, without another file, which is a fraction of the
// work. It says whether it did. A power cut, and who reads at the same moment, may see a part.
func overwrite(path string, data []byte) bool {
	if len(data) > onePage {
		return false
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() <= int64(len(data)) {
		_, err = file.Write(data)
	} else {
		err = fs.ErrInvalid
	}
	return errors.Join(err, file.Close()) == nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readDocument reads a document of a run folder, which may come from anywhere.
func readDocument(path string) ([]byte, error) {
	return regular.Read(path, regular.NoLinks, regular.Document)
}
