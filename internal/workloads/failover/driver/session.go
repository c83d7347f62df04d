package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection to one of the servers.
type session struct {
	conn *pgconn.PgConn
	pad  []byte // of each row
}

var errClosed = errors.New("there is no connection")

// connect connects to a server.
func (w *work) connect(ctx context.Context, at int) (*session, error) {
	config, err := pgconn.ParseConfig("host=" + w.job.Servers[at]) // the rest is in the environment
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, pad: []byte(strings.Repeat("x", w.job.RowBytes))}, nil
}

// open connects to commit, within the time after which the first server is given up at the latest.
func (w *work) open(ctx context.Context, at int) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience())
	defer cancel()
	s, err := w.connect(ctx, at)
	if err != nil {
		return nil, err
	}
	if _, err := s.conn.Prepare(ctx, "commit", "insert into "+table+" values ($1, $2, $3)", nil); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // a server that is gone does not answer
}

// table is the ledger, in the database of the run's own.
const table = "plimsoll_ledger"

// insert commits one row.
func (s *session) insert(ctx context.Context, limit time.Duration, client int, number int64) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	values := [][]byte{[]byte(strconv.Itoa(client)), []byte(strconv.FormatInt(number, 10)), s.pad}
	_, err := s.conn.ExecPrepared(ctx, "commit", values, nil, nil).Close()
	return err
}

// ask sees whether the server answers.
func (s *session) ask(ctx context.Context, limit time.Duration) error {
	if s == nil {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.conn.Exec(ctx, "select 1").Close()
}

// wrong reports whether an error of a commit is the load's own fault, and none of a server that is going.
func wrong(err error) bool {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return false
	}
	class := said.Code[:min(2, len(said.Code))]
	return class == "42" || class == "22" || class == "23" // no such table, no such value, a number twice
}

func (s *session) text(ctx context.Context, sql string) (string, error) {
	r := s.conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if r.Err != nil || len(r.Rows) == 0 {
		return "", r.Err
	}
	return string(r.Rows[0][0]), nil
}

// prepare makes the table, and waits for the second server to follow as the job says, over a link of its length.
func (w *work) prepare(root context.Context) (l *link, err error) {
	ctx, cancel := context.WithTimeout(root, within)
	defer cancel()
	s, err := w.connect(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("the first server: %w", err)
	}
	defer s.close()
	straight, err := w.following(ctx, s, "")
	if err == nil && w.job.Distance > 0 {
		if l, err = w.lengthen(ctx, root); err == nil {
			_, err = w.following(ctx, s, straight)
		}
	}
	if err == nil {
		err = s.conn.Exec(ctx, "drop table if exists "+table+"; create table "+table+
			" (client int, number bigint, pad text, primary key (client, number))").Close()
	}
	return l, err
}

// within is how long a standby may take to follow.
const within = time.Minute

// following waits until the second server follows the first, by another process there than one before.
func (w *work) following(ctx context.Context, s *session, before string) (process string, err error) {
	sql := "select pid from pg_stat_replication where state = 'streaming'"
	if w.job.Replication == Synchronous {
		sql += " and sync_state in ('sync', 'quorum')"
	}
	for {
		process, err = s.text(ctx, sql+" order by backend_start desc limit 1")
		if err == nil && process != "" && process != before {
			return process, nil
		}
		if err != nil || ctx.Err() != nil {
			return "", fmt.Errorf("%s replication: the second server does not follow the first one within %v: %w",
				w.job.Replication, within, cmp.Or(err, ctx.Err()))
		}
		pause(ctx, again)
	}
}

// quoted is a text inside quotes of SQL.
func quoted(text string) string { return strings.ReplaceAll(text, "'", "''") }

// serverPort is that of both servers.
func serverPort() string { return cmp.Or(os.Getenv("PGPORT"), "5432") }

// promote has the second server take over, and returns when it takes writes.
func (w *work) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	s, err := w.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer s.close()
	done, err := s.text(ctx, "select pg_promote(true, 90)")
	if err == nil && done != "t" {
		err = errors.New("it is still in recovery after 90 s")
	}
	return err
}

// numbers are those of a client's rows.
func (s *session) numbers(ctx context.Context, c *client) (map[int64]bool, error) {
	there := make(map[int64]bool, c.sent)
	r := s.conn.ExecParams(ctx, "select number from "+table+" where client = $1",
		[][]byte{[]byte(strconv.Itoa(c.number))}, nil, nil, nil)
	for r.NextRow() {
		n, err := strconv.ParseInt(string(r.Values()[0]), 10, 64)
		if err != nil || n < 1 || n > c.sent || there[n] {
			_, _ = r.Close()
			return nil, fmt.Errorf("row %q of client %d was never written, or is there twice", r.Values()[0], c.number)
		}
		there[n] = true
	}
	_, err := r.Close()
	return there, err
}
