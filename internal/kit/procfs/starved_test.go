package procfs

import (
	"os"
	"path/filepath"
	"testing"
)

// The count is read from each of the files that have it, and from no other.
func TestStarved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"low 0\nhigh 0\nmax 731\noom 12\noom_kill 3\noom_group_kill 0\n": 3,  // memory.events
		"oom_kill_disable 0\nunder_oom 0\noom_kill 41\n":                 41, // memory.oom_control
		"pgmajfault 20\noom_kill 0\nnuma_hit 7\n":                        0,  // vmstat
		"oom_kill\n": -1, "oom_kill x\n": -1, "oom 3\n": -1, "": -1,
	} {
		name := filepath.Join(t.TempDir(), "counts")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, ok := Starved(name); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
	if _, ok := Starved(filepath.Join(t.TempDir(), "absent")); ok {
		t.Error("an absent file counts")
	}
}
