package web

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

var (
	// errBusy is the answer to more than can wait, and to what has waited for too long.
	errBusy = errors.New("too many questions at a time: ask again in a moment")
	// errTooLong is the answer to a question that took too long.
	errTooLong = errors.New("it takes too long: ask for less, or in longer steps")
	// errTooMuch is the answer to a question during which memory ran short.
	errTooMuch = errors.New("memory runs short, with what else is asked at the time: ask for less, or in longer steps")
)

// stream lets so many through at a time. Questions have one and pages have one, so that neither waits for the other.
type stream struct {
	turns   chan struct{}
	waiting atomic.Int32
}

func newStream(most int) *stream { return &stream{turns: make(chan struct{}, most)} }

// enter takes a place in the queue, before anything of the request is read. Call leave when its turn has come, or when
// it is not waited for any more.
func (l *stream) enter() (leave func(), err error) {
	if l.waiting.Add(1) > mostWaiting {
		l.waiting.Add(-1)
		return nil, errBusy
	}
	return func() { l.waiting.Add(-1) }, nil
}

// turn waits until it is the turn of who entered. Call done after it.
func (l *stream) turn(ctx context.Context) (done func(), err error) {
	select {
	case <-ctx.Done(): // first: of two that are ready any is taken
		return nil, late(ctx)
	default:
	}
	select {
	case l.turns <- struct{}{}:
		return func() { <-l.turns }, nil
	case <-ctx.Done():
		return nil, late(ctx)
	}
}

// late is why somebody's turn did not come.
func late(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errTooLong) {
		return err
	}
	return errBusy
}

// limited is a context that ends after a time, when the site stops, and with the one that it is made of: when whoever
// asks has gone.
func (s *Site) limited(ctx context.Context, longest time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeoutCause(ctx, longest, errTooLong)
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.stopping, func() { cancel(errClosed) })
	return ctx, func() { unhook(); cancel(nil); end() }
}

// frugal is a context that ends when the heap has become too large. What a query takes cannot be told beforehand: it
// depends on how many series there are, and for how long each. Databases that nobody asks any more are closed first.
func (s *Site) frugal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		look := time.NewTicker(lookAtHeap)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if heapNow() <= s.heap {
				continue
			}
			cancel(errTooMuch)
			s.shelf.stores.trim(0)
			debug.FreeOSMemory()
			return
		}
	}()
	return ctx, func() { cancel(nil) }
}

// heapNow is how many bytes are on the heap, with what was left there since the last collection.
func heapNow() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
