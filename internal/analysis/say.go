package analysis

import (
	"fmt"
	"math"
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

// signed is a relative change with its sign.
func signed(change float64) string {
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
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
}
