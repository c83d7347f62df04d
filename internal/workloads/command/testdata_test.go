package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stderr)
	os.Exit(code)
}

func read(t testing.TB, parts ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func specOf(name string, config []byte) workload.Spec {
	return workload.Spec{
		Name: "load", VM: "vm", ConfigFile: name, Config: config, Interval: time.Second, Runtime: 4 * time.Second,
		Seed:  42,
		Disks: []target.Disk{{Device: "/dev/sdb", Path: "/disks/b"}, {Device: "/dev/sdc", Path: "/disks/c"}},
	}
}

func jobOf(t testing.TB, name string, config []byte) workload.Job {
	t.Helper()
	job, err := Engine{}.Command(specOf(name, config))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// show prints everything that a parser handed on.
func show(declared workload.Declared, r *workloadtest.Recorder, outcome workload.Outcome, err error) string {
	var b strings.Builder
	for _, report := range r.Reports {
		fmt.Fprintf(&b, "%v", report.Elapsed)
		if report.Final {
			b.WriteString(" final")
		}
		fmt.Fprintf(&b, " errors=%d\n", report.Errors)
		for i, o := range declared.Operations {
			c := report.Ops[i]
			fmt.Fprintf(&b, "  %s: %d in %.6g s, %d bytes", o.Name, c.Ops, c.Seconds, c.Bytes)
			if c.Hist != nil {
				p50, _ := c.Hist.Quantile(0.5)
				p95, _ := c.Hist.Quantile(0.95)
				fmt.Fprintf(&b, ", histogram of %d: p50 %v p95 %v", c.Hist.Count(), time.Duration(p50),
					time.Duration(p95))
			}
			b.WriteByte('\n')
		}
		for i, m := range declared.Measures {
			fmt.Fprintf(&b, "  %s = %g %s\n", m.Name, report.Values[i], m.Unit)
		}
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	fmt.Fprintf(&b, "%d reports, %d errors, error: %v\n", outcome.Reports, outcome.Errors, err)
	if err != nil {
		fmt.Fprintf(&b, "says: %s\n", outcome.Message)
	}
	return b.String()
}

// Outputs of real programs, and made ones for what those do not show, are read as their files say.
func TestOutputs(t *testing.T) {
	t.Parallel()
	outputs, err := filepath.Glob("testdata/*.out")
	if err != nil || len(outputs) == 0 {
		t.Fatal("no outputs: ", err)
	}
	for _, path := range outputs {
		name := strings.TrimSuffix(filepath.Base(path), ".out")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := jobOf(t, name+".yml", read(t, "testdata", name+".yml"))
			output := read(t, path)
			var r workloadtest.Recorder
			outcome, err := Engine{}.Parse(job.Declared, bytes.NewReader(output), &r)
			golden.Compare(t, "testdata/"+name+".golden", []byte(show(job.Declared, &r, outcome, err)))
			holds(t, job.Declared, r.Reports)
			inPieces(t, job.Declared, output, 1, &r)
			inPieces(t, job.Declared, output, 7, &r)
		})
	}
}

// holds fails for reports that break what the contract asks of all.
func holds(t testing.TB, declared workload.Declared, reports []workload.Report) {
	t.Helper()
	var before workload.Report
	for i, r := range reports {
		if r.Elapsed < before.Elapsed || r.Errors < before.Errors || r.Final && i < len(reports)-1 {
			t.Errorf("report %d went backwards or ended early: %+v after %+v", i, r, before)
		}
		for k, c := range r.Ops {
			if i > 0 && (c.Ops < before.Ops[k].Ops || c.Bytes < before.Ops[k].Bytes ||
				c.Seconds < before.Ops[k].Seconds) {
				t.Errorf("report %d: %s fell: %+v after %+v", i, declared.Operations[k].Name, c, before.Ops[k])
			}
			if c.Hist != nil && c.Hist.Count() != c.Ops {
				t.Errorf("report %d: histogram of %d for %d operations", i, c.Hist.Count(), c.Ops)
			}
		}
		before = r
	}
}

// inPieces fails when output that comes in pieces is read differently.
func inPieces(t testing.TB, declared workload.Declared, output []byte, size int, want *workloadtest.Recorder) {
	t.Helper()
	var r workloadtest.Recorder
	p, err := newParser(declared, &r)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(output); i += size {
		p.Feed(output[i:min(i+size, len(output))])
	}
	_, _ = p.Finish()
	if diff := cmp.Diff(want.Reports, r.Reports, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("in pieces of %d:\n%s", size, diff)
	}
	if diff := cmp.Diff(want.Warnings, r.Warnings); diff != "" {
		t.Errorf("in pieces of %d:\n%s", size, diff)
	}
}
