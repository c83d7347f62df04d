package qemu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// Bounds of the monitor's protocol.
const (
	mostLine   = 16 << 20         // bytes of a message
	mostEvents = 1024             // that are kept unasked for; the oldest go
	callLimit  = 30 * time.Second // of a command whose context has no deadline
)

// Event is something that QEMU tells unasked: "SHUTDOWN", "POWERDOWN", "RESET", "BLOCK_IO_ERROR", ...
type Event struct {
	Name string
	Data json.RawMessage
	At   time.Time
}

// Refusal is QEMU's answer to a command that it does not carry out.
type Refusal struct {
	Command, Class, Text string
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("QEMU refuses %s: %s", r.Command, r.Text) }

// message is any line of the protocol that QEMU sends.
type message struct {
	QMP    json.RawMessage `json:"QMP"`
	ID     json.RawMessage `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event     string          `json:"event"`
	Data      json.RawMessage `json:"data"`
	Timestamp struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	} `json:"timestamp"`
}

// kinds counts what a message is at once; one that is fit for use is one thing.
func (m message) kinds() (n int) {
	for _, is := range []bool{m.QMP != nil, m.Return != nil, m.Error != nil, m.Event != ""} {
		if is {
			n++
		}
	}
	return n
}

// readMessage reads one line. It refuses lines that are too long, no JSON, or none of the protocol's kinds.
func readMessage(r *bufio.Reader) (m message, err error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > mostLine:
			return m, fmt.Errorf("a message of more than %d bytes", mostLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(bytes.TrimSpace(line)) > 0 && errors.Is(err, io.EOF):
			return m, io.ErrUnexpectedEOF
		case err != nil:
			return m, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			break
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("message %.80q: %w", line, err)
	}
	if m.kinds() != 1 {
		return message{}, fmt.Errorf("message %.80q: want one of a greeting, an answer, an error and an event", line)
	}
	return m, nil
}

// Monitor is a connection to a machine's monitor. QEMU serves one at a time: the next one waits until this is closed.
// It is not for use by several goroutines.
type Monitor struct {
	conn   net.Conn
	r      *bufio.Reader
	last   int
	events []Event
	broken error
}

// dialMonitor connects to a socket in a folder, by way of a descriptor, whatever the length of its path.
func dialMonitor(ctx context.Context, folder string) (*Monitor, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), MonitorFile))
	if err != nil {
		return nil, err
	}
	m, err := NewMonitor(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

// NewMonitor greets QEMU over a connection. It is closed with the monitor.
func NewMonitor(ctx context.Context, conn net.Conn) (*Monitor, error) {
	m := &Monitor{conn: conn, r: bufio.NewReader(conn)}
	err := m.bounded(ctx, func() error {
		greeting, err := readMessage(m.r)
		if err == nil && greeting.QMP == nil {
			err = errors.New("it did not begin with a greeting")
		}
		return err
	})
	if err == nil {
		err = m.Do(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	return m, nil
}

// bounded lets do use the connection until ctx is done or has lasted too long. A connection that was left in the middle
// of something is of no use any more.
func (m *Monitor) bounded(ctx context.Context, do func() error) error {
	if m.broken != nil {
		return m.broken
	}
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		ctx = limited
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = m.conn.SetDeadline(time.Unix(1, 0)) })
	err := do()
	stop()
	var no *Refusal
	if err != nil && !errors.As(err, &no) {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		m.broken = err
	}
	return err
}

// Do carries out a command and decodes what it returns into result, if that is not nil. A command that QEMU does not
// carry out is an error that is a *Refusal; after any other error the monitor is of no use.
func (m *Monitor) Do(ctx context.Context, command string, arguments, result any) error {
	m.last++
	id := strconv.Itoa(m.last)
	request, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        string `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	err = m.bounded(ctx, func() error {
		if _, err := m.conn.Write(append(request, '\n')); err != nil {
			return err
		}
		for {
			answer, err := readMessage(m.r)
			switch {
			case err != nil:
				return err
			case answer.Event != "":
				m.keep(answer)
			case string(answer.ID) != strconv.Quote(id):
				return fmt.Errorf("an answer to %s, which was not asked: want %q", answer.ID, id)
			case answer.Error != nil:
				return &Refusal{Command: command, Class: answer.Error.Class, Text: answer.Error.Desc}
			case result == nil:
				return nil
			default:
				return json.Unmarshal(answer.Return, result)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

func (m *Monitor) keep(e message) {
	m.events = append(m.events, Event{Name: e.Event, Data: e.Data,
		At: time.Unix(e.Timestamp.Seconds, e.Timestamp.Microseconds*1000).UTC()})
	m.events = m.events[max(0, len(m.events)-mostEvents):]
}

// Event gives the next event, waiting for it until ctx is done.
func (m *Monitor) Event(ctx context.Context) (Event, error) {
	for len(m.events) == 0 {
		err := m.bounded(ctx, func() error {
			e, err := readMessage(m.r)
			if err == nil && e.Event == "" {
				err = errors.New("an answer that nothing was asked for")
			}
			if err == nil {
				m.keep(e)
			}
			return err
		})
		if err != nil {
			return Event{}, fmt.Errorf("event: %w", err)
		}
	}
	e := m.events[0]
	m.events = m.events[1:]
	return e, nil
}

// Close ends the connection. The machine goes on.
func (m *Monitor) Close() error { return m.conn.Close() }
