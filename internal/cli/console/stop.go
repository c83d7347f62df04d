package console

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

var ErrInterrupted = errors.New("interrupted")

// asOne is the time within which the signals of one request to stop come: timeout(1) sends SIGTERM to its child and
// then to its group, systemd may send SIGHUP besides, a terminal that closes has the shell and the kernel send SIGHUP.
const asOne = time.Second

// Stopper turns signals into an orderly stop: the first of the command ends ctx, the second has app.main return at
// once, whatever the command is doing. A SIGTERM counts only when it does not come with one before, SIGHUP only as the
// first; a person's Ctrl-C always does. SIGQUIT also writes down where all goroutines are.
type Stopper struct {
	Ctx     context.Context
	con     *Console
	left    error // of the second signal
	Release func()

	mu    sync.Mutex
	first func() // told of the first signal; may be nil
	dir   string // where stacks are written, once it exists
}

// Tell has f called at the first signal.
func (s *Stopper) Tell(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = f
}

// About names the run folder that is about to be made.
func (s *Stopper) About(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir = dir
}

// listen takes the signals that ask to stop, until release. Commands that do not listen are ended by them as usual.
// With left the command says what leaving at the second signal means.
func (c *Console) listen(left error) *Stopper {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &Stopper{Ctx: ctx, con: c, left: left}
	signals, done := c.Signals, make(chan struct{})
	stop := func() {}
	if signals == nil {
		coming, all := make(chan os.Signal, 2), []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
		if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
			all = append(all, syscall.SIGHUP)
		}
		signal.Notify(coming, all...)
		signals, stop = coming, func() {
			if c.stops.Load() > 0 { // it has stopped in order: one more at the very end does not change how it ended
				signal.Ignore(all...)
				return
			}
			signal.Stop(coming)
		}
	}
	s.Release = sync.OnceFunc(func() { close(done); stop(); cancel(nil) })
	if c.stops.Load() > 0 { // an earlier part of the command was told already
		cancel(ErrInterrupted)
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

func (s *Stopper) heard(sig os.Signal, cancel context.CancelCauseFunc) {
	c := s.con
	c.heard.Lock()
	now := time.Now()
	same := c.stops.Load() > 0 && (sig == syscall.SIGHUP || sig == syscall.SIGTERM && now.Sub(c.lastStop) < asOne)
	c.lastStop = now
	c.heard.Unlock()
	if same {
		return
	}
	n := c.stops.Add(1)
	cause := ErrInterrupted
	if sig == syscall.SIGTERM {
		cause = run.ErrTerminated
	}
	cancel(cause)
	s.mu.Lock()
	first, dir := s.first, s.dir
	s.mu.Unlock()
	if sig == syscall.SIGQUIT {
		s.con.stacks(dir)
	}
	if n > 1 {
		select {
		case s.con.leave <- s.left:
		default: // on its way out already
		}
	} else if first != nil {
		go first() // it may wait for the terminal, and the next signal must not
	}
}

// stacks writes where all goroutines are, into the run folder when it is there, and says into which file.
func (c *Console) stacks(dir string) {
	if _, err := os.Stat(dir); err != nil {
		dir = "."
	}
	name, err := filepath.Abs(filepath.Join(dir, "stacks-"+c.Now().UTC().Format("20060102-150405")+".txt"))
	if err == nil {
		err = outfile.Replace(name, func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 2) })
	}
	if err != nil {
		visible.Fprintf(c.Err, "warning: stacks of all goroutines: %v\n", err)
		return
	}
	visible.Fprintf(c.Err, "stacks of all goroutines: %s\n", name)
}

// Interruptible is a context that ends at the first signal, with errInterrupted as its cause. Call the function when
// done.
func (c *Console) Interruptible() (context.Context, func()) {
	s := c.listen(exit.Errorf(exit.Interrupted, "", "%w", ErrInterrupted))
	return s.Ctx, s.Release
}

// Stoppable is for commands that make machines.
func (c *Console) Stoppable() *Stopper {
	const hint = `"plimsoll cleanup" ends and removes what remains, "plimsoll report latest" reads what was measured`
	surviveWriting()
	return c.listen(exit.Errorf(exit.Interrupted, hint, "run: left without teardown"))
}

// UntilLeft returns what a command returns, or what its second signal means as soon as that comes: the command is
// left where it is, as by a kill.
func (c *Console) UntilLeft(command func() error) error {
	ended := make(chan error, 1)
	c.leave = make(chan error, 1)
	go func() { ended <- command() }()
	select {
	case err := <-ended:
		return err
	case err := <-c.leave:
		return err
	}
}
