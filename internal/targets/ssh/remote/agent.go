package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/installed"
	"plimsoll/internal/targets/ssh/agent"
	"plimsoll/unit"
)

// Access is how the machines of a run are worked with.
type Access struct {
	Agents   string        // the folder of the agents' programs; "" is that of this program
	Patience time.Duration // for how long a machine may not answer before what runs there is taken for lost
	Lease    time.Duration // for how long commands go on when nothing is heard of the run; 0 for ever
	Clock    clock.Clock
}

// Seen holds what a check found on a host.
type Seen struct {
	agent.Look
	// Ahead is how far its clock was ahead of ours, and Bound by how much that may be wrong.
	Ahead, Bound time.Duration
}

// Sizes are the devices of a host by path.
func (s Seen) Sizes() map[string]target.Disk {
	sizes := map[string]target.Disk{}
	for _, d := range s.Disks {
		sizes[d.Path] = target.Disk{Bytes: d.Bytes}
	}
	return sizes
}

// Objections are what stands against using a host as the inventory says.
func (s Seen) Objections(m Machine) error {
	var list []error
	object := func(format string, args ...any) {
		list = append(list, fmt.Errorf("machine %q: %s", m.Name, fmt.Sprintf(format, args...)))
	}
	var files int64
	for _, d := range m.Disks {
		files += d.Bytes
	}
	const spare = 64 << 20 // for outputs
	if files+spare > s.FreeBytes {
		object("disk space: %v needed in %s for files and output, %v free: give another folder, or smaller files",
			unit.Bytes(files+spare), m.Folder, unit.Bytes(s.FreeBytes))
	}
	for _, d := range s.Disks {
		for _, o := range d.Objections {
			object("%s: %s", d.Path, o)
		}
	}
	return errors.Join(list...)
}

// Inspect looks at a host with an agent that is there for a moment.
func (a Access) Inspect(ctx context.Context, m Machine) (s Seen, err error) {
	c, err := m.dial(ctx)
	if err != nil {
		return s, err
	}
	base := m.Folder
	m.Folder += "/plimsoll-check-" + rand.Text()
	l := newLink(m, a.Clock, 0)
	l.spare = c
	defer c.Close() // only looked at
	program, err := a.program(ctx, m, c)
	if err != nil {
		return s, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialLimit)
		defer cancel()
		removed := m.remove(ctx, c, m.Folder)
		if removed != nil { // a session that was refused has closed the connection
			if again, err := m.dial(ctx); err == nil {
				removed = errors.Join(m.remove(ctx, again, m.Folder), again.Close())
			}
		}
		err = errors.Join(err, removed)
	}()
	if err := m.install(ctx, c, program, m.Folder); err != nil {
		return s, err
	}
	if err := l.once(ctx, "POST", "/look", agent.Looking{Disks: m.devices()}, &s.Look); err != nil {
		return s, fmt.Errorf("machine %q: %s: %w", m.Name, base, err)
	}
	if err := l.readClock(ctx, clockTrips); err != nil {
		return s, fmt.Errorf("machine %q: %w", m.Name, err)
	}
	now := l.reading()
	s.Ahead, s.Bound = now.Ahead, now.Bound
	return s, nil
}

// devices are the block devices of a host for its agent.
func (m Machine) devices() (list []agent.Disk) {
	for _, d := range m.Disks {
		if d.ID != "" {
			list = append(list, agent.Disk{Path: d.Path(), Consent: d.Consent})
		}
	}
	return list
}

// program opens the agent for a host; nil for one that has it.
func (a Access) program(ctx context.Context, m Machine, c Connection) (io.ReadCloser, error) {
	if m.Agent != "" {
		return nil, nil
	}
	kind, err := c.Command(ctx, answerLimit, nil, "uname -sm")
	var program io.ReadCloser
	if err == nil {
		program, err = a.agent(strings.TrimSpace(kind))
	}
	if err != nil {
		return nil, fmt.Errorf("machine %q: %s: %w", m.Name, m.Folder, err)
	}
	return program, nil
}

// install makes a run's folder on a host and puts the agent there. The folder must not be there. It closes the program.
func (m Machine) install(ctx context.Context, c Connection, program io.ReadCloser, tag string) (err error) {
	line := m.Settling(tag)
	if program != nil {
		defer program.Close()
		line = quoted("sh", "-c", `umask 077; mkdir -- "$1" && printf %s "$2" >"$1/tag" && cat >"$1/part" && `+
			`chmod 700 "$1/part" && mv "$1/part" "$1/agent"`, "sh", m.Folder, tag)
	}
	_, err = c.Command(ctx, commandLimit, program, line)
	if err != nil {
		return fmt.Errorf("machine %q: %s: %w", m.Name, m.Folder, err)
	}
	return nil
}

// Settling is a command line that makes a run's folder on a machine that has the agent: it is the run's, and so is the
// folder, which is there again after a power cycle.
func (m Machine) Settling(tag string) string {
	return quoted("sh", "-c", `mkdir -p -- "${1%/*}"; umask 077; mkdir -p -- "$1" && printf %s "$2" >"$1/tag" && `+
		`ln -sf -- "$3" "$1/agent"`, "sh", m.Folder, tag, m.Agent)
}

// Arches are those that there are agents for, as uname and as Go have them.
var Arches = map[string]string{"Linux x86_64": "amd64", "Linux aarch64": "arm64"}

// agent opens the agent for a kind of machine, as uname has it.
func (a Access) agent(kind string) (io.ReadCloser, error) {
	arch := Arches[kind]
	if arch == "" {
		return nil, fmt.Errorf("the machine is %q: there are agents for Linux on x86_64 and aarch64", kind)
	}
	names := []string{"plimsoll-agent-linux-" + arch}
	if runtime.GOOS+runtime.GOARCH == "linux"+arch {
		names = append(names, "plimsoll-agent")
	}
	path := installed.In(a.Agents, names...)
	if a.Agents == "" {
		var err error
		if path, err = installed.Path(names...); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the agent: %w: make agents builds it, --target-opt agents=FOLDER says where it is", err)
	}
	return f, nil
}

// Remove ends all of a run on a machine and removes its folder, if it has the run's tag. No folder is fine.
func (m Machine) Remove(ctx context.Context, tag string) error {
	c, err := m.dial(ctx)
	if err != nil {
		return err
	}
	return errors.Join(m.remove(ctx, c, tag), c.Close())
}

// remove ends all of a run on a host and removes its folder, if it has the run's tag. No folder is fine. What was begun
// as root is ended as root or not at all: who may not see those processes would find none, and remove what ends them.
func (m Machine) remove(ctx context.Context, c Connection, tag string) error {
	const script = `f=$1 t=$2; shift 2
[ -e "$f" ] || exit 0
[ "$(cat "$f/tag")" = "$t" ] || { rmdir "$f" 2>/dev/null && exit 0; echo "$f is not of this run" >&2; exit 3; }
[ -e "$f/units" ] || exec rm -rf -- "$f"
[ -e "$f/agent" ] || exec "$@" rm -rf -- "$f"
"$@" "$f/agent" end "$f" "$t" || [ ! -e "$f" ]`
	words := []string{"sh", "-c", script, "sh", m.Folder, tag}
	if m.Sudo {
		words = append(words, "sudo", "-n", "--")
	} else {
		words = append(words, "env")
	}
	if _, err := c.Command(ctx, commandLimit, nil, quoted(words...)); err != nil {
		return fmt.Errorf("machine %q: %s: %w", m.Name, m.Folder, err)
	}
	return nil
}
