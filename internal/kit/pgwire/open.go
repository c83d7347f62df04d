package pgwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// What a server may say: before it lets us in, and of one answer whose rows are kept.
const (
	mostGreeting = 4 << 20
	maxKept      = 64 << 20
)

// MaxKept is the size of an answer beyond which nobody here reads on.
const MaxKept = maxKept

// TooLargeError says that a server's answer has no end that could be waited for.
type TooLargeError struct{ Most int64 }

// Error says how much was read.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its answer is larger than %d MiB: it was not read to its end", e.Most>>20)
}

// Open connects as pgconn does, with a bound on what the server says until it lets us in, and where most is not 0 on
// every answer from then on. A password in clear text goes only over a connection that is encrypted, or a unix socket,
// unless require_auth, which is libpq's, says what else is allowed.
func Open(ctx context.Context, config *pgconn.Config, most int64) (*pgconn.PgConn, error) {
	if config.RequireAuth != "" {
		return open(ctx, config.Copy(), most)
	}
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}},
		config.Fallbacks...)
	var failed error
	for _, w := range ways { // in the order of sslmode: prefer has the encrypted way first
		c := config.Copy()
		c.Host, c.Port, c.TLSConfig, c.Fallbacks = w.Host, w.Port, w.TLSConfig, nil
		if w.TLSConfig == nil && !strings.HasPrefix(w.Host, "/") {
			c.RequireAuth = "!password"
		}
		conn, err := open(ctx, c, most)
		if err == nil {
			return conn, nil
		}
		failed = err
		// As pgconn has it, another way is not tried where the server has answered for good.
		if said := (*pgconn.PgError)(nil); ctx.Err() != nil || errors.As(err, &said) && (said.Code == "28P01" ||
			said.Code == "3D000" || said.Code == "42501" || said.Code == "28000" && w.TLSConfig != nil) {
			break
		}
	}
	return nil, failed
}

func open(ctx context.Context, c *pgconn.Config, most int64) (*pgconn.PgConn, error) {
	var last *answers
	build := c.BuildFrontend
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		last = &answers{Reader: r}
		last.most.Store(mostGreeting)
		return build(last, asking{w, last})
	}
	if c.MaxProtocolMessageBodyLen == 0 {
		c.MaxProtocolMessageBodyLen = maxKept
	}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err == nil {
		last.most.Store(most)
		last.read.Store(0)
	}
	return conn, err
}

// answers holds what a server says. What it says in answer to one request is bounded.
type answers struct {
	io.Reader
	most, read atomic.Int64
}

// Read implements io.Reader. Nothing is given beyond the bound: those that read enough with an error ignore the error.
func (a *answers) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if most := a.most.Load(); a.read.Add(int64(n)) > most && most > 0 {
		return 0, &TooLargeError{most}
	}
	return n, err
}

// asking is how a server is asked.
type asking struct {
	io.Writer
	answers *answers
}

// Write implements io.Writer: another answer begins, but for what belongs to the greeting.
func (a asking) Write(p []byte) (int, error) {
	if a.answers.most.Load() != mostGreeting {
		a.answers.read.Store(0)
	}
	return a.Writer.Write(p)
}
