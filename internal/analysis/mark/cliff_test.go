package mark

import (
	"math"
	"strings"
	"testing"
)

// of makes probes of rates and margins.
func of(pairs ...float64) (out []Probe) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, Probe{Offered: pairs[i], Achieved: pairs[i], Margin: pairs[i+1], Held: pairs[i+1] >= 1,
			Limit: "p99 < 1ms"})
	}
	return out
}

// A cliff at 132 a second: fast below and slow beyond, as where a cache no longer holds what is read. A line through
// both sides is sure of a place in the middle, where nothing was offered.
func TestCliff(t *testing.T) {
	probes := of(109, 1.72, 219, 0, 185, 0.42, 109, 1.79, 259, 0, 142, 0.46, 136, 0.47)
	for i, p := range probes {
		if p.Margin == 0 {
			probes[i].Behind, probes[i].Achieved = true, 188
		}
	}
	if e := estimate(probes); e.low > 109 || e.high < 136 {
		t.Errorf("it is between %.0f and %.0f, where nothing tells", e.low, e.high)
	}
	for range 5 {
		step := Next(Settings{Start: 109}, probes)
		if step.Rate == 0 {
			break
		}
		margin := 1.75
		if step.Rate > 132 {
			margin = 0.45
		}
		probes = append(probes, of(step.Rate, margin)...)
	}
	a := Conclude(Settings{Start: 109}, probes)
	if a.Verdict != Found || *a.Low > 132 || *a.High < 132 || *a.High > 1.15**a.Low {
		t.Errorf("%s", a.Sentence)
	}
}

// What is said where there is no mark is so.
func TestInconclusive(t *testing.T) {
	for name, c := range map[string]struct {
		probes    []Probe
		want, not string
	}{
		"a lower rate broke": {of(1000, 1.01, 2000, 0.4, 1000, 0.98, 900, 0.97, 1100, 1.02, 1200, 1.3), "broke and",
			"between"},
		"only by chance": {of(113, 1.61, 227, 1.52, 453, 0.81, 634, 0.96, 497, 1.72, 432, 1.34, 519, 1.61, 554, 1.59,
			586, 1.71, 618, 1.26, 642, 1.33, 453, 1.93), "Inconclusive", "Mark"},
		"both sides are clear": {of(1000, 2, 2000, 0.3), "the mark is somewhere between", "not known"},
		"hardly":               {of(1000, 1.05, 2000, 0.3), "by too little", "between"},
	} {
		a := Conclude(Settings{Start: 100}, c.probes)
		if !strings.Contains(a.Sentence, c.want) || strings.Contains(a.Sentence, c.not) {
			t.Errorf("%s: %s", name, a.Sentence)
		}
	}
}

// An interval is called wider than asked for only when it is.
func TestWider(t *testing.T) {
	probes := of(4549, 5.83, 9098, 14.05, 18196, 0, 12374, 2.77, 13366, 0, 12566, 0.21, 12374, 2.6, 12042, 5.61, 13011,
		0, 12244, 3.89, 12628, 0, 9098, 13.9)
	for i, p := range probes {
		if p.Margin == 0 {
			probes[i].Behind, probes[i].Achieved = true, 12626
		}
	}
	a := Conclude(Settings{Start: 4549}, probes)
	if a.Verdict != Found {
		t.Fatal(a.Sentence)
	}
	wide := math.Max(*a.High-*a.Rate, *a.Rate-*a.Low) > 0.05**a.Rate
	if said := strings.Contains(strings.Join(a.Warnings, " "), "wider"); said != wide || a.Within == wide {
		t.Errorf("%s %q", a.Sentence, a.Warnings)
	}
}
