package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// launch holds what a launcher is told: first what it becomes, then when.
type launch struct {
	Path string   `json:"path,omitempty"`
	Argv []string `json:"argv,omitempty"`
	Env  []string `json:"env,omitempty"`
	At   int64    `json:"at,omitempty"` // by the machine's clock, in nanoseconds since 1970; what is past is at once
}

// longestLead is how long after it is released a command begins at the latest: a clock may have been set since.
const longestLead = 10 * time.Second

func until(at int64) time.Duration { return min(time.Unix(0, at).Sub(now()), longestLead) }

// launcher is a process that becomes the command of a unit when it is told to. A process that is there already is let
// run at once; one that is made beside fifty busy ones waits for its turn.
type launcher struct {
	process *exec.Cmd
	tell    *os.File
	heard   chan string // lines of what it says
}

// launcherOf starts the launcher of a command, and returns when it waits.
func launcherOf(command *exec.Cmd) (*launcher, error) {
	hear, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	listen, tell, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, hear.Close(), say.Close())
	}
	p := exec.Command("/proc/self/exe", "launch")
	p.Args[0] = Program
	p.Dir, p.Stdout, p.Stderr, p.SysProcAttr = command.Dir, command.Stdout, command.Stderr, command.SysProcAttr
	p.ExtraFiles = []*os.File{listen, say}
	p.Env = []string{"PATH=" + searchPath, "GOMAXPROCS=1", "GOGC=25"}
	for _, v := range command.Env {
		if strings.HasPrefix(v, unitVariable) {
			p.Env = append(p.Env, v)
		}
	}
	err = p.Start()
	_, _ = listen.Close(), say.Close() // the launcher has them
	if err == nil {
		err = json.NewEncoder(tell).Encode(launch{Path: command.Path, Argv: command.Args, Env: command.Env})
	}
	if err != nil {
		return nil, errors.Join(err, tell.Close(), hear.Close())
	}
	l := &launcher{process: p, tell: tell, heard: make(chan string, 4)}
	go func() {
		defer close(l.heard)
		defer hear.Close()
		for lines := bufio.NewScanner(hear); lines.Scan(); {
			l.heard <- lines.Text()
		}
	}()
	if said := <-l.heard; said != "ready" {
		return nil, fmt.Errorf("launcher: %q", said)
	}
	return l, nil
}

// drop ends a launcher that is not to become anything.
func (l *launcher) drop() { _, _ = l.process.Process.Kill(), l.process.Wait() }

// launchTold is the launcher: it says "ready", then when it begins, and then, if it cannot become the command, why.
func launchTold() error {
	signal.Ignore(unix.SIGPIPE, unix.SIGHUP) // as a command that the supervisor starts itself has them
	listen, say := os.NewFile(3, "told"), os.NewFile(4, "heard")
	for _, f := range []*os.File{listen, say} {
		unix.CloseOnExec(int(f.Fd())) // and reads of them block a thread: nobody else is here
	}
	told := json.NewDecoder(listen)
	var what, when launch
	if err := told.Decode(&what); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(say, "ready"); err != nil {
		return err
	}
	if err := told.Decode(&when); err != nil {
		return nil // it is dropped, or its supervisor is gone
	}
	time.Sleep(until(when.At))
	_, err := fmt.Fprintln(say, now().UnixNano())
	for tried := 0; err == nil || errors.Is(err, unix.ETXTBSY) && tried < 100; tried++ { // it was put a moment ago
		if err = unix.Exec(what.Path, what.Argv, what.Env); errors.Is(err, unix.ETXTBSY) {
			time.Sleep(pause)
		}
	}
	_, err = fmt.Fprintln(say, err)
	return err
}

// released waits until a unit that is ready may begin, and begins it. It returns the process and when that began; how
// the unit ended, if it never does; or why it cannot.
func (k keeper) released(id string, command *exec.Cmd, told <-chan os.Signal, lease func() bool,
	start Start) (process *os.Process, began int64, ended *State, err error) {
	if _, err := exec.LookPath(command.Path); err != nil {
		return nil, 0, nil, err
	}
	var l *launcher
	if command.SysProcAttr.Credential == nil { // another user may not run this program
		if l, err = launcherOf(command); err != nil {
			return nil, 0, nil, err
		}
	}
	drop := func(why string) (*os.Process, int64, *State, error) {
		if l != nil {
			l.drop()
		}
		return nil, 0, &State{Exit: target.Exit{Code: -1, Signal: unix.SIGKILL.String()}, Why: why}, nil
	}
	_ = os.Stdout.Close() // tells the session that it is ready
	for {
		select {
		case sign := <-told:
			if sign != unix.SIGUSR2 {
				return drop("")
			}
		case <-time.After(time.Second):
			if lease() {
				return drop(silence(start.Lease))
			}
			continue
		}
		if err := start.recheck(); err != nil { // it may have waited for minutes
			_, _, _, _ = drop("")
			return nil, 0, nil, err
		}
		text, _ := os.Readlink(filepath.Join(k.dir(id), releaseLink))
		at, _ := strconv.ParseInt(text, 10, 64) // what cannot be read is past
		if l == nil {
			time.Sleep(until(at))
			if err := command.Start(); err != nil {
				return nil, 0, nil, err
			}
			return command.Process, now().UnixNano(), nil, nil
		}
		err := json.NewEncoder(l.tell).Encode(launch{At: at})
		if text, alive := <-l.heard; !alive {
			err = errors.New("it was killed before it began")
		} else if err == nil {
			began, err = strconv.ParseInt(text, 10, 64)
		}
		if why, cannot := <-l.heard; cannot && err == nil {
			err = errors.New(why)
		}
		return l.process.Process, began, nil, errors.Join(err, l.tell.Close())
	}
}

func silence(lease time.Duration) string {
	return fmt.Sprintf("nothing was heard of the run for %v", lease)
}
