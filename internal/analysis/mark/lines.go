package mark

import (
	"fmt"
	"math"
	"strings"
)

// Line holds what a search found under one condition: a ship has a load line for each water.
type Line struct {
	Condition string `json:"condition"`
	Over      bool   `json:"over"` // no probe of it is left to be made
	Answer
}

// Cost tells what a condition takes from the mark of the first line.
type Cost struct {
	Condition string `json:"condition"`
	Against   string `json:"against"`
	// Share is how much lower the mark is, as a share of the first line's: below 0 where it is higher, nil where that
	// is not known. Low and High are its interval; one of them alone is a bound.
	Share      *float64 `json:"share,omitempty"`
	Low        *float64 `json:"low,omitempty"`
	High       *float64 `json:"high,omitempty"`
	Confidence float64  `json:"confidence,omitempty"` // of the interval; 0: its ends are rates that held and that broke
	Sentence   string   `json:"sentence"`
}

// Costs holds the lines after the first against it. The interval of a share is that of the ratio of the two marks, from
// their own intervals on a logarithmic scale: method of variance estimates recovery (Zou and Donner, Statistics in
// Medicine 27, 2008, 1693). Lines without a mark give a bound where they give one.
func Costs(lines []Line) (costs []Cost) {
	for i := range lines {
		if i > 0 {
			costs = append(costs, costOf(lines[i], lines[0]))
		}
	}
	return costs
}

func costOf(line, first Line) Cost {
	c := Cost{Condition: line.Condition, Against: first.Condition}
	less := func(v, than float64) *float64 { share := 1 - v/than; return &share }
	switch {
	case first.Verdict != Found && line.most() < first.least():
		c.Low = less(line.most(), first.least())
		c.Sentence = fmt.Sprintf("%q costs more than %s of the mark: %q bore %s.", c.Condition, percent(*c.Low),
			c.Against, first.Say(first.least()))
	case first.Verdict != Found:
		c.Sentence = fmt.Sprintf("What %q costs is not known: %q has no mark.", c.Condition, c.Against)
	case line.Verdict == Found:
		ratio := math.Log(*line.Rate / *first.Rate)
		low := ratio - math.Hypot(math.Log(*line.Rate / *line.Low), math.Log(*first.High / *first.Rate))
		high := ratio + math.Hypot(math.Log(*line.High / *line.Rate), math.Log(*first.Rate / *first.Low))
		c.Share, c.Low, c.High = less(math.Exp(ratio), 1), less(math.Exp(high), 1), less(math.Exp(low), 1)
		if line.Confidence > 0 && first.Confidence > 0 {
			c.Confidence = Confidence
		}
		c.say()
	case line.Verdict == Below && *line.Rate < *first.Low:
		c.Low = less(*line.Rate, *first.Low)
		c.Sentence = fmt.Sprintf("%q costs more than %s of the mark: %s broke the limit already.", c.Condition,
			percent(*c.Low), line.Say(*line.Rate))
	case (line.Verdict == AtLeast || line.Verdict == Generator) && line.Rate != nil:
		c.High = less(*line.Rate, *first.High)
		c.Sentence = fmt.Sprintf("%q costs at most %s of the mark: it bore %s.", c.Condition,
			percent(max(*c.High, 0)), line.Say(*line.Rate))
	case line.Verdict == NotRecovered:
		c.Sentence = fmt.Sprintf("Under %q it does not come back from an overload, so there is no mark to compare.",
			c.Condition)
	default:
		c.Sentence = fmt.Sprintf("What %q costs is not known: its search gave no mark.", c.Condition)
	}
	return c
}

// Between are the highest rate that held and the lowest that broke of a search without a mark, where its probes agree
// on them.
func (a *Answer) Between() (low, high float64, ok bool) {
	high = math.Inf(1)
	for _, p := range a.Probes {
		switch {
		case p.Held:
			low = max(low, p.Offered)
		case p.Generator == "":
			high = min(high, p.Offered)
		}
	}
	return low, high, a.Verdict == Inconclusive && low > 0 && low < high && !math.IsInf(high, 1)
}

// least is a rate that is known to be borne, 0 for none.
func (a *Answer) least() float64 {
	if low, _, ok := a.Between(); ok {
		return low
	}
	if a.Verdict == AtLeast && a.Rate != nil {
		return *a.Rate
	}
	return 0
}

// most is a rate above which the mark is known not to be, without end for none.
func (a *Answer) most() float64 {
	_, high, ok := a.Between()
	switch {
	case ok:
		return high
	case a.Verdict == Found:
		return *a.High
	case a.Verdict == Below:
		return *a.Rate
	}
	return math.Inf(1)
}

// say puts a share with an interval into words.
func (c *Cost) say() {
	what := "between "
	if c.Confidence > 0 {
		what = "95 %: "
	}
	between := func(low, high float64) string {
		return strings.TrimSuffix(percent(low), " %") + " to " + percent(high)
	}
	switch {
	case *c.Low > 0:
		c.Sentence = fmt.Sprintf("%q costs %s of the mark (%s%s).", c.Condition, percent(*c.Share), what,
			between(*c.Low, *c.High))
	case *c.High < 0:
		c.Sentence = fmt.Sprintf("Under %q the mark is %s higher (%s%s).", c.Condition, percent(-*c.Share), what,
			between(-*c.High, -*c.Low))
	default:
		c.Sentence = fmt.Sprintf("What %q costs cannot be told from nothing: from %s less to %s more.", c.Condition,
			percent(*c.High), percent(-*c.Low))
	}
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
