package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll/result"
)

// firstFault is the moment of a run's first fault, whatever it was: two faults rarely have the same words.
const firstFault = "the first fault"

// moments are what a run can be laid over others at: the beginnings of its stretches and its faults, each by its first
// time.
func moments(d *result.Data) (names []string, at map[string]time.Time) {
	at = map[string]time.Time{}
	add := func(name string, t time.Time) {
		if _, known := at[name]; name != "" && !known {
			names, at[name] = append(names, name), t
		}
	}
	for _, e := range d.Events {
		switch e.Kind {
		case result.KindFault:
			add(firstFault, e.Time)
			add(e.Text, e.Time)
		case result.KindAnnotation:
			add(e.Text, e.Time)
		}
	}
	return names, at
}

// align lays the results and the latencies of all runs over each other, panel by panel, at the beginning of each run or
// at a moment that all have; then the rates, too. It is an error when they do not all have it.
func (d *Document) align(sides []Side, at string) error {
	var runs []labelled
	for _, s := range sides {
		for _, r := range s.Runs {
			if r.Cell != "" || r.Data == nil { // they differ in more than the side
				return withoutMoments(at, "sides of several combinations")
			}
			runs = append(runs, labelled{r, s.Name})
		}
	}
	if len(runs) == 0 || len(runs) > mostLines {
		return withoutMoments(at, fmt.Sprintf("more than %d runs", mostLines))
	}
	d.Moments, _ = moments(runs[0].Data)
	for _, r := range runs[1:] {
		_, known := moments(r.Data)
		d.Moments = slices.DeleteFunc(d.Moments, func(name string) bool { return known[name].IsZero() })
	}
	if at == "fault" && !slices.Contains(d.Moments, at) && slices.Contains(d.Moments, firstFault) {
		at = firstFault
	}
	if at != "" && !slices.Contains(d.Moments, at) {
		have := cmp.Or(strings.Join(d.Moments, "; "), "none")
		return fmt.Errorf("compare: not all runs have the moment %q; what all have: %s", at, have)
	}
	d.AlignedAt = at
	var all []Overlay
	for _, r := range runs {
		origin := r.Data.Start
		if at != "" {
			_, known := moments(r.Data)
			origin = known[at]
		}
		for _, p := range r.Data.Panels {
			for _, s := range p.Series {
				all = over(all, p.Title, p.Unit, r, s, origin)
			}
		}
		for _, s := range r.Data.Series {
			rate := at != "" && s.Measure == result.Rate
			if of := s.VM == "" && s.Section == "" && s.Group != ""; of && (rate || s.Measure == result.LatencyP99) {
				what := s.Op + " p99"
				if rate {
					what = s.Op + " rate"
				}
				all = over(all, s.Name+" "+what, s.Unit, r, s, origin)
			}
		}
	}
	all = slices.DeleteFunc(all, func(o Overlay) bool {
		return len(o.Lines) > mostLines || !slices.ContainsFunc(o.Lines, func(l RunLine) bool {
			return l.Run != o.Lines[0].Run || l.Cell != o.Lines[0].Cell
		})
	})
	if d.Overlays = append(d.Overlays, all...); at != "" {
		d.Overlays = all
	}
	return nil
}

// withoutMoments is an error when sides of which no courses are drawn are to be aligned.
func withoutMoments(at, what string) error {
	if at == "" {
		return nil
	}
	return fmt.Errorf("compare: %s are not laid over each other in time, so there is nothing to align at %q", what, at)
}

// over adds a series of a run to the overlay of its title and unit.
func over(all []Overlay, title, unit string, r labelled, s result.Series, origin time.Time) []Overlay {
	if len(s.Values) == 0 || s.Step <= 0 {
		return all
	}
	i := slices.IndexFunc(all, func(o Overlay) bool { return o.Title == title && o.Unit == unit && o.Step == s.Step })
	if i < 0 {
		i, all = len(all), append(all, Overlay{Title: title, Unit: unit, Step: s.Step})
	}
	line := RunLine{Cell: r.label, Run: r.Manifest.RunID, From: s.Start.Sub(origin).Seconds()}
	for _, v := range s.Values {
		x := math.NaN() // a gap
		if v != nil {
			x = *v
		}
		line.Values = append(line.Values, x)
	}
	all[i].Lines = append(all[i].Lines, line)
	return all
}
