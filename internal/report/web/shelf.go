package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

const (
	// lookEvery is how old what is known of the runs may be.
	lookEvery = 2 * time.Second
	// lookWithin is how long a list waits for runs that are read for the first time.
	lookWithin = 150 * time.Millisecond
	// around is how far outside of a run's own times points of it may lie.
	around = time.Minute
)

// book is a run, as it was last looked at. It does not change.
type book struct {
	id       string // the folder's name, which is the run's identity
	dir      string
	above    string          // the folder two above it: an experiment, if it is a run of one
	metrics  string          // folder of its database
	manifest result.Manifest // what lists show of it: see inList
	labels   result.Labels
	problem  string // what could not be read of it
	readable bool
	made     time.Time // by the clock of the machine, also when the run's own time is simulated
	mark     string    // see markOf

	experiment *Experiment // of a book that stands for one; nil
}

// live reports whether a process executes the run.
func (b *book) live() bool { return b.manifest.Status == result.StatusExecuting }

// title returns what the scenario is called.
func (b *book) title() string {
	return cmp.Or(b.manifest.Scenario.DisplayName, b.manifest.Scenario.Name)
}

// took is how long a run that has ended took; 0 of any other.
func (b *book) took() time.Duration {
	if b.manifest.Ended.IsZero() {
		return 0
	}
	return max(0, b.manifest.Ended.Sub(b.manifest.Created))
}

// status is a word for people.
func (b *book) status() string {
	if b.experiment != nil {
		return "experiment"
	}
	if b.manifest.Status == "" {
		return "unreadable"
	}
	return b.manifest.Status
}

// shelf knows the runs there are.
type shelf struct {
	folders func() ([]string, error)
	now     func() time.Time
	stores  *stores

	index   string       // file that keeps what is known for the next server; "": none does
	version string       // of the program, for nobody else's index says what it shows
	read    atomic.Int64 // runs that were read from their folders
	wrote   int64        // of them when the index was written
	paused  func(int)    // tests only: called after each part of the first look; nil: not
	writing sync.WaitGroup

	reading sync.Mutex // held by who looks
	mu      sync.Mutex // guards the rest, for moments
	looked  time.Time
	cost    time.Duration // of the last look
	books   []*book       // newest first
	at      map[string]*book
	err     error
	left    int // runs that are still to be read by a look that takes long
}

func newShelf(o Options) *shelf {
	return &shelf{folders: o.Folders, now: o.Now, index: o.Index, version: indexForm + o.Version,
		stores: newStores(o.Now)}
}

func (s *shelf) close() error {
	s.writing.Wait()
	return s.stores.close()
}

// all are the runs there are, newest first. When the folder of all cannot be read, they are those of before, and an
// error.
func (s *shelf) all() ([]*book, error) {
	books, _, err := s.look()
	return books, err
}

// soon is all, but it does not wait for runs that take long to read: left are those that will be there later.
func (s *shelf) soon() (books []*book, left int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = s.look() // what went wrong stands beside what is known
	}()
	for over := false; ; {
		select {
		case <-done:
			over = true
		case <-time.After(lookWithin):
		}
		s.mu.Lock()
		books, left, err = s.books, s.left, s.err
		s.mu.Unlock()
		if over || left > 0 {
			return books, left, err
		}
	}
}

// look is all, and the same by their identities.
func (s *shelf) look() ([]*book, map[string]*book, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	now := s.now()
	if !s.looked.IsZero() && now.Sub(s.looked) < max(lookEvery, lazier*s.cost) && !now.Before(s.looked) {
		return s.books, s.at, s.err
	}
	first := s.looked.IsZero()
	s.looked = now
	dirs, err := s.folders()
	if err != nil {
		s.put(s.books, s.at, 0, err)
		return s.books, s.at, err
	}
	var known map[string]*book
	if first {
		known = recall(s.index, s.version)
	} else {
		known = make(map[string]*book, len(s.books))
		for _, b := range s.books {
			known[b.dir] = b
		}
	}
	looked := make([]*book, 0, len(dirs))
	for step := firstAtOnce; len(dirs) > len(looked); step = min(2*step, atOnce) {
		// Names begin with their times: the newest stand last, and are there first.
		to := len(dirs) - len(looked)
		from := max(0, to-step)
		looked = append(looked, s.lookAt(dirs[from:to], known)...)
		if first && from > 0 {
			books, at := ordered(looked)
			s.put(books, at, from, nil)
			if s.paused != nil {
				s.paused(from)
			}
		}
	}
	books, at := ordered(looked)
	s.put(books, at, 0, nil)
	s.cost = s.now().Sub(now)
	s.stores.keep(dirs)
	s.keep(books)
	return books, at, nil
}

// firstAtOnce is how many runs are looked at before any are shown for the first time: a slow disk gives them within
// the wait of a list. Then it is twice as many each time, up to atOnce.
const (
	firstAtOnce = 16
	atOnce      = 500
)

// lookAt looks at some runs.
func (s *shelf) lookAt(dirs []string, known map[string]*book) []*book {
	looked := make([]*book, len(dirs))
	var g sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		g.Go(func() {
			for i := w; i < len(dirs); i += workers {
				was := known[dirs[i]]
				if looked[i] = lookAt(dirs[i], was); looked[i] != was {
					s.read.Add(1)
				}
			}
		})
	}
	g.Wait()
	return looked
}

// ordered are runs, the newest first, and the same by their identities.
func ordered(looked []*book) ([]*book, map[string]*book) {
	books, at := make([]*book, 0, len(looked)), make(map[string]*book, len(looked))
	// Of two of one name only one can be shown; a run of an experiment hides none that stands by itself.
	depth := func(b *book) int { return strings.Count(b.dir, string(filepath.Separator)) }
	for _, b := range looked {
		switch was := at[b.id]; {
		case was == nil:
			books = append(books, b)
		case depth(b) < depth(was):
			books[slices.Index(books, was)] = b
		default:
			continue
		}
		at[b.id] = b
	}
	slices.SortStableFunc(books, newestFirst)
	return books, at
}

// put shows what is known from now on.
func (s *shelf) put(books []*book, at map[string]*book, left int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books, s.at, s.left, s.err = books, at, left, err
}

// keep writes what is known down for the next server, when that saves it reading many runs.
func (s *shelf) keep(books []*book) {
	read := s.read.Load()
	if s.index == "" || read-s.wrote < worthKeeping {
		return
	}
	s.wrote = read
	s.writing.Go(func() {
		_ = keepBooks(s.index, s.version, books) // without it the next server reads all runs, as this one did
	})
}

func newestFirst(x, y *book) int {
	return cmp.Or(y.made.Compare(x.made), strings.Compare(y.id, x.id))
}

// lookAt is a run as it is now; what is known of it may be nil. Of a run that has ended only what people change is
// looked at again; that a live run's process has died shows in no file.
func lookAt(dir string, known *book) *book {
	names := []string{"manifest.json", "labels.json"}
	if known == nil || known.manifest.Ended.IsZero() {
		names = append(names, "journal.jsonl", "lock")
	}
	mark := markOf(dir, names...)
	if known != nil && known.mark == mark && !known.live() {
		return known
	}
	b := open(dir)
	if b.mark = mark; !b.manifest.Ended.IsZero() {
		b.mark = markOf(dir, names[:2]...)
	}
	return &b
}

// inList returns what is kept of a manifest in memory, for as many runs as there are.
func inList(m result.Manifest) result.Manifest {
	return result.Manifest{RunID: m.RunID, Operator: m.Operator, Created: m.Created, Ended: m.Ended, Status: m.Status,
		Measured: m.Measured, Collected: m.Collected, Cleaned: m.Cleaned, Target: m.Target, ClusterName: m.ClusterName,
		Simulated: m.Simulated, Headline: m.Headline, FailedAsserts: m.FailedAsserts,
		Scenario: result.ScenarioInfo{Name: m.Scenario.Name, DisplayName: m.Scenario.DisplayName}}
}

// open reads what a list shows of a run.
func open(dir string) book {
	b := book{id: filepath.Base(dir), dir: dir, above: filepath.Dir(filepath.Dir(dir))}
	folder, err := result.Glance(dir)
	if err != nil {
		b.problem, b.made = err.Error(), result.Made(dir, result.Manifest{})
		return b
	}
	b.made = result.Made(dir, folder.Manifest())
	b.manifest, b.metrics, b.readable = inList(folder.Manifest()), folder.MetricsDir(), true
	problems := folder.Problems()
	if b.labels, err = result.ReadLabels(dir); err != nil {
		problems = append(problems, err.Error())
	}
	b.problem = strings.Join(problems, "; ")
	return b
}

// Listed is a run as lists show it.
type Listed struct {
	Dir      string
	Manifest result.Manifest // what lists show of it
	Labels   result.Labels
	Made     time.Time // by the clock of the machine, also when the run's own time is simulated or imported
	Problem  string    // what could not be read of it
}

// List returns the runs that a server would list, newest first, read with its index and kept in it.
func List(o Options) ([]Listed, error) {
	s := newShelf(o)
	books, err := s.all()
	list := make([]Listed, 0, len(books))
	for _, b := range books {
		list = append(list, Listed{b.dir, b.manifest, b.labels, b.made, b.problem})
	}
	return list, errors.Join(err, s.close())
}

// find returns the run with an identity.
func (s *shelf) find(id string) (book, bool) {
	_, at, _ := s.look()
	if b := at[id]; b != nil {
		return *b, true
	}
	return book{}, false
}

// members are the newest runs as members of a union; all when most is negative.
func (s *shelf) members(most int) []series.Member {
	books, _ := s.all() // of runs that cannot be listed nothing is known
	if most >= 0 && len(books) > most {
		books = books[:most]
	}
	out := make([]series.Member, 0, len(books))
	for _, b := range books {
		if !b.readable {
			continue // the list of runs says why
		}
		m := series.Member{Name: b.id, Open: func(ctx context.Context) (*series.Store, func(), error) {
			v, err := s.stores.borrow(ctx, *b)
			if err != nil {
				return nil, nil, err
			}
			return v.store, func() { s.stores.release(v) }, nil
		}}
		if !b.manifest.Created.IsZero() {
			m.From = b.manifest.Created.Add(-around)
		}
		if ended := b.manifest.Ended; !ended.IsZero() && !b.live() {
			m.To = ended.Add(around)
		}
		out = append(out, m)
	}
	return out
}

// markOf changes whenever one of the files does, as far as their sizes and times tell.
func markOf(dir string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			b.WriteString("-;")
			continue
		}
		b.WriteString(strconv.FormatInt(info.Size(), 36) + " " + strconv.FormatInt(info.ModTime().UnixNano(), 36) + ";")
	}
	return b.String()
}

// metricsMark changes whenever the files of a run's metrics do.
func metricsMark(dir string) string {
	var b strings.Builder
	for _, part := range []string{"", "wal", "wbl", "chunks_head"} {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(&b, "%v;", err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				fmt.Fprintf(&b, "%s/%s %d %d;", part, e.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}
