package cli

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/recordtest"
)

// TestFlips turns single bits of all files of a run round. No number of its report or of a comparison may then be
// another one without a word: either the file is named and the exit code is 1, or all is as it was.
func TestFlips(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	good := simulatedRun(t)
	other := again(t, good)
	var files []string
	if err := fs.WalkDir(os.DirFS(good), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Size() > 0 {
				files = append(files, name)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	print := func(dir string, line ...string) (code int, out, errs string) {
		a, o, e := quiet(t)
		code = a.main(line)
		return code, strings.ReplaceAll(o.String(), dir, "RUN"), e.String()
	}
	lines := func(dir string) [][]string {
		return [][]string{{"report", dir, "-o", "json"}, {"compare", other, dir, "-o", "json"}}
	}
	var want []string
	for _, line := range lines(good) {
		code, out, errs := print(good, line...)
		if code != exit.Done {
			t.Fatalf("%s: exit code %d\n%s", line[0], code, errs)
		}
		want = append(want, out)
	}
	random := rand.New(rand.NewPCG(27, 12))
	told, all := 0, t.TempDir()
	for n := range 120 {
		file := files[n%len(files)]
		dir := filepath.Join(all, fmt.Sprint(n), filepath.Base(good))
		name := filepath.Join(dir, filepath.FromSlash(file))
		data, err := linked(good, dir, name)
		if err != nil {
			t.Fatal(err)
		}
		bit := recordtest.Flip(t, random, name, data)
		for i, line := range lines(dir) {
			code, out, errs := print(dir, line...)
			named := strings.Contains(errs, file)
			switch {
			case code == exit.Done && out == strings.ReplaceAll(want[i], good, "RUN"):
			case code == exit.Failed && named:
				told++
			default:
				t.Errorf("%s: bit %d of %s: exit code %d\n%s", line[0], bit, file, code, errs)
			}
		}
		if n%len(files) == 0 { // trusted all the same
			code, _, errs := print(dir, "report", dir, "-o", "json", "--trust")
			if strings.Contains(errs, "is damaged") && code != exit.Done {
				t.Errorf("--trust: bit %d of %s: exit code %d\n%s", bit, file, code, errs)
			}
		}
	}
	if told < 20 {
		t.Errorf("only %d of 240 are told", told)
	}
}
