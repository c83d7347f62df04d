package record

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// LiveRow tells what one workload does now, over all its running VMs and the newest interval of each: for progress
// displays.
type LiveRow struct {
	Workload string
	Prefill  bool
	Group    string
	VMs      int           // on which it runs
	Silent   int           // of those, without a report for three intervals
	Since    time.Duration // since the first of them started
	Rates    []LiveRate    // of every operation declared, in that order
	Values   []LiveValue   // of every measure reported
	Mean     time.Duration // service time over all operations but discards; 0 when nothing was completed
	P50, P99 time.Duration
	Ops      uint64 // completed since the starts
	Bytes    uint64
	Errors   uint64
}

// LiveRate is how often an operation is done now.
type LiveRate struct {
	Operation      result.Operation
	PerSecond      float64
	BytesPerSecond float64
}

// LiveValue is a measure as it was last reported, added up over the VMs unless it cannot be.
type LiveValue struct {
	Measure result.Measure
	Value   float64
}

type liveSums struct {
	LiveRow
	h            hist.Histogram
	ops, seconds float64
	of           map[string]float64 // by measure, how many jobs have it
}

// Live returns a row per running workload, sorted by workload and group.
func (r *Recorder) Live() []LiveRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	type key struct {
		workload, group string
		prefill         bool
	}
	rows := map[key]*liveSums{}
	now := r.now()
	for _, row := range r.rows {
		v := row.vm
		v.mu.Lock()
		for _, l := range v.loads {
			if l.job == nil || l.job.over {
				continue
			}
			k := key{l.name, v.group, l.prefill}
			row := rows[k]
			if row == nil {
				row = &liveSums{LiveRow: LiveRow{Workload: l.name, Group: v.group, Prefill: l.prefill}}
				rows[k] = row
			}
			row.add(l.job, now)
		}
		v.mu.Unlock()
	}
	out := make([]LiveRow, 0, len(rows))
	for _, row := range rows {
		out = append(out, row.row())
	}
	slices.SortFunc(out, func(a, b LiveRow) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Group, b.Group))
	})
	return out
}

// add counts one running job into its row.
func (s *liveSums) add(j *Job, now time.Time) {
	s.VMs++
	s.Since = max(s.Since, now.Sub(j.start))
	s.Errors += j.now.r.Errors
	operations := j.load.layout.Operations
	if s.Rates == nil {
		for _, o := range operations {
			s.Rates = append(s.Rates, LiveRate{Operation: o})
		}
	}
	cur, old := j.now.r.Ops, j.before.r.Ops
	if cur == nil { // no report so far
		return
	}
	if old == nil {
		old = make(workload.Counts, len(cur))
	}
	for i := range cur {
		s.Ops += cur[i].Ops
		s.Bytes += cur[i].Bytes
	}
	if now.After(j.silentFrom()) {
		s.Silent++
		return
	}
	span := j.now.t.Sub(j.before.t).Seconds()
	if span <= 0 {
		return
	}
	s.values(j)
	for i := range cur[:min(len(cur), len(s.Rates))] {
		ops := max(0, float64(cur[i].Ops)-float64(old[i].Ops))
		s.Rates[i].PerSecond += ops / span
		s.Rates[i].BytesPerSecond += max(0, float64(cur[i].Bytes)-float64(old[i].Bytes)) / span
		if operations[i].Block == result.BlockDiscard {
			continue
		}
		s.ops += ops
		s.seconds += max(0, cur[i].Seconds-old[i].Seconds)
		if cur[i].Hist != nil && (old[i].Hist != nil || old[i].Ops == 0) {
			if d, err := cur[i].Hist.Sub(old[i].Hist); err == nil {
				s.h.Merge(d)
			}
		}
	}
}

// values adds a job's measures.
func (s *liveSums) values(j *Job) {
	for i, v := range j.now.r.Values {
		m := j.load.layout.Measures[i]
		if math.IsNaN(v) {
			continue
		}
		at := slices.IndexFunc(s.Values, func(o LiveValue) bool { return o.Measure.Name == m.Name })
		if s.of == nil {
			s.of = map[string]float64{}
		}
		s.of[m.Name]++
		switch {
		case at < 0:
			s.Values = append(s.Values, LiveValue{m, v})
		case m.Averages():
			s.Values[at].Value += (v - s.Values[at].Value) / s.of[m.Name]
		case m.Kind != result.Single:
			s.Values[at].Value += v
		}
	}
}

// row finishes the sums.
func (s *liveSums) row() LiveRow {
	if s.ops > 0 {
		s.Mean = time.Duration(s.seconds / s.ops * 1e9)
	}
	for share, to := range map[float64]*time.Duration{0.5: &s.P50, 0.99: &s.P99} {
		if v, ok := s.h.Percentile(share); ok {
			*to = time.Duration(v)
		}
	}
	return s.LiveRow
}
