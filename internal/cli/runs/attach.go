package runs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/progress"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/run/experiment"
	"plimsoll/internal/run/plan"
	"plimsoll/result"
)

func (st *Store) AttachCommand() *cobra.Command {
	var end bool
	c := &cobra.Command{
		Use: "attach [RUN]", Short: "Show a run that goes on, and how it ends", Args: console.Args(0, 1, "run"),
		Long: `Attach shows what a run prints that goes on in another process, as one made with "plimsoll run --detach" does,
until it ends, and exits as it did. Ctrl-C leaves it alone and goes on without it. With --stop the run is asked to stop
first: its workloads end, teardown runs, data is kept. Without a RUN the newest that goes on is meant.

` + RunHelp,
		Example:           "  plimsoll attach\n  plimsoll attach 20261121-2045 --stop",
		ValidArgsFunction: st.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			dir, err := st.toAttach(given)
			if err != nil {
				return err
			}
			return st.attach(dir, end)
		},
	}
	c.Flags().BoolVar(&end, "stop", false, "ask the run to stop, and wait until it has torn down")
	return c
}

// toAttach is the folder of the run or experiment that is meant.
func (st *Store) toAttach(given []string) (string, error) {
	if len(given) > 0 {
		if dir, ok := st.FindExperiment(given[0]); ok {
			return dir, nil
		}
		return st.Find("attach", given[0])
	}
	experiments, err := experiment.List(st.RunsDir)
	runs, err2 := result.Folders(st.RunsDir)
	if err := errors.Join(err, err2); err != nil {
		return "", exit.Errorf(exit.Failed, "", "attach: %w", err)
	}
	going := slices.DeleteFunc(slices.Concat(experiments, runs), func(dir string) bool { return !held(lockOf(dir)) })
	if len(going) == 0 {
		return "", exit.Errorf(exit.Failed, "plimsoll runs shows those that have ended", "attach: no run in %q goes on",
			st.RunsDir)
	}
	// identities begin with the time
	return slices.MaxFunc(going, func(x, y string) int {
		return strings.Compare(filepath.Base(x), filepath.Base(y))
	}), nil
}

// lockOf is the file whose lock the process holds that makes a run or an experiment.
func lockOf(dir string) string {
	if experiment.Is(dir) {
		return filepath.Join(dir, experiment.LockFile)
	}
	return filepath.Join(dir, result.LockFile)
}

// held reports whether some process holds the lock of a file.
func held(lock string) bool {
	f, err := regular.Open(lock, os.O_RDONLY|regular.NoLinks)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// holder is the process that has taken a lock, 0 when none can be seen, as that of another user. Those that merely have
// the file open are others that attach.
func holder(lock string) int {
	lock, err := filepath.Abs(lock)
	if err == nil {
		lock, err = filepath.EvalSymlinks(lock)
	}
	if err != nil {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is sound
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != lock {
			continue
		}
		process := filepath.Dir(filepath.Dir(link))
		pid, err := strconv.Atoi(filepath.Base(process))
		about, _ := os.ReadFile(filepath.Join(process, "fdinfo", filepath.Base(link))) // it may have ended meanwhile
		if err == nil && hasTaken(string(about), pid) {
			return pid
		}
	}
	return 0
}

// hasTaken reports whether what the kernel says of a descriptor names the process as who took its lock. A child that
// has inherited the descriptor did not.
func hasTaken(about string, pid int) bool {
	for line := range strings.Lines(about) {
		// lock:	1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF
		word := strings.Fields(line)
		if len(word) > 5 && word[0] == "lock:" && word[2] == "FLOCK" && word[4] == "WRITE" &&
			word[5] == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

// asking is the signal that asks a process to stop, and never more than that however often it comes: SIGHUP, unless
// nohup has it ignored.
func asking(pid int) syscall.Signal {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		text, found := strings.CutPrefix(line, "SigIgn:")
		ignored, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if found && err == nil && ignored&1 != 0 { // signal 1
			return syscall.SIGTERM
		}
	}
	return syscall.SIGHUP
}

func (st *Store) attach(dir string, end bool) error {
	lock, id := lockOf(dir), filepath.Base(dir)
	ctx, release := st.Interruptible()
	defer release()
	if end && held(lock) {
		pid := holder(lock)
		switch {
		case !held(lock): // it has ended meanwhile
		case pid == 0:
			return exit.Errorf(exit.Failed, "ask as the user that runs it",
				"attach: %s: the process that makes it is not to be seen from here", id)
		default:
			if err := syscall.Kill(pid, asking(pid)); err != nil && !errors.Is(err, syscall.ESRCH) {
				return exit.Errorf(exit.Failed, "", "attach: %s: process %d: %w", id, pid, err)
			}
			visible.Fprintf(st.Notes(), "asked process %d to stop\n", pid)
		}
	}
	shown, err := follow(ctx, st.Console, dir, lock)
	switch {
	case err != nil:
		return exit.Errorf(exit.Failed, "", "attach: %s: %w", id, err)
	case ctx.Err() != nil && held(lock):
		return exit.Errorf(exit.Interrupted, "plimsoll attach "+id+" shows it again, with --stop ends it",
			"attach: left; %s goes on", id)
	case experiment.Is(dir):
		return nil
	}
	return st.attachedEnd(dir, id, shown, end)
}

// attachedEnd says how a run has ended, in words unless they were shown, and with its exit code.
func (st *Store) attachedEnd(dir, id string, shown, end bool) error {
	folder, err := result.Open(dir)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "attach: %w", err)
	}
	if !shown || st.JSON {
		if err := st.showRun(dir + string(filepath.Separator)); err != nil {
			return err
		}
	}
	m := folder.Manifest()
	switch {
	case m.Cleaned.State == "partly":
		return exit.Errorf(exit.Uncleaned, "plimsoll cleanup "+id+" tries again", "attach: %s: %s", id,
			m.Cleaned.Reason)
	case m.Status == result.StatusSucceeded, m.Status == result.StatusStopped && end:
		return nil
	case m.Status == result.StatusStopped:
		return exit.Errorf(exit.Interrupted, "", "attach: %s was stopped on request", id)
	case m.Status == result.StatusInterrupted:
		return exit.Errorf(exit.Failed, "plimsoll cleanup "+id+" ends and removes what remains",
			"attach: %s: the process that made it has ended without a word", id)
	}
	if strings.HasPrefix(m.Error, "threshold: ") {
		return exit.Errorf(exit.Threshold, "", "attach: %s: %s", id, m.Error)
	}
	return exit.Errorf(exit.Failed, "", "attach: %s: %s", id, m.Error)
}

// follow shows what a run prints until its locks are free or ctx done: its own words where they are kept, else its
// journal. It reports whether the words hold how the run ended.
func follow(ctx context.Context, con *console.Console, dir, lock string) (shown bool, err error) {
	output := filepath.Join(dir, result.OutputFile)
	log, err := regular.Open(output, os.O_RDONLY|regular.NoLinks)
	if err == nil {
		defer log.Close()
		goesOn := func() bool { return held(lock) || held(output) }
		return true, tail(ctx, log, goesOn, func(line []byte) {
			visible.Fprintf(con.Notes(), "%s", visible.Lines(line))
		})
	}
	journal, err := regular.Open(filepath.Join(dir, "journal.jsonl"), os.O_RDONLY|regular.NoLinks)
	if errors.Is(err, os.ErrNotExist) { // of an experiment that goes on elsewhere the runs have one
		return false, waitFree(ctx, lock)
	}
	if err != nil {
		return false, err
	}
	defer journal.Close()
	var p plan.Plan
	if folder, err := result.Open(dir); err == nil {
		var steps struct{ Steps []json.RawMessage }
		if data, err := folder.Plan(); err == nil && json.Unmarshal(data, &steps) == nil {
			p.Steps = make([]plan.Step, len(steps.Steps))
		}
	}
	var at time.Time // of the run, which may be simulated or have ended long ago
	w := progress.New(con.Notes(), con.Now, func() time.Time { return at }, &p)
	return false, tail(ctx, journal, func() bool { return held(lock) }, func(line []byte) {
		var e result.Event
		if json.Unmarshal(line, &e) == nil {
			at = e.Time.In(con.Now().Location())
			w.Event(e)
		}
	})
}

// attachEvery is how often a run that goes on is looked at.
const attachEvery = 200 * time.Millisecond

func waitFree(ctx context.Context, lock string) error {
	for held(lock) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(attachEvery):
		}
	}
	return nil
}

// tail hands on the lines of a file as it grows, until its writer has ended and all was read, or ctx is done.
func tail(ctx context.Context, f io.Reader, goesOn func() bool, line func([]byte)) error {
	var rest []byte
	lines := bufio.NewReader(f)
	for over := false; ; {
		text, err := lines.ReadBytes('\n')
		rest = append(rest, text...)
		switch {
		case ctx.Err() != nil: // also while more comes than is shown
			return nil
		case err == nil:
			line(rest)
			rest = nil
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("what it says: %w", err)
		case over:
			if len(rest) > 0 {
				line(rest)
			}
			return nil
		default:
			if over = !goesOn(); over {
				continue // what came before its end is read
			}
			select {
			case <-ctx.Done():
			case <-time.After(attachEvery):
			}
		}
	}
}
