// Package remote works with machines that are reached over SSH: it logs in, puts package agent there and is the
// target.Host of each.
//
// Connections may break and this process may end: what was started goes on, and a Host finds it again for as long as
// its Access is patient. Places of such machines stand on it: target/ssh, whose hosts are there already. It refuses
// machines whose key is not the one in known_hosts, users that are not let in or may not use sudo, and folders of other
// runs.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/answer"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/targets/ssh/agent"
)

// Tail keeps the end of what is written to it; it may be read meanwhile.
type Tail struct {
	Most int // bytes; 0: 4 KiB

	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := cmp.Or(t.Most, 4<<10)
	t.data = append(t.data, p[max(0, len(p)-most):]...)
	t.data = t.data[max(0, len(t.data)-most):]
	return len(p), nil
}

// Text returns what it keeps.
func (t *Tail) Text() string { t.mu.Lock(); defer t.mu.Unlock(); return string(t.data) }

// told returns what was said of a failure, with what to do about it.
func (t *Tail) told() string {
	said := strings.TrimSpace(t.Text())
	if strings.Contains(said, "sudo") {
		said += ": let this user run it with sudo without a password (NOPASSWD), or give sudo: false"
	}
	return said
}

// link speaks with the agent of a run on a machine, and finds it again when the connection was lost.
type link struct {
	Machine
	clock    clock.Clock
	patience time.Duration // for a machine that does not answer
	turn     chan struct{} // of who connects
	conn     *http.ClientConn
	spare    Connection // for the first session
	closed   bool
	life     context.Context // ends with close
	end      context.CancelFunc
	clocks   readings
}

func newLink(m Machine, c clock.Clock, patience time.Duration) *link {
	l := &link{Machine: m, clock: c, patience: patience, turn: make(chan struct{}, 1)}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// Answers to an idle connection are asked for this often; the second is how long they may take.
const (
	pingEvery = 5 * time.Second
	pingLimit = 10 * time.Second
)

var errClosed = errors.New("the run has let go of it")

// connected is the connection to the agent, a new one when there is none.
func (l *link) connected(ctx context.Context) (*http.ClientConn, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.turn }()
	if l.closed {
		return nil, refused{errClosed}
	}
	if l.conn != nil && l.conn.Err() == nil {
		return l.conn, nil
	}
	// A machine that is gone answers nothing, not even a refusal.
	ctx, cancel := clock.WithTimeout(ctx, l.clock, max(l.patience, dialLimit*time.Duration(1+len(l.Jump))))
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingEvery, PingTimeout: pingLimit,
			MaxReceiveBufferPerStream: 4 << 20, MaxReceiveBufferPerConnection: 16 << 20},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.open(ctx) }}
	t.Protocols.SetUnencryptedHTTP2(true)
	conn, err := t.NewClientConn(ctx, "http", "agent:80")
	if err != nil {
		return nil, err
	}
	l.conn = conn
	return conn, nil
}

// close ends the connection, and all that goes on over it, attempts to connect among it.
func (l *link) close() (err error) {
	l.end()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.conn != nil && !l.closed {
		err = l.conn.Close()
	}
	if l.spare != nil {
		err = errors.Join(err, l.spare.Close())
	}
	l.closed = true
	return err
}

// as is a command line with the rights that the machine's work needs.
func (m Machine) as(words ...string) string {
	if m.Sudo {
		words = append([]string{"sudo", "-n", "--"}, words...)
	}
	return quoted(words...)
}

// open starts a session of the agent.
func (l *link) open(ctx context.Context) (net.Conn, error) {
	c := l.spare
	l.spare = nil
	if c == nil {
		var err error
		if c, err = l.dial(ctx); err != nil {
			return nil, err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // a session is waited for without one
	// What is written to a machine that is gone waits until the way there is closed.
	context.AfterFunc(l.life, func() { _ = c.Close() })
	p, err := c.Session(l.as(l.Folder+"/"+agent.Program, "session", l.Folder))
	if err != nil {
		_ = c.Close() // it was of no use
		return nil, fmt.Errorf("machine %q: %w: %w", l.Name, target.ErrNotAccessible, err)
	}
	return p, nil
}

// Session implements Connection.
func (c *connection) Session(line string) (net.Conn, error) {
	s, err := c.NewSession()
	if err != nil {
		return nil, err
	}
	p := &pipe{connection: c}
	p.saidLast = sync.OnceValue(func() string {
		// It has ended, or its connection has; what was killed gave no reason.
		if e, ended := errors.AsType[*ssh.ExitError](s.Wait()); !ended || e.Signal() != "" {
			return ""
		}
		return p.said.told()
	})
	s.Stderr = &p.said
	if p.WriteCloser, err = s.StdinPipe(); err == nil {
		p.out, err = s.StdoutPipe()
	}
	if err == nil {
		err = s.Start(line)
	}
	return p, err
}

// pipe is a session of the agent as a connection.
type pipe struct {
	io.WriteCloser
	connection *connection
	out        io.Reader
	said       Tail
	saidLast   func() string // waits for the end of the session and returns why it ended, where that is told
}

// Read says what the agent said when it is gone.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	return n, p.ended(n, err)
}

// Write says so, too: a session that ended takes nothing more, and may tell that before anything is read.
func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.WriteCloser.Write(b)
	return n, p.ended(n, err)
}

// ended puts what the agent said last in the place of an end without a word.
func (p *pipe) ended(n int, err error) error {
	if n == 0 && errors.Is(err, io.EOF) {
		if said := p.saidLast(); said != "" {
			return Ended(said)
		}
	}
	return err
}

func (p *pipe) Close() error                     { return p.connection.Close() }
func (p *pipe) LocalAddr() net.Addr              { return p.connection.LocalAddr() }
func (p *pipe) RemoteAddr() net.Addr             { return p.connection.RemoteAddr() }
func (p *pipe) SetDeadline(time.Time) error      { return nil } // pings tell that nobody is there
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// failure holds what the agent objects to.
type failure struct {
	Text   string `json:"error"`
	Absent bool   `json:"absent"`
}

func (f failure) Error() string { return f.Text }

// Is implements errors.Is.
func (f failure) Is(err error) bool { return f.Absent && err == fs.ErrNotExist } // a sentinel

// query is a path with values.
func query(path string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return path + "?" + v.Encode()
}

// mostAnswer bounds what an agent says of itself and its units.
const mostAnswer = 4 << 20

// ask asks the agent once. The answer's body is closed by who called.
func (l *link) ask(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lost := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, target.ErrNotAccessible) {
			return err
		}
		return fmt.Errorf("%w: %w", target.ErrNotAccessible, err)
	}
	conn, err := l.connected(ctx)
	if err != nil {
		return nil, lost(err)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://agent:80"+path, body)
	if err != nil {
		return nil, err
	}
	answer, err := conn.RoundTrip(r)
	if err != nil {
		return nil, lost(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	var f failure
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostAnswer)).Decode(&f); err != nil {
		return nil, lost(fmt.Errorf("it answered %q", answer.Status))
	}
	return nil, f
}

// again does what can be done again until it is done, the machine has not answered for as long as we are patient, or
// the reason is one that does not pass.
func (l *link) again(ctx context.Context, do func() error) error {
	deadline := l.clock.Now().Add(l.patience)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := do()
		if _, stays := errors.AsType[refused](err); err == nil || stays || !errors.Is(err, target.ErrNotAccessible) ||
			ctx.Err() != nil || l.clock.Now().After(deadline) {
			return err
		}
		if err := l.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// once asks and reads an answer.
func (l *link) once(ctx context.Context, method, path string, give, into any) error {
	var body io.Reader
	if give != nil {
		data, err := json.Marshal(give)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	got, err := l.ask(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	if into == nil {
		into = new(any)
	}
	data, err := answer.Read(got.Body, "the agent on "+l.Name, mostAnswer)
	if _, large := errors.AsType[regular.TooLarge](err); large {
		return err // it would be so again
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", target.ErrNotAccessible, err)
	}
	return nil
}

// call is once, again and again.
func (l *link) call(ctx context.Context, method, path string, give, into any) error {
	return l.again(ctx, func() error { return l.once(ctx, method, path, give, into) })
}
