package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/unit"
)

// Capital begins a sentence with words in small letters, of which there must be some.
func Capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// SayCount prints 1234567 as 1,234,567 and three significant digits below 100.
func SayCount(v float64) string {
	if !IsFinite(v) || math.Abs(v) > 1e18 {
		return "an unknown number of"
	}
	return strings.TrimSuffix(unit.Rate(v).String(), " IOPS")
}

// SayDuration prints seconds in the unit a person would use.
func SayDuration(s float64) string {
	if !IsFinite(s) || math.Abs(s) > 1e9 {
		return "an unknown time"
	}
	return unit.Duration(math.Round(s * float64(time.Second))).String()
}

// SayBytes prints bytes in powers of 1024, as memory and disks count.
func SayBytes(v float64) string {
	if !IsFinite(v) || math.Abs(v) > 1e18 {
		return "an unknown size"
	}
	return unit.Bytes(v).String()
}

// Percent prints a share of 1.
func Percent(share float64) string {
	if !IsFinite(share) || math.Abs(share) > 1e6 {
		return "an unknown share"
	}
	return unit.Percent(share).String()
}

// Share is a share of which small ones keep two digits.
func Share(share float64) string {
	switch {
	case share > 0 && share < 0.000001:
		return "less than 0.0001 %"
	case share > 0 && share < 0.001:
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return Percent(share)
}

// RatioWithin is a ratio and the ends of its interval, ×0.4412 (95 %: ×0.4409 to ×0.4415), which are told apart.
func RatioWithin(ratio, low, high float64) string {
	text := unit.Apart(ratio, low, high)
	return fmt.Sprintf("×%s (95 %%: ×%s to ×%s)", text[0], text[1], text[2])
}

// Plural is a number of things.
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return unit.Thousands(int64(n)) + " " + word + "s"
}

// Three lists at most three names.
func Three(names []string) string {
	switch {
	case len(names) == 2:
		return names[0] + " and " + names[1]
	case len(names) <= 3:
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
}

// ClockOf is a moment of the run, h:mm:ss since the run phase began; −m:ss is before that.
func ClockOf(seconds float64) string {
	if !IsFinite(seconds) || math.Abs(seconds) > 1e9 {
		return "an unknown moment"
	}
	s := int64(math.Round(seconds))
	switch {
	case s < 0:
		return "−" + ClockOf(-seconds)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Times is how often.
func Times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return Plural(n, "time")
}

// CompareAway orders ratios by how far they are from 1.
func CompareAway(a, b float64) int { return cmp.Compare(Away(a), Away(b)) }

// SayMicro keeps times below a millisecond exact enough to compare.
func SayMicro(s float64) string { return fmt.Sprintf("%.3g µs", s*1e6) }

// SayDecimal prints bytes in powers of 1000, as links and data sheets count.
func SayDecimal(v float64) string {
	if !IsFinite(v) || math.Abs(v) > 1e18 {
		return "an unknown amount"
	}
	return fmt.Sprintf("%s MB", SayCount(v/1e6))
}

// AppendNew appends what a list does not hold.
func AppendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// Away is how far a ratio is from 1, in whichever direction, as a factor of at least 1.
func Away(x float64) float64 {
	if x < 1 && x > 0 {
		return 1 / x
	}
	return x
}
