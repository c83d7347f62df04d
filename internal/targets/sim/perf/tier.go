package perf

import (
	"math"
	"slices"
	"time"

	"plimsoll/result"
)

// edges divide an extent, hottest data first, into the bands whose residency is followed apart.
var edges = [...]float64{1.0 / 1024, 1.0 / 256, 1.0 / 64, 1.0 / 16, 1.0 / 4, 1}

const (
	bands = len(edges)
	// residencyStep is how far the residency of a band may move before rates are worked out again.
	residencyStep = 1.0 / 64
	// unknownExtent is taken for streams that do not say how much they touch.
	unknownExtent = 8 << 30
	// logResumes is the filling of the write log below which it no longer throttles.
	logResumes = 0.8
)

func width(band int) float64 {
	if band == 0 {
		return edges[0]
	}
	return edges[band] - edges[band-1]
}

// volume is the data of one device of one VM. Data that nobody has written counts as written before, on the fast tier
// as far as that goes.
type volume struct {
	vm     string
	bytes  float64
	filled float64        // share that holds data; writing zeros frees it
	fast   [bands]float64 // share of each band's data that is on the fast tier
	moving bool
	home   *node   // on which it was first used
	on     []*node // that hold it
	// written is how many times its size was written since it was new or purged, in all.
	written float64
}

// onFast is the share of the volume's data on the fast tier.
func (v *volume) onFast() float64 {
	var sum float64
	for b, f := range v.fast {
		sum += f * width(b)
	}
	return sum
}

// fill sets the residency of all bands.
func (v *volume) fill(f float64) {
	for b := range v.fast {
		v.fast[b] = f
	}
}

// middle is the residency of a band halfway through the coming step.
func (v *volume) middle(band int) float64 {
	f := v.fast[band]
	if !v.moving {
		return f
	}
	return f + min(residencyStep, (1-f)/2)/2
}

// move is the promotion of one volume.
type move struct {
	v    *volume
	rate [bands]float64 // of the slow data of a band, per second
}

// volume returns the data of a stream, made when first used.
func (w *World) volume(vm string, n *node, spec result.Stream) *volume {
	v := w.volumes[vm][spec.Device]
	if v == nil {
		v = &volume{vm: vm, filled: 1, home: n}
		if w.volumes[vm] == nil {
			w.volumes[vm] = map[string]*volume{}
		}
		w.volumes[vm][spec.Device] = v
		size := float64(spec.Bytes)
		if size <= 0 {
			size = unknownExtent
		}
		v.fill(1)
		if w.truth.FastTierBytes > 0 {
			v.fill(max(0, min(1, w.room(n)/size)))
		}
	}
	if grown := float64(spec.Bytes); grown > v.bytes {
		v.written *= v.bytes / grown
		v.bytes = grown
	}
	if v.bytes == 0 {
		v.bytes = unknownExtent
	}
	if !slices.Contains(v.on, n) {
		n.hold(v)
	}
	return v
}

// hold puts a volume on a node.
func (n *node) hold(v *volume) {
	n.volumes, v.on = append(n.volumes, v), append(v.on, n)
}

// room returns what the node's fast tier can still take, in bytes.
func (w *World) room(n *node) float64 {
	if w.truth.FastTierBytes <= 0 {
		return math.Inf(1)
	}
	room := float64(w.truth.FastTierBytes)
	for _, v := range n.volumes {
		room -= v.bytes * v.filled * v.onFast()
	}
	return room
}

// Purge empties the disk of a VM, as a trim of all its blocks does: nothing is there to be read, and writes are those
// of a fresh disk. One that no load was on yet is as it was.
func (w *World) Purge(now time.Time, vm, device string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	for i := range w.nodes {
		if n := &w.nodes[i]; slices.ContainsFunc(n.volumes, func(v *volume) bool { return v.vm == vm }) {
			w.settle(n) // what was written until now was before
			w.touch(i)
		}
	}
	if v := w.volumes[vm][device]; v != nil {
		v.filled, v.written = 0, 0
	}
}

// settle brings tiers and log of a node from when it was last solved up to now.
func (w *World) settle(n *node) {
	dt := float64(w.at-n.since) / 1e9
	n.since = w.at
	if dt <= 0 {
		return
	}
	n.log = min(max(n.log+n.flow*dt, 0), float64(w.truth.WriteLog.Bytes))
	for _, m := range n.moves {
		m.v.fast = w.after(m, n.limit, dt)
	}
	target := 1.0
	if w.truth.SequentialToSlow || w.room(n) <= 0 {
		target = 0
	}
	for _, l := range n.streams {
		l.write(dt, target)
	}
}

// after is the residency of a volume's bands a time into the present step.
func (w *World) after(m move, limit, dt float64) [bands]float64 {
	fast := m.v.fast
	for b, k := range m.rate {
		left := 1 - fast[b]
		if limit < 1 {
			left -= min(left, k*(1-m.v.middle(b))*limit*dt)
		} else {
			left *= math.Exp(-k * dt)
		}
		if left*width(b)*m.v.bytes*m.v.filled < float64(w.truth.Promotion.ExtentBytes)/2 {
			left = 0
		}
		fast[b] = 1 - left
	}
	return fast
}

// Resident is the share of a VM's data that is on the fast tier now.
func (w *World) Resident(now time.Time, vm string) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(now.UnixNano())
	if w.dirty {
		w.solve()
	}
	var fast, all float64
	for i := range w.nodes {
		n := &w.nodes[i]
		for _, v := range n.volumes {
			if v.vm != vm {
				continue
			}
			at := *v
			for _, m := range n.moves {
				if m.v == v {
					at.fast = w.after(m, n.limit, float64(w.at-n.since)/1e9)
				}
			}
			fast += at.onFast() * v.bytes * v.filled
			all += v.bytes * v.filled
		}
	}
	if all == 0 {
		return 1
	}
	return fast / all
}

// TimeToResidency is the closed form of promotion: the seconds until the share f of an extent of so many bytes, all on
// the slow tier at first, is on the fast one, when it alone is read at random and evenly by a closed loop of depth
// operations of block bytes, with a server for each, no cache and no contention. An operation takes F on the fast and S
// on the slow tier and moves e bytes, at most P a second. Without the limit
//
//	df/dt = depth e (1-f) / (bytes (f F + (1-f) S))   so that   t(f) = bytes / (depth e) · (S f + F (-ln(1-f) - f))
//
// and with it f grows by P/bytes a second until the first line is less.
func (t Truth) TimeToResidency(f, bytes, block float64, depth int) float64 {
	fast := t.Fast.seconds(t.Fast.ReadSeconds, block, 1)
	slow := t.Slow.seconds(t.Slow.ReadSeconds, block, 1)
	moved := float64(depth) * float64(t.Promotion.ExtentBytes)
	free := func(f float64) float64 { return bytes / moved * (slow*f + fast*(-math.Log1p(-f)-f)) }
	p := t.Promotion.BytesPerSecond
	if p <= 0 || p*slow >= moved {
		return free(f)
	}
	until := 1 - p*fast/(moved-p*(slow-fast))
	if f <= until {
		return bytes * f / p
	}
	return bytes*until/p + free(f) - free(until)
}

// write accounts for what a stream has written of its volume: one pass over it sequentially moves all of it to the
// target tier.
func (l *stream) write(dt, target float64) {
	v, d := l.volume, dirWrite
	wrote := l.rate * l.share[d] * l.bytes[d] * dt / v.bytes
	if wrote <= 0 {
		return
	}
	v.written += wrote
	fill := 1.0
	if l.spec.ZeroData {
		fill = 0
	}
	random := -math.Expm1(-wrote * l.spec.Random)
	v.filled += (fill - v.filled) * random
	pass := wrote * (1 - l.spec.Random)
	part := 1.0
	if l.passed+pass < 1 {
		part = pass / (1 - l.passed)
	}
	l.passed = math.Mod(l.passed+pass, 1)
	v.filled += (fill - v.filled) * part
	for b := range v.fast {
		v.fast[b] += (target - v.fast[b]) * part
	}
}

// prepare works out the service times of a node's streams as they are now.
func (w *World) prepare(n *node) {
	n.hung = slices.ContainsFunc(n.faults, func(f fault) bool { return f.Kind == HungIO })
	slow, room := n.slowness(), w.room(n)
	if capacity := float64(w.truth.WriteLog.Bytes); capacity > 0 {
		// Half a byte of rounding must not keep it from turning.
		n.full = n.log >= capacity-0.5 || n.full && n.log > logResumes*capacity+0.5
	}
	var extents float64 // of what is read, for the share of the cache
	read := map[*volume]float64{}
	for _, l := range n.streams {
		if l.state == running && l.share[dirRead] > 0 && l.extent() > read[l.volume] {
			extents += l.extent() - read[l.volume]
			read[l.volume] = l.extent()
		}
	}
	for _, v := range n.volumes {
		v.moving = false
	}
	for _, l := range n.streams {
		if l.state == running && w.truth.Promotion.ExtentBytes > 0 && room > 0 && l.spec.Random > 0 &&
			l.volume.filled > 0 && l.volume.onFast() < 1 {
			l.volume.moving = true
		}
	}
	for _, l := range n.streams {
		if l.state == running {
			l.serve(w.truth, n, extents, slow)
		}
	}
}
