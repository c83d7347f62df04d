package series

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"plimsoll/result"
)

// blockWriter collects the floats of a Timeless store and writes them as blocks, without the head and its log, which
// would cost several times as much: points are kept until a row has a chunk full of them, and once the chunks of a
// block's span are there they are written in the order of their series while points go on being collected. Memory
// therefore grows with the number of series, not with the length of the run.
//
// What is written depends on the points alone, whatever the number of processors.
type blockWriter struct {
	dir     string // of the database
	mu      sync.Mutex
	buffers []*buffer
	owners  map[string]*buffer // by the labels of each series: two rows may name the same ones
	series  []*memSeries       // of all buffers, in the order of their labels once sorted
	sorted  bool
	span    span // of the block in the making
	blocks  int

	writing sync.WaitGroup    // of the block before
	failed  error             // of writing it; read after waiting
	sums    map[string]string // of the large files of blocks, by their paths in dir; the same
}

// blockSpan is the time that one block covers, in milliseconds.
const blockSpan = 3600 * 1000

// span is the times of the oldest and newest of some points.
type span struct {
	some           bool
	oldest, newest int64
}

func (s *span) add(o span) {
	switch {
	case !o.some:
	case !s.some:
		*s = o
	default:
		s.oldest, s.newest = min(s.oldest, o.oldest), max(s.newest, o.newest)
	}
}

// buffer returns the place of a row's points, which is the same for two rows of the same series.
func (w *blockWriter) buffer(handles []*Handle) (*buffer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.owners[key(handles[0].labels)]; b != nil {
		if !slices.EqualFunc(b.series, handles, func(s *memSeries, h *Handle) bool {
			return labels.Equal(s.labels, h.labels)
		}) {
			return nil, fmt.Errorf("series %s is written in two rows that differ", handles[0].labels)
		}
		return b, nil
	}
	b := &buffer{last: math.MinInt64, times: make([]int64, 0, chunkPoints),
		values: make([]float64, 0, chunkPoints*len(handles))}
	for _, h := range handles {
		k := key(h.labels)
		if w.owners[k] != nil {
			return nil, fmt.Errorf("series %s is written in two rows that differ", h.labels)
		}
		w.owners[k] = b
		b.series = append(b.series, &memSeries{labels: h.labels})
	}
	w.buffers, w.series, w.sorted = append(w.buffers, b), append(w.series, b.series...), false
	return b, nil
}

func key(ls labels.Labels) string { return string(ls.Bytes(nil)) }

// commit takes note of points that were added, and writes a block when there is one.
func (w *blockWriter) commit(added span) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.span.add(added); !w.span.some || w.span.newest-w.span.oldest < blockSpan {
		return nil
	}
	return w.cut()
}

// close writes what is left.
func (w *blockWriter) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	if w.span.some {
		err = w.cut()
	}
	w.writing.Wait()
	return errors.Join(err, w.failed)
}

// cut begins to write all that is there as a block. It fails when the block before could not be written.
func (w *blockWriter) cut() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.writing.Wait()
	if w.failed != nil {
		return w.failed
	}
	if !w.sorted {
		slices.SortFunc(w.series, func(a, b *memSeries) int { return labels.Compare(a.labels, b.labels) })
		w.sorted = true
	}
	var full []chunkSeries
	for _, s := range w.series {
		if len(s.done) > 0 {
			full = append(full, chunkSeries{s.labels, s.done})
			s.done = make([]chunks.Meta, 0, len(s.done))
		}
	}
	w.blocks++
	name, covers := fmt.Sprintf("%026d", firstTemporary+w.blocks), w.span
	w.span = span{}
	w.writing.Go(func() {
		if w.failed = writeBlock(filepath.Join(w.dir, name), covers, full); w.failed == nil {
			w.failed = w.sum(name)
		}
	})
	return nil
}

// sum takes the sums of a block's large files, so that whoever closes the database need not read all of it again.
func (w *blockWriter) sum(block string) error {
	files, err := fs.Glob(os.DirFS(w.dir), block+"/chunks/*")
	for _, file := range append(files, block+"/index") {
		sum, bad := result.HashFile(context.Background(), filepath.Join(w.dir, file))
		err = errors.Join(err, bad)
		w.sums[file] = sum
	}
	return err
}

// flush turns the points that are left in all buffers into chunks.
func (w *blockWriter) flush() error {
	workers := min(runtime.GOMAXPROCS(0), 1+len(w.buffers)/64)
	failed := make([]error, workers)
	var g sync.WaitGroup
	for k := range workers {
		g.Go(func() {
			var to chunkEncoder
			for _, b := range part(w.buffers, k, workers) {
				failed[k] = errors.Join(failed[k], to.flush(b))
			}
		})
	}
	g.Wait()
	return errors.Join(failed...)
}

// part is the k-th of n parts of a list.
func part[T any](list []T, k, n int) []T { return list[k*len(list)/n : (k+1)*len(list)/n] }

// chunkSeries is a series with its chunks, ready to be written.
type chunkSeries struct {
	labels labels.Labels
	chunks []chunks.Meta
}

// firstTemporary keeps the names that blocks of floats have until they are renamed apart from the final ones.
const firstTemporary = 1_000_000

// writeBlock writes series, in the order of their labels, as a block.
func writeBlock(dir string, covers span, list []chunkSeries) error {
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return err
	}
	meta := tsdb.BlockMeta{Version: 1, MinTime: covers.oldest, MaxTime: covers.newest + 1,
		Compaction: tsdb.BlockMetaCompaction{Level: 1}}
	if err := errors.Join(meta.ULID.UnmarshalText([]byte(filepath.Base(dir))),
		writeSeries(dir, list, &meta.Stats)); err != nil {
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

// writeSeries writes chunks and index of a block.
func writeSeries(dir string, list []chunkSeries, stats *tsdb.BlockStats) (err error) {
	cw, err := chunks.NewWriter(filepath.Join(dir, "chunks"), chunks.WithSegmentSize(segmentBytes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cw.Close()) }()
	iw, err := index.NewWriter(context.Background(), filepath.Join(dir, "index"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, iw.Close()) }()
	words := map[string]struct{}{}
	for _, s := range list {
		s.labels.Range(func(l labels.Label) { words[l.Name], words[l.Value] = struct{}{}, struct{}{} })
	}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if err := iw.AddSymbol(word); err != nil {
			return err
		}
	}
	for i, s := range list {
		if err := cw.WriteChunks(s.chunks...); err != nil {
			return err
		}
		if err := iw.AddSeries(storage.SeriesRef(i), s.labels, s.chunks...); err != nil {
			return err
		}
		for k := range s.chunks {
			stats.NumSamples += uint64(s.chunks[k].Chunk.NumSamples())
			s.chunks[k].Chunk = nil
		}
		stats.NumChunks += uint64(len(s.chunks))
	}
	stats.NumSeries, stats.NumFloatSamples = uint64(len(list)), stats.NumSamples
	return nil
}
