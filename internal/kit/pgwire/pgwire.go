// Package pgwire speaks PostgreSQL's protocol as load drivers need it: so cheaply that the server is measured and not
// the client, and with every answer read and every error told.
//
// Package pgconn of pgx connects: URL or key words, environment, password file, TLS, SCRAM. Then the socket is taken
// from it, and out of Go's netpoller, whose waiting costs more than all else. From there on requests are bytes that are
// made here (Statement.Append) and answers are scanned by their messages' headers (Reply). There are two ways to drive:
//
//   - Conn: one connection that blocks, for transactions of many statements, from one goroutine;
//   - Loop: one thread that serves many connections as their answers arrive, for short ones: by epoll, or by io_uring
//     where that gains and is allowed.
//
// Over TLS a Conn stays with Go's own reading; a Loop moves the bytes of TLS itself. The load drivers (packages pgload,
// tprocc) stand above it. It refuses COPY TO, and to guess: a connection that was lost says so, and is not made again
// by itself.
package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Server is a database to connect to. It holds a password: it is never printed as a whole.
type Server struct{ config *pgconn.Config }

// ParseServer reads postgresql://user@host:port/database?sslmode=... or "host=... dbname=...", as libpq does. What is
// not there comes from the environment (PGHOST, PGPASSWORD, PGPASSFILE, ...) and from the password file. Passwords are
// in no error of this package.
func ParseServer(text string) (*Server, error) {
	config, err := pgconn.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("server: %w; want postgresql://user@host:port/database", err)
	}
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) {}
	config.MaxProtocolMessageBodyLen = maxKept
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 30 * time.Second
	}
	if _, ok := config.RuntimeParams["application_name"]; !ok {
		config.RuntimeParams["application_name"] = "plimsoll"
	}
	return &Server{config}, nil
}

// Set has every connection set one of the server's parameters for its session, as jit to off.
func (s *Server) Set(parameter, value string) { s.config.RuntimeParams[parameter] = value }

// Database is the name of the database.
func (s *Server) Database() string { return s.config.Database }

// WithDatabase is the same server with another database.
func (s *Server) WithDatabase(name string) *Server {
	c := s.config.Copy()
	c.Database = name
	return &Server{c}
}

// WithPassword is the same server with a password.
func (s *Server) WithPassword(password string) *Server {
	c := s.config.Copy()
	c.Password = password
	return &Server{c}
}

// String is where the server is and the names of user and database.
func (s *Server) String() string {
	at := net.JoinHostPort(s.config.Host, fmt.Sprint(s.config.Port))
	if strings.HasPrefix(s.config.Host, "/") {
		at = fmt.Sprintf("%s/.s.PGSQL.%d", s.config.Host, s.config.Port)
	}
	return fmt.Sprintf("user %q, database %q at %s", s.config.User, s.config.Database, at)
}

// GoString keeps the password out of %#v.
func (s *Server) GoString() string { return s.String() }

// hijack connects and gives the bare connection.
func (s *Server) hijack(ctx context.Context) (*pgconn.HijackedConn, error) {
	// Where connecting has lasted, pgconn has left a goroutine that reads on, and keeps what it gets for this reader.
	var reader io.Reader
	config := s.config.Copy()
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		reader = r
		return s.config.BuildFrontend(r, w)
	}
	config.DialFunc = lines(config.DialFunc)
	pc, err := Open(ctx, config, 0)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, refusal(s.String(), err)
	}
	h, err := pc.Hijack()
	if err != nil {
		return nil, refusal(s.String(), err)
	}
	switch conn := h.Conn.(type) {
	case *tls.Conn:
		h.Conn = readBy{h.Conn, reader}
	case *line: // the descriptor is taken, and that goroutine ends with the rest
		h.Conn = conn.Conn
	}
	return h, nil
}

// readBy is a connection that is read by way of something else.
type readBy struct {
	net.Conn
	reader io.Reader
}

// Read implements net.Conn.
func (r readBy) Read(b []byte) (int, error) { return r.reader.Read(b) }

// Conn is a connection that blocks. One goroutine uses it at a time; Stop alone may come from another.
type Conn struct {
	PID        uint32            // of the server's process
	Parameters map[string]string // what the server said of itself when we connected: server_version and others

	server *Server
	socket socket
	out    []byte
	in     []byte
	extra  []byte // what was read past the end of an answer
	reply  Reply
	lost   error
}

// Connect makes a connection. The error is a *RefusedError.
func (s *Server) Connect(ctx context.Context) (*Conn, error) {
	h, err := s.hijack(ctx)
	if err != nil {
		return nil, err
	}
	socket, err := blocking(h.Conn)
	if err != nil {
		return nil, refusal(s.String(), err)
	}
	return &Conn{PID: h.PID, Parameters: h.ParameterStatuses, server: s, socket: socket, in: make([]byte, 8<<10)}, nil
}

// Close ends the session and the connection. Another Close does nothing.
func (c *Conn) Close() error {
	if c.lost == nil {
		_ = c.socket.write([]byte{'X', 0, 0, 0, 4}) // the server sees the end all the same
	}
	c.lost = errClosed
	return c.socket.close()
}

var errClosed = errors.New("it was closed")

// Stop ends what goes on on the connection, from any goroutine: the request under way fails with a LostError. Close is
// still to be called. context.AfterFunc(ctx, c.Stop) has it follow a context.
func (c *Conn) Stop() { c.socket.stop() }

// Prepare has the server prepare a statement under a name, "" for the one without a name that the next Prepare
// replaces.
func (c *Conn) Prepare(name, sql string) (*Statement, error) {
	if strings.ContainsRune(name+sql, 0) {
		return nil, fmt.Errorf("statement %q has a zero byte", sql)
	}
	c.out = AppendSync(AppendPrepare(c.out[:0], name, sql))
	c.reply.Reset()
	c.reply.Describe = true
	r, err := c.exchange()
	c.reply.Describe = false
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", sql, err)
	}
	return r.Described(name, sql), nil
}

// Query executes a prepared statement, a CALL for example, in one round trip, and gives all its rows. The reply is
// valid until the next request. The error is an *Error when the server refused, and the connection is as good as
// before, its transaction aside (see Reply.Status); it is a *LostError when the connection has ended.
func (c *Conn) Query(s *Statement, args ...Arg) (*Reply, error) {
	out, err := s.Append(c.out[:0], false, args...)
	if err != nil {
		return nil, err
	}
	c.out = AppendSync(out)
	c.reply.Reset()
	c.reply.Keep = true
	return c.exchange()
}

// Do executes SQL without parameters as a simple query: BEGIN, COMMIT, or several statements with semicolons, which
// are one transaction unless they say otherwise. Rows and errors are as Query's.
func (c *Conn) Do(sql string) (*Reply, error) {
	c.out = AppendQuery(c.out[:0], sql)
	c.reply.Reset()
	c.reply.Keep = true
	return c.exchange()
}

// CopyIn loads rows: sql is COPY ... FROM STDIN, and next appends the next rows to dst, some 64 KiB at a time, as the
// COPY reads them, and returns io.EOF with the last ones or after them. Another error of next's ends the COPY without
// a row loaded. It gives the number of rows loaded.
func (c *Conn) CopyIn(sql string, next func(dst []byte) ([]byte, error)) (rows int64, err error) {
	c.out = AppendQuery(c.out[:0], sql)
	c.reply.Reset()
	if _, err := c.exchange(); err != nil {
		return 0, err
	}
	if !c.reply.copying {
		return 0, fmt.Errorf("%q is no COPY ... FROM STDIN", sql)
	}
	var said error
	for said == nil && !c.socket.readable() { // it only speaks now when it objects
		out, at := begin(c.out[:0], 'd')
		c.out, said = next(out)
		if len(c.out) < len(out) {
			said = errors.New("the source of rows shortened what it was given")
			break
		}
		if len(c.out) > maxMessage {
			said = fmt.Errorf("%d bytes of rows at once; give them in parts", len(c.out))
			break
		}
		if len(c.out) > len(out) && (said == nil || errors.Is(said, io.EOF)) {
			if err := c.send(finish(c.out, at)); err != nil {
				return 0, err
			}
		}
	}
	c.out = append(c.out[:0], 'c', 0, 0, 0, 4)
	failed := said != nil && !errors.Is(said, io.EOF)
	if failed {
		out, at := begin(c.out[:0], 'f')
		c.out = finish(append(append(out, said.Error()...), 0), at)
	}
	c.reply.Reset()
	_, err = c.exchange()
	if failed {
		return 0, said
	}
	return c.reply.Affected(), err
}

// exchange sends out and reads the answer into reply.
func (c *Conn) exchange() (*Reply, error) {
	if err := c.send(c.out); err != nil {
		return nil, err
	}
	if cap(c.out) > 1<<20 {
		c.out = nil
	}
	for {
		data := c.extra
		if len(data) == 0 {
			n, err := c.socket.read(c.in)
			if err != nil {
				return nil, c.over(err)
			}
			data = c.in[:n]
			if n == len(c.in) && n < 256<<10 {
				c.in = make([]byte, 4*n)
			}
		}
		used, done, err := c.reply.Feed(data)
		c.extra = data[used:]
		if err != nil {
			return nil, c.over(err)
		}
		if done {
			break
		}
	}
	if c.reply.Err != nil {
		return nil, c.reply.Err
	}
	return &c.reply, nil
}

func (c *Conn) send(data []byte) error {
	if c.lost != nil {
		return &LostError{c.lost}
	}
	if err := c.socket.write(data); err != nil {
		return c.over(err)
	}
	return nil
}

// over notes that the connection has ended, with the server's last words.
func (c *Conn) over(err error) error {
	c.lost = err
	if errors.Is(err, io.EOF) {
		c.lost = errors.New("the server closed it")
	}
	if large := (*TooLargeError)(nil); errors.As(err, &large) {
		c.lost = fmt.Errorf("%s: %w", c.server, err)
	}
	if c.reply.Err != nil {
		c.lost = c.reply.Err
	}
	return &LostError{c.lost}
}

// InTransaction reports what the last answer said: whether a transaction is open, be it one that failed.
func (c *Conn) InTransaction() bool { return c.reply.Status == 'T' || c.reply.Status == 'E' }
