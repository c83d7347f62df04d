package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"plimsoll/internal/testkit/needs"
)

// A machine whose apt keeps what it has fetched gives the same list of packages as one that does not.
func TestPackagesThatAptHasKept(t *testing.T) {
	needs.Debian(t)
	kept := t.TempDir()
	if err := os.Mkdir(filepath.Join(kept, "partial"), 0o755); err != nil {
		t.Fatal(err)
	}
	fetch := exec.Command("apt-get", "download", "-q", "busybox-static")
	fetch.Dir = kept
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	settings := filepath.Join(t.TempDir(), "apt.conf")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "Dir::Cache::archives %q;\n", kept+"/"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", settings)
	list, err := closure(t.Context(), "busybox-static")
	if err != nil || len(list) != 1 || list[0].URL == "" {
		t.Errorf("packages %v, error %v", list, err)
	}
}
