package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run"
)

var errInterrupted = errors.New("interrupted")

// asOne is the time within which the signals of one request to stop come: timeout(1) sends SIGTERM to its child and
// then to its group, systemd may send SIGHUP besides, a terminal that closes has the shell and the kernel send SIGHUP.
const asOne = time.Second

// stopper turns signals into an orderly stop: the first of the command ends ctx, the second has app.main return at
// once, whatever the command is doing. A SIGTERM counts only when it does not come with one before, SIGHUP only as the
// first; a person's Ctrl-C always does. SIGQUIT also writes down where all goroutines are.
type stopper struct {
	ctx     context.Context
	app     *app
	left    error // of the second signal
	release func()

	mu    sync.Mutex
	first func() // told of the first signal; may be nil
	dir   string // where stacks are written, once it exists
}

// tell has f called at the first signal.
func (s *stopper) tell(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = f
}

// about names the run folder that is about to be made.
func (s *stopper) about(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
}

// listen takes the signals that ask to stop, until release. Commands that do not listen are ended by them as usual.
// With left the command says what leaving at the second signal means.
func (a *app) listen(left error) *stopper {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &stopper{ctx: ctx, app: a, left: left}
	signals, done := a.signals, make(chan struct{})
	stop := func() {}
	if signals == nil {
		c, all := make(chan os.Signal, 2), []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
		if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
			all = append(all, syscall.SIGHUP)
		}
		signal.Notify(c, all...)
		signals, stop = c, func() {
			if a.stops.Load() > 0 { // it has stopped in order: one more at the very end does not change how it ended
				signal.Ignore(all...)
				return
			}
			signal.Stop(c)
		}
	}
	s.release = sync.OnceFunc(func() { close(done); stop(); cancel(nil) })
	if a.stops.Load() > 0 { // an earlier part of the command was told already
		cancel(errInterrupted)
	}
	go func() {
		for {
			select {
			case sig := <-signals:
				s.heard(sig, cancel)
			case <-done:
				return
			}
		}
	}()
	return s
}

// surviveWriting has writes fail that the system would have this process die of: to a pipe whose reader is gone, as of
// "| head", and beyond a limit of file sizes. Load and machines would be left behind. The signals are not ignored but
// taken and dropped, for what is ignored is so in every program that is started.
var surviveWriting = sync.OnceFunc(func() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGXFSZ)
})

func (s *stopper) heard(sig os.Signal, cancel context.CancelCauseFunc) {
	a := s.app
	a.heard.Lock()
	now := time.Now()
	same := a.stops.Load() > 0 && (sig == syscall.SIGHUP || sig == syscall.SIGTERM && now.Sub(a.lastStop) < asOne)
	a.lastStop = now
	a.heard.Unlock()
	if same {
		return
	}
	n := a.stops.Add(1)
	cause := errInterrupted
	if sig == syscall.SIGTERM {
		cause = run.ErrTerminated
	}
	cancel(cause)
	s.mu.Lock()
	first, dir := s.first, s.dir
	s.mu.Unlock()
	if sig == syscall.SIGQUIT {
		s.app.stacks(dir)
	}
	if n > 1 {
		select {
		case s.app.leave <- s.left:
		default: // on its way out already
		}
	} else if first != nil {
		go first() // it may wait for the terminal, and the next signal must not
	}
}

// stacks writes where all goroutines are, into the run folder when it is there, and says into which file.
func (a *app) stacks(dir string) {
	if _, err := os.Stat(dir); err != nil {
		dir = "."
	}
	name, err := filepath.Abs(filepath.Join(dir, "stacks-"+a.now().UTC().Format("20060102-150405")+".txt"))
	if err == nil {
		err = outfile.Replace(name, func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 2) })
	}
	if err != nil {
		visible.Fprintf(a.err, "warning: stacks of all goroutines: %v\n", err)
		return
	}
	visible.Fprintf(a.err, "stacks of all goroutines: %s\n", name)
}

// interruptible is a context that ends at the first signal, with errInterrupted as its cause. Call the function when
// done.
func (a *app) interruptible() (context.Context, func()) {
	s := a.listen(exit.Errorf(exit.Interrupted, "", "%w", errInterrupted))
	return s.ctx, s.release
}

// stoppable is for commands that make machines.
func (a *app) stoppable() *stopper {
	const hint = `"plimsoll cleanup" ends and removes what remains, "plimsoll report latest" reads what was measured`
	surviveWriting()
	return a.listen(exit.Errorf(exit.Interrupted, hint, "run: left without teardown"))
}

// untilLeft returns what a command returns, or what its second signal means as soon as that comes: the command is
// left where it is, as by a kill.
func (a *app) untilLeft(command func() error) error {
	ended := make(chan error, 1)
	a.leave = make(chan error, 1)
	go func() { ended <- command() }()
	select {
	case err := <-ended:
		return err
	case err := <-a.leave:
		return err
	}
}
