package installed

import (
	"os"
	"path/filepath"
	"testing"
)

// A file is found beside the program, and in the folders of a package; beside it comes first.
func TestFind(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	bin := filepath.Join(prefix, "bin")
	put := func(path string) string {
		path = filepath.Join(prefix, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if got := In(bin, "agent", "other"); got != filepath.Join(bin, "agent") {
		t.Errorf("nothing there: %q", got)
	}
	for _, where := range []string{"lib/plimsoll/agent", "libexec/plimsoll/agent", "bin/agent"} {
		want := put(where)
		if got := In(bin, "agent", "other"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	want := put("bin/other")
	if got := In(bin, "none", "other"); got != want {
		t.Errorf("the second name: %q", got)
	}
}
