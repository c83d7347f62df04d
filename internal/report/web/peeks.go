package web

import (
	"sync"
	"time"

	"plimsoll/internal/report"
)

const (
	// peekWithin is how long a list waits for the figures of experiments: those that come later stand in the next one.
	peekWithin = 250 * time.Millisecond
	// peekEvery is how old the figures of an experiment that goes on may be.
	peekEvery = 10 * time.Second
)

// peek holds what a list shows of an experiment that was looked at.
type peek struct {
	report.Peek
	of     Experiment // as it was then
	looked time.Time
}

// peeks are those of all experiments that were listed, made one at a time.
type peeks struct {
	mu      sync.Mutex
	of      map[string]peek // by the folder
	asked   []Experiment
	working bool
	made    chan struct{} // closed and made anew with each
}

// fresh reports whether what is known of an experiment is good enough now.
func (p peek) fresh(e Experiment, now time.Time) bool {
	same := p.of.Made.Equal(e.Made) && p.of.Done == e.Done && p.of.Failed == e.Failed
	return !p.looked.IsZero() && (same || e.Done < e.Planned && now.Sub(p.looked) < peekEvery)
}

// peekAt returns what there is to show of experiments, by folder, after a moment at most; the rest is made meanwhile.
func (s *Site) peekAt(list []Experiment) map[string]report.Peek {
	if s.lib.Examine == nil {
		return nil
	}
	p := &s.peeks
	late := time.NewTimer(peekWithin)
	defer late.Stop()
	for {
		p.mu.Lock()
		if p.of == nil {
			p.of, p.made = map[string]peek{}, make(chan struct{})
		}
		out, missing, now := map[string]report.Peek{}, []Experiment(nil), s.now()
		for _, e := range list {
			known := p.of[e.Dir]
			if out[e.Dir] = known.Peek; !known.fresh(e, now) {
				missing = append(missing, e)
			}
		}
		made := p.made
		if p.asked = missing; len(missing) > 0 && !p.working {
			p.working = true
			go s.peekLoop()
		}
		p.mu.Unlock()
		if len(missing) == 0 {
			return out
		}
		select {
		case <-made:
		case <-late.C:
			return out
		case <-s.stopping.Done():
			return out
		}
	}
}

// peekLoop looks at the experiments that were asked for last until none is left.
func (s *Site) peekLoop() {
	p := &s.peeks
	for {
		p.mu.Lock()
		if len(p.asked) == 0 || s.stopping.Err() != nil {
			p.working = false
			p.mu.Unlock()
			return
		}
		e := p.asked[0]
		p.asked = p.asked[1:]
		p.mu.Unlock()
		made := peek{of: e, looked: s.now()}
		if x, err := s.lib.Examine(e.Dir); err == nil {
			made.Peek = report.PeekOf(x)
		} else {
			made.Figure, made.Sentence = "–", err.Error() // its page says it
		}
		p.mu.Lock()
		p.of[e.Dir] = made
		close(p.made)
		p.made = make(chan struct{})
		p.mu.Unlock()
	}
}
