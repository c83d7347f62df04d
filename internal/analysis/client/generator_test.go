package client

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// What is summed up once for a place is what comes out of looking at every generator with every other, and a place of
// many generators has two steps for each span of theirs, no more.
func TestGeneratorsBeside(t *testing.T) {
	epoch := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return epoch.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "s")) * time.Second)
		})
		l, spans := &view.Load{}, 0
		for range rapid.IntRange(1, 6).Draw(t, "generators") {
			w := &result.Workload{VM: "vm", GeneratorCPUSeconds: rapid.Float64Range(0, 30).Draw(t, "cpu")}
			for range rapid.IntRange(1, 3).Draw(t, "spans") {
				w.Spans = append(w.Spans, result.Span{Start: moment.Draw(t, "from"), End: moment.Draw(t, "to")})
			}
			l.Parts = append(l.Parts, w)
			if view.Seconds(w) > 0 {
				for _, s := range w.Times() {
					if s.End.After(s.Start) {
						spans++
					}
				}
			}
		}
		place := byPlace(&view.Run{Loads: []*view.Load{l}})[0]
		if place != nil && len(place.steps) != 2*spans {
			t.Fatalf("%d steps of %d spans", len(place.steps), spans)
		}
		for _, p := range l.Parts {
			if view.Seconds(p) == 0 {
				continue
			}
			want := 0.0
			for _, q := range l.Parts {
				if s := view.Seconds(q); s > 0 {
					want += q.GeneratorCPUSeconds / s * view.Overlap(q.Times(), p.Times()) / view.Seconds(p)
				}
			}
			if got := place.beside(p); math.Abs(got-want) > 1e-9*(1+want) {
				t.Fatalf("%v cores, want %v: %+v", got, want, l.Parts)
			}
		}
	})
}

// What a generator took to start says nothing of a load that was over within a second.
func TestShortLoad(t *testing.T) {
	epoch := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for length, told := range map[time.Duration]bool{5 * time.Millisecond: false, 10 * time.Second: true} {
		w := &result.Workload{Name: "pg", VM: "vm", GeneratorCPUSeconds: 0.09, Start: epoch, End: epoch.Add(length),
			Ops: []result.OpTotals{{Op: "read", Count: 10}}}
		l := &view.Load{Name: "pg", Parts: []*result.Workload{w}}
		v := &view.Run{Data: &result.Data{}, VMs: map[string]result.VM{"vm": {Name: "vm", CPUs: 2}},
			Loads: []*view.Load{l}}
		if f, ok := generatorOf(v, l, byPlace(v)); ok != told {
			t.Errorf("%s: %v: %s", length, ok, f.Sentence)
		}
	}
}

// A VM that is no more than processes of a host has no more CPUs than that.
func TestCPUsOfOneHost(t *testing.T) {
	t.Parallel()
	for one, want := range map[bool]float64{false: 16, true: 2} {
		v := &view.Run{OneHost: one, VMs: map[string]result.VM{"a": {CPUs: 16}},
			Manifest: result.Manifest{Nodes: []result.Node{{Cores: 2}}}}
		if got := cpusOf(v, "a"); got != want {
			t.Errorf("one host %t: %v CPUs, want %v", one, got, want)
		}
	}
}
