package step

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run/loads"
	"plimsoll/result"
	"plimsoll/scenario"
	"plimsoll/unit"
)

// Env holds what a step works with.
type Env struct {
	View
	Phase   scenario.Phase
	Cluster target.Cluster
	Clock   clock.Clock
	Loads   *loads.Set
	Power   *Power
	Looked  *Looked
	// Record enters an event into the journal; time, phase and step number are filled in when they are missing.
	Record func(result.Event)
	// Background runs f beside the steps that follow. It is cancelled and awaited at the end of the run phase; its
	// error fails the run.
	Background func(name string, f func(context.Context) error)
	// Dir is the run folder on this machine, where shell steps work.
	Dir string
}

// Note enters a sentence worth keeping into the journal.
func (e *Env) Note(format string, args ...any) {
	e.Record(result.Event{Kind: result.KindNote, Text: fmt.Sprintf(format, args...)})
}

// Warn enters a sentence worth the reader's attention into the journal.
func (e *Env) Warn(format string, args ...any) {
	e.Record(result.Event{Kind: result.KindWarning, Text: fmt.Sprintf(format, args...)})
}

// annotate draws a line on every chart when the step's author wants it, in the run phase only; in other phases the same
// words are a note.
func (e *Env) annotate(wanted bool, format string, args ...any) {
	if !wanted || e.Phase != scenario.Run {
		e.Note(format, args...)
		return
	}
	e.Record(result.Event{Kind: result.KindAnnotation, Text: fmt.Sprintf(format, args...)})
}

// fault enters an injected fault, or its end, with the node it hits. Faults are drawn on the charts as annotations are,
// so they take the place of the annotation that says the same.
func (e *Env) fault(node int, state, format string, args ...any) {
	e.Record(result.Event{
		Kind: result.KindFault, Name: e.NodeName(node), Text: fmt.Sprintf(format, args...),
		Data: result.EventData{Node: &node, Power: state},
	})
}

// pollEvery is how often a condition is looked at that the language looks at every 'full': shorter when time is scaled
// down, since the moments of interest are then closer together.
func (e *Env) pollEvery(full time.Duration) time.Duration {
	const shortest = 100 * time.Millisecond
	return min(full, max(e.Scaled(full), shortest))
}

// until looks every period until done says yes. Its error after the limit tells what was waited for and the last
// detail that done gave.
func (e *Env) until(ctx context.Context, what string, every, limit time.Duration,
	done func(context.Context) (ok bool, detail string, err error)) error {
	began := e.Clock.Now()
	limited, cancel := clock.WithTimeout(ctx, e.Clock, limit)
	defer cancel()
	last := ""
	for {
		ok, detail, err := done(limited)
		if ok {
			return nil
		}
		if detail != "" {
			last = detail
		}
		if err == nil {
			err = e.Clock.Sleep(limited, every)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			return fmt.Errorf("%s: not within %s%s", what, unit.Duration(limit), after("; last seen: ", last))
		case err != nil:
			return fmt.Errorf("%s, after %s: %w", what, unit.Duration(e.Clock.Now().Sub(began)), err)
		}
	}
}

// within runs f with a limit of its own.
func (e *Env) within(ctx context.Context, what string, limit time.Duration, f func(context.Context) error) error {
	limited, cancel := clock.WithTimeout(ctx, e.Clock, limit)
	defer cancel()
	err := f(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(limited), clock.ErrTimeout):
		return fmt.Errorf("%s: not done within %s: %w", what, unit.Duration(limit), err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// mostNamed is how many machines a message names.
const mostNamed = 3

// Power remembers the nodes that this run has switched off, and on again. It is safe for concurrent use.
type Power struct {
	mu   sync.Mutex
	off  map[int]time.Time
	back map[int]result.NodeReturn // on their way back
	vms  bool                      // some were switched off in the run phase
	// unknown is since when the state of no node was told.
	unknown time.Time
}

// silence is for how long the state of no node was told: 0 once one is.
func (p *Power) silence(told bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if told || p.unknown.IsZero() {
		p.unknown = now
	}
	d := now.Sub(p.unknown)
	if told {
		p.unknown = time.Time{}
	}
	return d
}

// markVMs remembers that a step of the run phase switches VMs off.
func (e *Env) markVMs() {
	e.Power.mu.Lock()
	defer e.Power.mu.Unlock()
	e.Power.vms = e.Power.vms || e.Phase == scenario.Run
}

// VMs reports whether a step of the run phase has switched VMs off.
func (p *Power) VMs() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.vms }

// markOff remembers that a node is told to be off.
func (p *Power) markOff(node int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off == nil {
		p.off, p.back = map[int]time.Time{}, map[int]result.NodeReturn{}
	}
	if _, off := p.off[node]; !off {
		p.off[node] = now
	}
	delete(p.back, node)
}

// markOn remembers that a node is told to be on, and reports whether this run had switched it off.
func (p *Power) markOn(node int, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, was := p.off[node]
	if was {
		p.back[node] = result.NodeReturn{Off: since, On: now}
		delete(p.off, node)
	}
	return was
}

// ready is the return of a node that is ready now, where it was on its way back.
func (p *Power) ready(node int, now time.Time) (r result.NodeReturn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok = p.back[node]; ok {
		r.Ready = now
		delete(p.back, node)
	}
	return r, ok
}

// Off reports which of the given nodes the run has switched off and not on again.
func (p *Power) Off(nodes []int) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var off []int
	for _, n := range nodes {
		if _, is := p.off[n]; is {
			off = append(off, n)
		}
	}
	return off
}

func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}
