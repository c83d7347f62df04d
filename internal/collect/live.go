package collect

import (
	"cmp"
	"slices"
	"time"

	"plimsoll/hist"
)

// LiveRow is what one workload does now, over all its running VMs and the newest interval of each: for progress displays.
type LiveRow struct {
	Workload  string
	Prefill   bool
	Group     string
	VMs       int           // on which it runs
	Silent    int           // of those, without a report for three intervals
	Since     time.Duration // since the first of them started
	ReadIOPS  float64
	WriteIOPS float64
	ReadRate  float64 // bytes per second
	WriteRate float64
	Mean      time.Duration // service time over reads and writes; 0 when nothing was completed
	P99       time.Duration
	Ops       uint64 // completed since the starts
	Bytes     uint64
	Errors    uint64
}

type liveSums struct {
	LiveRow
	h            hist.Histogram
	ops, seconds float64
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
	cur, old := countersOf(j.now.r), countersOf(j.before.r)
	for i := range opNames {
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
	for i := range opNames {
		ops := max(0, float64(cur[i].Ops)-float64(old[i].Ops))
		rate := max(0, float64(cur[i].Bytes)-float64(old[i].Bytes)) / span
		switch i {
		case 0:
			s.ReadIOPS += ops / span
			s.ReadRate += rate
		case 1:
			s.WriteIOPS += ops / span
			s.WriteRate += rate
		default:
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

// row finishes the sums.
func (s *liveSums) row() LiveRow {
	if s.ops > 0 {
		s.Mean = time.Duration(s.seconds / s.ops * 1e9)
	}
	if v, ok := s.h.Quantile(0.99); ok {
		s.P99 = time.Duration(v)
	}
	return s.LiveRow
}
