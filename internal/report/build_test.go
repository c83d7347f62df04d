package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestBuild: a folder gives the document that its parts give, and a damaged one says what is missing.
func TestBuild(t *testing.T) {
	in := runInput(reporttest.Options{VMs: 3, Length: 30 * time.Second})
	dir := writeFolder(t, t.TempDir(), in)
	opened, err := result.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Build(opened)
	if err != nil {
		t.Fatal(err)
	}
	want := New(in)
	for _, part := range []struct {
		name      string
		got, want any
	}{{"findings", got.Findings, want.Findings}, {"latencies", got.Latencies, want.Latencies}, {"comparisons",
		got.Comparisons, want.Comparisons}, {"panels", got.Panels, want.Panels},
		{"problems", got.Problems, want.Problems}} {
		if diff := cmp.Diff(asJSON(t, part.want), asJSON(t, part.got)); diff != "" {
			t.Errorf("%s: %s", part.name, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "data.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	damaged, err := Build(opened)
	if err != nil || len(damaged.Problems) == 0 || len(damaged.Findings) == 0 {
		t.Errorf("damaged data: %v, problems %q, %d findings", err, damaged.Problems, len(damaged.Findings))
	}
	var page strings.Builder
	if err := HTML(&page, damaged); err != nil {
		t.Fatal(err)
	}
	first := damaged.InShort[0]
	if first.Severity != result.Warning || !strings.HasPrefix(first.Sentence, "Not to be relied on, since files") ||
		!strings.Contains(page.String(), `<div class="error" role="alert"><p>Could not be read: `) ||
		strings.Contains(page.String(), "0 VMs") {
		t.Errorf("a damaged run looks whole: %s %q", first.Severity, first.Sentence)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFolder(tb testing.TB, root string, in Input) string {
	tb.Helper()
	folder, err := result.Create(root, in.Manifest)
	if err != nil {
		tb.Fatal(err)
	}
	for _, err := range []error{folder.WriteManifest(in.Manifest), folder.WriteData(in.Data),
		folder.WriteFindings(in.Findings), folder.WritePlan(in.Plan)} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	for _, e := range in.Events {
		if err := folder.AppendEvent(e); err != nil {
			tb.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		tb.Fatal(err)
	}
	return folder.Dir()
}

// largeVariable names a folder of runs into which TestLargeRun writes one hour of 50 VMs, to measure the whole program
// on.
const largeVariable = "PLIMSOLL_LARGE_RUN"

func TestLargeRun(t *testing.T) {
	root := os.Getenv(largeVariable)
	if root == "" {
		t.Skipf("writes a run folder of one hour and 50 VMs only when %s names where", largeVariable)
	}
	t.Logf("wrote %s", writeFolder(t, root, large(t)))
}
