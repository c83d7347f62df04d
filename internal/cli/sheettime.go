package cli

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
var unitOf = regexp.MustCompile(`^(.*?)\s*(?:[ _]?[(\[]\s*([^()\[\]]+?)\s*[)\]]|_(ns|us|µs|ms|s|sec|seconds|min|minutes|hours|bytes|kb|mb|gb|kib|mib|gib|iops|percent|pct|per_second|mbps))$`)

// splitUnit cuts the unit off the name of a column: "p99 (ms)", "p99_ms" and "p99 [ms]" are p99 in ms.
func splitUnit(name string) (stem, unit string) {
	m := unitOf.FindStringSubmatch(strings.ToLower(strings.TrimSpace(name)))
	if m == nil || m[1] == "" {
		return strings.ToLower(strings.TrimSpace(name)), ""
	}
	return m[1], m[2] + m[3]
}

// inSeconds is what a unit of time is in seconds; 0 when it is none.
func inSeconds(unit string) float64 {
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

// timeline is the column of times of a sheet.
type timeline struct {
	column int
	step   float64  // seconds from row to row, the median
	place  []int    // of each row in steps after the first; nil when rows are not evenly spaced
	notes  []string // what a reader must know of the times
}

// timeline finds the column of times; nil without one. A column counts by its name, and when nearly all of its values rise or nearly
// all fall; then each step backwards or of nothing is an objection.
func (s *sheet) timeline() (*timeline, error) {
	for i, name := range s.names {
		stem, unit := splitUnit(name)
		if !slices.Contains(timeNames, stem) || len(s.rows) < 3 {
			continue
		}
		at, err := s.times(i, cmp.Or(unit, stem))
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
		case rise < nearly && fall < nearly && rise+fall > 0:
			continue // a measure that happens to be called so
		case fall >= nearly:
			return nil, fmt.Errorf("%s %d: %s: %s comes before %s: put the oldest row first", s.unit, s.lines[1], name, quoted(s.rows[1][i]), quoted(s.rows[0][i]))
		}
		if err := s.forwards(i, steps); err != nil {
			return nil, err
		}
		t := &timeline{column: i}
		t.space(s, steps)
		return t, nil
	}
	return nil, nil
}

// times reads a column of times in seconds; nil when it holds something else.
func (s *sheet) times(column int, unit string) ([]float64, error) {
	out := make([]float64, len(s.rows))
	var bad []error
	read := 0
	for j, row := range s.rows {
		v, ok := momentOf(row[column])
		if ok {
			out[j] = v
			read++
		} else if len(bad) < 5 {
			bad = append(bad, fmt.Errorf("%s %d: %s: %s is no time", s.unit, s.lines[j], s.names[column], quoted(row[column])))
		}
	}
	if read < len(out) {
		if 10*read >= 9*len(out) {
			return nil, oneLine(bad...)
		}
		return nil, nil
	}
	factor := inSeconds(unit)
	if factor == 0 {
		factor = epochFactor(slices.Max(out))
	}
	for j := range out {
		out[j] *= factor
	}
	return out, nil
}

// epochFactor tells seconds, milliseconds, microseconds and nanoseconds since 1970 apart by their size; all smaller numbers are seconds.
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

// momentOf reads a number or a date in a common form.
func momentOf(cell string) (float64, bool) {
	if v, err := strconv.ParseFloat(cell, 64); err == nil {
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, "2006/01/02 15:04:05", "2006-01-02 15:04:05Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, cell); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, true
		}
	}
	return 0, false
}

// forwards objects to times that come twice or go back, the first five of them.
func (s *sheet) forwards(column int, steps []float64) error {
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
		bad = append(bad, fmt.Errorf("%s %d: %s: %s %s %s", s.unit, s.lines[j+1], s.names[column], quoted(s.rows[j+1][column]), what, quoted(s.rows[j][column])))
	}
	return oneLine(bad...)
}

// space finds the step and the place of each row. Where rows lie a whole number of steps apart, what is between them is missing;
// otherwise they are taken in their order.
func (t *timeline) space(s *sheet, steps []float64) {
	sorted := slices.Sorted(slices.Values(steps))
	t.step = sorted[len(sorted)/2]
	place, absent, first := make([]int, len(steps)+1), 0, 0
	const most = 10 // a longer row of missing points than rows is no series
	for j, step := range steps {
		n := math.Round(step / t.step)
		if n < 1 || n > float64(most*len(steps)) || math.Abs(step-n*t.step) > 0.25*t.step {
			mean := 0.0
			for _, v := range steps {
				mean += v / float64(len(steps))
			}
			t.step = mean
			t.notes = append(t.notes, fmt.Sprintf("%s: rows lie from %.6g s to %.6g s apart; they are taken in their order, as if %.6g s apart", s.names[t.column], sorted[0], sorted[len(sorted)-1], mean))
			return
		}
		if n > 1 && absent == 0 {
			first = s.lines[j]
		}
		absent += int(n) - 1
		place[j+1] = place[j] + int(n)
		if place[j+1] > most*(len(steps)+1) {
			t.notes = append(t.notes, fmt.Sprintf("%s: most of the time there are no rows; they are taken in their order, as if %.6g s apart", s.names[t.column], t.step))
			return
		}
	}
	if absent > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%s: %d of %d points are missing, the first after %s %d", s.names[t.column], absent, place[len(place)-1]+1, s.unit, first))
	}
	t.place = place
}

// grid puts the values of rows in their places; NaN where there is no row.
func (t *timeline) grid(values []float64) []float64 {
	if t == nil || t.place == nil {
		return values
	}
	out := slices.Repeat([]float64{math.NaN()}, t.place[len(t.place)-1]+1)
	for i, v := range values {
		out[t.place[i]] = v
	}
	return out
}
