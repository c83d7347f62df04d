package storage

import (
	"math"
	"strings"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// What a job does on a VM is told as a share of what it does beside it, with what six turns leave open.
func TestPlain(t *testing.T) {
	p := result.Plain{Workload: "Work", VM: "a", Node: "node 0 (n1)", How: "a bare place"}
	for i, r := range []float64{0.90, 0.92, 0.88, 0.91, 0.89, 0.90} {
		p.Turns = append(p.Turns, result.PlainTurn{BesideFirst: i%2 == 1,
			Machine: result.PlainDone{OpsPerSecond: 1000 * r, MeanSeconds: 0.002},
			Beside:  result.PlainDone{OpsPerSecond: 1000, MeanSeconds: 0.001}})
	}
	one := result.Plain{Workload: "Once", Turns: p.Turns[:1]} // says nothing of how far it wanders
	got := plain(&view.Run{Data: &result.Data{Plain: []result.Plain{p, one}}})
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	f := got[0]
	// By another program, from the logarithms and t of 5 degrees of freedom, 2.5706: 0.8999 (0.8852 to 0.9148)
	for name, c := range map[string][2]float64{"value": {*f.Value, 0.8999}, "low": {*f.Low, 0.8852},
		"high": {*f.High, 0.9148}, "time": {f.Evidence[0].Value, 2}} {
		if math.Abs(c[0]-c[1]) > 0.0002 {
			t.Errorf("%s: %v: want %v", name, c[0], c[1])
		}
	}
	want := "Work on a did 0.9 times the operations a second of the same job beside it on node 0 (n1) (0.885 to 0.915), " +
		"and an operation took 2 times as long (2 to 2). Beside it is a bare place."
	if f.Sentence != want || len(f.Evidence) != 13 {
		t.Errorf("%q, %d: want %q", f.Sentence, len(f.Evidence), want)
	}
	// The first turn's logarithm is 0.642 then; deviation 0.306, by another program: 20 turns leave more than 10 %.
	p.Turns[0].Machine.OpsPerSecond, p.Turns[0].Machine.MeanSeconds = 1900, 0.0001
	if s := beside(p).Sentence; !strings.Contains(s, ": not told apart), and an operation") ||
		!strings.Contains(s, ": not told apart). Beside it is") || !strings.Contains(s, "takes some 917 of them") ||
		!strings.HasSuffix(s, "within 2 %: --compare-plain=917.") {
		t.Errorf("%q", s)
	}
	p.Turns[0].Machine.OpsPerSecond = 9000
	if s := beside(p).Sentence; !strings.HasSuffix(s, "differ too much for a ratio known within 2 %.") {
		t.Errorf("%q", s)
	}
	if f.Severity != result.Info || strings.Contains(f.Sentence, "NaN") {
		t.Errorf("%+v", f)
	}
}
