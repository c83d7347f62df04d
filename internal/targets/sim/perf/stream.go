package perf

import (
	"math"
	"math/rand/v2"
	"time"

	"plimsoll/result"
)

// Directions, in the order of a Report.
const (
	dirRead = iota
	dirWrite
	dirTrim
	directions
)

// States of a stream.
const (
	waiting = iota // for its stage or its delay
	running
	over
)

const defaultBlock = 4096

// settling is the time after which a stream that ends with its work has forgotten half its deviation from the expected
// count, so that it neither ends with a jump nor waits.
const settling = 7 * time.Second

// stream is one stream of operations.
type stream struct {
	job    *Job
	spec   result.Stream
	volume *volume
	access [bands]float64 // share of random operations that go to each band
	state  int
	begins int64
	ends   int64 // by its runtime
	due    int64 // by its work at the present rate
	hung   int64 // since when nothing completes, 0 when it does

	share [directions]float64 // of operations
	bytes [directions]float64 // of one operation
	ops   float64             // to do in all, 0: no limit
	done  float64             // operations expected so far

	service float64         // mean, at an idle cluster
	parts   [directions]Mix // service times
	paged   bool            // the first part of the reads is the VM's own page cache, which does not queue
	missed  float64         // share of the reads that reach the tiers
	rate    float64         // operations per second
	paced   bool            // it reaches the rate it offers
	passed  float64         // share of the present sequential pass that is written

	from, to int64 // the present cell of noise
	grain    int64 // longest cell
	rand     *rand.Rand
	dirs     [directions]flow
}

// A stream that runs for longRun or more has its noise drawn for longGrain times Grain at once, with the same variance
// over that time.
const (
	longRun   = time.Hour
	longGrain = 5
)

// newStream reads what a stream will do.
func newStream(j *Job, spec result.Stream, seed uint64) *stream {
	l := &stream{job: j, spec: spec, begins: never, ends: never, due: never}
	l.rand, l.grain = rand.New(rand.NewPCG(seed, 1)), int64(j.world.truth.Grain)
	if spec.Runtime >= longRun {
		l.grain *= longGrain
	}
	for d := range l.dirs {
		l.dirs[d].rng.Seed(seed, uint64(2+d))
	}
	reads := min(max(spec.ReadShare, 0), 1)
	trims := min(max(spec.TrimShare, 0), 1-reads)
	l.spec.Random = min(max(spec.Random, 0), 1)
	if reads == 0 && trims == 0 && spec.Reads {
		if reads = 1; spec.Writes {
			reads = 0.5
		}
	}
	l.share = [directions]float64{reads, max(0, 1-reads-trims), trims}
	l.bytes = [directions]float64{orBlock(spec.ReadBytes), orBlock(spec.WriteBytes), orBlock(spec.WriteBytes)}
	if spec.Work > 0 {
		var mean float64
		for d, s := range l.share {
			mean += s * l.bytes[d]
		}
		l.ops = max(1, math.Round(float64(spec.Work)/mean))
	}
	blocks := max(1, float64(max(spec.Bytes, 1))/l.bytes[dirRead])
	last := 0.0
	for b, edge := range edges {
		h := Hottest(spec.Skew, edge, blocks)
		l.access[b], last = h-last, h
	}
	return l
}

func orBlock(bytes float64) float64 {
	if !(bytes > 0) {
		return defaultBlock
	}
	return bytes
}

// seconds is the service time of one operation of b bytes with the access time a.
func (m Medium) seconds(a, b, random float64) float64 {
	return a*(random+(1-random)*m.Sequential) + b/m.BytesPerSecond
}

// serve works out the service times of a stream from where its data lies. Extents is all that is read at the node.
func (l *stream) serve(t Truth, n *node, extents, slow float64) {
	away := 0.0
	if l.volume.home != n {
		away = t.RemoteReadSeconds
	}
	l.serveReads(t, extents, slow, away)
	b, random := l.bytes[dirWrite], l.spec.Random
	medium := t.Fast
	if t.SequentialToSlow {
		medium = t.Slow
	}
	l.parts[dirTrim] = Mix{Law: t.Law, Parts: []Part{{1, t.Fast.WriteSeconds * slow}}}
	fresh, _ := t.Fresh.share(l.volume.written)
	slow *= fresh
	logged := t.Fast.seconds(t.Fast.WriteSeconds, b, 1) * slow
	if n.full {
		// With every server busy with such writes the node does what the log can drain.
		logged = max(logged, float64(t.Servers)*b/t.WriteLog.BytesPerSecond)
	}
	straight := medium.seconds(medium.WriteSeconds, b, 0) * slow
	l.parts[dirWrite] = Mix{Law: t.Law, Parts: parts(Part{random, logged}, Part{1 - random, straight})}
	l.service = 0
	for d, s := range l.share {
		l.service += s * l.parts[d].Mean()
	}
}

func (l *stream) serveReads(t Truth, extents, slow, away float64) {
	b, random := l.bytes[dirRead], l.spec.Random
	blocks := l.extent() / b
	held := 1.0 // share of the extent in the node's cache
	if extents > 0 {
		held = min(1, float64(t.CacheBytes)/extents)
	}
	paged := 0.0
	if !l.spec.Direct {
		paged = min(1, float64(t.PageCacheBytes)/l.extent())
	}
	page := l.hits(paged, blocks)
	cache := l.hits(min(1, held+paged), blocks) - page
	cache += (1 - page - cache) * (1 - l.volume.filled) // nothing is there to be read
	var fast float64
	for band := range edges {
		fast += (random*l.access[band] + (1-random)*width(band)) * l.volume.middle(band)
	}
	miss := max(0, 1-page-cache)
	l.paged, l.missed = page > 1e-12, miss
	l.parts[dirRead] = Mix{Law: t.Law, Parts: parts(
		Part{page, t.PageSeconds}, Part{cache, t.CacheSeconds + b/t.Fast.BytesPerSecond},
		Part{miss * fast, t.Fast.seconds(t.Fast.ReadSeconds, b, random)*slow + away},
		Part{miss * (1 - fast), t.Slow.seconds(t.Slow.ReadSeconds, b, random)*slow + away})}
}

// extent is how much of its volume the stream works on, in bytes: all of it where it does not say.
func (l *stream) extent() float64 {
	if l.spec.Bytes > 0 {
		return min(float64(l.spec.Bytes), l.volume.bytes)
	}
	return l.volume.bytes
}

// hits is the share of reads that a cache serves which holds the hottest part x. A sequential pass over more than it
// holds finds nothing.
func (l *stream) hits(x, blocks float64) float64 {
	sequential := 0.0
	if x >= 1 {
		sequential = 1
	}
	return l.spec.Random*Hottest(l.spec.Skew, x, blocks) + (1-l.spec.Random)*sequential
}

// parts leaves out what does not occur.
func parts(all ...Part) []Part {
	kept := all[:0]
	var sum float64
	for _, p := range all {
		if p.Share > 1e-12 {
			kept, sum = append(kept, p), sum+p.Share
		}
	}
	for i := range kept {
		kept[i].Share /= sum
	}
	return kept
}

// apply takes a solution over: what queues waits equally long, whatever medium serves it in the end.
func (l *stream) apply(rate, response, inflation float64, limited bool) {
	if l.hung > 0 {
		l.release(l.hung, l.from)
		l.hung = 0
	}
	l.rate = rate
	l.paced = l.spec.Rate > 0 && !limited
	wait := max(0, response-l.service*inflation)
	queues := 1.0
	if l.paged {
		if queues = 1 - l.share[dirRead]*l.parts[dirRead].Parts[0].Share; queues < 1e-9 {
			queues = 1
		}
	}
	for d := range l.dirs {
		mix := l.parts[d]
		mix.Parts = append(make([]Part, 0, len(mix.Parts)), mix.Parts...)
		for i := range mix.Parts {
			mix.Parts[i].Seconds *= inflation
			if d != dirRead || i > 0 || !l.paged || queues == 1 {
				mix.Parts[i].Seconds += wait / queues
			}
		}
		l.dirs[d].respond(l.job.world, mix, l.share[d]*rate, l.dispersion(l.share[d]))
	}
}

// idle stops the stream until it is given a rate.
func (l *stream) idle() {
	l.rate = 0
	for d := range l.dirs {
		l.dirs[d].hand(l.job.world)
		l.dirs[d].rate = 0
	}
}

// dispersion is the variance of a count over its mean, for a share s of the operations: one for Poisson arrivals, none
// for paced ones, and for a closed loop that of a renewal process, of which the share is drawn.
func (l *stream) dispersion(s float64) float64 {
	switch {
	case l.paced && l.spec.OpenLoop:
		return 1
	case l.paced:
		return 0
	}
	whole := Mix{Law: l.parts[dirWrite].Law}
	for d, share := range l.share {
		for _, p := range l.parts[d].Parts {
			whole.Parts = append(whole.Parts, Part{share * p.Share, p.Seconds})
		}
	}
	busy := l.service / (l.service + l.spec.Think.Seconds()) // think times are all the same
	return s*whole.cv2()*busy*busy + 1 - s
}

// left is the time until the stream's work is done at the present rate, never when it has none or none is done.
func (l *stream) left() int64 {
	if l.ops == 0 || l.rate <= 0 {
		return never
	}
	return nanoseconds(max(0, l.ops-l.done) / l.rate)
}

// nanoseconds is at most a hundred years.
func nanoseconds(seconds float64) int64 {
	return int64(math.Ceil(min(seconds, 100*365*86400) * 1e9))
}
