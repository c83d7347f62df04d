package table

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// timeNames are the columns that say when a row was measured; a unit may follow, as in time_ms or time (ms).
var timeNames = []string{"time", "t", "timestamp", "ts", "date", "datetime", "epoch", "elapsed", "seconds", "second"}

// unitOf are the units in the name of a column.
var unitOf = regexp.MustCompile(
	`^(.*?)\s*(?:[ _]?[(\[]\s*([^()\[\]]+?)\s*[)\]]|_(ns|us|µs|ms|s|sec|seconds|min|minutes|hours|bytes|kb|mb|gb|kib|mib|gib|iops|percent|pct|per_second|mbps))$`,
)

// SplitUnit cuts the unit off the name of a column: "p99 (ms)", "p99_ms" and "p99 [ms]" are p99 in ms. Common names in
// other languages are given in English.
func SplitUnit(name string) (stem, unit string) {
	m := unitOf.FindStringSubmatch(strings.ToLower(strings.TrimSpace(name)))
	if m == nil || m[1] == "" {
		m = []string{"", strings.ToLower(strings.TrimSpace(name)), "", ""}
	}
	return cmp.Or(foreign[m[1]], m[1]), m[2] + m[3]
}

// SecondsIn returns what a unit of time is in seconds; 0 when it is none.
func SecondsIn(unit string) float64 {
	switch unit {
	case "ns", "nanoseconds":
		return 1e-9
	case "us", "µs", "usec", "microseconds":
		return 1e-6
	case "ms", "msec", "milliseconds":
		return 1e-3
	case "s", "sec", "seconds":
		return 1
	case "min", "minutes":
		return 60
	case "h", "hours":
		return 3600
	}
	return 0
}

// Times is the column of a table that says when its rows were measured.
type Times struct {
	Column int
	Step   float64  // seconds from row to row, the median
	Notes  []string // what a reader must know of the times

	steps []int // of each row after the first; nil when rows are not evenly spaced
}

// Times finds the column of times; nil without one. A column counts by its name, and when nearly all of its values rise
// or nearly all fall; then each step backwards or of nothing is an objection, and the column one of times all the
// same.
func (t *Table) Times() (*Times, error) {
	for i, name := range t.Names {
		stem, unit := SplitUnit(name)
		if !slices.Contains(timeNames, stem) || len(t.Rows) < 3 || t.dayOf(i) {
			continue
		}
		at, err := t.times(i, cmp.Or(unit, stem))
		if err != nil {
			return nil, err
		}
		if at == nil {
			continue
		}
		steps := make([]float64, len(at)-1)
		rise, fall := 0, 0
		for j := range steps {
			switch steps[j] = at[j+1] - at[j]; {
			case steps[j] > 0:
				rise++
			case steps[j] < 0:
				fall++
			}
		}
		nearly := (9*len(steps) + 9) / 10
		switch {
		case rise < nearly && fall == 0 && rise >= 3 && len(t.Rows) >= 10: // no measure never falls
			ts := &Times{Column: i, Step: (at[len(at)-1] - at[0]) / float64(len(steps))}
			ts.Notes = []string{fmt.Sprintf("%s: %d of %d rows have the time of the row above; they are taken in their "+
				"order, as if %.6g s apart", name, len(steps)-rise, len(at), ts.Step)}
			return ts, nil
		case rise < nearly && fall < nearly && rise+fall > 0 && slices.Min(at) < sureDate && !shuffled(at):
			continue // a measure that happens to be called so
		case fall >= nearly:
			return nil, fmt.Errorf("%s %d: %s: %s comes before %s: put the oldest row first", t.Unit, t.Lines[1], name,
				Quote(t.Rows[1][i]), Quote(t.Rows[0][i]))
		}
		ts := &Times{Column: i}
		if c := t.Rows[0][i]; strings.Count(c, ":") == 1 && t.clockTimes(i) != nil {
			ts.Notes = []string{fmt.Sprintf("%s: %s is read as hours and minutes", name, c)}
		}
		if err := t.forwards(i, steps); err != nil {
			return ts, err
		}
		ts.space(t, steps)
		return ts, nil
	}
	return nil, nil
}

// dayOf reports whether a column has the days of times that stand in another column.
func (t *Table) dayOf(column int) bool {
	if strings.Contains(t.Rows[0][column], ":") {
		return false
	}
	for i, name := range t.Names {
		if stem, _ := SplitUnit(name); i != column && slices.Contains(timeNames, stem) && t.clockTimes(i) != nil {
			return true
		}
	}
	return false
}

// shuffled reports whether times are evenly spaced once they are sorted, as no measure is.
func shuffled(at []float64) bool {
	sorted := slices.Sorted(slices.Values(at))
	steps := make([]float64, len(at)-1)
	for i := range steps {
		steps[i] = sorted[i+1] - sorted[i]
	}
	step, even := slices.Sorted(slices.Values(steps))[len(steps)/2], 0
	for _, s := range steps {
		if s <= 0 {
			return false
		}
		if math.Abs(s-step) <= 0.25*step {
			even++
		}
	}
	return len(at) >= 10 && even >= (9*len(steps)+9)/10
}

// sureDate is a time since 1970 beyond which a number of a column that is called so is a date, and no measure.
const sureDate = 5e8

// times reads a column of times in seconds; nil when it holds something else.
func (t *Table) times(column int, unit string) ([]float64, error) {
	if err := t.doubts[column]; err != nil {
		return nil, err
	}
	if out := t.clockTimes(column); out != nil {
		return out, nil
	}
	out := make([]float64, len(t.Rows))
	var bad []error
	read, order := 0, t.dayFirst(column)
	for j, row := range t.Rows {
		v, ok := momentOf(order.ReplaceAllString(row[column], "$y-$m-$d"))
		if ok {
			out[j] = v
			read++
		} else if len(bad) < 5 {
			bad = append(bad, fmt.Errorf("%s %d: %s: %s is no time", t.Unit, t.Lines[j], t.Names[column],
				Quote(row[column])))
		}
	}
	if read < len(out) {
		if 10*read >= 9*len(out) {
			return nil, Join(bad...)
		}
		return nil, nil
	}
	factor := SecondsIn(unit)
	if stem, _ := SplitUnit(t.Names[column]); strings.HasPrefix(stem, "date") && slices.Min(out) > 30_000 &&
		slices.Max(out) < 80_000 {
		factor = day // as spreadsheets count, since 1900
	}
	if factor == 0 {
		factor = epochFactor(slices.Max(out))
	}
	for j := range out {
		out[j] *= factor
	}
	return out, nil
}

// epochFactor tells seconds, milliseconds, microseconds and nanoseconds since 1970 apart by their size; all smaller
// numbers are seconds.
func epochFactor(largest float64) float64 {
	switch {
	case largest > 1e17:
		return 1e-9
	case largest > 1e14:
		return 1e-6
	case largest > 1e11:
		return 1e-3
	}
	return 1
}

// Dates of numbers alone whose order a column settles.
var (
	dayMonth = regexp.MustCompile(`^(?P<d>\d{1,2})[./-](?P<m>\d{1,2})[./-](?P<y>\d{4})`)
	monthDay = regexp.MustCompile(`^(?P<m>\d{1,2})[./-](?P<d>\d{1,2})[./-](?P<y>\d{4})`)
	neither  = regexp.MustCompile(`^$`)
)

// dayFirst is how a column writes dates like 31/01/2026: some day is beyond 12, and none in the place of months. A
// point stands after the day in every language.
func (t *Table) dayFirst(column int) *regexp.Regexp {
	first, second, points := false, false, false
	for _, row := range t.Rows {
		m := dayMonth.FindStringSubmatch(row[column])
		if m == nil {
			continue
		}
		points = points || strings.Contains(m[0], ".")
		first, second = first || len(m[1]) == 2 && m[1] > "12", second || len(m[2]) == 2 && m[2] > "12"
	}
	switch {
	case !second && (first || points):
		return dayMonth
	case second && !first && !points:
		return monthDay
	}
	return neither
}

// dates are the forms that are read: those whose order of year, month and day is beyond doubt. A fraction of a second
// may follow the seconds of each.
var dates = func() (out []string) {
	for _, day := range []string{"2006-01-02", "2006/01/02", "2006.01.02", "2006-1-2", "20060102", "02-Jan-2006",
		"02/Jan/2006", "Jan 2 2006",
		"Jan 2, 2006"} {
		for _, between := range []string{" ", "T", ":"} {
			for _, clock := range append(clocks, "15:04:05Z07:00", "15:04:05 Z07:00", "15:04:05-0700",
				"15:04:05 -0700", "15:04:05 MST") {
				out = append(out, day+between+clock)
			}
		}
		out = append(out, day)
	}
	return append(out, time.ANSIC, time.UnixDate, time.RFC1123, time.RFC1123Z, "20060102T150405Z07:00",
		"20060102T150405")
}()

// clocks are times of a day without it.
var clocks = []string{"15:04:05", "15:04", "3:04:05 PM", "3:04:05PM", "3:04 PM", "3:04PM"}

// momentOf reads a number or a date in a common form.
func momentOf(cell string) (float64, bool) {
	if v, err := strconv.ParseFloat(cell, 64); err == nil {
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	for _, layout := range dates {
		if ts, err := time.Parse(layout, cell); err == nil {
			return float64(ts.Unix()) + float64(ts.Nanosecond())/1e9, true
		}
	}
	return 0, false
}

const day = 24 * 60 * 60

// clockOf reads a time of the day in seconds after midnight.
func clockOf(cell string) (float64, bool) {
	for _, layout := range clocks {
		if ts, err := time.Parse(layout, cell); err == nil {
			return ts.Sub(ts.Truncate(day * time.Second)).Seconds(), true
		}
	}
	return 0, false
}

// clockTimes reads a column of times of the day; a time more than half a day before the one above it is of the next
// day. nil when it holds something else.
func (t *Table) clockTimes(column int) []float64 {
	out := make([]float64, len(t.Rows))
	days := 0.0
	for j, row := range t.Rows {
		v, ok := clockOf(row[column])
		if !ok {
			return nil
		}
		if out[j] = v + days; j > 0 && out[j] < out[j-1]-day/2 {
			days += day
			out[j] += day
		}
	}
	return out
}

// UnreadTimes says which column is called like one of times and holds dates in a form that is not read, such as one
// whose day and month cannot be told apart; empty when there is none.
func (t *Table) UnreadTimes() string {
	for i, name := range t.Names {
		stem, _ := SplitUnit(name)
		if !slices.Contains(timeNames, stem) {
			continue
		}
		if t.dayOf(i) {
			continue
		}
		order := t.dayFirst(i)
		for j, row := range t.Rows {
			cell := row[i]
			if _, ok := momentOf(order.ReplaceAllString(cell, "$y-$m-$d")); ok || cell == "" {
				continue
			}
			if _, ok := clockOf(cell); ok {
				continue
			}
			return fmt.Sprintf(
				"%s: %s (%s %d) is no time in a form that is read, such as 2026-01-31 15:04:05, 31-Jan-2026 3:04:05 PM, 15:04:05 or seconds: "+
					"rows are taken in their order and as evenly spaced",
				name,
				Quote(cell),
				t.Unit,
				t.Lines[j],
			)
		}
	}
	return ""
}

// forwards objects to times that come twice or go back, the first five of them.
func (t *Table) forwards(column int, steps []float64) error {
	const most = 5
	var bad []error
	for j, step := range steps {
		if step > 0 {
			continue
		}
		what := "comes after"
		if step == 0 {
			what = "is there twice, after"
		}
		if len(bad) == most {
			bad = append(bad, errors.New("and more"))
			break
		}
		why := ""
		if cell := t.Rows[j+1][column]; step < 0 && step >= -3600 && strings.Contains(cell, ":") {
			why = ": where clocks went back an hour, write times in UTC or with their offset, like +02:00"
		}
		bad = append(bad, fmt.Errorf("%s %d: %s: %s %s %s%s", t.Unit, t.Lines[j+1], t.Names[column],
			Quote(t.Rows[j+1][column]), what, Quote(t.Rows[j][column]), why))
	}
	return Join(bad...)
}

// space finds the step, and how many of them each row lies after the first. Where rows lie a whole number of steps
// apart, what is between them is missing; otherwise they are taken in their order.
func (ts *Times) space(t *Table, steps []float64) {
	sorted := slices.Sorted(slices.Values(steps))
	ts.Step = sorted[len(sorted)/2]
	after, absent, first := make([]int, len(steps)+1), 0, 0
	const few = 100_000
	most := max(10, few/len(steps)) // many more missing points than rows are no series
	for j, step := range steps {
		n := math.Round(step / ts.Step)
		if n < 1 || n > float64(most*len(steps)) || math.Abs(step-n*ts.Step) > 0.25*ts.Step {
			mean := 0.0
			for _, v := range steps {
				mean += v / float64(len(steps))
			}
			ts.Step = mean
			ts.Notes = append(ts.Notes, fmt.Sprintf("%s: rows lie from %.6g s to %.6g s apart; they are taken in "+
				"their order, as if %.6g s apart", t.Names[ts.Column], sorted[0], sorted[len(sorted)-1], mean))
			return
		}
		if n > 1 && absent == 0 {
			first = t.Lines[j]
		}
		absent += int(n) - 1
		after[j+1] = after[j] + int(n)
		if after[j+1] > most*(len(steps)+1) {
			ts.Notes = append(ts.Notes, fmt.Sprintf("%s: most of the time there are no rows; they are taken in their "+
				"order, as if %.6g s apart", t.Names[ts.Column], ts.Step))
			return
		}
	}
	if absent > 0 {
		ts.Notes = append(ts.Notes, fmt.Sprintf("%s: %d of %d points are missing, the first after %s %d",
			t.Names[ts.Column], absent, after[len(after)-1]+1, t.Unit, first))
	}
	ts.steps = after
}

// Grid puts the values of rows at their times; NaN where there is no row.
func (ts *Times) Grid(values []float64) []float64 {
	if ts == nil || ts.steps == nil {
		return values
	}
	out := slices.Repeat([]float64{math.NaN()}, ts.steps[len(ts.steps)-1]+1)
	for i, v := range values {
		out[ts.steps[i]] = v
	}
	return out
}
