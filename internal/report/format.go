package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/result"
	"plimsoll/unit"
)

// none is shown where there is no number.
const none = "–"

// quantity prints a value of a panel in its unit; assets/report.js has the same for the axes.
func quantity(v float64, u string) string {
	if !finite(v) || math.Abs(v) > 9e18 {
		return none
	}
	switch u {
	case "ops/s":
		return unit.Rate(v).String()
	case "bytes/s":
		return unit.Bandwidth(v).String()
	case "bytes":
		return unit.Bytes(math.Round(v)).String()
	case "us", "µs":
		return duration(v / 1e6)
	case "ms":
		return duration(v / 1e3)
	case "s":
		return duration(v)
	case "%":
		return unit.Percent(v / 100).String()
	case "bool":
		if v == 0 {
			return "no"
		}
		return "yes"
	case "Hz":
		return hertz(v)
	case "ratio":
		return "×" + plain(v)
	case "", "count":
		return plain(v)
	}
	return plain(v) + " " + u
}

// plain is a number without a unit, with three significant digits.
func plain(v float64) string { return strings.TrimSuffix(unit.Rate(v).String(), " IOPS") }

func hertz(v float64) string {
	for _, s := range []struct {
		size float64
		name string
	}{{1e9, " GHz"}, {1e6, " MHz"}, {1e3, " kHz"}} {
		if math.Abs(v) >= s.size {
			return plain(v/s.size) + s.name
		}
	}
	return plain(v) + " Hz"
}

func duration(seconds float64) string {
	ns := math.Round(seconds * 1e9)
	switch {
	case !finite(ns) || math.Abs(ns) > 9e18:
		return none
	case ns == 0:
		return "0 s"
	}
	return unit.Duration(ns).String()
}

func optional(p *float64, u string) string {
	if p == nil {
		return none
	}
	return quantity(*p, u)
}

// boundPercent prints an error bound in percent, rounded up so that it stays one.
func boundPercent(share float64) string { return fmt.Sprintf("%.2f", math.Ceil(share*1e4)/100) }

// stamp is a moment in UTC.
func stamp(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// length is the time between two moments.
func length(from, to time.Time) string {
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return none
	}
	return duration(to.Sub(from).Seconds())
}

// elapsed is time since the run phase began, h:mm:ss.
func elapsed(seconds float64) string {
	sign, s := "", int64(math.Round(seconds))
	if s < 0 {
		sign, s = "-", -s
	}
	if s < 3600 {
		return fmt.Sprintf("%s%d:%02d", sign, s/60, s%60)
	}
	return fmt.Sprintf("%s%d:%02d:%02d", sign, s/3600, s/60%60, s%60)
}

// ourUnits are those that have a form of their own. Others are words of a load generator's, like "new orders/s".
var ourUnits = []string{"ops/s", "bytes/s", "bytes", "us", "s", "%", "bool", "Hz", "ratio", "count", ""}

// axisLabel is a quantity short enough to stand beside an axis: millions are counted as such, and a unit in words
// stands in the chart's title instead.
func axisLabel(v float64, u string) string {
	if !slices.Contains(ourUnits, u) {
		u = ""
	}
	if math.Abs(v) < 1e6 || !finite(v) || u != "ops/s" && u != "count" && u != "" {
		return quantity(v, u)
	}
	text, of := plain(v/1e6)+" M", ""
	if math.Abs(v) >= 1e9 {
		text = plain(v/1e9) + " G"
	}
	if u == "ops/s" {
		of = " IOPS"
	}
	return text + of
}

// change is how a later value compares with an earlier one.
func change(before, after float64) string {
	if before <= 0 || !finite(after/before) {
		return none
	}
	return unit.Change(after/before - 1)
}

// sayMetric is the name of a metric of a result, of which X-Ray's language has one that is no word.
func sayMetric(m result.Metric) string {
	name, _ := strings.CutSuffix(m.Name, " (median)") // what it is of says that it is the median of them
	name, worst := strings.CutSuffix(name, " (worst)")
	if name == anyFail {
		name = "any failure"
	}
	if worst {
		name += ", worst"
	}
	return name
}

// anyFail is the metric that says whether any value is not 0.
const anyFail = "AnyFail"

// sayValue is a metric with its value, as one says it. Whether anything failed is the same of one series and of the
// worst.
func sayValue(m result.Metric) string {
	switch {
	case !strings.HasPrefix(m.Name, anyFail) || !finite(m.Value):
		return sayMetric(m) + " " + quantity(m.Value, m.Unit)
	case m.Value == 0:
		return "no failure"
	}
	return "there were failures"
}

// sayOf says of which series a metric of a result is; "Median" goes on with it.
func sayOf(m result.Metric) string {
	of := m.Series
	if rest, ok := strings.CutPrefix(of, "median of "); ok && m.Name == "Median (median)" {
		return "of " + rest
	}
	return of
}
