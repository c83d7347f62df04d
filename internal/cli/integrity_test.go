package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/storage/direct"
	"plimsoll/internal/testkit/golden"
)

// TestJSONOfData holds the JSON of the commands that write and read data against what they printed before.
func TestJSONOfData(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	other := regexp.MustCompile(`"(seconds|allocated_bytes)": [0-9.e-]+|"(run|made)": "[^"]*"|integrity-[0-9a-f]+`)
	how := regexp.MustCompile(`"direct": (true|false)(,\s*"why_not_direct": "[^"]*")?`)
	run := func(name string, code int, args ...string) {
		t.Helper()
		a, out, errs := quiet(t)
		if got := a.main(append([]string{"--json"}, args...)); got != code {
			t.Fatalf("%s: exit code %d, want %d\n%s", name, got, code, errs)
		}
		text := strings.ReplaceAll(out.String(), dir, "DIR")
		text = other.ReplaceAllStringFunc(text, func(s string) string {
			if name, _, ok := strings.Cut(s, ":"); ok {
				return name + `: "not the same twice"`
			}
			return "integrity-RUN"
		})
		text = how.ReplaceAllString(text, `"direct": "where it can be"`)
		golden.Compare(t, "testdata/json/"+name+".json", []byte(text))
	}
	run("content-write", exit.Done, "content", "write", at("data"), "--size", "4MiB", "--compressibility", "30",
		"--dedupe", "20")
	run("content-check", exit.Threshold, "content", "check", at("data"), "--expect-compressibility", "30",
		"--expect-dedupe", "50")
	run("integrity-write", exit.Done, "integrity", "write", at("stamped"), "--size", "1MiB", "--manifest", at("kept"),
		"--same-device", "--passes", "2")
	f, err := os.OpenFile(at("stamped"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := direct.Buffer(4096)
	if _, err := f.ReadAt(page, 40960); err != nil {
		t.Fatal(err)
	}
	for place, b := range map[int64][]byte{8192: page, 100: []byte("changed"), 20480: make([]byte, 8192)} {
		if _, err := f.WriteAt(b, place); err != nil {
			t.Fatal(err)
		}
	}
	run("integrity-verify", exit.Threshold, "integrity", "verify", at("stamped"), "--manifest", at("kept"))
}

// TestManifestsInFolder: a folder of manifests is looked into whatever it is called.
func TestManifestsInFolder(t *testing.T) {
	dir := t.TempDir()
	stamped, kept := filepath.Join(dir, "stamped"), filepath.Join(dir, "kept [1]*")
	for _, args := range [][]string{{"write", stamped, "--size", "8KiB", "--manifest", kept, "--same-device"},
		{"verify", stamped, "--manifest", kept}} {
		a, _, errs := quiet(t)
		if got := a.main(append([]string{"integrity"}, args...)); got != exit.Done {
			t.Errorf("%s: exit code %d\n%s", args[0], got, errs)
		}
	}
}
