package series

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/tsdb"
)

// The database takes it for impossible that its folder goes away while it writes, and panics then, at times in a
// goroutine of its own, which would end the process and the run with it. So every batch begins with a look whether the
// folder is still there. When it is not, the points in memory are written as a block into a folder made anew, the
// database is closed, and every later batch says what happened.

// places are the folders that a database which is written to must have.
var places = []string{".", "wal", "chunks_head"}

// settle takes note of the folders.
func (s *Store) settle() error {
	for _, name := range places {
		info, err := os.Stat(filepath.Join(s.db.Dir(), name))
		if err != nil {
			return err
		}
		s.folders = append(s.folders, info)
	}
	return nil
}

// missing is the error of a database whose folder was removed.
func (s *Store) missing() error {
	for i, was := range s.folders {
		name := filepath.Join(s.db.Dir(), places[i])
		if now, err := os.Stat(name); err != nil || !os.SameFile(was, now) {
			return fmt.Errorf("metrics: %s was removed while the run wrote to it", name)
		}
	}
	return nil
}

// intact looks whether the database can be written to. The first time that it cannot, it is closed.
func (s *Store) intact() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	err := s.missing()
	if err == nil {
		return nil
	}
	s.broken = fmt.Errorf("%w: points until then are kept, later ones are lost", err)
	if kept := s.rescue(); kept != nil {
		s.broken = fmt.Errorf("%w, and what it held is lost: %w", err, kept)
	}
	return s.broken
}

// told reports whether intact has given an error.
func (s *Store) told() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken != nil
}

// rescue writes what is in memory as a block and closes the database, which objects to what is missing.
func (s *Store) rescue() error {
	err := os.MkdirAll(s.db.Dir(), 0o755)
	if head := s.db.Head(); err == nil && s.blocks == nil && head.NumSeries() > 0 {
		err = guarded(func() error { return s.db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())) })
		if len(s.db.Blocks()) > 0 {
			err = nil // the block is there; it is the log that could not be cut
		}
	}
	_ = guarded(s.close)
	return err
}

// guarded turns a panic of the database into an error.
func guarded(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(err, fmt.Errorf("the database failed: %v", p))
		}
	}()
	return do()
}
