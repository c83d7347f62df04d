package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time that prints for people and parses what they type.
type Duration time.Duration

// Seconds are units of time in seconds, as load generators write them.
var Seconds = map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}

// ParseDuration reads Go's form ("1h30m", "250ms"), one with blanks ("1 h 30 min", "250 ms"), days ("2 d") and a bare
// number of seconds ("90", "1.5"). Durations may be negative only where the caller allows it; this function does.
func ParseDuration(text string) (Duration, error) {
	s := strings.TrimSpace(text)
	if v, err := strconv.ParseFloat(s, 64); err == nil && !strings.ContainsAny(s, "xXpP_") {
		return seconds(text, v)
	}
	s = strings.ReplaceAll(s, "min", "m")
	s = strings.Join(strings.Fields(s), "")
	var days float64
	if whole, rest, ok := strings.Cut(s, "d"); ok {
		v, err := strconv.ParseFloat(whole, 64)
		if err != nil || strings.ContainsAny(whole, "xXpP_") || v < 0 && rest != "" {
			return 0, fmt.Errorf("duration %q: want a number of days before d", text)
		}
		if days, s = v*86400, rest; s == "" {
			return seconds(text, days)
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("duration %q: want something like 90s, 1h30m, 250ms, or a number of seconds", text)
	}
	if days == 0 {
		return Duration(d), nil
	}
	return seconds(text, days+d.Seconds())
}

func seconds(text string, v float64) (Duration, error) {
	if math.IsNaN(v) || math.Abs(v) > math.MaxInt64/1e9*0.999 {
		return 0, fmt.Errorf("duration %q: out of range (292 years)", text)
	}
	return Duration(math.Round(v * 1e9)), nil
}

// Exact is Go's own form, 1h30m0s, which ParseDuration reads back without loss.
func (d Duration) Exact() string { return time.Duration(d).String() }

// String is for people: 800 µs, 12.3 ms, 4.2 s, 1 min 30 s, 2 h 05 min, 3 d 4 h.
func (d Duration) String() string {
	if d < 0 {
		if d == math.MinInt64 {
			d++
		}
		return "-" + (-d).String()
	}
	ns := float64(d)
	switch {
	case d < 1000:
		return figures(ns) + " ns"
	case ns < 999.5e3:
		return figures(ns/1e3) + " µs"
	case ns < 999.5e6:
		return figures(ns/1e6) + " ms"
	case ns < 59.95e9:
		return figures(ns/1e9) + " s"
	}
	t := time.Duration(d)
	switch s := t.Round(time.Second); {
	case s < time.Hour:
		return pair(int64(s/time.Minute), "min", int64(s%time.Minute/time.Second), "s")
	case t.Round(time.Minute) < 24*time.Hour:
		m := t.Round(time.Minute)
		return pair(int64(m/time.Hour), "h", int64(m%time.Hour/time.Minute), "min")
	default:
		h := t.Round(time.Hour)
		return pair(int64(h/(24*time.Hour)), "d", int64(h%(24*time.Hour)/time.Hour), "h")
	}
}

func pair(a int64, unitA string, b int64, unitB string) string {
	if b == 0 {
		return fmt.Sprintf("%d %s", a, unitA)
	}
	return fmt.Sprintf("%d %s %02d %s", a, unitA, b, unitB)
}
