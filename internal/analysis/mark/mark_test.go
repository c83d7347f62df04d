package mark_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/testkit/trust"
	"plimsoll/result"
)

// Where the generator gives way, or an overload stays, no mark is given; where everything or nothing holds it is said.
func TestNoMark(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 2))
	for range 300 {
		x := trust.DrawBearer("queue", r)
		x.Noise = min(x.Noise, 0.05)
		x.Gives = x.Mark() * (0.2 + 0.6*r.Float64())
		a := trust.Search(x, mark.Settings{Start: x.Gives * math.Exp(-3+4*r.Float64())}, r)
		if a.Verdict != mark.Generator || *a.Rate > 1.02*x.Gives {
			t.Fatalf("the generator gives way at %.5g: %+v", x.Gives, a)
		}
		x = trust.DrawBearer("cap", r)
		x.Kind, x.After = "metastable", x.Capacity*(1+r.Float64())
		a = trust.Search(x, mark.Settings{Start: x.Capacity * math.Exp(-3+3*r.Float64())}, r)
		switch {
		case !x.Broken && a.Verdict == mark.Found && *a.Low <= x.Mark() && x.Mark() <= *a.High:
		case x.Broken && a.Verdict == mark.Found && (trust.Bore(a, 0.42*x.Capacity) || len(a.Warnings) == 0):
			t.Fatalf("it stays broken after %.5g of %.5g: %+v", x.After, x.Capacity, a)
		case x.Broken && a.Verdict == mark.NotRecovered && *a.Rate < x.After:
			t.Fatalf("it was blamed on %.5g, and began beyond %.5g", *a.Rate, x.After)
		}
		x = trust.DrawBearer("queue", r)
		x.Limit, x.Noise = x.Base*(2+8*r.Float64()), min(x.Noise, 0.05)
		top := x.Mark() * 0.3
		a = trust.Search(x, mark.Settings{Start: top / 50, Most: top}, r)
		if a.Verdict != mark.AtLeast || *a.Rate != top {
			t.Fatalf("everything holds up to %.5g: %+v", top, a)
		}
		x.Limit = x.Base / 2
		a = trust.Search(x, mark.Settings{Start: x.Capacity, Least: x.Capacity / 100}, r)
		if a.Verdict != mark.Below || *a.Rate != x.Capacity/100 {
			t.Fatalf("nothing holds: %+v", a)
		}
	}
}

// A limit that holds again above where it breaks is told, and the mark is the lower place; where no rate came to lie
// in it, it is told that there was none.
func TestHoldsAgain(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 3))
	told, over := 0, 0
	for range 50 {
		x := &trust.Bearer{Kind: "bump", Capacity: 1e5, Base: 1e-3, Limit: 5e-3, Servers: 8, Noise: 0.02, Seconds: 30,
			Bump: [2]float64{900, 1250}}
		a := trust.Search(x, mark.Settings{Start: 250 * math.Exp(0.3*r.Float64())}, r)
		if a.Verdict == mark.Found && *a.Low > 1250 { // the bump lay between two probes
			over++
			if !slices.ContainsFunc(a.Gaps, func(g [2]float64) bool { return g[0] < 1250 && g[1] > 900 }) ||
				!strings.HasSuffix(a.Sentence, " was offered: what breaks only there is not seen.") {
				t.Errorf("%v: %s", a.Gaps, a.Sentence)
			}
			continue
		}
		if a.Verdict != mark.Found || *a.Low > 900 || *a.High < 900 {
			continue
		}
		if len(a.Warnings) > 0 {
			told++
		}
	}
	if told < 10 || over < 10 {
		t.Errorf("told %d times, stepped over %d times", told, over)
	}
}

// What drifts from the first probe to the last is told; what does not is not.
func TestDrift(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 4))
	for _, drift := range []float64{0, 0.06} {
		told := 0
		for range 200 {
			x := trust.DrawBearer("power", r)
			x.Noise, x.Drift = 0.02, drift
			a := trust.Search(x, mark.Settings{Start: x.Mark() * 0.8}, r)
			for _, w := range a.Warnings {
				if strings.HasPrefix(w, "it drifted") {
					told++
				}
			}
		}
		t.Logf("drift of %v a probe: told %d of 200", drift, told)
		if drift == 0 && told > 4 || drift > 0 && told < 60 {
			t.Errorf("drift of %v a probe: told %d of 200", drift, told)
		}
	}
}

// Where the lowest rate broke there is none below it, however little what was offered lies beside what was asked for; a
// generator that gave way sends no more than it did, and no limit was broken.
func TestLower(t *testing.T) {
	t.Parallel()
	broke := mark.Probe{Offered: 200, Achieved: 200, Margin: 0.1, Limit: "p99 < 20ms"}
	if step := mark.Next(mark.Settings{Start: 350, Least: 199.99}, []mark.Probe{broke}); step.Rate != 0 {
		t.Errorf("once more at the lowest: %+v", step)
	}
	held := mark.Probe{Offered: 999.9, Achieved: 1000, Margin: 5, Held: true}
	if step := mark.Next(mark.Settings{Start: 500, Most: 1000}, []mark.Probe{held}); step.Rate != 0 {
		t.Errorf("once more at the highest: %+v", step)
	}
	once := []mark.Probe{held, {Offered: 2000, Achieved: 1500, Limit: "p99 < 20ms"}, broke}
	if a := mark.Conclude(mark.Settings{Start: 1000}, once); a.Verdict != mark.Inconclusive ||
		!strings.Contains(a.Sentence, "1,000 IOPS held and 200 IOPS, the lowest rate that was offered, did not") {
		t.Errorf("a higher rate held: %s: %s", a.Verdict, a.Sentence)
	}
	gave := mark.Probe{Offered: 200000, Achieved: 7000, Generator: "it fell behind"}
	want := mark.Step{Rate: 0.7 * 7000, Why: "the generator gave way: lower"}
	if step := mark.Next(mark.Settings{Start: 200000}, []mark.Probe{gave}); step != want {
		t.Errorf("below what it sent: %+v", step)
	}
}

// What was full at every rate, the lowest too, is said where there is no mark that says it.
func TestThroughout(t *testing.T) {
	t.Parallel()
	for full, want := range map[float64]string{
		99.6: "the CPUs of host were used 97 % or more at every rate, the lowest too", 80: ""} {
		at := func(offered, percent float64) mark.Probe {
			return mark.Probe{Offered: offered, Achieved: offered, Margin: 0.1, Limit: "p99 < 20ms",
				Used: []mark.Used{{Measure: result.OneCPU, Of: "CPU 0", Percent: 100},
					{Measure: result.HostCPUs, Of: "host", Percent: percent}}}
		}
		a := mark.Conclude(mark.Settings{Start: 200}, []mark.Probe{at(200, full), at(100, 97), at(25, 99)})
		if got := strings.Join(a.Warnings, "; "); got != want || a.Verdict != mark.Below {
			t.Errorf("%v: %s, warned of %q", full, a.Sentence, got)
		}
	}
}

// The next probe follows from those before, so that a search can go on after a stop; and it ends.
func TestNextIsPure(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 5))
	for range 200 {
		x := trust.DrawBearer("queue", r)
		s := mark.Settings{Start: x.Capacity / 7}
		var probes []mark.Probe
		for {
			step := mark.Next(s, probes)
			if again := mark.Next(s, slices.Clone(probes)); again != step {
				t.Fatalf("%v, then %v", step, again)
			}
			if step.Rate == 0 {
				break
			}
			if !(step.Rate >= x.Capacity/7000) || math.IsInf(step.Rate, 1) || step.Why == "" {
				t.Fatalf("%+v", step)
			}
			probes = append(probes, x.Probe(step.Rate, r))
		}
		if len(probes) > mark.DefaultProbes {
			t.Fatalf("%d probes", len(probes))
		}
	}
}

// A rate that broke once, because the generator gave way, and holds ever after is not offered to the last probe.
func TestContradiction(t *testing.T) {
	t.Parallel()
	var probes []mark.Probe
	s := mark.Settings{Start: 1000, Most: 2000, Probes: 40}
	for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
		p := mark.Probe{Offered: step.Rate, Achieved: step.Rate, Held: true, Margin: 5}
		if len(probes) == 1 {
			p = mark.Probe{Offered: step.Rate, Achieved: 0.9 * step.Rate, Behind: true, Margin: 0.01,
				Generator: "it waited"}
		}
		probes = append(probes, p)
	}
	if a := mark.Conclude(s, probes); a.Verdict != mark.AtLeast || *a.Rate != 2000 || len(a.Warnings) != 1 ||
		len(probes) > 12 {
		t.Errorf("%d probes: %s %q", len(probes), a.Sentence, a.Warnings)
	}
}

// A rate just above a cap breaks its limit or not by how long it is offered, and falls short of its rate: that is no
// overload that stays, and nothing unsteady. Seen on disks held to 2,000 and 4,000 operations a second.
func TestJustAboveCap(t *testing.T) {
	t.Parallel()
	held := func(rate float64) mark.Probe {
		return mark.Probe{Offered: rate, Achieved: 0.997 * rate, Held: true, Margin: 100}
	}
	broke := func(rate, done, margin float64) mark.Probe {
		return mark.Probe{Offered: rate, Achieved: done, Margin: margin}
	}
	once := func(rate, done, margin float64) mark.Probe {
		p := broke(rate, done, margin)
		p.Held = true
		return p
	}
	for _, probes := range [][]mark.Probe{
		{held(1200), broke(2400, 2001, 0.1), held(1961), once(2042, 1995, 1.43), broke(2214, 2000, 0.13),
			broke(2126, 2002, 0.19), broke(2042, 1991, 0.75)},
		{held(2398), broke(4796, 3995, 0.1), held(3915), broke(4077, 4024, 0.93), once(4077, 4021, 1.47),
			broke(4422, 3991, 0.15), broke(4246, 3994, 0.24), broke(4077, 4022, 0.71)},
	} {
		s := mark.Settings{Start: probes[0].Offered}
		limit := math.Round(probes[1].Achieved/1000) * 1000
		for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
			if p := held(step.Rate); step.Rate <= limit {
				probes = append(probes, p)
			} else {
				probes = append(probes, broke(step.Rate, limit, 0.74))
			}
		}
		a := mark.Conclude(s, probes)
		if a.Verdict != mark.Found || *a.Low > limit || *a.High < limit || !a.Within || len(probes) > 12 {
			t.Errorf("%d probes, %s", len(probes), a.Sentence)
		}
	}
}

// Whatever a system answers, the search ends, and what is printed has no number that is none.
func FuzzSearch(f *testing.F) {
	f.Add(uint64(1), 100.0, 12)
	f.Fuzz(func(t *testing.T, seed uint64, start float64, most int) {
		if !(start > 1e-3 && start < 1e12) || most < 1 || most > 40 {
			return // no search
		}
		r := rand.New(rand.NewPCG(seed, 1))
		var probes []mark.Probe
		s := mark.Settings{Start: start, Probes: most}
		for range most {
			step := mark.Next(s, probes)
			if step.Rate == 0 {
				break
			}
			p := mark.Probe{Offered: step.Rate, Achieved: step.Rate * r.Float64(),
				Margin: math.Exp(3 * r.NormFloat64())}
			p.Behind, p.Held = r.IntN(4) == 0, p.Margin >= 1
			if r.IntN(8) == 0 {
				p.Margin, p.Held = 0, false
			}
			if r.IntN(12) == 0 {
				p.Generator = "busy"
			}
			probes = append(probes, p)
		}
		if a := mark.Conclude(s, probes); a.Sentence == "" || strings.Contains(a.Sentence, "NaN") ||
			strings.Contains(a.Sentence, "Inf") {
			t.Errorf("%+v", a)
		}
	})
}

// How often each side of a step came out so is counted.
func TestTimesOfSides(t *testing.T) {
	t.Parallel()
	var probes []mark.Probe
	for _, p := range []struct{ rate, achieved, margin float64 }{{92_589, 92_589, 3.57}, {185_178, 154_756, 1. / 2152},
		{151_661, 151_661, 1.47}, {157_840, 154_786, 1. / 266}, {151_661, 151_661, 1.47}, {157_840, 155_690, 1. / 214},
		{151_661, 151_661, 1.47}} {
		probes = append(probes, mark.Probe{Offered: p.rate, Achieved: p.achieved, Margin: p.margin, Held: p.margin >= 1,
			Limit: "p99 < 2ms", Seconds: 30 + float64(len(probes))})
	}
	a := mark.Conclude(mark.Settings{Start: 185_178}, probes)
	want := "Mark: 151,700 IOPS at p99 < 2ms, which held 3 times of 3 for 36 s; 157,800 IOPS broke twice."
	if a.Sentence != want {
		t.Errorf("%s: %s", a.Verdict, a.Sentence)
	}
	if got := a.Offered(); got != "4 rates" {
		t.Errorf("offered: %s", got)
	}
}

// A rate that held and broke once after an overload is no overload that stays while it was not offered again.
func TestBrokeOnce(t *testing.T) {
	t.Parallel()
	p := func(rate, margin float64) mark.Probe {
		return mark.Probe{Offered: rate, Achieved: rate, Margin: margin, Held: margin >= 1, Limit: "p99 < 20ms"}
	}
	probes := []mark.Probe{p(61_378, 0.28), p(30_689, 1.1), p(35_089, 0.46), p(32_815, 0.68), p(30_689, 0.32)}
	s := mark.Settings{Start: 61_378, Probes: 5}
	want := "Inconclusive: 30,690 IOPS held before 35,090 IOPS was offered, and broke after it; " +
		"too few probes are left to tell whether that stays."
	if a := mark.Conclude(s, probes); a.Verdict != mark.Inconclusive || a.Sentence != want {
		t.Errorf("%s: %s", a.Verdict, a.Sentence)
	}
	probes = append(probes, p(30_689, 0.3))
	s.Probes = 12
	if step := mark.Next(s, probes); math.Abs(step.Rate-0.9*30_689) > 1 {
		t.Errorf("twice: then %+v, want a little less", step)
	}
	for i := range probes {
		probes[i].Seconds = 30
	}
	if a := mark.Conclude(s, append(probes, p(27_620, 0.4))); a.Verdict != mark.NotRecovered ||
		!strings.Contains(a.Sentence, "It was watched for 1 min of load at ") {
		t.Errorf("nor a little less: %s: %s", a.Verdict, a.Sentence)
	}
	if a := mark.Conclude(s, append(probes, p(27_620, 1.3))); a.Verdict == mark.NotRecovered {
		t.Errorf("a little less held: %s", a.Sentence)
	}
}

// A limit that breaks without a slope, by chance near the mark, has an interval, and a rate that did both is told.
func TestByChance(t *testing.T) {
	t.Parallel()
	var probes []mark.Probe
	for rate, held := range map[float64]int{900: 1, 980: 2, 1000: 1, 1020: 0, 1100: 0, 2000: 0} {
		for n := range 2 {
			p := mark.Probe{Offered: rate, Achieved: rate, Limit: "errors = 0"}
			if n < held {
				p.Held, p.Margin = true, 100
			}
			if rate != 900 || n == 0 {
				probes = append(probes, p)
			}
		}
	}
	slices.SortStableFunc(probes, func(a, b mark.Probe) int { return cmp.Compare(a.Offered, b.Offered) })
	a := mark.Conclude(mark.Settings{Start: 900}, probes)
	if a.Verdict != mark.Found || a.Step || math.Abs(*a.Rate-1000) > 5 || *a.Low < 900 || *a.Low > 995 ||
		*a.High > 1100 || *a.High < 1005 {
		t.Errorf("%+v: %s", a, a.Sentence)
	}
	want := []string{"the interval is wider than 5 % of the mark: near it a rate holds or breaks by chance",
		"1,000 IOPS both held and broke"}
	if !slices.Equal(a.Warnings, want) {
		t.Errorf("%q, want %q", a.Warnings, want)
	}
}

// Of what is not steady both outcomes are told as they were; what did not end in time is no number of times a limit.
func TestUnsteady(t *testing.T) {
	t.Parallel()
	held := mark.Probe{Offered: 1000, Achieved: 1000, Margin: 100, Held: true, Limit: "errors = 0"}
	grew := mark.Probe{Offered: 1000, Achieved: 960, Behind: true, Grew: 0.04, Limit: mark.RateMet}
	low := held
	low.Offered = 900
	got := mark.Conclude(mark.Settings{Start: 900}, []mark.Probe{low, grew, held, low}).Sentence
	want := "Unfinished after 4 probes: it is not steady from probe to probe: of two at 1,000 IOPS one held (errors = 0), the other " +
		"broke (its queue still grew at the end, by 4 % of what was offered)."
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What is the same of several probes is said once.
func TestLeftOutOnce(t *testing.T) {
	t.Parallel()
	held := mark.Probe{Offered: 1000, Achieved: 1000, Margin: 5, Held: true, Limit: "p99 < 20ms"}
	gave := mark.Probe{Offered: 1000, Achieved: 900, Generator: "it fell behind"}
	other := gave
	other.Offered = 800
	got := mark.Conclude(mark.Settings{Start: 800}, []mark.Probe{gave, other, held, gave}).Warnings
	want := []string{"at 1,000 IOPS the generator gave way 2 times, and as much or more held: those probes are left out",
		"at 800 IOPS the generator gave way once, and as much or more held: that probe is left out"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where even the highest rate does too little to know a percentile, that is said, before and after.
func TestTooLittleEvenAtTheMost(t *testing.T) {
	t.Parallel()
	s := mark.Settings{Start: 20, Least: 167, Most: 80}
	step := mark.Next(s, nil)
	a := mark.Conclude(s, []mark.Probe{{Offered: step.Rate, Margin: 1.4, Held: true}})
	if step.Rate != 80 || !strings.Contains(step.Why, "too little") || len(a.Warnings) != 1 ||
		!strings.Contains(a.Warnings[0], "below 167 IOPS a probe does too little to know the percentile") {
		t.Errorf("%+v, %q", step, a.Warnings)
	}
}

// A generator that gave way by chance below a rate that held takes nothing from what the system bore.
func TestGeneratorByChance(t *testing.T) {
	probes := []mark.Probe{
		{Offered: 7500, Achieved: 7500, Margin: 4, Held: true},
		{Offered: 15000, Achieved: 15000, Margin: 3, Held: true},
		{Offered: 30000, Achieved: 21000, Margin: 0.1, Behind: true, Generator: "its thread was busy"},
		{Offered: 17000, Achieved: 16000, Margin: 0.5, Behind: true, Generator: "its thread was busy"},
		{Offered: 18547, Achieved: 18547, Margin: 2, Held: true},
	}
	a := mark.Conclude(mark.Settings{Start: 7500}, probes)
	if a.Verdict != mark.Generator || *a.Rate != 18547 ||
		!strings.HasPrefix(a.Sentence, "Unfinished after 5 probes: at least 18,550 IOPS: at 30,000") ||
		!strings.Contains(strings.Join(a.Warnings, " "), "at 17,000 IOPS the generator gave way once") {
		t.Errorf("%s %v: %s", a.Verdict, *a.Rate, a.Sentence)
	}
	probes[3].Generator = "" // the system
	if a := mark.Conclude(mark.Settings{Start: 7500}, probes); a.Rate != nil && *a.Rate > 15000 {
		t.Errorf("above what broke: %s", a.Sentence)
	}
}

// What else a machine does may take the generator its CPU at any rate: a search goes on where a probe shows that of a
// rate below one that held, and finds the mark.
func TestSearchDisturbed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	found, held := 0, 0
	for range 300 {
		x := trust.DrawBearer("cap", r)
		var probes []mark.Probe
		s := mark.Settings{Start: 0.6 * x.Capacity}
		for step := mark.Next(s, probes); step.Rate > 0; step = mark.Next(s, probes) {
			p := x.Probe(step.Rate, r)
			if p.Held && len(probes)%5 == 4 {
				p.Held, p.Margin, p.Generator = false, 0.3, "its busiest thread waited for a CPU"
			}
			probes = append(probes, p)
		}
		if a := mark.Conclude(s, probes); a.Verdict == mark.Found {
			found++
			if *a.Low <= x.Capacity && x.Capacity <= *a.High {
				held++
			}
		}
	}
	if found < 200 || held < found*97/100 {
		t.Errorf("%d of 300 marks are given, %d in their interval", found, held)
	}
}

// A first rate a million times above what is borne costs one probe, and not the search.
func TestFarAbove(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	held := 0
	for range 300 {
		x := trust.DrawBearer("queue", r)
		a := trust.Search(x, mark.Settings{Start: 1e6 * x.Capacity}, r)
		if m := x.Mark(); a.Verdict == mark.Found && *a.Low <= m && m <= *a.High {
			held++
		} else if a.Verdict != mark.Found && a.Verdict != mark.Inconclusive || len(a.Probes) > 12 {
			t.Errorf("%v: %s", m, a.Sentence)
		}
	}
	if held < 270 {
		t.Errorf("%d of 300 marks are given and in their interval", held)
	}
}

// The first sentence of a search that was ended early says that it is unfinished, whatever is known by then.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	held := mark.Probe{Offered: 100, Achieved: 100, Margin: 2, Held: true, Limit: "p99 < 5ms"}
	broke := mark.Probe{Offered: 200, Achieved: 200, Margin: 0.3, Limit: "Write p99 < 5ms"}
	for want, probes := range map[string][]mark.Probe{
		"1 probe: no limit broke up to 100 IOPS, the highest rate that was offered: the mark is above it.":     {held},
		"1 probe: Write p99 < 5ms breaks at 200 IOPS, the lowest rate that was offered: the mark is below it.": {broke},
		"2 probes: 100 IOPS held and 200 IOPS did not, and the mark is somewhere between.":                     {held, broke},
	} {
		if a := mark.Conclude(mark.Settings{Start: 100}, probes); a.Sentence != "Unfinished after "+want ||
			!a.Unfinished {
			t.Errorf("%s\nwant %s", a.Sentence, want)
		}
		a := mark.Conclude(mark.Settings{Start: 100, Probes: len(probes)}, probes)
		if strings.Contains(a.Sentence, "Unfinished") || a.Unfinished {
			t.Error(a.Sentence)
		}
	}
}
