//go:build linux

package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/regular"
)

// journalName is the file in the state folder that says what a run has made.
const journalName = "local.jsonl"

// entry is one line of the journal. Lines are written before what they announce is made, except "process", which
// is written before the process is let loose.
type entry struct {
	Op string `json:"op"` // run, work, sandbox, refused, cgroup, process

	// run: who makes the rest; PID and Start are plimsoll's.
	Run  string `json:"run,omitempty"`
	Mark string `json:"mark,omitempty"` // value of markVariable in the environment of every process
	Boot string `json:"boot,omitempty"`

	Name string `json:"name,omitempty"` // sandbox: folder below work; refused: that folder (work, when empty) was there
	Path string `json:"path,omitempty"` // cgroup, work: absolute

	// process, run
	VM    string `json:"vm,omitempty"`
	Label string `json:"label,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"` // clock ticks after boot, field 22 of /proc/PID/stat
}

// journal is the open state file of a run; its lock tells other processes that the run is alive.
type journal struct {
	mu sync.Mutex
	f  *os.File
}

// openJournal creates the journal of a new run.
func openJournal(stateDir string) (*journal, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, explain(err, stateDir, 0)
	}
	path := filepath.Join(stateDir, journalName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s exists: the folder holds the remains of a run; clean it up first", path)
	}
	if err != nil {
		return nil, explain(err, path, 0)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: lock: %w", path, err)
	}
	return &journal{f: f}, nil
}

// add writes entries. With durable they are on the medium when it returns, which what outlives a crash of the host
// (folders) needs and what does not (processes, control groups) can do without.
func (j *journal) add(durable bool, entries ...entry) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return errors.New("journal: the cluster is closed")
	}
	if err := regular.Append(j.f, b.Bytes()); err != nil {
		return explain(err, j.f.Name(), int64(b.Len()))
	}
	if !durable {
		return nil
	}
	if err := j.f.Sync(); err != nil {
		return explain(err, j.f.Name(), 0)
	}
	return nil
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f == nil {
		return nil
	}
	err := j.f.Close()
	j.f = nil
	return err
}

// readJournal returns the entries of a state folder, none when there is no journal. A last line cut short by a crash
// is dropped: what it announced was never made.
func readJournal(stateDir string) ([]entry, error) {
	path := filepath.Join(stateDir, journalName)
	data, err := regular.Read(path, regular.NoLinks, regular.Document)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err, path, 0)
	}
	return parseJournal(data, path)
}

func parseJournal(data []byte, path string) ([]entry, error) {
	lines := bytes.Split(data, []byte("\n"))
	lines = lines[:len(lines)-1] // what follows the last line feed is empty or cut short
	var entries []entry
	var bad []error
	for i, line := range lines {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %w", path, i+1, err))
			continue
		}
		if e.Op == "sandbox" && checkName(e.Name) != nil || e.Op == "run" && len(e.Mark) != markLength {
			bad = append(bad, fmt.Errorf("%s:%d: refused: %s", path, i+1, line))
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(bad...)
}

// checkName refuses names that cannot be a folder below work.
func checkName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("name %q: cannot be the name of a folder", name)
	case len(name) > 200:
		return fmt.Errorf("name %q: %d bytes, at most 200", name, len(name))
	case strings.ContainsAny(name, "/\x00\n"):
		return fmt.Errorf("name %q: must not contain a slash, a line feed or a null byte", name)
	}
	return nil
}
