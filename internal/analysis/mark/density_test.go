package mark_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/hist"
	"plimsoll/internal/analysis/mark"
	"plimsoll/result"
)

// number searches for how many are borne, where bears says what happens with so many.
func number(s mark.Settings, bears func(n int, time int) bool) (a mark.Answer, offered []int) {
	s.Count, s.Unit = true, "VMs"
	times := map[int]int{}
	var probes []mark.Probe
	for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
		n := int(step.Rate)
		offered = append(offered, n)
		p := mark.Probe{Offered: step.Rate, Margin: 0.5, Limit: "p99 < 1ms"}
		if p.Held = bears(n, times[n]); p.Held {
			p.Margin = 2
		}
		times[n]++
		probes = append(probes, p)
	}
	return mark.Conclude(s, probes), offered
}

// The number that is borne is found whatever it is, both sides of it seen twice, up to 30 in twelve probes; above it is
// at least bounded by them.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for most := 1; most <= 60; most++ {
		for _, start := range []float64{1, 4, 100} {
			a, offered := number(mark.Settings{Start: start}, func(n, _ int) bool { return n <= most })
			want := fmt.Sprintf("Mark: %d VMs: so many held twice; with %d VMs p99 < 1ms broke twice.", most, most+1)
			want = strings.Replace(want, "Mark: 1 VMs", "Mark: 1 VM", 1)
			found := a.Verdict == mark.Found && strings.HasPrefix(a.Sentence, want)
			bounded := most > 30 && a.Low != nil && *a.Low <= float64(most) && float64(most) < *a.High
			if len(offered) > 12 || !found && !bounded {
				t.Errorf("%d from %v: %d probes %v: %s", most, start, len(offered), offered, a.Sentence)
			}
		}
	}
}

func TestNumbersOtherwise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings mark.Settings
		bears    func(n, time int) bool
		offered  []int
		says     string
	}{
		"all of them": {mark.Settings{Start: 3, Most: 10}, func(int, int) bool { return true }, []int{3, 6, 10},
			"No limit broke up to 10 VMs, the highest number that was tried. Nothing between 3 and 6 VMs was offered: " +
				"what breaks only there is not seen."},
		"not one": {mark.Settings{Start: 3}, func(int, int) bool { return false }, []int{3, 1, 1},
			"p99 < 1ms breaks with 1 VM, the lowest number that was tried."},
		"a chance": {mark.Settings{Start: 2}, func(n, time int) bool { return n < 3 || n == 3 && time == 0 },
			[]int{2, 4, 3, 4, 3, 3, 2},
			"Mark: 2 VMs: so many held twice; with 3 VMs p99 < 1ms broke 2 times of 3."},
		"too few probes": {mark.Settings{Start: 1, Probes: 5}, func(n, _ int) bool { return n < 7 },
			[]int{1, 2, 4, 8, 6},
			"Inconclusive after 5 probes: 6 VMs held and 8 VMs did not."},
	} {
		a, offered := number(c.settings, c.bears)
		if diff := cmp.Diff(c.offered, offered); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if a.Sentence != c.says {
			t.Errorf("%s: %s", name, a.Sentence)
		}
	}
}

// What is full with every number is said, as it is of rates: what breaks need not be the VMs' doing. A mark says it
// where it says what was near.
func TestNumbersOfAFullHost(t *testing.T) {
	t.Parallel()
	full := []mark.Used{{Measure: result.HostCPUs, Of: "host", Percent: 97}}
	probe := func(n, margin float64) mark.Probe {
		return mark.Probe{Offered: n, Margin: margin, Held: margin >= 1, Limit: "p99 < 1ms", Used: full}
	}
	s := mark.Settings{Count: true, Unit: "VMs"}
	want := []string{"the CPUs of host were used 97 % or more at every number, the lowest too"}
	if a := mark.Conclude(s, []mark.Probe{probe(2, 0.9), probe(1, 0.2), probe(1, 0.3)}); !cmp.Equal(want, a.Warnings) {
		t.Errorf("%s %q", a.Sentence, a.Warnings)
	}
	if a := mark.Conclude(s, []mark.Probe{probe(2, 0.8)}); a.Verdict != mark.Inconclusive || a.Sentence !=
		"Unfinished after 1 probe: with 2 VMs, the lowest number that was tried, p99 < 1ms broke once." {
		t.Errorf("of one probe: %s", a.Sentence)
	}
	a := mark.Conclude(s, []mark.Probe{probe(1, 2), probe(2, 0.9), probe(1, 2), probe(2, 0.9)})
	if len(a.Warnings) > 0 || !strings.Contains(a.Sentence, "Near it the CPUs of host were used 97 %") {
		t.Errorf("%s %q", a.Sentence, a.Warnings)
	}
}

// Where there is no room for so many, fewer are offered until the next one is known to have none, and the answer says
// of what there is too little; a limit that breaks before is the mark.
func TestNumbersWithoutRoom(t *testing.T) {
	t.Parallel()
	for breaks, want := range map[int]string{
		100: "No limit broke up to 21 VMs; for 22 VMs there is no room: memory. ",
		13:  "Mark: 12 VMs: so many held twice; with 13 VMs p99 < 1ms broke twice.",
		1:   "p99 < 1ms breaks with 1 VM, the lowest number that was tried.",
	} {
		s := mark.Settings{Start: 4, Count: true, Unit: "VMs"}
		var probes []mark.Probe
		offers := 0
		for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
			if offers++; offers > 20 {
				t.Fatalf("%d: no end: %+v", breaks, s)
			}
			if step.Rate >= 22 {
				s.Room, s.Lacks = step.Rate, "memory"
				continue
			}
			held := int(step.Rate) < breaks
			probes = append(probes, mark.Probe{Offered: step.Rate, Held: held, Margin: 0.5, Limit: "p99 < 1ms"})
		}
		if a := mark.Conclude(s, probes); !strings.HasPrefix(a.Sentence, want) {
			t.Errorf("%d: %s", breaks, a.Sentence)
		}
	}
}

// The VM that is nearest to breaking its limits decides, and one that falls behind its rate has broken.
func TestJudgeVMs(t *testing.T) {
	t.Parallel()
	quick := func(h *hist.Histogram) { h.Add(1e6, 100_000) }
	slow := func(h *hist.Histogram) { h.Add(8e6, 100_000) }
	for name, c := range map[string]struct {
		second func(*hist.Histogram)
		did    uint64 // of 1,000 a second
		want   mark.Probe
	}{
		"both": {quick, 1000, mark.Probe{Offered: 4, Achieved: 4, Seconds: 100, Margin: 5, Held: true,
			Limit: "p99 is low"}},
		"one is slow": {slow, 1000, mark.Probe{Offered: 4, Achieved: 2, Seconds: 100, Margin: 0.625,
			Limit: "p99 is low"}},
		"one is late": {quick, 900, mark.Probe{Offered: 4, Achieved: 2, Seconds: 100, Limit: mark.RateMet}},
	} {
		d := load(1000, 8, even(1000, 100), "response time", quick)
		d.Workloads = append(d.Workloads, load(1000, 8, even(c.did, 100), "response time", c.second).Workloads[0])
		got, err := mark.JudgeVMs(d, nil, "OLTP", []result.Assert{below("p99", 5e-3)}, 4)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0.01, 0)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
