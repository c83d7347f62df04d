package trace

import "time"

// mostMoments bounds the points of a series: when there are more, two become one.
const mostMoments = 1024

// Moment holds what happened in a step of time.
type Moment struct {
	Seconds      float64 `json:"seconds"` // since the first event
	Reads        uint64  `json:"reads"`   // begun, at the level that is analysed
	Writes       uint64  `json:"writes"`
	ReadBytes    uint64  `json:"read_bytes"`
	WriteBytes   uint64  `json:"write_bytes"`
	QueueDepth   float64 `json:"queue_depth"` // mean over time
	DeepestQueue int     `json:"deepest_queue"`
	Completed    uint64  `json:"completed"`
	MeanSeconds  float64 `json:"mean_seconds"` // of those completed: service time, or response time of whole requests
	MaxSeconds   float64 `json:"max_seconds"`
	Streams      int     `json:"streams"` // sequential ones that went on at once, the most in any second of the step
	depthTime    float64 // depth × nanoseconds
	sum          float64 // nanoseconds
	max          uint64
}

func (m *Moment) join(o *Moment) {
	m.Reads, m.Writes = m.Reads+o.Reads, m.Writes+o.Writes
	m.ReadBytes, m.WriteBytes = m.ReadBytes+o.ReadBytes, m.WriteBytes+o.WriteBytes
	m.depthTime, m.DeepestQueue = m.depthTime+o.depthTime, max(m.DeepestQueue, o.DeepestQueue)
	m.Completed, m.sum, m.max = m.Completed+o.Completed, m.sum+o.sum, max(m.max, o.max)
	m.Streams = max(m.Streams, o.Streams)
}

// moments are a series whose step doubles when it grows too long.
type moments struct {
	step int64 // nanoseconds
	list []Moment
	from int64 // where the current one begins
	now  *Moment
}

func newMoments() *moments { return &moments{step: int64(10 * time.Millisecond)} }

// at is the moment of a time, in nanoseconds since the first event. Of times before the last one asked for it is the
// latest but not after it, as events are in order.
func (m *moments) at(t int64) *Moment {
	if m.now != nil && t >= m.from && t-m.from < m.step {
		return m.now
	}
	t = max(t, 0)
	for t/m.step >= mostMoments {
		for i := range (len(m.list) + 1) / 2 {
			two := m.list[2*i]
			if 2*i+1 < len(m.list) {
				two.join(&m.list[2*i+1])
			}
			m.list[i] = two
		}
		m.list = m.list[:(len(m.list)+1)/2]
		m.step *= 2
	}
	i := int(t / m.step)
	for len(m.list) <= i {
		m.list = append(m.list, Moment{})
	}
	m.now, m.from = &m.list[i], int64(i)*m.step
	return m.now
}

// deep spreads a depth over the moments from one time to another.
func (m *moments) deep(from, to int64, depth int) {
	if depth == 0 {
		return
	}
	m.at(to) // first, that the step does not change on the way
	for from < to {
		now := m.at(from)
		end := min(m.from+m.step, to)
		now.depthTime += float64(depth) * float64(end-from)
		now.DeepestQueue = max(now.DeepestQueue, depth)
		from = end
	}
}

// finish makes the figures of the points.
func (m *moments) finish(length int64) (step float64, list []Moment) {
	for i := range m.list {
		p := &m.list[i]
		begin := int64(i) * m.step
		p.Seconds = time.Duration(begin).Seconds()
		if span := min(length-begin, m.step); span > 0 {
			p.QueueDepth = p.depthTime / float64(span)
		}
		if p.Completed > 0 {
			p.MeanSeconds = p.sum / float64(p.Completed) / 1e9
		}
		p.MaxSeconds = time.Duration(p.max).Seconds()
	}
	return time.Duration(m.step).Seconds(), m.list
}

// Burst says how requests come together in windows of time.
type Burst struct {
	WindowSeconds float64 `json:"window_seconds"`
	Windows       uint64  `json:"windows"` // whole ones
	Mean          float64 `json:"mean"`    // requests begun in one
	Peak          uint64  `json:"peak"`
	PeakToMean    float64 `json:"peak_to_mean"`
	Dispersion    float64 `json:"index_of_dispersion"` // variance over mean: 1 of arrivals at random, 0 of a clockwork
	Empty         float64 `json:"empty_share"`
}

// windows count requests in windows of time, the first of which begins at the first event.
type windows struct {
	width   int64
	current int64
	count   uint64
	full    uint64 // windows that are not empty
	sum     float64
	squares float64
	peak    uint64
}

func (w *windows) add(t int64) {
	if i := t / w.width; i > w.current {
		w.close()
		w.current = i
	}
	w.count++
}

func (w *windows) close() {
	if w.count > 0 {
		w.full++
		w.sum += float64(w.count)
		w.squares += float64(w.count) * float64(w.count)
		w.peak = max(w.peak, w.count)
	}
	w.count = 0
}

// finish leaves the last window out unless the trace filled it.
func (w *windows) finish(length int64) (Burst, bool) {
	n := length / w.width
	if w.current < n {
		w.close()
	}
	if n < 2 || w.sum == 0 {
		return Burst{}, false
	}
	mean := w.sum / float64(n)
	variance := (w.squares - w.sum*mean) / float64(n-1)
	return Burst{WindowSeconds: time.Duration(w.width).Seconds(), Windows: uint64(n), Mean: mean, Peak: w.peak,
		PeakToMean: float64(w.peak) / mean, Dispersion: max(variance/mean, 0),
		Empty: 1 - float64(w.full)/float64(n)}, true
}
