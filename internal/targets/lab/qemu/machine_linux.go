package qemu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Launch starts a command that is set up but for where it runs, and does not wait for it.
type Launch func(*exec.Cmd) error

// Machine is one in a folder, which is its own. It is off when no process of it lives.
type Machine struct {
	Folder string // absolute
	Spec   Spec
}

const specFile = "machine.json"

const (
	startLimit = time.Minute
	endLimit   = time.Minute // of a killed process: one in the middle of a disk operation dies when that ends
	pollEvery  = 50 * time.Millisecond
)

// Create writes down a machine in a folder, which is made, with all that Start needs.
func Create(folder string, s Spec) (*Machine, error) {
	folder, err := filepath.Abs(folder)
	if err == nil {
		err = s.Check()
	}
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	m := &Machine{Folder: folder, Spec: s}
	if err == nil {
		err = m.Save()
	}
	if err != nil {
		return nil, fmt.Errorf("machine %q: %w", s.Name, err)
	}
	return m, nil
}

// Open reads a machine from its folder, whether or not it runs.
func Open(folder string) (*Machine, error) {
	folder, err := filepath.Abs(folder)
	m := &Machine{Folder: folder}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(filepath.Join(folder, specFile))
	}
	if err == nil {
		err = json.Unmarshal(data, &m.Spec)
	}
	if err != nil {
		return nil, fmt.Errorf("machine in %s: %w", folder, err)
	}
	return m, nil
}

// Save writes down its Spec, for the next start. It is there as a whole or not at all.
func (m *Machine) Save() error {
	data, err := json.MarshalIndent(m.Spec, "", "  ")
	if err != nil {
		return err
	}
	part := filepath.Join(m.Folder, specFile+".part")
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(m.Folder, specFile))
}

func (m *Machine) fails(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("machine %q: %s: %w", m.Spec.Name, what, err)
}

// Start starts it and returns when its monitor answers; the guest is then at its very beginning. One that runs is an
// error. launch nil starts it in the caller's network. After an error nothing of it runs.
func (m *Machine) Start(ctx context.Context, launch Launch) error { return m.start(ctx, launch, false) }

// Await starts it as the side of a live migration that receives: see Migrate.
func (m *Machine) Await(ctx context.Context, launch Launch) error { return m.start(ctx, launch, true) }

func (m *Machine) start(ctx context.Context, launch Launch, incoming bool) error {
	if err := m.Spec.Check(); err != nil {
		return err
	}
	if on, err := m.Running(); err != nil || on {
		if err == nil {
			err = errors.New("it runs already")
		}
		return m.fails("start", err)
	}
	for _, name := range []string{MonitorFile, pidFile, noticeFile} { // of its last life
		if err := os.Remove(filepath.Join(m.Folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return m.fails("start", err)
		}
	}
	argv := m.Spec.Argv(m.Folder, incoming)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = m.Folder
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + m.Folder}
	words, err := os.CreateTemp(m.Folder, "start-")
	if err != nil {
		return m.fails("start", err)
	}
	defer os.Remove(words.Name()) //nolint:errcheck // of no further use
	defer words.Close()           // read by name
	c.Stdout, c.Stderr = words, words
	if launch == nil {
		launch = (*exec.Cmd).Start
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = launch(c)
	if err == nil {
		stop := context.AfterFunc(limited, func() { _ = c.Process.Kill() })
		err = c.Wait() // until it is a daemon
		stop()
	}
	if err == nil {
		err = m.withMonitor(limited, func(monitor *Monitor) error { return m.pin(limited, monitor) })
	}
	if err == nil {
		return nil
	}
	if limited.Err() != nil {
		err = limited.Err()
	}
	for _, name := range []string{words.Name(), filepath.Join(m.Folder, noticeFile)} {
		said, _ := os.ReadFile(name)
		if text := strings.TrimSpace(string(said)); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
	}
	return errors.Join(m.fails("start", err), m.Kill())
}

// pin has each CPU of the guest keep to one of this host, where its Spec says to which.
func (m *Machine) pin(ctx context.Context, monitor *Monitor) error {
	pins := m.Spec.Topology.Pins
	if len(pins) == 0 {
		return nil
	}
	var cpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"`
	}
	if err := monitor.Do(ctx, "query-cpus-fast", nil, &cpus); err != nil {
		return err
	}
	for _, c := range cpus {
		var set unix.CPUSet
		to := pins[c.Index%len(pins)]
		set.Set(to)
		if err := unix.SchedSetaffinity(c.Thread, &set); err != nil {
			return fmt.Errorf("CPU %d of the guest cannot keep to CPU %d of this host: %w", c.Index, to, err)
		}
	}
	return nil
}

// processes are those of the machine: whose command line begins with an emulator and names its process file.
func (m *Machine) processes() (list []int, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && m.owns(pid) {
			list = append(list, pid)
		}
	}
	return list, err
}

// owns looks at a process. One that has ended and waits to be reaped has no command line.
func (m *Machine) owns(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	argv := strings.Split(string(bytes.TrimSuffix(data, []byte{0})), "\x00")
	i := slices.Index(argv, "-pidfile")
	return strings.HasPrefix(filepath.Base(argv[0]), "qemu-") && i > 0 && i+1 < len(argv) &&
		argv[i+1] == filepath.Join(m.Folder, pidFile)
}

// Running reports whether it has a process. It looks at the one named in the process file first, then at all.
func (m *Machine) Running() (bool, error) {
	if data, err := os.ReadFile(filepath.Join(m.Folder, pidFile)); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && m.owns(pid) {
			return true, nil
		}
	}
	list, err := m.processes()
	return len(list) > 0, m.fails("state", err)
}

// Kill ends it as a power cut does, and returns when its processes are gone. Off already is fine.
func (m *Machine) Kill() error {
	for deadline := time.Now().Add(endLimit); ; time.Sleep(pollEvery / 5) {
		list, err := m.processes()
		if err != nil || len(list) == 0 {
			return m.fails("kill", err)
		}
		for _, pid := range list {
			if err := m.kill(pid); err != nil {
				return m.fails("kill", err)
			}
		}
		if time.Now().After(deadline) {
			return m.fails("kill", fmt.Errorf("processes %v are there %v after they were killed", list, endLimit))
		}
	}
}

// kill ends exactly the process that is looked at through its descriptor, and waits a second for its end: a process
// that is dying has no command line any more and still holds the locks of its disks.
func (m *Machine) kill(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(fd) // of no further use
	if !m.owns(pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Second/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}

// Console is the end of what the guest has written to its serial line in all its lives, quoted: so many bytes at most.
func (m *Machine) Console(most int) string {
	data, err := os.ReadFile(filepath.Join(m.Folder, SerialFile))
	if err != nil {
		return err.Error()
	}
	return strconv.Quote(string(bytes.TrimSpace(data[max(0, len(data)-most):])))
}

// Gone waits until it has no process: it was shut down, or ended by something else.
func (m *Machine) Gone(ctx context.Context) error {
	for {
		if on, err := m.Running(); err != nil || !on {
			return err
		}
		select {
		case <-ctx.Done():
			return m.fails("wait for its end", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}
