package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/unit"
)

// sayCount prints 1234567 as 1,234,567 and three significant digits below 100.
func sayCount(v float64) string {
	if !isFinite(v) || math.Abs(v) > 1e18 {
		return "an unknown number of"
	}
	return strings.TrimSuffix(unit.Rate(v).String(), " IOPS")
}

// sayDuration prints seconds in the unit a person would use.
func sayDuration(s float64) string {
	if !isFinite(s) || math.Abs(s) > 1e9 {
		return "an unknown time"
	}
	return unit.Duration(math.Round(s * float64(time.Second))).String()
}

func sayBytes(v float64) string {
	if !isFinite(v) || math.Abs(v) > 1e18 {
		return "an unknown size"
	}
	return unit.Bytes(v).String()
}

func percent(share float64) string {
	if !isFinite(share) || math.Abs(share) > 1e6 {
		return "an unknown share"
	}
	return unit.Percent(share).String()
}

// signed is a relative change with its sign; what would be rounded away by a reader is none.
func signed(change float64) string {
	if math.Abs(change) < 0.0005 {
		return "±0 %"
	}
	if change < 0 {
		return "−" + percent(-change)
	}
	return "+" + percent(change)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return unit.Thousands(int64(n)) + " " + word + "s"
}

// some lists at most three names.
func some(names []string) string {
	switch {
	case len(names) == 2:
		return names[0] + " and " + names[1]
	case len(names) <= 3:
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
}

// clockOf is a moment of the run, h:mm:ss since the run phase began.
func clockOf(seconds float64) string {
	if !isFinite(seconds) || math.Abs(seconds) > 1e9 {
		return "an unknown moment"
	}
	s := int64(math.Round(seconds))
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// times is how often.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return plural(n, "time")
}

// compareAway orders ratios by how far they are from 1.
func compareAway(a, b float64) int { return cmp.Compare(away(a), away(b)) }

// sayMicro keeps times below a millisecond exact enough to compare.
func sayMicro(s float64) string { return fmt.Sprintf("%.3g µs", s*1e6) }

// sayDecimal prints bytes in powers of 1000, as links and data sheets count.
func sayDecimal(v float64) string {
	if !isFinite(v) || math.Abs(v) > 1e18 {
		return "an unknown amount"
	}
	return fmt.Sprintf("%s MB", sayCount(v/1e6))
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
