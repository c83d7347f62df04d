// Package series is the embedded Prometheus of a run: a time series database in a folder, and PromQL over it. It is the
// only importer of Prometheus; none of its types cross this package's border.
//
// The run appends through a Batch once a second; results are evaluated with Range and Instant; a finished, crashed or
// growing database is opened with OpenReadOnly, which leaves its files as they are. A Union asks several databases as
// if they were one; Answer, Labels and OpenMetrics give what they hold in Prometheus' own forms. Data is kept for ever:
// a run folder is a document.
//
// Settings are chosen for a small process: few lock stripes, small write buffers, compressed write-ahead log in 16 MiB
// segments. Points may arrive up to OutOfOrderWindow late, so a clock that steps backwards loses none; a second point
// for the same series and millisecond replaces nothing and is dropped (first one wins). What was committed survives a
// kill of the process; a power cut may lose the last pages of the log.
//
// The package has no clock of its own and opens no port.
package series

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/compression"
)

// OutOfOrderWindow is how far behind its series' newest point a point may be and still be kept.
const OutOfOrderWindow = 2 * time.Hour

// MaxPoints is the most points per series that one Range may ask for, as Prometheus has it.
const MaxPoints = 11000

// Options of a Store.
type Options struct {
	// MaxSamples bounds what one query may hold in memory; 0 means 20 million (320 MB, reached only by queries over
	// very many series).
	MaxSamples int
	// MaxAnswer is the most points that one Answer has; 0 means a million.
	MaxAnswer int
	// QueryTimeout bounds one query with all its slices; 0 means two minutes.
	QueryTimeout time.Duration
	// Timeless has the same points make the same files, and a great many of them at little cost. It is for runs in
	// virtual time, which can be repeated: floats become blocks of an hour, without the log, so that a crash loses
	// those of the last block, and queries find them only when the database has been closed and opened again. Points of
	// a series must come in the order of time.
	Timeless bool
}

// Label is one label of a series.
type Label struct {
	Name, Value string
}

// Point is one value of a series.
type Point struct {
	Time  time.Time
	Value float64
}

// Series is one result of a query. Points of native histograms that a query returns bare are left out: use
// histogram_quantile and the like.
type Series struct {
	Labels []Label // sorted by name
	Points []Point // in time order; gaps are simply missing
}

// Label returns the value of a label, "" when it has none.
func (s Series) Label(name string) string {
	for _, l := range s.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Store is an open database. It is safe for concurrent use; a Batch is not.
type Store struct {
	Queries
	db      *tsdb.DB
	cleanup func() error // removes the folder of links on Close; may be nil
	known   *handles     // nil when open for reading only
	// counters are the database's own; nil when open for reading only.
	counters *prometheus.Registry
	blocks   *blockWriter // of a Timeless one

	folders []os.FileInfo // of places, when open for writing
	mu      sync.Mutex
	broken  error // why it cannot be written to any more; it is closed then
}

// Open opens or creates the database in dir for writing. A log cut short by a crash is repaired.
func Open(dir string, opts Options) (*Store, error) {
	counters := prometheus.NewRegistry()
	db, err := tsdb.Open(dir, nil, counters, settings(), nil)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s := newStore(db, opts)
	s.counters = counters
	if opts.Timeless {
		db.DisableCompactions()
		s.blocks = &blockWriter{dir: dir, owners: map[string]*buffer{}, sums: map[string]string{}}
	}
	if err := s.settle(); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), s.Close())
	}
	return s, nil
}

// segmentBytes is of a file of chunks, for all of which room is made when it is begun. Room is what a database must
// have free to be ended: that of two blocks that are written at once, and as much for the logs that they replace.
const (
	segmentBytes = 8 << 20
	Room         = 4 * segmentBytes
)

func settings() *tsdb.Options {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = 0 // keep everything
	o.MaxBytes = 0
	o.WALSegmentSize = 16 << 20
	o.MaxBlockChunkSegmentSize = segmentBytes
	o.WALCompression = compression.Snappy
	o.StripeSize = 1024
	o.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	o.WALReplayConcurrency = min(2, runtime.GOMAXPROCS(0))
	o.OutOfOrderTimeWindow = OutOfOrderWindow.Milliseconds()
	o.BlockReloadInterval = time.Hour // nobody else puts blocks here
	o.NoLockfile = true               // the run folder has its own lock
	return o
}

// viewSettings are those of a view, of which a server opens hundreds: what is only for writing is left out, and the
// logs where there are none. The log of what came late is read where it holds something.
func viewSettings(view string) *tsdb.Options {
	o := settings()
	o.StripeSize, o.OutOfOrderTimeWindow = 16, 0
	_, wal := os.Stat(filepath.Join(view, "wal"))
	_, wbl := os.Stat(filepath.Join(view, "wbl"))
	if errors.Is(wal, os.ErrNotExist) && errors.Is(wbl, os.ErrNotExist) {
		o.WALSegmentSize = -1
	}
	return o
}

func newStore(db *tsdb.DB, opts Options) *Store {
	return &Store{Queries: newQueries(db, opts), db: db, known: &handles{byKey: map[string]*Handle{}}}
}

// OpenReadOnly opens a finished, crashed or still growing database for queries. Nothing below dir is changed, also for
// a moment: the database is opened through links, and copies of what is still written to, in a folder of the system's
// temporary ones, which Close removes. It holds what was there at that time. Appending fails.
func OpenReadOnly(dir string, opts Options) (*Store, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("metrics: %s: no database there", dir)
	}
	s, err := openView(dir, opts)
	for range 2 {
		if err == nil {
			break
		}
		// A live database may have replaced blocks between the look at them and their opening.
		s, err = openView(dir, opts)
	}
	return s, err
}

func openView(dir string, opts Options) (*Store, error) {
	view, err := makeView(dir)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	db, err := tsdb.Open(view.Path, nil, nil, viewSettings(view.Path), nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %s: %w", dir, err), view.Remove())
	}
	db.DisableCompactions()
	s := newStore(db, opts)
	s.cleanup = view.Remove
	s.known = nil
	return s, nil
}

// Close flushes and closes the database. Queries under way are waited for. It is no error of Close when a batch has
// told that the folder is gone.
func (s *Store) Close() error {
	told := s.told()
	err := s.intact()
	switch {
	case told:
		err = nil
	case err == nil:
		err = guarded(s.close)
	}
	if s.cleanup != nil {
		err = errors.Join(err, s.cleanup())
	}
	if err != nil {
		return fmt.Errorf("metrics: close: %w", err)
	}
	return nil
}

func (s *Store) close() error {
	if s.blocks != nil {
		return s.seal()
	}
	return s.db.Close()
}

func byLabels(a, b Series) int {
	return slices.CompareFunc(a.Labels, b.Labels, func(x, y Label) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Value, y.Value))
	})
}

// Bounds returns the times of the oldest and newest point; ok is false when there are none.
func (s *Store) Bounds() (oldest, newest time.Time, ok bool) {
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for _, b := range s.db.Blocks() {
		low, high = min(low, b.MinTime()), max(high, b.MaxTime()-1)
	}
	if h := s.db.Head(); h.NumSeries() > 0 {
		low, high = min(low, h.MinTime()), max(high, h.MaxTime())
	}
	if low > high {
		return time.Time{}, time.Time{}, false
	}
	return time.UnixMilli(low).UTC(), time.UnixMilli(high).UTC(), true
}

func fromLabels(ls labels.Labels) []Label {
	out := make([]Label, 0, ls.Len())
	ls.Range(func(l labels.Label) { out = append(out, Label{l.Name, l.Value}) })
	return out
}
