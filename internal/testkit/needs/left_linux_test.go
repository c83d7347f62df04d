package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// So are file systems on the folder and loop devices of files there.
func TestClearMounts(t *testing.T) {
	t.Parallel()
	That(t, os.Geteuid() == 0, "mounts", "run as root")
	dead, link := filepath.Join(t.TempDir(), "dead"), filepath.Join(t.TempDir(), "1-gone", "1")
	file := filepath.Join(dead, "disk")
	for _, step := range []func() error{
		func() error { return os.Mkdir(dead, 0o755) },
		func() error { return os.MkdirAll(filepath.Dir(link), 0o755) },
		func() error { return os.Symlink(dead, link) },
		func() error { return syscall.Mount("tmpfs", dead, "tmpfs", 0, "size=4m") },
		func() error { return os.WriteFile(file, make([]byte, 1<<20), 0o600) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
	That(t, err == nil, "loop devices", string(out))
	want := []string{"device " + strings.TrimSpace(string(out)), "mount " + dead, "folder " + dead}
	if found := clear(filepath.Dir(filepath.Dir(link))); !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if left := loops(dead); left != nil {
		t.Errorf("still there: %q", left)
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
