package tprocc

import (
	"context"
	"io"
	"strings"
)

// Dialect is a database that the workload runs on: its statements, and its wire.
type Dialect interface {
	// Name names it in configs.
	Name() string
	// Connect makes a session to set up, load and check with. It ends with ctx.
	Connect(ctx context.Context) (Session, error)
	// Script is the statements of a part of the set-up.
	Script(Part) []string
	// Find says how many warehouses our schema is for, 0 where there is none. What is not ours, or not as we left
	// it, is an error that says so.
	Find(Session) (warehouses int, err error)
	// Lock is a query that gives "1" when its session holds the lock that only one loader may have. Work is one for the
	// number of transactions that the server did so far, whoever asked for them.
	Lock() string
	Work() string
	// Create makes a schema for so many warehouses where Find found none, and records what it makes; Finish records
	// that all is there. Drop drops what the record says we made, by name; what others made that depends on it is an
	// error, and then nothing is dropped.
	Create(s Session, warehouses int) error
	Finish(s Session, warehouses int) error
	Drop(Session) error
	// Claim has the database for a run until it is closed, or its process ends; several of one run may have it at
	// once. To load it may make the schema's record. The error names the other run that has it.
	Claim(ctx context.Context, run string, load bool) (io.Closer, error)
	// Schema stands before the names of tables, with its point.
	Schema() string
	// Drive has the users of a run do their transactions, until its time is over. Transactions under way are waited
	// for. The error says that users could not be connected.
	Drive(context.Context, *Run) error
}

// Unclaimed is no claim at all.
type Unclaimed struct{}

// Close implements io.Closer.
func (Unclaimed) Close() error { return nil }

// Part is a part of the set-up.
type Part int

// The parts, in their order.
const (
	Tables     Part = iota // that Create does not make; may be given again, as all parts
	Emptied                // after rows of warehouses that were begun were deleted: gives their room back
	Indexes                // after the rows
	Procedures             // that do the transactions
	Statistics             // after that, so that the first minutes are as later ones
)

// Session is one connection.
type Session interface {
	// Exec executes statements whose rows nobody wants.
	Exec(sql string) error
	// Rows are those of a query, as text; null is "".
	Rows(sql string) ([][]string, error)
	// Copy loads rows as Data.Read gives them.
	Copy(Table, io.Reader) error
	Close() error
}

// Terminal is a connection on which a user's transactions are done one after the other.
type Terminal interface {
	// Do does one. The error explains an Outcome that is an error.
	Do(*Input) (Outcome, error)
	Close() error
}

// Outcome says how a transaction ended.
type Outcome int

// The outcomes.
const (
	Committed     Outcome = iota
	RolledBack            // as it was to be: it named an item that does not exist
	Deadlock              // the server undid it and another went on: tried again
	Serialization         // the same, for another reason
	Lost                  // the connection ended: it is not known whether what was under way was committed
	Refused               // no connection
	OutOfSpace            // a disk of the server is full
	Cancelled             // it took too long for the server's settings, or somebody cancelled it
	Failed                // any other error
	outcomes
)

// name puts the dialect's schema before the names of tables in a statement that is the same everywhere.
func name(d Dialect, sql string) string { return strings.ReplaceAll(sql, "tprocc.", d.Schema()) }

// all executes statements in turn.
func all(s Session, statements []string) error {
	for _, sql := range statements {
		if err := s.Exec(sql); err != nil {
			return err
		}
	}
	return nil
}
