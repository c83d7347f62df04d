package perf

import (
	"math"
	"slices"

	"plimsoll/internal/workload"
)

// edges divide an extent, hottest data first, into the bands whose residency is followed apart.
var edges = [...]float64{1.0 / 1024, 1.0 / 256, 1.0 / 64, 1.0 / 16, 1.0 / 4, 1}

const (
	bands = len(edges)
	// residencyStep is how far the residency of a band may move before rates are worked out again.
	residencyStep = 1.0 / 64
	// unknownExtent is taken for lanes that do not say how much they touch.
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

type volumeKey struct{ vm, device string }

// volume is the data of one device of one VM. Data that nobody has written counts as written before, on the fast tier as far as that goes.
type volume struct {
	bytes  float64
	filled float64        // share that holds data; writing zeros frees it
	fast   [bands]float64 // share of each band's data that is on the fast tier
	moving bool
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

// volume returns the data of a lane, made when first used.
func (w *World) volume(vm string, n *node, spec workload.Lane) *volume {
	key := volumeKey{vm, spec.Device}
	v := w.volumes[key]
	if v == nil {
		v = &volume{filled: 1}
		w.volumes[key] = v
		size := float64(spec.Bytes)
		if size <= 0 {
			size = unknownExtent
		}
		v.fill(1)
		if w.truth.FastTierBytes > 0 {
			v.fill(max(0, min(1, w.room(n)/size)))
		}
	}
	v.bytes = max(v.bytes, float64(spec.Bytes))
	if v.bytes == 0 {
		v.bytes = unknownExtent
	}
	if !slices.Contains(n.volumes, v) {
		n.volumes = append(n.volumes, v)
	}
	return v
}

// room is what the node's fast tier can still take, in bytes.
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

// settle brings tiers and log of a node from when it was last solved up to now.
func (w *World) settle(n *node) {
	dt := float64(w.at-n.since) / 1e9
	n.since = w.at
	if dt <= 0 {
		return
	}
	n.log = min(max(n.log+n.flow*dt, 0), float64(w.truth.WriteLog.Bytes))
	for _, m := range n.moves {
		for b, k := range m.rate {
			left := 1 - m.v.fast[b]
			if n.limit < 1 {
				left -= min(left, k*(1-m.v.middle(b))*n.limit*dt)
			} else {
				left *= math.Exp(-k * dt)
			}
			if left*width(b)*m.v.bytes*m.v.filled < float64(w.truth.Promotion.ExtentBytes)/2 {
				left = 0
			}
			m.v.fast[b] = 1 - left
		}
	}
	target := 1.0
	if w.truth.SequentialToSlow || w.room(n) <= 0 {
		target = 0
	}
	for _, l := range n.lanes {
		l.write(dt, target)
	}
}

// write accounts for what a lane has written of its volume: one pass over it sequentially moves all of it to the target tier.
func (l *lane) write(dt, target float64) {
	v, d := l.volume, dirWrite
	wrote := l.rate * l.share[d] * l.bytes[d] * dt / v.bytes
	if wrote <= 0 {
		return
	}
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

// prepare works out the service times of a node's lanes as they are now.
func (w *World) prepare(n *node) {
	n.hung = slices.ContainsFunc(n.faults, func(f fault) bool { return f.Kind == HungIO })
	slow, room := n.slowness(), w.room(n)
	if capacity := float64(w.truth.WriteLog.Bytes); capacity > 0 {
		// Half a byte of rounding must not keep it from turning.
		n.full = n.log >= capacity-0.5 || n.full && n.log > logResumes*capacity+0.5
	}
	var extents float64 // of what is read, for the share of the cache
	seen := map[*volume]bool{}
	for _, l := range n.lanes {
		if l.state == running && l.share[dirRead] > 0 && !seen[l.volume] {
			seen[l.volume] = true
			extents += l.volume.bytes
		}
	}
	for _, v := range n.volumes {
		v.moving = false
	}
	for _, l := range n.lanes {
		if l.state == running && w.truth.Promotion.ExtentBytes > 0 && room > 0 && l.spec.Random > 0 && l.volume.filled > 0 && l.volume.onFast() < 1 {
			l.volume.moving = true
		}
	}
	for _, l := range n.lanes {
		if l.state == running {
			l.serve(w.truth, n, extents, slow)
		}
	}
}
