package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What a killed process has recorded is removed, what a live one has stays.
func TestClear(t *testing.T) {
	t.Parallel()
	records := t.TempDir()
	record := func(process, name string) string {
		folder := filepath.Join(t.TempDir(), name)
		link := filepath.Join(records, process, "1")
		for _, err := range []error{os.MkdirAll(filepath.Join(folder, "a"), 0o755),
			os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(folder, link)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	dead := record(strconv.Itoa(os.Getpid())+"-1", "dead")
	live := record(incarnation(os.Getpid()), "live")
	c := exec.Command("sh", "-c", "read nothing", dead+"/program")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ended, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	there := exec.Command("sleep", "1000") // which works there, as a server in a sandbox does
	there.Dir = filepath.Join(dead, "a")
	gone, err := Start(there)
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Join(clear(records), ", ")
	if !strings.Contains(found, "process "+strconv.Itoa(c.Process.Pid)) ||
		!strings.Contains(found, "process "+strconv.Itoa(there.Process.Pid)) ||
		!strings.HasSuffix(found, "folder "+dead) {
		t.Errorf("found %s", found)
	}
	for _, ended := range []<-chan error{ended, gone} {
		if err := <-ended; err == nil || err.Error() != "signal: killed" {
			t.Errorf("its process: %v", err)
		}
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the folder of the dead: %v", err)
	}
	if _, err := os.Stat(live); err != nil {
		t.Error(err)
	}
	if left := clear(records); left != nil {
		t.Errorf("cleared again: %q", left)
	}
}

// A cached folder is made once.
func TestCached(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	made := 0
	for range 2 {
		dir := Cached(t, "a", func(dir string) error {
			made++
			return os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)
		})
		if _, err := os.Stat(filepath.Join(dir, "f")); err != nil || made != 1 {
			t.Errorf("made %d times, %v", made, err)
		}
	}
}
