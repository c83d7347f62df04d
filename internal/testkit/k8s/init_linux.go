package k8s

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// children are those of a process that is number 1 of its processes' namespace, to which orphans fall: it waits for
// all, and tells who waits for one of them. Package os may not wait here beside it.
type children struct {
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func newChildren() *children {
	c := &children{waiting: map[int]chan syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			c.reap()
		}
	}()
	return c
}

func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if done, ok := c.waiting[pid]; ok {
			done <- status
			delete(c.waiting, pid)
		}
	}
}

// start starts a program whose output goes to a file. Its end is sent once.
func (c *children) start(log string, attr *syscall.SysProcAttr, argv ...string) (pid int,
	end <-chan syscall.WaitStatus, err error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, nil, err
	}
	defer out.Close()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{Env: os.Environ(), Sys: attr,
		Files: []uintptr{null.Fd(), out.Fd(), out.Fd()}})
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", program, err)
	}
	done := make(chan syscall.WaitStatus, 1)
	c.waiting[pid] = done
	return pid, done, nil
}

// run runs a program to its end. What it said is in the error.
func (c *children) run(argv ...string) error {
	log, err := os.CreateTemp(".", "run-") // in the cluster's folder
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	_, done, err := c.start(log.Name(), nil, argv...)
	if err != nil {
		return err
	}
	if status := <-done; status.ExitStatus() != 0 {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %d: %s", strings.Join(argv, " "), status.ExitStatus(), strings.TrimSpace(string(said)))
	}
	return nil
}

// each runs programs one after the other; a line each, of words without blanks.
func (c *children) each(lines string) error {
	for line := range strings.Lines(lines) {
		if words := strings.Fields(line); len(words) > 0 {
			if err := c.run(words...); err != nil {
				return err
			}
		}
	}
	return nil
}

// mounts mounts one after the other, making the places where they are absent.
func mounts(list []mount) error {
	for _, m := range list {
		if m.flags&(syscall.MS_PRIVATE|syscall.MS_SHARED) == 0 {
			if err := os.MkdirAll(m.at, 0o755); err != nil {
				return err
			}
		}
		if err := syscall.Mount(m.what, m.at, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount -t %s -o %s %s %s: %w", m.kind, m.data, m.what, m.at, err)
		}
	}
	return nil
}

type mount struct {
	what, at, kind string
	flags          uintptr
	data           string
}

// until asks each 50 ms until the answer is no error, or gives the last one.
func until(deadline time.Duration, ask func() error) error {
	end := time.Now().Add(deadline)
	for {
		err := ask()
		if err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// forwards has the process's network namespace pass packets on, and not keep connections for long that were cut.
func forwards() error {
	return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
		os.WriteFile("/proc/sys/net/ipv4/tcp_orphan_retries", []byte("1"), 0))
}

func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o600)
}
