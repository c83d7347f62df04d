package perf

import (
	"math"
	"time"
)

// NodeUse holds what one node does at a moment.
type NodeUse struct {
	CPU      float64 // share of its cores, 0 to 1
	Received float64 // bytes per second from other nodes
	Sent     float64 // bytes per second to other nodes
	Storage  float64 // share of its storage's servers in use
	Reads    float64 // operations per second
	Writes   float64 // operations per second, trims included
}

// NodeMetrics are the nodes' own counters now, from the rates that the model expects, without noise. Of every byte
// written, one copy stays on the node and the others go to the other nodes in equal parts.
func (w *World) NodeMetrics(now time.Time) []NodeUse {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	if w.dirty {
		w.solve()
	}
	h := w.truth.Host
	out := make([]NodeUse, len(w.nodes))
	others := float64(len(w.nodes) - 1)
	var sent float64
	for i := range w.nodes {
		n, u := &w.nodes[i], &out[i]
		var bytes, written float64
		for _, l := range n.streams {
			if l.state != running {
				continue
			}
			u.Reads += l.rate * l.share[dirRead]
			u.Writes += l.rate * (1 - l.share[dirRead])
			written += l.rate * l.share[dirWrite] * l.bytes[dirWrite]
			bytes += l.rate * l.share[dirRead] * l.bytes[dirRead]
		}
		if others > 0 {
			u.Sent = written * float64(h.Copies-1)
			sent += u.Sent
		}
		cpu := (u.Reads+u.Writes)*h.OpSeconds + (bytes+written)*h.ByteSecond
		u.CPU = min(1, h.IdleShare+cpu/float64(h.Cores))
		u.Storage = n.busy
	}
	for i := range out {
		if others > 0 {
			out[i].Received = (sent-out[i].Sent)/others + h.IdleBytes
			out[i].Sent += h.IdleBytes
		}
	}
	return out
}

// WriteLogBytes returns what each node's write log holds now.
func (w *World) WriteLogBytes(now time.Time) []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	out := make([]int64, len(w.nodes))
	for i := range w.nodes {
		n := &w.nodes[i]
		level := n.log + n.flow*float64(w.at-n.since)/1e9
		out[i] = int64(math.Round(min(max(level, 0), float64(w.truth.WriteLog.Bytes))))
	}
	return out
}

// plan works out what a node will do by itself, with rates as they are now, and when that next changes them.
func (w *World) plan(n *node) {
	n.next = never
	in := func(seconds float64) {
		if seconds < math.Inf(1) {
			n.next = min(n.next, w.at+max(nanoseconds(seconds), int64(time.Millisecond)))
		}
	}
	for _, l := range n.streams {
		switch {
		case l.state == waiting:
			n.next = min(n.next, max(l.begins, w.at+1))
		case l.state == running:
			n.next = min(n.next, max(l.ends, w.at+1))
			l.due = never
			if left := l.left(); left != never {
				l.due = w.at + max(left, 1)
			}
			n.next = min(n.next, l.due)
		}
	}
	n.ends = never
	for _, l := range n.streams {
		n.ends = min(n.ends, l.job.estimate())
	}
	for _, f := range n.faults {
		n.next = min(n.next, f.until)
	}
	w.planWear(n, in)
	w.planLog(n, in)
	w.planMoves(n, in)
}

// planWear finds when the next disk is a step further from fresh.
func (w *World) planWear(n *node, in func(seconds float64)) {
	rates := map[*volume]float64{} // sizes a second
	for _, l := range n.streams {
		if _, changes := w.truth.Fresh.share(l.volume.written); changes > 0 && l.state == running {
			rates[l.volume] += l.rate * l.share[dirWrite] * l.bytes[dirWrite] / l.volume.bytes
		}
	}
	for v, rate := range rates {
		if _, changes := w.truth.Fresh.share(v.written); rate > 0 {
			in((changes - v.written) / rate)
		}
	}
}

// planLog follows the write log until it is full, or has drained enough.
func (w *World) planLog(n *node, in func(seconds float64)) {
	log := w.truth.WriteLog
	if log.Bytes <= 0 {
		return
	}
	n.flow = -log.BytesPerSecond
	for _, l := range n.streams {
		if l.state == running {
			n.flow += l.rate * l.share[dirWrite] * l.bytes[dirWrite] * l.spec.Random
		}
	}
	switch {
	case !n.full && n.flow > 0:
		in((float64(log.Bytes) - n.log) / n.flow)
	case n.full && n.flow < 0:
		in((n.log - logResumes*float64(log.Bytes)) / -n.flow)
	}
}

// planMoves finds how fast volumes move to the fast tier and when the next one has gone a step.
func (w *World) planMoves(n *node, in func(seconds float64)) {
	n.moves, n.limit = n.moves[:0], 1
	var wanted float64 // bytes per second
	for _, v := range n.volumes {
		if !v.moving {
			continue
		}
		m := move{v: v}
		for _, l := range n.streams {
			if l.state == running && l.volume == v {
				l.touchRates(&m, w.truth)
			}
		}
		for b, k := range m.rate {
			wanted += k * (1 - v.middle(b)) * width(b) * v.bytes * v.filled
		}
		n.moves = append(n.moves, m)
	}
	if speed := w.truth.Promotion.BytesPerSecond; speed > 0 && wanted > speed {
		n.limit = speed / wanted
	}
	for _, m := range n.moves {
		for b, k := range m.rate {
			left := 1 - m.v.fast[b]
			step := min(residencyStep, left/2)
			if k <= 0 || left <= 0 {
				continue
			}
			if n.limit < 1 {
				in(step / (k * (1 - m.v.middle(b)) * n.limit))
			} else {
				in(-math.Log1p(-step/left) / k)
			}
		}
	}
}

// touchRates adds how often a stream touches the extents of each band of its volume, per extent.
func (l *stream) touchRates(m *move, t Truth) {
	extents := m.v.bytes / float64(t.Promotion.ExtentBytes)
	touches := l.rate * l.spec.Random * (l.share[dirRead]*l.missed + l.share[dirWrite])
	for b := range m.rate {
		m.rate[b] += touches * l.access[b] / (extents * width(b))
	}
}
