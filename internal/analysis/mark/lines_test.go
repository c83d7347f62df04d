package mark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/mark"
)

func TestCosts(t *testing.T) {
	t.Parallel()
	at := func(v mark.Verdict, rate, low, high float64) mark.Line {
		a := mark.Answer{Verdict: v, Rate: &rate}
		if v == mark.Found {
			a.Low, a.High, a.Confidence = &low, &high, mark.Confidence
		}
		return mark.Line{Condition: "c", Answer: a}
	}
	first := at(mark.Found, 4000, 3900, 4100)
	first.Condition = "alone"
	for name, x := range map[string]struct {
		line mark.Line
		want string
	}{
		// ln 0.75 ± √(ln²(3000/2900) + ln²(4100/4000)): computed apart.
		"lower":       {at(mark.Found, 3000, 2900, 3100), `"c" costs 25 % of the mark (95 %: 21.8 to 28.1 %).`},
		"the same":    {at(mark.Found, 3990, 3890, 4090), `What "c" costs cannot be told from nothing: from 3.72 % less to 3.35 % more.`},
		"higher":      {at(mark.Found, 5000, 4900, 5100), `Under "c" the mark is 25 % higher (95 %: 21.1 to 29.1 %).`},
		"below":       {at(mark.Below, 1000, 0, 0), `"c" costs more than 74.4 % of the mark: 1,000 IOPS broke the limit already.`},
		"at least":    {at(mark.AtLeast, 3000, 0, 0), `"c" costs at most 26.8 % of the mark: it bore 3,000 IOPS.`},
		"generator":   {at(mark.Generator, 5000, 0, 0), `"c" costs at most 0 % of the mark: it bore 5,000 IOPS.`},
		"stays broke": {at(mark.NotRecovered, 5000, 0, 0), `Under "c" it does not come back from an overload, so there is no mark to compare.`},
		"unknown":     {at(mark.Inconclusive, 5000, 0, 0), `What "c" costs is not known: its search gave no mark.`},
	} {
		t.Run(name, func(t *testing.T) {
			costs := mark.Costs([]mark.Line{first, x.line})
			if len(costs) != 1 {
				t.Fatalf("%d costs", len(costs))
			}
			if diff := cmp.Diff(x.want, costs[0].Sentence); diff != "" {
				t.Error(diff)
			}
		})
	}
	if costs := mark.Costs([]mark.Line{at(mark.AtLeast, 1, 0, 0), first}); costs[0].Share != nil ||
		costs[0].Sentence != `What "alone" costs is not known: "c" has no mark.` {
		t.Errorf("without a first mark: %+v", costs)
	}
	between := mark.Line{Condition: "alone", Answer: mark.Answer{Verdict: mark.Inconclusive, Probes: []mark.Probe{
		{Offered: 1400, Held: true}, {Offered: 2000}}}}
	below := at(mark.Below, 280, 0, 0)
	if costs := mark.Costs([]mark.Line{between, below}); costs[0].Low == nil ||
		costs[0].Sentence != `"c" costs more than 80 % of the mark: "alone" bore 1,400 IOPS.` {
		t.Errorf("below a bracket: %+v", costs)
	}
	between.Probes = append(between.Probes, mark.Probe{Offered: 1400}) // it held once and broke once
	if costs := mark.Costs([]mark.Line{between, below}); costs[0].Low != nil {
		t.Errorf("below what contradicts itself: %+v", costs)
	}
	bore := at(mark.AtLeast, 8000, 0, 0)
	if costs := mark.Costs([]mark.Line{bore, first}); costs[0].Low == nil ||
		costs[0].Sentence != `"alone" costs more than 48.8 % of the mark: "c" bore 8,000 IOPS.` {
		t.Errorf("below what the first bore: %+v", costs)
	}
}
