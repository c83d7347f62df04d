package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A number of huge pages is set back only while it is the one that the run set.
func TestRestoreHugePages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, is, then, remains string }{
		"ours":            {"2048 3 522\n", "522\n", "3\n", ""},
		"set back":        {"2048 3 522\n", "3\n", "3\n", ""},
		"somebody else's": {"2048 3 522\n", "600\n", "600\n", "600 of 2048 kB are kept, neither the 3 of before nor the 522"},
		"no such size":    {"7 3 522\n", "522\n", "522\n", "hugepages-7kB"},
		"cut off":         {"2048 3", "522\n", "522\n", "want the size in kB, the number before"},
		"too much":        {"2048 3 522 9", "522\n", "522\n", "want the size in kB, the number before"},
		"another file":    {"../../x 3 522", "522\n", "522\n", "want the size in kB, the number before"},
	} {
		folder, kernel := t.TempDir(), t.TempDir()
		file, number := filepath.Join(folder, hugePagesFile), filepath.Join(kernel, "hugepages-2048kB", "nr_hugepages")
		if err := os.MkdirAll(filepath.Dir(number), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{file: c.file, number: c.is} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		remains := restoreHugePages(folder, kernel)
		then, _ := os.ReadFile(number) // compared
		_, err := os.Stat(file)
		if (remains == "") != (c.remains == "") || !strings.Contains(remains, c.remains) || string(then) != c.then ||
			os.IsNotExist(err) != (c.remains == "") {
			t.Errorf("%s: %q, then %q, %v", name, remains, then, err)
		}
	}
	if remains := restoreHugePages(t.TempDir(), t.TempDir()); remains != "" {
		t.Error(remains)
	}
}
