package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
)

// A claim is a shared advisory lock of the server's on a database, held by a connection that is called as its run is.
// Who wants one looks at the others' first, under an exclusive lock. It ends with its connection, however that ends.
const (
	claimKey  = 0x706c696d // the first key of both
	claimed   = 1
	gate      = 2
	claimWord = "plimsoll run " // begins the connection's name
)

// ClaimedError says that another run works on a database.
type ClaimedError struct{ Server, Run string }

// Error says which, and what to do.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s: %s works on this database: nothing was written; wait until it has ended, or give a database "+
		"of its own", e.Server, e.Run)
}

// Claim is a database that a run has for itself until Close.
type Claim struct{ conn *pgwire.Conn }

// Close gives it back.
func (c *Claim) Close() {
	if c != nil {
		_ = c.conn.Close() // the lock ends with it
	}
}

// claimPatience is for how long another's claim may go on, which the server takes for held until it has noticed.
const claimPatience = 2 * time.Second

// NewClaim claims the database of a server for a run. Several of one run may have one at once. The error is a
// *ClaimedError when another run has one.
func NewClaim(ctx context.Context, server *pgwire.Server, run string) (*Claim, error) {
	server = server.WithDatabase(server.Database()) // a copy
	name := plainText(claimWord + run)
	server.Set("application_name", name)
	conn, err := server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, conn.Stop)
	defer stop()
	fail := func(err error) (*Claim, error) {
		_ = conn.Close() // it is of no use
		return nil, err
	}
	_, _ = conn.Do("set idle_session_timeout = 0") // from version 14 on
	// A pooler gives a session of the server's to others when a transaction ends, with the locks that it has.
	lock, whose := "pg_advisory_lock_shared", ""
	if pooled, err := pooled(conn); err != nil {
		return fail(fmt.Errorf("claim the database: %w", err))
	} else if pooled {
		lock, whose = "pg_advisory_xact_lock_shared", "local "
		if _, err := conn.Do("begin; set local idle_in_transaction_session_timeout = 0"); err != nil {
			return fail(fmt.Errorf("claim the database: %w", err))
		}
	}
	others := fmt.Sprintf("select distinct a.application_name from pg_locks l join pg_stat_activity a on a.pid = l.pid where "+
		"l.locktype = 'advisory' and l.granted and l.classid = %d and l.objid = %d and l.objsubid = 2 and l.database = (select "+
		"oid from pg_database where datname = current_database()) and a.application_name <> %s", claimKey, claimed,
		Literal(name))
	for began := time.Now(); ; {
		if _, err := conn.Do(fmt.Sprintf("set %slock_timeout = '30s'; select pg_stat_clear_snapshot(), "+
			"pg_advisory_lock(%d, %d)", whose, claimKey, gate)); err != nil {
			return fail(fmt.Errorf("claim the database: %w", err))
		}
		rows, err := ask(conn, others)
		if err == nil && len(rows) == 0 {
			_, err = conn.Do(fmt.Sprintf("select %s(%d, %d)", lock, claimKey, claimed))
		}
		if err == nil {
			_, err = conn.Do(fmt.Sprintf("select pg_advisory_unlock(%d, %d)", claimKey, gate))
		}
		switch {
		case err != nil:
			return fail(fmt.Errorf("claim the database: %w", err))
		case len(rows) == 0:
			return &Claim{conn}, nil
		case time.Since(began) > claimPatience:
			return fail(&ClaimedError{server.String(), strings.TrimPrefix(rows[0][0], "plimsoll ")})
		}
		select {
		case <-time.After(claimPatience / 10):
		case <-ctx.Done():
			return fail(ctx.Err())
		}
	}
}

// Unpooled refuses a connection that a pooler has made, for loads that hold locks or prepare statements.
func Unpooled(conn *pgwire.Conn) error {
	through, err := pooled(conn)
	if through {
		err = errors.New("a pooler stands between, which gives sessions to others with their locks and statements: give " +
			"the address of the server itself")
	}
	return err
}

// pooled reports whether a pooler stands between: it calls the session otherwise than the server does.
func pooled(conn *pgwire.Conn) (bool, error) {
	rows, err := ask(conn, "select pg_backend_pid()")
	return err == nil && len(rows) == 1 && rows[0][0] != strconv.FormatUint(uint64(conn.PID), 10), err
}

// plainText returns what a server keeps of a connection's name.
func plainText(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), 63)]
}

// ClaimHere claims the database that the environment names for the run that this worker works for; without a run there
// is nothing to claim.
func ClaimHere(ctx context.Context) (*Claim, error) {
	run := worker.Run()
	if run == "" {
		return nil, nil
	}
	server, err := pgwire.ParseServer("")
	if err != nil {
		return nil, err
	}
	return NewClaim(ctx, server, run)
}

// held are the claims of this process for the run that it is at, by address: from the first job that goes to a server
// of a user's until the process ends, or goes on with another run. So no other run comes in between two jobs.
var held struct {
	sync.Mutex

	run    string
	claims map[string]*Claim
}

// hold claims a user's server for a run, where it can be reached from here. Elsewhere the claims of the jobs have to
// do.
func (a access) hold(ctx context.Context, run, password string) error {
	if run == "" {
		return nil
	}
	server, err := pgwire.ParseServer(a.URL)
	if err != nil {
		return nil // the job says it
	}
	if password != "" {
		server = server.WithPassword(password)
	}
	held.Lock()
	defer held.Unlock()
	if held.run != run {
		for _, c := range held.claims {
			c.Close()
		}
		held.run, held.claims = run, map[string]*Claim{}
	}
	if held.claims[a.URL] != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := NewClaim(ctx, server, run)
	if taken := (*ClaimedError)(nil); err != nil && !errors.As(err, &taken) {
		return nil // not from here
	}
	held.claims[a.URL] = c
	return err
}
