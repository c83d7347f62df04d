package pgload

import (
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
)

// stats are what a thread has counted since the load began.
type stats struct {
	times      []*hist.Histogram // by operation: service times, of an open loop response times
	service    hist.Histogram    // of an open loop
	statements []statementStats
	failed     [pgwire.Classes]uint64
	retries    uint64
	cut        uint64
	late       uint64
	dropped    uint64
	unserved   uint64
}

// statementStats are of the times from sending a statement to its whole answer.
type statementStats struct {
	count uint64
	nanos uint64
}

func newStats(operations, statements int) *stats {
	s := &stats{statements: make([]statementStats, statements)}
	for range operations {
		s.times = append(s.times, &hist.Histogram{})
	}
	return s
}

// add counts o in.
func (s *stats) add(o *stats) {
	for i := range s.times {
		s.times[i].Merge(o.times[i])
	}
	s.service.Merge(&o.service)
	for i := range s.statements {
		s.statements[i].count += o.statements[i].count
		s.statements[i].nanos += o.statements[i].nanos
	}
	for i := range s.failed {
		s.failed[i] += o.failed[i]
	}
	s.retries += o.retries
	s.cut += o.cut
	s.late += o.late
	s.dropped += o.dropped
	s.unserved += o.unserved
}

// state is the line that says it, its values in the order of Job.Declared.
func (s *stats) state(j *Job, elapsed time.Duration) worker.State {
	out := worker.State{Elapsed: elapsed}
	for _, t := range s.times {
		out.Operations = append(out.Operations, worker.Counts{Times: t})
	}
	value := func(v float64) { out.Values = append(out.Values, &v) }
	for _, n := range s.failed {
		value(float64(n))
		out.Errors += n
	}
	value(float64(s.retries))
	value(float64(s.cut))
	out.Errors += s.cut
	if j.Rate > 0 {
		value(float64(s.late))
		value(float64(s.dropped))
		value(float64(s.unserved))
		for _, p := range servicePercentiles {
			v, ok := s.service.Percentile(p.q)
			if p.q == 1 {
				v, ok = s.service.Max(), s.service.Count() > 0
			}
			if ok {
				value(float64(v) / 1e3)
			} else {
				out.Values = append(out.Values, nil)
			}
		}
	}
	for _, st := range s.statements[:min(len(s.statements), mostStatements)] {
		if st.count == 0 {
			out.Values = append(out.Values, nil)
			continue
		}
		value(float64(st.nanos) / float64(st.count) / 1e3)
	}
	return out
}
