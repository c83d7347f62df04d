package perf

import (
	"math"
	"math/rand/v2"

	"plimsoll/hist"
)

// flow is one direction of a stream: its counters and what they follow.
//
// Within a cell the count grows evenly from have to will. The path that it follows, expected operations plus noise, may
// fall where the rate is small against the noise; the count stays then, which keeps it ahead of the path by half the
// dispersion of an operation on average and no more with time.
type flow struct {
	mix      Mix
	rate     float64
	scatter  float64 // variance of a count over its mean
	spread   float64 // coefficient of variation of one response
	mean     float64 // response
	expected float64 // operations, without noise
	ahead    float64 // of these, those of the present cell
	have     count
	will     count

	tally   uint64 // operations handed to the histogram
	pending []batch
	hist    *hist.Histogram
	rng     rand.PCG // of the histogram alone, so that asking for it changes no counter
}

type count struct {
	path    float64
	ops     uint64
	seconds float64
}

// respond gives the stream its rate and response times from now on.
func (s *flow) respond(w *World, m Mix, rate, scatter float64) {
	s.hand(w)
	s.mix, s.rate, s.scatter = m, rate, scatter
	s.mean, s.spread = m.Mean(), math.Sqrt(m.cv2())
}

// hand leaves what was counted so far to be put into the histogram under the law it was served with.
func (s *flow) hand(w *World) {
	if n := s.have.ops - s.tally; n > 0 {
		s.pend(w, s.mix, n)
		s.tally = s.have.ops
	}
}

// open begins a cell at the time given, which lasts until the next line of the grid.
func (l *stream) open(at int64) {
	if l.state != running {
		return
	}
	l.from, l.to = at, at-at%l.grain+l.grain
	for d := range l.dirs {
		if l.share[d] > 0 {
			l.draw(&l.dirs[d], d)
		}
	}
}

// draw decides how a cell ends.
func (l *stream) draw(s *flow, d int) {
	t := &l.job.world.truth
	s.will = s.have
	s.expected -= s.ahead // a cell that is drawn anew before any of it has passed
	dt := float64(l.to-l.from) / 1e9
	mean := s.rate * dt
	s.ahead = max(0, mean)
	if mean <= 0 {
		return
	}
	whole := t.NoiseCV * s.rate * t.Grain.Seconds()
	noise := whole * whole * dt / t.Grain.Seconds()
	variance := s.scatter * mean
	if !l.paced {
		variance += noise
	}
	s.will.path += mean
	if variance > 0 {
		s.will.path += math.Sqrt(variance) * l.rand.NormFloat64()
	}
	s.expected += mean
	limit := math.Inf(1)
	if l.ops > 0 {
		s.will.path -= (s.will.path - s.expected) * -math.Expm1(-dt*math.Ln2/settling.Seconds())
		limit = math.Floor(l.ops * l.share[d])
	}
	if path := min(s.will.path, limit); path > float64(s.have.ops) {
		s.will.ops = uint64(path)
	}
	if n := float64(s.will.ops - s.have.ops); l.paced && n > 0 {
		z := l.rand.NormFloat64()
		s.will.seconds += n * s.mean * max(0, 1+z*math.Sqrt(s.spread*s.spread/n+t.NoiseCV*t.NoiseCV))
	} else if !l.paced {
		s.will.seconds += mean * s.mean
	}
}

// run passes the cells that have ended by the time given.
func (l *stream) run(at int64) {
	for l.state == running && l.to <= at {
		l.done += l.rate * float64(l.to-l.from) / 1e9
		for d := range l.dirs {
			l.dirs[d].have, l.dirs[d].ahead = l.dirs[d].will, 0
		}
		l.open(l.to)
	}
}

// cut ends the present cell early. The next one must be opened.
func (l *stream) cut(at int64) {
	l.job.note(at)
	l.run(at)
	if l.state != running || at <= l.from {
		return
	}
	l.done += l.rate * float64(at-l.from) / 1e9
	f := float64(at-l.from) / float64(l.to-l.from)
	for d := range l.dirs {
		s := &l.dirs[d]
		s.expected -= s.ahead * (1 - f)
		s.ahead = 0
		s.have = s.between(f)
		s.will = s.have
	}
	l.from = at
}

// between is the count at a fraction of the present cell.
func (s *flow) between(f float64) count {
	return count{
		path:    s.have.path + f*(s.will.path-s.have.path),
		ops:     s.have.ops + uint64(f*float64(s.will.ops-s.have.ops)),
		seconds: s.have.seconds + f*(s.will.seconds-s.have.seconds),
	}
}

// now is the count at a time within the present cell, or the last one when there is none.
func (l *stream) now(d int, at int64) count {
	s := &l.dirs[d]
	if l.state != running || at <= l.from || l.to <= l.from {
		return s.have
	}
	return s.between(float64(at-l.from) / float64(l.to-l.from))
}

// finish sets the counts to the whole work.
func (l *stream) finish() {
	for d := range l.dirs {
		s := &l.dirs[d]
		if n := uint64(math.Floor(l.ops * l.share[d])); n > s.have.ops {
			if l.paced { // a closed loop has been busy all the time already
				s.have.seconds += float64(n-s.have.ops) * s.mean
			}
			s.have.ops = n
		}
	}
	if l.share[dirWrite] > 0 { // no operation is lost in rounding the shares
		l.dirs[dirWrite].have.ops += uint64(max(0, l.ops-float64(l.counted())))
	}
}

// counted is the operations of all directions when the present cell began.
func (l *stream) counted() (ops uint64) {
	for d := range l.dirs {
		ops += l.dirs[d].have.ops
	}
	return ops
}

// release lets the operations complete that a hang has held since it began.
func (l *stream) release(since, at int64) {
	held := float64(at-since) / 1e9
	n := float64(max(1, l.spec.Depth))
	if l.spec.Rate > 0 {
		n = min(n, math.Floor(l.spec.Rate*held))
	}
	if l.ops > 0 {
		n = min(n, l.ops-float64(l.counted()))
	}
	n = math.Round(n)
	var upto, given float64 // shares, and operations handed out to them
	for d := range l.dirs {
		s := &l.dirs[d]
		upto += l.share[d]
		ops := uint64(max(0, math.Round(n*upto)-given))
		given += float64(ops)
		if ops == 0 || held <= 0 {
			continue
		}
		s.hand(l.job.world)
		s.pend(l.job.world, Mix{Law: Law{Kind: Constant}, Parts: []Part{{1, held}}}, ops)
		s.have.ops += ops
		s.tally += ops
		s.have.path += float64(ops)
		s.expected += float64(ops)
		s.have.seconds += float64(ops) * held
		s.will = s.have
		l.done += float64(ops)
	}
}
