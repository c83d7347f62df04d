package run_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/targets/local"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/scenarios"
)

// here is this machine as a target, in a folder of its own that is the root of its run, and what it says of itself.
func here(t *testing.T, c target.Config) (root string, place target.Target, facts target.Facts) {
	t.Helper()
	root, c.Clock = needs.Folder(t), clock.Real{}
	options := target.Options{"dir": root}
	maps.Copy(options, c.Options)
	c.Options = options
	place, err := local.Provider{}.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if facts, err = place.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return root, place, facts
}

// The shipped noisy-neighbour scenario with real fio on files of this machine: every verdict is yes and nothing
// remains.
func TestLocalColocation(t *testing.T) {
	needs.Fio(t)
	dir, _ := scenarios.Open("db-colocation")
	sc, diagnostics := scenario.Load(dir, scenario.LoadOptions{Now: time.Now(), Nodes: 4})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	root, place, facts := here(t, target.Config{Nodes: 4})
	engines := map[string]workload.Engine{"fio": fio.Engine{}}
	p, err := plan.Build(sc, facts, plan.Options{TimeScale: 0.002, SizeScale: 0.00002, Engines: engines})
	if err != nil {
		t.Fatal(err)
	}
	p.Text(testWriter{t})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := run.Execute(ctx, run.Request{
		Root: root, RunID: "local", Program: "test", Source: "db-colocation", Files: dir, Scenario: sc, Plan: p,
		Target: place, Facts: facts,
		Engines: engines, Clock: clock.Real{}, Observer: logging{t},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	want := result.Verdict{State: "yes"}
	if s.Status != result.StatusSucceeded || s.Measured != want || s.Collected != want || s.Cleaned != want {
		t.Errorf("%+v", s)
	}
	folder, err := result.Open(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	cost := folder.Manifest().Overhead
	if cost == nil || cost.CPUSeconds <= 0 || cost.WallSeconds <= 0 || cost.MaxResidentBytes < 1<<20 ||
		math.Abs(cost.CorePercent-100*cost.CPUSeconds/cost.WallSeconds) > 1e-6 {
		t.Errorf("own cost %+v", cost)
	}
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := time.Now()
	for _, name := range []string{record.HostCPU, record.HostReads, record.ThreadBusy} {
		if found, err := store.Range(t.Context(), fmt.Sprintf("last_over_time(%s[5m])", name), now, now,
			time.Second); err != nil || len(found) == 0 {
			t.Errorf("%d series of %s, %v", len(found), name, err)
		}
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) { w.t.Logf("%s", p); return len(p), nil }

type logging struct{ t *testing.T }

func (l logging) Event(e result.Event) {
	l.t.Logf("%s %s %d %s %s %s", e.Kind, e.Phase, e.Step, e.Name, e.Text, e.Error)
}
func (l logging) Progress(p run.Progress) {
	l.t.Logf("left %s of %s: %+v", p.Left, p.Step.Name, p.Rows())
}
