package result

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOverwrite holds which files are written in place: small, regular ones that do not become shorter.
func TestOverwrite(t *testing.T) {
	t.Parallel()
	page := bytes.Repeat([]byte("p"), onePage)
	for name, c := range map[string]struct {
		before, data []byte // nil: no file
		done         bool
	}{
		"longer": {[]byte("ab"), []byte("abc"), true}, "as long": {[]byte("ab"), []byte("cd"), true},
		"shorter": {[]byte("abc"), []byte("d"), false}, "no file": {nil, []byte("a"), false},
		"a page": {[]byte("a"), page, true}, "more than a page": {[]byte("a"), append(page, 'p'), false},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if c.before != nil {
			if err := os.WriteFile(path, c.before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		done, want := overwrite(path, c.data), c.before
		if c.done {
			want = c.data
		}
		after, err := os.ReadFile(path)
		if done != c.done || !bytes.Equal(after, want) || (err == nil) != (c.before != nil) {
			t.Errorf("%s: %v, and %d bytes are there, want %v and %d", name, done, len(after), c.done, len(want))
		}
	}
	if overwrite(t.TempDir(), page) || overwrite("/dev/null", []byte("a")) {
		t.Error("a folder or a device is said to be written in place")
	}
}

// TestDiskWritesWhole holds what is left of a write that fails, and which files and folders the device was asked for.
func TestDiskWritesWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var asked []string
	refuse := false
	d := disk(func(f *os.File) error {
		name := filepath.Base(f.Name())
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			name = "a file"
		}
		if asked = append(asked, name); refuse {
			return os.ErrDeadlineExceeded
		}
		return nil
	})
	made, err := d.folder(filepath.Join(dir, "a", "b"))
	again, second := d.folder(filepath.Join(dir, "a", "b"))
	if !made || err != nil || again || second != nil {
		t.Fatalf("folders: %v, %v; again: %v, %v", made, err, again, second)
	}
	path := filepath.Join(dir, "a", "b", "doc")
	if err := d.write(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Base(dir), "a", "a file", "b"}, asked); diff != "" {
		t.Errorf("asked of the device (-want +got):\n%s", diff)
	}
	refuse = true
	if err := d.write(path, []byte("two")); err == nil {
		t.Error("a refused write is said to be done")
	}
	b, err := os.ReadFile(path)
	left, second := os.ReadDir(filepath.Dir(path))
	if err != nil || string(b) != "one" || second != nil || len(left) != 1 {
		t.Errorf("after a refused write: %q (%v), %v (%v)", b, err, left, second)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := d.folder(filepath.Join(dir, "plain", "x", "y")); made || err == nil {
		t.Errorf("a folder below a file: %v, %v", made, err)
	}
	if err := d.syncFolder(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there is said to be safe")
	}
}
