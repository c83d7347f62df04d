package unit

import (
	"fmt"
	"math"
	"strings"
)

// Rate is operations per second (IOPS when the operations are reads and writes).
type Rate float64

// ParseRate reads "4000", "4,000 IOPS", "1.5k", "250 ops/s", "12/s". K and M are powers of 1000 here.
func ParseRate(text string) (Rate, error) {
	v, _, suffix, err := split("rate", text)
	if err != nil {
		return 0, err
	}
	for _, word := range []string{"IOPS", "iops", "ops/s", "/s"} {
		if s, ok := strings.CutSuffix(suffix, word); ok {
			suffix = strings.TrimSpace(s)
			break
		}
	}
	switch suffix {
	case "":
	case "k", "K":
		v *= 1e3
	case "M":
		v *= 1e6
	default:
		return 0, fmt.Errorf("rate %q: unknown unit %q (want IOPS, ops/s, or nothing; k and M for thousands and "+
			"millions)", text, suffix)
	}
	if v < 0 {
		return 0, fmt.Errorf("rate %q: must not be negative", text)
	}
	return Rate(v), nil
}

// String is the rate with its thousands cut: 4,000 IOPS, 12.5 IOPS.
func (r Rate) String() string { return number(float64(r)) + " IOPS" }

// Bandwidth is bytes per second.
type Bandwidth float64

// ParseBandwidth reads a size and "/s": "200 MiB/s", "210MB/s".
func ParseBandwidth(text string) (Bandwidth, error) {
	v, _, suffix, err := split("bandwidth", text)
	if err != nil {
		return 0, err
	}
	size, ok := strings.CutSuffix(suffix, "/s")
	m, known := multiplier(strings.TrimSpace(size))
	if !ok || !known {
		return 0, fmt.Errorf("bandwidth %q: unknown unit %q (want B/s, KiB/s, MiB/s, GiB/s, or KB/s, MB/s, GB/s; "+
			"bits are not bytes)", text, suffix)
	}
	if v < 0 {
		return 0, fmt.Errorf("bandwidth %q: must not be negative", text)
	}
	return Bandwidth(v * m), nil
}

// String is the bandwidth in units of 1024: 31.2 MiB/s.
func (b Bandwidth) String() string {
	return b.in(1024, [...]string{"B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"})
}

// Decimal is the bandwidth in units of 1000, as vendors state it: 32.7 MB/s.
func (b Bandwidth) Decimal() string {
	return b.in(1000, [...]string{"B/s", "KB/s", "MB/s", "GB/s", "TB/s"})
}

func (b Bandwidth) in(step float64, names [5]string) string {
	v, i := math.Abs(float64(b)), 0
	for i < len(names)-1 && v >= step*0.9995 {
		v /= step
		i++
	}
	if b < 0 {
		v = -v
	}
	return number(v) + " " + names[i]
}

// Percent is a ratio; 0.125 is 12.5 %.
type Percent float64

// String is the ratio as a percentage: 12.5 %.
func (p Percent) String() string { return number(float64(p)*100) + " %" }

// Change is a relative change with its sign, or from twice as much on the factor that it is: −3.2 %, ×2.4. It has at
// most two decimals, −0.06 %, and what a reader would round away is none: ±0 %.
func Change(share float64) string {
	switch {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return "no value"
	case math.Abs(share) < noChange:
		return "±0 %"
	case math.Abs(share) < 0.01:
		share = math.Round(share*1e4) / 1e4
	}
	switch {
	case share < 0:
		return "−" + Percent(-share).String()
	case share >= TimesFrom:
		return "×" + strings.TrimSuffix(Rate(1+share).String(), " IOPS")
	}
	return "+" + Percent(share).String()
}

// TimesFrom is the change from which on it is written as a factor: ×2.4 and not +140 %.
const TimesFrom = 1

// noChange is the change below which Change says that there is none.
const noChange = 0.0005

// Changes are the ends of an interval of a relative change, both in one way and told apart.
func Changes(low, high float64) string {
	if high >= TimesFrom {
		text := Apart(1+low, 1+high)
		return "×" + text[0] + " to ×" + text[1]
	}
	from, to := Change(low), Change(high)
	switch {
	case from != to:
	case math.Abs(low) < noChange:
		return "within ±" + Percent(noChange).String()
	default:
		text := Apart(math.Abs(low)*100, math.Abs(high)*100)
		sign := string([]rune(from)[:1])
		return sign + text[0] + " % to " + sign + text[1] + " %"
	}
	return from + " to " + to
}

// number is figures for any sign, and "no value" for what is not a number.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "no value"
	case v < 0:
		return "-" + figures(-v)
	case v >= math.MaxInt64:
		return fmt.Sprintf("%.3g", v)
	}
	return figures(v)
}
