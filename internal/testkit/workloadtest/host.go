package workloadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
)

// Host is a machine made of a temporary folder and processes of this one. Its disks are files in the folder.
type Host struct {
	Dir string
	// Wrap, when set, is put before every command: a shell that lowers a limit, for instance.
	Wrap []string

	disks []target.Disk
	mu    sync.Mutex
	away  bool
	runs  []*process
}

var _ target.Host = (*Host)(nil)

// NewHost makes a machine with one file of the given size as /dev/sdb, and another as /dev/sdc and so on.
func NewHost(t testing.TB, sizes ...int64) *Host {
	t.Helper()
	h := &Host{Dir: t.TempDir()}
	for i, size := range sizes {
		path := filepath.Join(h.Dir, fmt.Sprintf("disk%d.img", i))
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(j*7 + j>>8) // not zeros: sparse files answer reads without touching a disk
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		h.disks = append(h.disks, target.Disk{Device: "/dev/sd" + string(rune('b'+i)), Path: path, Bytes: size,
			File: true})
	}
	t.Cleanup(h.Lose)
	return h
}

// Name implements target.Host.
func (h *Host) Name() string { return "testhost" }

// Node implements target.Host.
func (h *Host) Node() int { return 0 }

// Disks implements target.Host.
func (h *Host) Disks() []target.Disk { return h.disks }

// Lose makes the machine go away: what runs dies and nothing answers any more.
func (h *Host) Lose() {
	h.mu.Lock()
	h.away = true
	runs := h.runs
	h.mu.Unlock()
	for _, p := range runs {
		p.end(true)
	}
}

// Pids lists the process ids of what was started, so that a test can do to them what it wants.
func (h *Host) Pids() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	var pids []int
	for _, p := range h.runs {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

// Accessible implements target.Host.
func (h *Host) Accessible(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away {
		return fmt.Errorf("testhost: switched off: %w", target.ErrNotAccessible)
	}
	return nil
}

// Start implements target.Host.
func (h *Host) Start(ctx context.Context, c target.Command) (target.Process, error) {
	if err := h.Accessible(ctx); err != nil {
		return nil, err
	}
	argv := append(append([]string{}, h.Wrap...), c.Argv...)
	open := map[string]io.Writer{"": nil}
	for _, name := range []string{c.Stdout, c.Stderr} {
		if _, ok := open[name]; ok {
			continue
		}
		path := filepath.Join(h.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		f, err := os.Create(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		open[name] = f
	}
	prepare := func() *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = h.Dir
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, c.Env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stdout, cmd.Stderr = open[c.Stdout], open[c.Stderr]
		return cmd
	}
	cmd := prepare()
	err := cmd.Start()
	// A program put a moment ago is open for writing in a child that another test has forked and that has not come to
	// its exec yet, as the agent of hosts knows it.
	for tried := 0; errors.Is(err, syscall.ETXTBSY) && tried < 100; tried++ {
		time.Sleep(10 * time.Millisecond)
		cmd = prepare()
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended stands in ProcessState
		close(p.done)
	}()
	h.mu.Lock()
	h.runs = append(h.runs, p)
	h.mu.Unlock()
	return p, nil
}

// Put implements target.Host.
func (h *Host) Put(ctx context.Context, name string, mode fs.FileMode, content io.Reader) error {
	if err := h.Accessible(ctx); err != nil {
		return err
	}
	path := filepath.Join(h.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(h.Dir, "put")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// Get implements target.Host.
func (h *Host) Get(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	if err := h.Accessible(ctx); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(h.Dir, name))
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove implements target.Host.
func (h *Host) Remove(ctx context.Context, name string) error {
	if err := h.Accessible(ctx); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(h.Dir, name))
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	lost bool
}

func (p *process) end(lost bool) {
	select {
	case <-p.done:
		return
	default:
	}
	p.mu.Lock()
	p.lost = p.lost || lost
	p.mu.Unlock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // gone already is fine
	<-p.done
}

// Kill implements target.Process.
func (p *process) Kill() error {
	p.end(false)
	return nil
}

// Wait implements target.Process.
func (p *process) Wait(ctx context.Context) (target.Exit, error) {
	select {
	case <-ctx.Done():
		return target.Exit{}, ctx.Err()
	case <-p.done:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	exit := target.Exit{Code: p.cmd.ProcessState.ExitCode(), Lost: p.lost}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal().String()
	}
	return exit, nil
}

// Usage implements target.Process.
func (p *process) Usage() target.Usage {
	select {
	case <-p.done:
	default:
		return target.Usage{}
	}
	u := target.Usage{User: p.cmd.ProcessState.UserTime(), System: p.cmd.ProcessState.SystemTime()}
	if r, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSSBytes = r.Maxrss * 1024
	}
	return u
}

// limitWait bounds every wait of the suite.
const limitWait = 60 * time.Second
