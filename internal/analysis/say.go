package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sayCount prints 1234567 as 1,234,567 and keeps a decimal below 100.
func sayCount(v float64) string {
	switch {
	case !isFinite(v):
		return "an unknown number of"
	case v != 0 && math.Abs(v) < 10:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case math.Abs(v) < 100 && v != math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// sayDuration prints seconds in the unit a person would use.
func sayDuration(s float64) string {
	switch {
	case !isFinite(s):
		return "an unknown time"
	case s == 0:
		return "0 s"
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	case s < 120:
		return fmt.Sprintf("%.3g s", s)
	case s < 7200:
		return fmt.Sprintf("%.3g min", s/60)
	}
	return fmt.Sprintf("%.3g h", s/3600)
}

// sayBytes prints bytes in powers of 1024.
func sayBytes(v float64) string {
	const units = "KMGTPE"
	if !isFinite(v) {
		return "an unknown size"
	}
	if v < 1024 {
		return fmt.Sprintf("%.0f bytes", v)
	}
	i := 0
	for v /= 1024; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return fmt.Sprintf("%.3g %ciB", v, units[i])
}

func percent(share float64) string {
	if !isFinite(share) {
		return "an unknown share"
	}
	if p := share * 100; math.Abs(p) < 99.95 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(share*100, 'f', 0, 64) + " %"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return sayCount(float64(n)) + " " + word + "s"
}

// some lists at most three names.
func some(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
}
