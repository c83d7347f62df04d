package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run"
	"plimsoll/result"
)

// detachedVariable is in the environment of a process that run --detach has made. On descriptor 3 it tells which folder
// it has made, once.
const detachedVariable = "PLIMSOLL_DETACHED"

// detach makes a run in a process of its own, which no terminal's end reaches, and returns when its folder is there, or
// with what it says when it comes to none.
func (rn *runner) detach() error {
	fail := func(err error) error { return exit.Errorf(exit.Failed, "", "run: --detach: %w", err) }
	if err := os.MkdirAll(rn.RunsDir, 0o755); err != nil {
		return fail(err)
	}
	log, err := outfile.Temporary(rn.RunsDir, 0o666) // cleanup finds it when this process is killed
	if err != nil {
		return fail(err)
	}
	defer log.Close() // the other process writes it
	told, telling, err := os.Pipe()
	if err != nil {
		return fail(errors.Join(err, os.Remove(log.Name())))
	}
	defer told.Close()
	ctx, stop := rn.Interruptible()
	defer stop()
	cmd := exec.Command("/proc/self/exe", rn.args...)
	cmd.Args[0] = "plimsoll"
	cmd.Env = append(os.Environ(), detachedVariable+"=1")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{telling}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if err = errors.Join(err, telling.Close()); err != nil {
		return fail(errors.Join(err, os.Remove(log.Name())))
	}
	unwatched := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it says so itself
	dir, err := bufio.NewReader(told).ReadString('\n')
	if !unwatched() || err != nil {
		return undetached(rn.Console, cmd, log)
	}
	dir = strings.TrimSuffix(dir, "\n")
	id := filepath.Base(dir)
	if rn.JSON {
		return rn.PrintJSON(struct {
			RunID   string `json:"run_id"`
			Dir     string `json:"dir"`
			Process int    `json:"process"`
		}{id, dir, cmd.Process.Pid})
	}
	visible.Fprintf(rn.Out, "%s goes on in process %d\n", id, cmd.Process.Pid)
	visible.Fprintf(rn.Notes(), "plimsoll attach %s shows it, with --stop ends it in order\n", id)
	return nil
}

// undetached prints what a process said that has ended without a run, or was stopped, and passes its exit code on.
func undetached(con *console.Console, cmd *exec.Cmd, log *os.File) error {
	err := cmd.Wait()
	data, readError := os.ReadFile(log.Name())
	_ = os.Remove(log.Name()) // a run that was made after all has it in its folder
	visible.Fprintf(con.Err, "%s", visible.Lines(data))
	if err == nil && readError == nil {
		return nil
	}
	code := exit.Failed
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() > 0 {
		code = cmd.ProcessState.ExitCode()
	}
	return &exit.Error{Code: code, Err: errors.Join(err, readError), Said: len(data) > 0}
}

// teller tells the process that made this one which folder it has made; it is nil where nobody waits to hear it.
type teller struct {
	once sync.Once
	to   *os.File
	// what this process prints, locked until it ends: the run folder is given up before the summary is printed
	log *os.File
}

// detached is the teller of a process that run --detach has made, nil of others. What is started from here is not told.
func detached() *teller {
	if os.Getenv(detachedVariable) == "" {
		return nil
	}
	_ = os.Unsetenv(detachedVariable)
	syscall.CloseOnExec(3)
	return &teller{to: os.NewFile(3, "told")}
}

// made moves what was printed so far, and all that will be, into the folder, and tells that it is there.
func (t *teller) made(dir string) {
	if t == nil {
		return
	}
	t.once.Do(func() {
		if log, err := os.Readlink("/proc/self/fd/1"); err == nil {
			if t.log, err = os.OpenFile(log, os.O_RDONLY, 0); err == nil { // of its own: no child inherits the lock
				_ = unix.Flock(int(t.log.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			}
			_ = os.Rename(log, filepath.Join(dir, result.OutputFile)) // else it stays where it is, complete
		}
		_, _ = t.to.WriteString(dir + "\n") // who waited may be gone
		_ = t.to.Close()
	})
}

// whenMade has a teller told of the folder of a run as soon as that is there.
type whenMade struct {
	run.Observer
	tell *teller
	dir  string
}

// Event implements run.Observer.
func (w whenMade) Event(e result.Event) {
	w.tell.made(w.dir)
	w.Observer.Event(e)
}
