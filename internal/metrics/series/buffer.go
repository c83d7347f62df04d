package series

import (
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// chunkPoints is how many points a chunk holds at most, as Prometheus has it.
const chunkPoints = 120

// buffer is the points of a row that are not yet in chunks. It is used by one goroutine at a time.
type buffer struct {
	series  []*memSeries
	last    int64 // time of the newest point
	times   []int64
	values  []float64 // of all series at the first moment, then at the second, ...
	flushed int       // how often the points became chunks
}

// memSeries is one series.
type memSeries struct {
	labels labels.Labels
	done   []chunks.Meta // of the block in the making
}

// add adds a point to every series. It reports false when they have one that is as new.
func (b *buffer) add(t int64, values []float64) bool {
	if t <= b.last {
		return false
	}
	b.last, b.times, b.values = t, append(b.times, t), append(b.values, values...)
	return true
}

// full reports whether the points should become chunks: they are as many as a chunk holds, or the next one would lie on
// a multiple of the time that a chunk takes. So the chunks of all series with points at the same distance begin and end
// together, whenever the first point came.
func (b *buffer) full() bool {
	n := len(b.times)
	if n < 2 || n == chunkPoints {
		return n == chunkPoints
	}
	step := b.times[n-1] - b.times[n-2]
	return (b.last+step)%(step*chunkPoints) == 0
}

// chunkEncoder turns points into chunks, of which it keeps the latest: a machine's series are alike where it has a
// single load, and what is the same is encoded and kept once. The zero value is ready to use, by one goroutine.
type chunkEncoder struct {
	scratch []byte
	recent  [8]encodedColumn
	next    int
}

// encodedColumn is a column of a buffer that was encoded.
type encodedColumn struct {
	from   *buffer
	time   int // the how manieth it was of the buffer
	column int
	times  []int64   // of the buffer, good until it has points again
	values []float64 // likewise
	chunk  chunkenc.Chunk
}

// good reports whether the points are still there to be compared with.
func (r *encodedColumn) good() bool {
	return r.chunk != nil && r.from.flushed == r.time && len(r.from.times) == 0
}

// flush turns the points of a buffer into a chunk of every series.
func (to *chunkEncoder) flush(b *buffer) error {
	n := len(b.times)
	if n == 0 {
		return nil
	}
	times, values := b.times, b.values
	b.times, b.values = b.times[:0], b.values[:0]
	b.flushed++
	for i, s := range b.series {
		c := to.reused(times, values, i, len(b.series))
		if c == nil {
			var err error
			if c, err = to.encode(times, values, i, len(b.series)); err != nil {
				return err
			}
			to.recent[to.next] = encodedColumn{b, b.flushed, i, times, values, c}
			to.next = (to.next + 1) % len(to.recent)
		}
		s.done = append(s.done, chunks.Meta{Chunk: c, MinTime: times[0], MaxTime: times[n-1]})
	}
	return nil
}

// reused returns the chunk of a column encoded lately with the same points, nil when there is none.
func (to *chunkEncoder) reused(times []int64, values []float64, column, width int) chunkenc.Chunk {
	n := len(times)
	for k := range to.recent {
		r := &to.recent[k]
		if !r.good() || len(r.times) != n {
			continue
		}
		other := len(r.from.series)
		same := true
		for i := n - 1; i >= 0 && same; i-- { // counters differ at the end, if anywhere
			same = r.times[i] == times[i] &&
				math.Float64bits(r.values[i*other+r.column]) == math.Float64bits(values[i*width+column])
		}
		if same {
			return r.chunk
		}
	}
	return nil
}

func (to *chunkEncoder) encode(times []int64, values []float64, column, width int) (chunkenc.Chunk, error) {
	c := &chunkenc.XORChunk{}
	c.Reset(append(to.scratch[:0], 0, 0)) // the number of points, none yet
	app, err := c.Appender()
	if err != nil {
		return nil, err
	}
	for i, t := range times {
		app.Append(0, t, values[i*width+column])
	}
	to.scratch = c.Bytes()
	return chunkenc.FromData(chunkenc.EncXOR, append([]byte(nil), to.scratch...))
}
