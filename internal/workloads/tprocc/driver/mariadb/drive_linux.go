package mariadb

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"reflect"
	"strconv"

	"plimsoll/internal/kit/pgwire"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Loops(ctx, d.seat) }

// seat makes a connection for a loop: the driver lets us in, and then its socket is taken.
func (d Dialect) seat(ctx context.Context) (*pgwire.Detached, tprocc.Caller, error) {
	db, conn, err := d.open(ctx, d.Server.Database, nil)
	if err != nil {
		return nil, nil, err
	}
	c := &caller{}
	var detached *pgwire.Detached
	line, err := taken(conn)
	if err == nil {
		detached, err = pgwire.Detach(line, &c.answer, []byte{1, 0, 0, 0, comQuit})
	}
	_, _ = conn.Close(), db.Close() // they find their connection gone
	return detached, c, err
}

// taken is the connection of the library's, with its TLS, which has one that is closed from then on. The library has no
// way to give it.
func taken(conn *sql.Conn) (line net.Conn, err error) {
	err = conn.Raw(func(of any) error {
		field := reflect.Indirect(reflect.ValueOf(of)).FieldByName("netConn")
		if !field.IsValid() || field.Type() != reflect.TypeFor[net.Conn]() {
			return fmt.Errorf("a %T has no connection to take", of)
		}
		its, closed := (*net.Conn)(field.Addr().UnsafePointer()), net.Conn(nil)
		closed, _ = net.Pipe()
		_ = closed.Close()
		line, *its = *its, closed
		return nil
	})
	return line, err
}

// caller is a tprocc.Caller whose calls are texts: what is in them are numbers, and names of our own making.
type caller struct{ answer answer }

// Append implements tprocc.Caller.
func (c *caller) Append(dst []byte, in *tprocc.Input) ([]byte, error) {
	at := len(dst)
	dst = append(append(append(dst, 0, 0, 0, 0, comQuery), "CALL "...), in.Kind.String()...)
	for i, value := range in.Arguments() {
		dst = append(dst, map[bool]byte{true: '(', false: ','}[i == 0])
		switch v := value.(type) {
		case nil:
			dst = append(dst, "NULL"...)
		case int:
			dst = strconv.AppendInt(dst, int64(v), 10)
		case string:
			dst = append(append(append(dst, '\''), v...), '\'')
		}
	}
	dst = append(dst, ')')
	size := len(dst) - at - 4
	dst[at], dst[at+1], dst[at+2] = byte(size), byte(size>>8), byte(size>>16)
	return dst, nil
}

// Ended implements tprocc.Caller.
func (c *caller) Ended(in *tprocc.Input, _ *pgwire.Link, err error) (tprocc.Outcome, error) {
	if err == nil {
		err = c.answer.why()
	}
	if err != nil {
		return outcome(in, err), err
	}
	return tprocc.Committed, nil
}
