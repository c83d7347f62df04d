package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"plimsoll/internal/kit/regular"
)

// CopyScenario stores the scenario directory as given and, beside it, the file after templating. Symbolic links are
// copied as what they point to within fsys; anything that is no file or directory is an error.
func (f *Folder) CopyScenario(fsys fs.FS, rendered []byte) error {
	root, err := os.OpenRoot(f.ScenarioDir())
	if err != nil {
		return fmt.Errorf("copy scenario: %w", err)
	}
	var dirs []string
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, name)
			return root.MkdirAll(name, 0o755)
		}
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: %w", name, regular.Kind(info.Mode().Type()))
		}
		in, err := fsys.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(f.copyInto(root, name, in), in.Close())
	})
	if err == nil {
		err = f.copyInto(root, path.Join(fileDir(fsys), renderedFile), bytes.NewReader(rendered))
	}
	for _, dir := range dirs {
		err = errors.Join(err, f.disk.syncFolder(filepath.Join(f.ScenarioDir(), filepath.FromSlash(dir))))
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("copy scenario: %w", err)
	}
	return nil
}

func (f *Folder) copyInto(root *os.Root, name string, in io.Reader) error {
	out, err := root.Create(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, f.disk.sync(out), out.Close())
}

// fileDir is the folder of the scenario file, beside which the rendered one lies, so that the files it names are found
// from there too.
func fileDir(fsys fs.FS) string {
	dir, found := ".", false
	_ = fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Base(p) == scenarioFile && !found {
			dir, found = path.Dir(p), true
		}
		return nil // what cannot be read is found out by whoever reads it
	})
	if _, err := fs.Stat(fsys, scenarioFile); err == nil {
		return "."
	}
	return dir
}

// Scenario is the stored copy of the scenario directory.
func (f *Folder) Scenario() fs.FS { return regular.Dir(f.ScenarioDir()) }

// RenderedFile is the stored copy and, inside it, the path of the scenario file after templating: load that to have the
// scenario as it ran, without its variables.
func (f *Folder) RenderedFile() (fs.FS, string) {
	fsys := f.Scenario()
	return fsys, path.Join(fileDir(fsys), renderedFile)
}

// Rendered is the scenario file after templating.
func (f *Folder) Rendered() ([]byte, error) {
	b, err := fs.ReadFile(f.RenderedFile())
	if err != nil {
		return nil, fmt.Errorf("run folder: scenario: %w", err)
	}
	return b, nil
}
