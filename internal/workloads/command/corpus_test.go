package command

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

// Published outputs are read by the configs of testdata/corpus; the first line of each names the output.
func TestCorpus(t *testing.T) {
	paths, err := filepath.Glob("testdata/corpus/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no configs: ", err)
	}
	var all strings.Builder
	for _, path := range paths {
		config := read(t, path)
		first, _, _ := strings.Cut(string(config), "\n")
		folder, file := filepath.Split(strings.TrimPrefix(first, "# "))
		output := read(t, needs.Corpus(t, folder), file)
		job := jobOf(t, filepath.Base(path), config)
		var r workloadtest.Recorder
		outcome, err := Engine{}.Parse(job.Declared, bytes.NewReader(output), &r)
		holds(t, job.Declared, r.Reports)
		inPieces(t, job.Declared, output, 100, &r)
		if n := len(r.Reports); n > 2 {
			r.Reports = r.Reports[n-2:]
		}
		fmt.Fprintf(&all, "== %s\n%s", filepath.Base(path), show(job.Declared, &r, outcome, err))
	}
	golden.Compare(t, "testdata/corpus.golden", []byte(all.String()))
}
