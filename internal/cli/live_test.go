package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// tree are all files of a folder with their sums and the times they were written.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		info, infoErr := d.Info()
		files[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		if infoErr == nil {
			files[path] += " " + info.ModTime().String()
		}
		return errors.Join(err, infoErr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestReportOfALiveRun: report and runs show tell what there is so far of a run that goes on, say so, and leave its
// folder as it is.
func TestReportOfALiveRun(t *testing.T) {
	a, _, errs := quiet(t)
	root := a.RunsDir
	if code := a.main([]string{"run", "db-colocation", "--target", "sim", "--time-scale", "0.02", "--dir", root,
		"--name", "live"}); code != 0 {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	dirs, err := result.Folders(root)
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	goesOn(t, dirs[0])
	before := tree(t, dirs[0])
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"report", "live", "-o", "md"}, []string{
			"**This run is still going on; this is what there was of it so far.**",
			"| Throughput of the workloads |", "- Name: **live**"}},
		{[]string{"report", "live", "-o", "html"}, []string{"This run is still going on",
			"Throughput of the workloads</h"}},
		{[]string{"report", "live", "--again", "-o", "json"}, []string{`"unfinished":"This run is still going on`}},
		{[]string{"runs", "show", "live"}, []string{"This run is still going on",
			"collection: pending", "(executing)"}},
		{[]string{"runs"}, []string{"executing"}},
	} {
		a, out, errs := quiet(t)
		if code := a.main(append(c.args, "--dir", root)); code != 0 {
			t.Errorf("%v: exit code %d\n%s", c.args, code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v lacks %q:\n%.3000s", c.args, want, out)
			}
		}
		const warned = "is going on: the report shows what there is so far"
		if c.args[0] == "report" && !strings.Contains(errs.String(), warned) {
			t.Errorf("%v warns %q", c.args, errs)
		}
	}
	if diff := cmp.Diff(before, tree(t, dirs[0])); diff != "" {
		t.Errorf("the folder of the live run was changed:\n%s", diff)
	}
}
