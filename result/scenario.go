package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// CopyScenario stores the scenario directory as given and, beside it, the file after templating. Symbolic links are copied as what they
// point to within fsys; anything that is no file or directory is an error.
func (f *Folder) CopyScenario(fsys fs.FS, rendered []byte) error {
	root, err := os.OpenRoot(f.ScenarioDir())
	if err != nil {
		return fmt.Errorf("copy scenario: %w", err)
	}
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return root.MkdirAll(path, 0o755)
		}
		info, err := fs.Stat(fsys, path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file", path)
		}
		return copyInto(root, path, fsys)
	})
	if err == nil {
		err = root.WriteFile(renderedFile, rendered, 0o644)
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("copy scenario: %w", err)
	}
	return syncDir(f.ScenarioDir())
}

func copyInto(root *os.Root, path string, fsys fs.FS) error {
	in, err := fsys.Open(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := root.Create(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Scenario is the stored copy of the scenario directory; Rendered returns the file after templating.
func (f *Folder) Scenario() fs.FS { return os.DirFS(f.ScenarioDir()) }

// Rendered is the scenario file after templating, as it ran.
func (f *Folder) Rendered() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(f.ScenarioDir(), renderedFile))
	if err != nil {
		return nil, fmt.Errorf("run folder: scenario: %w", err)
	}
	return b, nil
}
