package perf

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"plimsoll/hist"
)

// batch is a number of operations served under one law and not yet put into the histogram.
type batch struct {
	mix Mix
	n   uint64
}

// manyPending is how many laws are kept apart before they are drawn.
const manyPending = 32

// pend adds operations to what the histogram still lacks.
func (s *flow) pend(w *World, m Mix, n uint64) {
	for i := range s.pending {
		if p := &s.pending[i]; p.mix.Law == m.Law && slices.Equal(p.mix.Parts, m.Parts) {
			p.n += n
			return
		}
	}
	if len(s.pending) == manyPending {
		s.draw(w)
	}
	s.pending = append(s.pending, batch{m, n})
}

// histogram returns the cumulative histogram of so many operations, the newest of them under the present law.
func (s *flow) histogram(w *World, ops uint64, seconds float64) *hist.Histogram {
	if ops > s.tally {
		s.pend(w, s.mix, ops-s.tally)
		s.tally = ops
	}
	s.draw(w)
	if s.hist == nil {
		return nil
	}
	h := s.hist.Clone()
	h.SetExact(h.Min(), h.Max(), seconds*1e9)
	return h
}

func (s *flow) draw(w *World) {
	for _, p := range s.pending {
		if s.hist == nil {
			s.hist = &hist.Histogram{}
		}
		w.table(p.mix).draw(rand.New(&s.rng), s.hist, p.n)
	}
	s.pending = s.pending[:0]
}

// table is a law's share of every bucket of a histogram.
type table struct {
	first int
	below []float64 // share at or below the upper end of bucket first+i; the last is 1
}

// manyTables bounds the tables kept.
const manyTables = 4096

// table returns the shares of a law, worked out once.
func (w *World) table(m Mix) *table {
	key := make([]byte, 0, 80)
	key = append(key, m.Law.Kind...)
	key = appendFloat(key, m.Law.Sigma)
	for _, p := range m.Parts {
		key = appendFloat(appendFloat(key, p.Share), p.Seconds)
	}
	w.tabled.Lock()
	defer w.tabled.Unlock()
	t := w.tables[string(key)]
	if t == nil {
		if len(w.tables) >= manyTables {
			clear(w.tables)
		}
		t = newTable(m)
		w.tables[string(key)] = t
	}
	return t
}

func appendFloat(key []byte, f float64) []byte {
	bits := math.Float64bits(f)
	for range 8 {
		key, bits = append(key, byte(bits)), bits>>8
	}
	return key
}

// tail is the share at either end of a law that is counted to the last bucket before it.
const tail = 1e-9

func newTable(m Mix) *table {
	low, high := m.Quantile(tail), m.Quantile(1-tail)
	t := &table{first: hist.Index(bucketTime(low))}
	for i := t.first; i <= hist.Index(bucketTime(high)); i++ {
		_, top := hist.Bounds(i)
		t.below = append(t.below, m.Below((float64(top)+1)/1e9))
	}
	t.below[len(t.below)-1] = 1
	return t
}

func bucketTime(seconds float64) uint64 { return uint64(min(max(seconds*1e9, 0), 1<<62)) }

// draw puts n values of the law into a histogram: few of them one by one, many by the binomial of each bucket given
// those before it.
func (t *table) draw(r *rand.Rand, h *hist.Histogram, n uint64) {
	if n <= 48 {
		for range n {
			h.AddBucket(t.first+sort.SearchFloat64s(t.below, r.Float64()), 1)
		}
		return
	}
	last := 0.0
	for i, below := range t.below {
		if n == 0 {
			return
		}
		k := n
		if i < len(t.below)-1 {
			k = binomial(r, n, (below-last)/(1-last))
		}
		h.AddBucket(t.first+i, k)
		n, last = n-k, below
	}
}

// binomial draws from Bin(n, p): by inversion where the mean of the rarer outcome is below 30, by the normal
// approximation above.
func binomial(r *rand.Rand, n uint64, p float64) uint64 {
	switch {
	case !(p > 0):
		return 0
	case p >= 1:
		return n
	case p > 0.5:
		return n - binomial(r, n, 1-p)
	}
	if mean := float64(n) * p; mean > 30 {
		k := math.Round(mean + math.Sqrt(mean*(1-p))*r.NormFloat64())
		return uint64(min(max(k, 0), float64(n)))
	}
	u, odds := r.Float64(), p/(1-p)
	term := math.Exp(float64(n) * math.Log1p(-p))
	for k := uint64(0); k < n && k < 200; k++ {
		if u -= term; u < 0 {
			return k
		}
		term *= odds * float64(n-k) / float64(k+1)
	}
	return min(n, 200)
}
