package run_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/internal/run/plan"
	"plimsoll/internal/targets/sim"
	"plimsoll/result"
)

// A run that is stopped while it preconditions keeps what was done and says how far it came, in its data too.
func TestPreconditionStopped(t *testing.T) {
	h := modelled(t, os.DirFS(filepath.Join("..", "..", "scenarios", "worn-in")), sim.Options{})
	h.plan(plan.Options{Engines: h.req.Engines})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, s := range h.req.Plan.Steps {
		if s.Name == "workload.Precondition" {
			h.req.Plan.Steps[i].EstimateSeconds = 2 * (3 * time.Minute).Seconds() // at has its middle from here
			h.at(i, "middle", cancel)
		}
	}
	sum, _ := h.execute(ctx)
	h.clean(sum)
	if sum.Status != result.StatusStopped {
		t.Fatalf("it is %s", sum.Status)
	}
	data, err := h.folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Preconditioned) != 1 {
		t.Fatalf("%d preconditionings", len(data.Preconditioned))
	}
	p := data.Preconditioned[0]
	if p.State != result.PreconditionInterrupted || len(p.Passes) != 2 || len(p.Rounds) < 1 || p.Seconds < 170 ||
		p.Seconds > 190 {
		t.Errorf("%+v", p)
	}
	for _, w := range data.Workloads {
		if rounds := w.Name == "Random write_rounds"; !w.Prefill || w.Rounds != rounds {
			t.Errorf("%s %s: prefill %t, rounds %t", w.Name, w.VM, w.Prefill, w.Rounds)
		}
	}
}
