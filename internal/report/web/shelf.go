package web

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	metrics  string // folder of its database
	manifest result.Manifest
	labels   result.Labels
	problem  string // what could not be read of it
	readable bool
	made     time.Time // by the clock of the machine, also when the run's own time is simulated
	mark     string    // see markOf

	experiment *Experiment // of a book that stands for one; nil
}

// live reports whether a process executes the run.
func (b book) live() bool { return b.manifest.Status == result.StatusExecuting }

// status is a word for people.
func (b book) status() string {
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
	books  []book // newest first
	err    error
}

func newShelf(folders func() ([]string, error), now func() time.Time) *shelf {
	return &shelf{folders: folders, now: now, stores: newStores(now)}
}

func (s *shelf) close() error { return s.stores.close() }

// all are the runs there are, newest first. When the folder of all cannot be read, they are those of before, and an
// error.
func (s *shelf) all() ([]book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.looked.IsZero() && now.Sub(s.looked) < lookEvery && !now.Before(s.looked) {
		return s.books, s.err
	}
	s.looked = now
	dirs, err := s.folders()
	if s.err = err; err != nil {
		return s.books, s.err
	}
	known := map[string]book{}
	for _, b := range s.books {
		known[b.dir] = b
	}
	books, names := make([]book, 0, len(dirs)), map[string]bool{}
	for _, dir := range dirs {
		mark := markOf(dir, "manifest.json", "journal.jsonl", "lock", "data.json", "labels.json")
		b, ok := known[dir]
		if !ok || b.mark != mark || b.live() { // that a live run's process has died shows in no file
			b = open(dir, mark)
		}
		if !names[b.id] { // a run of that name elsewhere could not be told from it
			names[b.id] = true
			books = append(books, b)
		}
	}
	slices.SortStableFunc(books, func(x, y book) int {
		if c := y.made.Compare(x.made); c != 0 {
			return c
		}
		return strings.Compare(y.id, x.id)
	})
	s.books = books
	s.stores.keep(dirs)
	return s.books, nil
}

// open reads what a list shows of a run.
func open(dir, mark string) book {
	b := book{id: filepath.Base(dir), dir: dir, mark: mark}
	folder, err := result.Open(dir)
	if err != nil {
		b.problem = err.Error()
		return b
	}
	b.manifest, b.metrics, b.readable = folder.Manifest(), folder.MetricsDir(), true
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
	books, _ := s.all()
	at := slices.IndexFunc(books, func(b book) bool { return b.id == id })
	if at < 0 {
		return book{}, false
	}
	return books[at], true
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
			v, err := s.stores.take(ctx, b)
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
			fmt.Fprintf(&b, "%s -;", name)
			continue
		}
		fmt.Fprintf(&b, "%s %d %d;", name, info.Size(), info.ModTime().UnixNano())
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
