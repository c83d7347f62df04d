package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/golden"
)

// TestJSONGoldens holds the JSON that every analysing command prints of a table against what it printed before: names
// of members and exit codes are a promise to other programs.
func TestJSONGoldens(t *testing.T) {
	const dir = "testdata/tables/"
	runs := t.TempDir()
	for _, c := range []struct {
		name string
		code int
		args []string
	}{
		{"usl", exit.Done, []string{"usl", dir + "sweep.csv", "--at", "100"}},
		{"steady", exit.Done, []string{"steady", dir + "series.csv", "--column", "p99_ms"}},
		{"steady-rounds", exit.Threshold, []string{"steady", dir + "history.csv", "--rounds", "--require", "--rule",
			"5,0.01,0.01,25"}},
		{"changes", exit.Done, []string{"changes", dir + "history.csv"}},
		{"compare", exit.Done, []string{"compare", dir + "before.csv", dir + "after.csv", "--better", "p99_ms=lower"}},
		{"baseline-set", exit.Done, []string{"baseline", "set", "disk", dir + "before.csv", "--better",
			"p99_ms=lower"}},
		{"baseline-show", exit.Done, []string{"baseline", "show", "disk"}},
		{"baseline-check", exit.Threshold, []string{"baseline", "check", "disk", dir + "after.csv"}},
		{"trace", exit.Done, []string{"trace", dir + "trace.txt"}},
		{"analyze-series", exit.Done, []string{"analyze", dir + "series.csv"}},
		{"convert", exit.Done, []string{"convert", dir + "small.vdb", "--to", "fio"}},
		{"analyze-sweep", exit.Done, []string{"analyze", dir + "sweep.csv"}},
	} {
		a, out, errs := quiet(t)
		if code := a.main(append([]string{"--dir", runs, "--json"}, c.args...)); code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s", c.name, code, c.code, errs)
		}
		d := json.NewDecoder(bytes.NewReader(out.Bytes()))
		var v any
		if err := d.Decode(&v); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := d.Decode(&v); err != io.EOF {
			t.Errorf("%s: more than one value: %v", c.name, err)
		}
		text := regexp.MustCompile(`"by": "[^"]*"`).ReplaceAll(out.Bytes(), []byte(`"by": "somebody"`))
		golden.Compare(t, "testdata/json/"+c.name+".json", text)
	}
}

// TestJSONMembersAreDocumented looks for the name of every member of the goldens in the documents.
func TestJSONMembersAreDocumented(t *testing.T) {
	var docs strings.Builder
	for _, name := range []string{"../../docs/report-json.md", "../../docs/how-to/other-tools.md",
		"../../docs/how-to/device.md", "../../docs/how-to/trace.md", "../../docs/how-to/vioperf.md",
		"../../docs/run-folder.md"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(b)
	}
	entries, err := os.ReadDir("testdata/json")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				name = name[strings.LastIndexByte(name, '.')+1:] // of a member by its way: queue.scheduler
				if !strings.Contains(docs.String(), "`"+name+"`") && !strings.Contains(docs.String(), "`"+name+"[]`") {
					missing[name] = true
				}
				look(member)
			}
		case []any:
			for _, item := range v {
				look(item)
			}
		}
	}
	for _, e := range entries {
		b, err := os.ReadFile("testdata/json/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		look(v)
	}
	for name := range missing {
		t.Errorf("the member %q is in no document", name)
	}
}
