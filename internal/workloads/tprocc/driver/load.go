package tprocc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll/hist"
	"plimsoll/unit"
)

// About what a warehouse and the items take as they are sent, for the time left.
const (
	warehouseBytes = 70_700_000
	itemBytes      = 7_700_000
)

// Load is a load of warehouses, and how far it is.
type Load struct {
	Dialect    Dialect
	Warehouses int
	Workers    int  // sessions that load at once
	Reload     bool // drop what is there of ours, of however many warehouses
	Data       Data

	bytes, total, done atomic.Int64
	mu                 sync.Mutex
	times              hist.Histogram
}

// Progress is how far a Load is.
type Progress struct {
	Bytes      uint64          // sent
	Warehouses int             // loaded, those of earlier times included
	Share      float64         // of what is to be sent, about
	Times      *hist.Histogram // of batches of 64 KiB, in nanoseconds, from when one was taken to when the next was
}

// Progress may be called from any goroutine.
func (l *Load) Progress() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := Progress{Bytes: uint64(l.bytes.Load()), Warehouses: int(l.done.Load()), Times: l.times.Clone()}
	if total := l.total.Load(); total > 0 {
		p.Share = min(1, float64(p.Bytes)/float64(total))
	}
	return p
}

// Run makes the schema where there is none, and loads what is not loaded: a warehouse that was begun is emptied first.
// What is complete is left as it is. It ends with what the server needs to run the transactions.
func (l *Load) Run(ctx context.Context) (err error) {
	s, err := l.Dialect.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing is lost with it
	if err := l.begin(s); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	state, err := states(l.Dialect, s)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if state[ready] != "" {
		l.done.Store(int64(l.Warehouses))
		// Another version of this program may have made them.
		if err := all(s, l.Dialect.Script(Procedures)); err != nil {
			return fmt.Errorf("load: make the procedures anew: %w", err)
		}
		return l.finish(s)
	}
	var todo []int
	for w := range l.Warehouses + 1 {
		if state[w] == loaded {
			l.done.Add(int64(min(w, 1)))
			continue
		}
		todo = append(todo, w)
		l.total.Add(warehouseBytes)
	}
	if len(todo) > 0 && todo[0] == 0 {
		l.total.Add(itemBytes - warehouseBytes)
	}
	if err := l.empty(s, todo, state); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if err := l.fill(ctx, todo); err != nil {
		return fmt.Errorf("load: %w; loaded are %d of %d warehouses, which stay: the next load goes on with the others", err,
			l.done.Load(), l.Warehouses)
	}
	for _, part := range []Part{Indexes, Procedures, Statistics} {
		if err := all(s, l.Dialect.Script(part)); err != nil {
			return fmt.Errorf("load: %w", err)
		}
	}
	if err := mark(l.Dialect, s, ready, loaded); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return l.finish(s)
}

func (l *Load) finish(s Session) error {
	if err := l.Dialect.Finish(s, l.Warehouses); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// How often, and how far apart, a lock is asked for that a loader that has just ended may still hold.
const (
	lockTries = 20
	lockPause = 100 * time.Millisecond
)

// begin makes the schema, or sees that it is ours and of this scale, and that nobody else loads it.
func (l *Load) begin(s Session) error {
	for tried := 0; ; tried++ {
		rows, err := s.Rows(l.Dialect.Lock())
		if err != nil {
			return err
		}
		if len(rows) == 1 && rows[0][0] == "1" {
			break
		}
		if tried == lockTries {
			return errors.New("another loader is at work in this database; wait until it has ended")
		}
		time.Sleep(lockPause) // a server lets go of a session's lock a moment after the session has closed
	}
	if l.Reload {
		if err := l.Dialect.Drop(s); err != nil {
			return err
		}
	}
	there, err := found(l.Dialect, s, l.Warehouses)
	if err == nil && !there {
		err = l.Dialect.Create(s, l.Warehouses)
	}
	if err == nil {
		err = all(s, l.Dialect.Script(Tables))
	}
	return err
}

// found sees whether there is a schema, and refuses one that is not ours or of another scale.
func found(d Dialect, s Session, warehouses int) (bool, error) {
	has, err := d.Find(s)
	if err == nil && has != 0 && has != warehouses {
		err = fmt.Errorf("schema %q has %s, not %d: say %d, or have it dropped and loaded anew with reload: true",
			strings.Trim(d.Schema(), "`."), unit.Plural(has, "warehouse"), warehouses, has)
	}
	return has != 0, err
}

const (
	ready  = -1 // the row of load_state that says that everything is there
	loaded = "loaded"
)

// states are what load_state says of warehouses; 0 stands for the items.
func states(d Dialect, s Session) (map[int]string, error) {
	rows, err := s.Rows(name(d, "SELECT warehouse, state FROM tprocc.load_state"))
	state := map[int]string{}
	for _, r := range rows {
		w, err := strconv.Atoi(r[0])
		if err != nil {
			return nil, fmt.Errorf("load_state: warehouse %q is no number", r[0])
		}
		state[w] = r[1]
	}
	return state, err
}

// mark writes down what has no rows yet: a load may be stopped between the two statements.
func mark(d Dialect, s Session, w int, state string) error {
	return all(s, []string{name(d, fmt.Sprintf("DELETE FROM tprocc.load_state WHERE warehouse = %d", w)),
		name(d, fmt.Sprintf("INSERT INTO tprocc.load_state (warehouse, state) VALUES (%d, '%s')", w, state))})
}

// fill loads what is to do with several sessions.
func (l *Load) fill(ctx context.Context, todo []int) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for _, w := range todo {
			select {
			case next <- w:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(max(l.Workers, 1), len(todo)) {
		group.Go(func() error {
			s, err := l.Dialect.Connect(ctx)
			if err != nil {
				return err
			}
			defer s.Close() //nolint:errcheck // nothing is lost with it
			for w := range next {
				if err := l.warehouse(s, w); err != nil {
					return fmt.Errorf("warehouse %d: %w", w, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// tablesOf are those of a warehouse; 0 is the items.
func tablesOf(w int) []Table {
	if w == 0 {
		return []Table{ItemTable}
	}
	return WarehouseTables
}

// empty deletes what is there of warehouses that were begun, and gives its room back before others are loaded.
func (l *Load) empty(s Session, todo []int, state map[int]string) error {
	begun := false
	for _, w := range todo {
		if state[w] == "" {
			continue
		}
		begun = true
		for _, t := range tablesOf(w) {
			where := ""
			if w > 0 {
				where = fmt.Sprintf(" WHERE %s = %d", t.Warehouse, w)
			}
			if err := s.Exec(name(l.Dialect, "DELETE FROM tprocc."+t.Name+where)); err != nil {
				return fmt.Errorf("warehouse %d: empty table %s: %w", w, t.Name, err)
			}
		}
	}
	if !begun {
		return nil
	}
	return all(s, l.Dialect.Script(Emptied))
}

// warehouse loads one; 0 is the items.
func (l *Load) warehouse(s Session, w int) error {
	if err := mark(l.Dialect, s, w, "loading"); err != nil {
		return err
	}
	for _, t := range tablesOf(w) {
		rows, err := l.Data.Read(t.Name, w)
		if err == nil {
			err = s.Copy(t, &counted{rows, l, time.Now()})
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	// In one statement: a warehouse with rows is never without its line.
	if err := s.Exec(name(l.Dialect, fmt.Sprintf("UPDATE tprocc.load_state SET state = '%s' WHERE warehouse = %d", loaded,
		w))); err != nil {
		return err
	}
	l.done.Add(int64(min(w, 1)))
	return nil
}

// counted counts what is read through it.
type counted struct {
	io.Reader
	load *Load
	last time.Time
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.load.bytes.Add(int64(n))
	now := time.Now()
	c.load.mu.Lock()
	c.load.times.Add(uint64(now.Sub(c.last)), 1)
	c.load.mu.Unlock()
	c.last = now
	return n, err
}
