package cli

import (
	"context"
	"os"
	"sync"

	"plimsoll/internal/run"
)

// stopper turns Ctrl-C into an orderly stop: the first ends the run's context, the second abandons the teardown, the
// third does not wait for the run to return any more.
type stopper struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	signals <-chan os.Signal
	abandon chan struct{}
	leave   chan struct{}
	done    chan struct{}
	release func()

	mu    sync.Mutex
	first func() // told of the first signal; may be nil
}

// tell has f called at the first signal.
func (s *stopper) tell(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = f
}

func newStopper(signals <-chan os.Signal) *stopper {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &stopper{
		ctx: ctx, cancel: cancel, signals: signals,
		abandon: make(chan struct{}), leave: make(chan struct{}), done: make(chan struct{}),
	}
	s.release = sync.OnceFunc(func() { close(s.done); cancel(nil) })
	go s.listen()
	return s
}

func (s *stopper) listen() {
	for n := 1; n <= 3; n++ {
		select {
		case <-s.signals:
		case <-s.done:
			return
		}
		switch n {
		case 1:
			s.mu.Lock()
			if s.first != nil {
				s.first()
			}
			s.mu.Unlock()
			s.cancel(errInterrupted)
		case 2:
			close(s.abandon)
		case 3:
			close(s.leave)
		}
	}
}

// wait executes a run and returns when it has, or when the user has lost patience.
func (s *stopper) wait(execute func(context.Context) (run.Summary, error)) (run.Summary, error) {
	type outcome struct {
		summary run.Summary
		err     error
	}
	ended := make(chan outcome, 1)
	go func() {
		summary, err := execute(s.ctx)
		ended <- outcome{summary, err}
	}()
	select {
	case o := <-ended:
		return o.summary, o.err
	case <-s.leave:
		return run.Summary{}, fail(exitInterrupted, `"plimsoll cleanup" removes what remains, "plimsoll report latest" reads what was measured`, "run: left without teardown")
	}
}
