package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
)

// sheaf collects the floats of a Timeless store and writes them as blocks, without the head and its log, which would cost several times as
// much: points are kept until a series has a chunk full of them, chunks are encoded on all processors, and once the chunks of a block's span are
// there they are written in the order of their series. Memory therefore grows with the number of series, not with the length of the run.
//
// What is written depends on the points alone, whatever the number of processors.
type sheaf struct {
	dir    string // of the database
	mu     sync.Mutex
	series []*stalk
	known  map[string]*stalk // by labels: two handles may name one series
	full   []*stalk
	blocks int
	held   bool  // points are in memory or in chunks
	oldest int64 // of the block in the making
	newest int64
}

// stalk is one series of a sheaf.
type stalk struct {
	labels labels.Labels
	queued bool  // among the full ones
	last   int64 // time of the newest point
	times  []int64
	values []float64
	done   []chunks.Meta // of the block in the making
}

// blockSpan is the time that one block covers, in milliseconds.
const blockSpan = 3600 * 1000

// chunkPoints is how many points a chunk holds, as Prometheus has it.
const chunkPoints = 120

// append adds a point. It reports false for one that is not newer than the series' last.
func (sh *sheaf) append(to *Handle, t int64, v float64) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if to.stalk == nil {
		to.stalk = sh.stalk(to.labels)
	}
	s := to.stalk
	if t <= s.last {
		return false
	}
	if len(s.times)+1 >= chunkPoints && !s.queued {
		s.queued = true
		sh.full = append(sh.full, s)
	}
	if s.last, s.times, s.values = t, append(s.times, t), append(s.values, v); !sh.held {
		sh.held, sh.oldest, sh.newest = true, t, t
	}
	sh.oldest, sh.newest = min(sh.oldest, t), max(sh.newest, t)
	return true
}

func (sh *sheaf) stalk(ls labels.Labels) *stalk {
	key := string(ls.Bytes(nil))
	s := sh.known[key]
	if s == nil {
		s = &stalk{labels: ls, last: math.MinInt64, times: make([]int64, 0, chunkPoints), values: make([]float64, 0, chunkPoints)}
		sh.known[key] = s
		sh.series = append(sh.series, s)
	}
	return s
}

// commit encodes the chunks that are full, and writes a block when there is one.
func (sh *sheaf) commit() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.encode(); err != nil {
		return err
	}
	if !sh.held || sh.newest-sh.oldest < blockSpan {
		return nil
	}
	return sh.cut()
}

// encode turns the points of the full series into chunks.
func (sh *sheaf) encode() error {
	full := sh.full
	sh.full = sh.full[:0]
	failed := make([]error, len(full))
	workers := min(runtime.GOMAXPROCS(0), 1+len(full)/64)
	var g sync.WaitGroup
	for k := range workers {
		g.Go(func() {
			for i := k; i < len(full); i += workers {
				failed[i] = full[i].encode()
			}
		})
	}
	g.Wait()
	return errors.Join(failed...)
}

// encode turns the points kept into chunks.
func (s *stalk) encode() error {
	for from := 0; from < len(s.times); from += chunkPoints {
		to := min(from+chunkPoints, len(s.times))
		c := chunkenc.NewXORChunk()
		app, err := c.Appender()
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			app.Append(0, s.times[i], s.values[i])
		}
		c.Compact()
		s.done = append(s.done, chunks.Meta{Chunk: c, MinTime: s.times[from], MaxTime: s.times[to-1]})
	}
	s.times, s.values, s.queued = s.times[:0], s.values[:0], false
	return nil
}

// close writes what is left.
func (sh *sheaf) close() error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.held {
		return nil
	}
	return sh.cut()
}

// cut writes all that is there as a block.
func (sh *sheaf) cut() error {
	sh.full = sh.full[:0]
	for _, s := range sh.series {
		if len(s.times) > 0 {
			sh.full = append(sh.full, s)
		}
	}
	if err := sh.encode(); err != nil {
		return err
	}
	slices.SortFunc(sh.series, func(a, b *stalk) int { return labels.Compare(a.labels, b.labels) })
	sh.blocks++
	dir := filepath.Join(sh.dir, fmt.Sprintf("%026d", firstSheaf+sh.blocks))
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return err
	}
	meta := tsdb.BlockMeta{Version: 1, MinTime: sh.oldest, MaxTime: sh.newest + 1, Compaction: tsdb.BlockMetaCompaction{Level: 1}}
	sh.held = false
	if err := errors.Join(meta.ULID.UnmarshalText([]byte(filepath.Base(dir))), sh.write(dir, &meta.Stats)); err != nil {
		return err
	}
	if _, err := tombstones.WriteFile(slog.New(slog.DiscardHandler), dir, tombstones.NewMemTombstones()); err != nil {
		return err
	}
	data, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, metaFile), data, 0o644)
}

// firstSheaf keeps the names that blocks of floats have until they are renamed apart from the final ones.
const firstSheaf = 1_000_000

// write writes chunks and index of a block.
func (sh *sheaf) write(dir string, stats *tsdb.BlockStats) error {
	cw, err := chunks.NewWriter(filepath.Join(dir, "chunks"))
	if err != nil {
		return err
	}
	iw, err := index.NewWriter(context.Background(), filepath.Join(dir, "index"))
	if err != nil {
		return errors.Join(err, cw.Close())
	}
	return errors.Join(sh.writeSeries(cw, iw, stats), cw.Close(), iw.Close())
}

func (sh *sheaf) writeSeries(cw *chunks.Writer, iw *index.Writer, stats *tsdb.BlockStats) error {
	words := map[string]struct{}{}
	for _, s := range sh.series {
		if len(s.done) > 0 {
			s.labels.Range(func(l labels.Label) { words[l.Name], words[l.Value] = struct{}{}, struct{}{} })
		}
	}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if err := iw.AddSymbol(word); err != nil {
			return err
		}
	}
	for i, s := range sh.series {
		if len(s.done) == 0 {
			continue
		}
		if err := cw.WriteChunks(s.done...); err != nil {
			return err
		}
		if err := iw.AddSeries(storage.SeriesRef(i), s.labels, s.done...); err != nil {
			return err
		}
		stats.NumSeries++
		for k := range s.done {
			stats.NumChunks++
			stats.NumSamples += uint64(s.done[k].Chunk.NumSamples())
			s.done[k].Chunk = nil
		}
		s.done = s.done[:0]
	}
	stats.NumFloatSamples = stats.NumSamples
	return nil
}
