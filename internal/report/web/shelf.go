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
	"time"

	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

const (
	// lookEvery is how old what is known of the runs may be.
	lookEvery = 2 * time.Second
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

	mu     sync.Mutex
	looked time.Time
	cost   time.Duration // of the last look
	books  []*book       // newest first
	at     map[string]*book
	err    error
}

func newShelf(folders func() ([]string, error), now func() time.Time) *shelf {
	return &shelf{folders: folders, now: now, stores: newStores(now)}
}

func (s *shelf) close() error { return s.stores.close() }

// all are the runs there are, newest first. When the folder of all cannot be read, they are those of before, and an
// error.
func (s *shelf) all() ([]*book, error) {
	books, _, err := s.look()
	return books, err
}

// look is all, and the same by their identities.
func (s *shelf) look() ([]*book, map[string]*book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.looked.IsZero() && now.Sub(s.looked) < max(lookEvery, lazier*s.cost) && !now.Before(s.looked) {
		return s.books, s.at, s.err
	}
	s.looked = now
	dirs, err := s.folders()
	if s.err = err; err != nil {
		return s.books, s.at, s.err
	}
	known := make(map[string]*book, len(s.books))
	for _, b := range s.books {
		known[b.dir] = b
	}
	looked := make([]*book, len(dirs))
	var g sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		g.Go(func() {
			for i := w; i < len(dirs); i += workers {
				looked[i] = lookAt(dirs[i], known[dirs[i]])
			}
		})
	}
	g.Wait()
	books, at := make([]*book, 0, len(dirs)), make(map[string]*book, len(dirs))
	for _, b := range looked {
		if at[b.id] == nil { // a run of that name elsewhere could not be told from it
			at[b.id] = b
			books = append(books, b)
		}
	}
	slices.SortStableFunc(books, newestFirst)
	s.books, s.at, s.cost = books, at, s.now().Sub(now)
	s.stores.keep(dirs)
	return s.books, s.at, nil
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
		b.problem = err.Error()
		return b
	}
	b.manifest, b.metrics, b.readable = inList(folder.Manifest()), folder.MetricsDir(), true
	problems := folder.Problems()
	if b.labels, err = result.ReadLabels(dir); err != nil {
		problems = append(problems, err.Error())
	}
	b.problem = strings.Join(problems, "; ")
	if b.made = b.manifest.Created; b.manifest.Simulated || b.made.IsZero() {
		if info, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err == nil {
			b.made = info.ModTime().UTC()
		}
	}
	return b
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
