package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"plimsoll/internal/analysis/compare"
	"plimsoll/result"
)

// betrayingRun is a run of the one in which every text holds planted values, with what a comparison takes of it.
func betrayingRun() compare.Run {
	in := betraying()
	in.Manifest.RunID = "20260301-100000-x-0001"
	return compare.Run{Manifest: in.Manifest, Data: in.Data, Findings: in.Findings}
}

// TestRedactedOfMany: what names a host, an address, a disk or a user is in no format of an experiment or a comparison,
// plain or decoded, and what is looked for is there without redaction.
func TestRedactedOfMany(t *testing.T) {
	t.Parallel()
	run, other := betrayingRun(), betrayingRun()
	other.Manifest.RunID = "20260301-100000-x-0002"
	other.Manifest.Environment = append(other.Manifest.Environment,
		result.Fact{Group: "host", Name: "firmware of", Value: "dbseven.corp.example " + strings.Join(planted, " ")})
	d, err := compare.Of([]compare.Side{{Name: "baseline", Runs: []compare.Run{run}},
		{Name: "candidate 1", Runs: []compare.Run{other}}}, compare.Options{Anyway: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Here, d.Links = "/compare?x", map[string]string{run.Manifest.RunID: home + "mallory/x"}
	all := strings.Join(planted, " and ")
	x, err := compare.OfExperiment(compare.Design{ID: "e", Title: "On " + all, Summary: all, Planned: 2, Repeats: 1,
		Factors: []compare.Factor{{Name: "host of " + all, Levels: []string{"/mnt/under-test/disks", all}}},
		Failed:  []compare.Unmade{{Cell: all, Levels: []string{all}, Repeat: 1, Reason: "it failed at " + all}},
		Made: []compare.Made{{Run: run, Levels: []string{"/mnt/under-test/disks"}, Repeat: 1, Sequence: 1},
			{Run: other, Levels: []string{all}, Repeat: 1, Sequence: 2}}}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	documents := map[string][2]func(io.Writer) error{}
	for name, write := range map[string]func(io.Writer, *compare.Document) error{
		"html of a comparison": CompareHTML, "json of a comparison": CompareJSON,
		"md of a comparison": CompareMarkdown} {
		documents[name] = [2]func(io.Writer) error{func(w io.Writer) error { return write(w, d) },
			func(w io.Writer) error { return write(w, RedactedComparison(d, "/srv/of-the-run")) }}
	}
	for name, write := range map[string]func(io.Writer, *compare.Experiment) error{
		"html of an experiment": ExperimentHTML, "json of an experiment": ExperimentJSON,
		"csv of an experiment": ExperimentCSV, "md of an experiment": ExperimentMarkdown} {
		documents[name] = [2]func(io.Writer) error{func(w io.Writer) error { return write(w, x) },
			func(w io.Writer) error { return write(w, RedactedExperiment(x, "/srv/of-the-run")) }}
	}
	for name, write := range documents {
		var open, closed bytes.Buffer
		if err := write[0](&open); err != nil {
			t.Fatal(err)
		}
		if err := write[1](&closed); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ToLower(open.String()), "dbseven") {
			t.Errorf("%s: nothing to redact was in it", name)
		}
		for what, text := range readings(t, name, closed.Bytes()) {
			lower := strings.ToLower(text)
			for _, n := range needles {
				if i := strings.Index(lower, strings.ToLower(n)); i >= 0 {
					t.Errorf("%s holds %q: %s", what, n, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
		if !strings.HasPrefix(name, "csv") && !strings.Contains(closed.String(), "Redacted: names of hosts") {
			t.Errorf("%s does not say that it was redacted", name)
		}
	}
}
