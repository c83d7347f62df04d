package pgwire

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// diskFull is the SQLSTATE of a file that could not grow.
const diskFull = "53100"

// Error holds what the server objects to.
type Error struct {
	Severity string // ERROR: the statement failed; FATAL and PANIC: the connection is over
	Code     string // SQLSTATE, five characters
	Message  string
	Detail   string
	Hint     string
	Where    string
}

// Error is the message and its SQLSTATE, on one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (SQLSTATE %s)", e.Severity, e.Message, e.Code)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Code == diskFull {
		text += "; make room on the server's disk, then run again"
	}
	return strings.Join(strings.Fields(text), " ")
}

func readError(body []byte) *Error {
	e := &Error{Severity: "ERROR", Code: "XX000"}
	for len(body) > 1 {
		kind := body[0]
		value, rest, ok := strings.Cut(string(body[1:]), "\x00")
		if !ok {
			break
		}
		body = []byte(rest)
		switch kind {
		case 'V':
			e.Severity = value
		case 'C':
			e.Code = value
		case 'M':
			e.Message = value
		case 'D':
			e.Detail = value
		case 'H':
			e.Hint = value
		case 'W':
			e.Where = value
		}
	}
	return e
}

// LostError says that a connection has ended under us: what was being done is neither done nor undone for sure.
type LostError struct{ Err error }

// Error says why.
func (e *LostError) Error() string { return "connection lost: " + e.Err.Error() }

// Unwrap gives the cause: the server's last words where it had some.
func (e *LostError) Unwrap() error { return e.Err }

// RefusedError says that no connection could be made.
type RefusedError struct {
	Server string // "host:port" or a socket, and the database; without its password
	Err    error
}

// Error says where, why, and what to do about it.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("connect: %s: %v", e.Server, e.Err)
	hint := ""
	if said := (*Error)(nil); errors.As(e.Err, &said) {
		switch {
		case strings.Contains(text, "client certificate"):
			hint = "name the client's own certificate: ?sslcert=FILE&sslkey=FILE"
		case strings.HasPrefix(said.Code, "28"):
			hint = "give the password in PGPASSWORD or a password file, or see the server's pg_hba.conf"
		case said.Code == "53300":
			hint = "use fewer clients, or a server with a higher max_connections"
		case said.Code == "3D000":
			hint = "create the database, or name another one"
		case said.Code == "57P03":
			hint = "wait until the server has started"
		}
	}
	if strings.Contains(text, `"!password" failed`) {
		text = fmt.Sprintf("connect: %s: the server asks for the password in clear text, and the connection is not encrypted: "+
			"it was not sent", e.Server)
		hint = "give ?sslmode=require, or have the server use scram-sha-256; ?require_auth=password sends it all the same"
	}
	if name := (*net.DNSError)(nil); errors.As(e.Err, &name) {
		hint = "give the server's address, or a name that is known on the machine of the load"
	}
	if unknown := (x509.UnknownAuthorityError{}); errors.As(e.Err, &unknown) {
		text = fmt.Sprintf("connect: %s: the server's certificate is signed by an unknown authority", e.Server)
		hint = "name the file of the authority that signed the server's certificate: ?sslrootcert=FILE"
	}
	if hint != "" {
		text += "; " + hint
	}
	return text
}

// Unwrap gives the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Class is a kind of error, for counting.
type Class int

// The classes.
const (
	Serialization Class = iota // 40001: another transaction was in the way; trying again is right
	Deadlock                   // 40P01: the same
	Lost                       // the connection has ended
	Refused                    // no connection could be made
	OutOfSpace                 // 53100: a disk of the server is full
	Cancelled                  // 57014, 55P03: statement_timeout, lock_timeout, or somebody cancelled it
	Other                      // any other SQLSTATE, and what the server did not cause
	Classes                    // how many there are
)

// String names the class as measures do.
func (c Class) String() string {
	names := [Classes]string{"serialization", "deadlock", "connection_lost", "refused", "out_of_space", "cancelled",
		"other"}
	if c < 0 || c >= Classes {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return names[c]
}

// ClassOf says which kind of error one is.
func ClassOf(err error) Class {
	if lost := (*LostError)(nil); errors.As(err, &lost) {
		return Lost
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return Refused
	}
	said := (*Error)(nil)
	switch {
	case !errors.As(err, &said):
		return Other
	case said.Code == "40001":
		return Serialization
	case said.Code == "40P01":
		return Deadlock
	case said.Severity == "FATAL" || said.Severity == "PANIC":
		return Lost
	case said.Code == diskFull:
		return OutOfSpace
	case said.Code == "57014" || said.Code == "55P03":
		return Cancelled
	}
	return Other
}

// refusal makes ours of what pgconn says, which leaves passwords out.
func refusal(server string, err error) error {
	if theirs := (*pgconn.PgError)(nil); errors.As(err, &theirs) {
		err = &Error{Severity: theirs.Severity, Code: theirs.Code, Message: theirs.Message, Detail: theirs.Detail,
			Hint: theirs.Hint, Where: theirs.Where}
	}
	return &RefusedError{Server: server, Err: err}
}
