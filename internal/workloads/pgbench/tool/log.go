package pgbench

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Fate is how a transaction of the log ended.
type Fate uint8

// The fates. All but Done have no time.
const (
	Done          Fate = iota
	Skipped            // never begun: with --rate and --latency-limit it was too late already
	Failed             // after all its tries, of a kind that the log does not say
	Serialization      // failed with a serialization error
	Deadlock           // failed with a deadlock
	Other              // failed with another error, with --continue-on-error
)

// fates are the words in the place of a time.
var fates = map[string]Fate{"skipped": Skipped, "failed": Failed, "serialization": Serialization,
	"deadlock": Deadlock, "other": Other}

// Columns are those that a log has beyond the six that all have: with --rate the lag, with --max-tries (PostgreSQL 15)
// the retries, in this order. No log says which it has.
type Columns struct{ Lag, Retries bool }

// Transaction is a line of the log of every transaction (-l).
type Transaction struct {
	Fate        Fate
	Client      int64
	Number      int64 // among those of its client, from 1; a log of a sample leaves numbers out
	Script      int   // from 0
	TookMicros  int64 // with --rate since it was due, else since it began
	EndedMicros int64 // since 1970
	LagMicros   int64 // of TookMicros, what it waited before it began; 0 without the column
	Retries     int64 // tries but the first; 0 without the column
}

var errNumber = errors.New("want whole numbers: client, transaction, time, script, seconds, microseconds")

// ReadTransaction reads a line of the log, without its end.
func ReadTransaction(line []byte, c Columns) (t Transaction, err error) {
	var v [8]int64
	n, word := 0, []byte(nil)
	for i := 0; i < len(line) && n < len(v); n++ {
		for i < len(line) && line[i] == ' ' {
			i++
		}
		from, value := i, int64(0)
		negative := i < len(line) && line[i] == '-'
		if negative {
			i++
		}
		digits := i
		for ; i < len(line) && line[i] >= '0' && line[i] <= '9' && i < digits+18; i++ {
			value = value*10 + int64(line[i]-'0')
		}
		if n == 2 && i == digits {
			for i < len(line) && line[i] != ' ' {
				i++
			}
			word = line[from:i]
		} else if i == digits || i < len(line) && line[i] != ' ' {
			return t, errNumber
		}
		if negative {
			value = -value
		}
		v[n] = value
	}
	if n < 6 || v[2] < 0 || v[3] < 0 || v[3] > 1<<16 || v[4] < 0 || v[4] > 1<<33 || v[5] < 0 || v[5] >= 1e6 {
		return t, errNumber
	}
	t = Transaction{Client: v[0], Number: v[1], Script: int(v[3]), TookMicros: v[2], EndedMicros: v[4]*1e6 + v[5]}
	next := 6
	if c.Lag {
		t.LagMicros, next = max(v[next], 0), next+1
	}
	if c.Retries {
		t.Retries = max(v[next], 0)
	}
	if word != nil {
		var known bool
		if t.Fate, known = fates[string(word)]; !known {
			return t, fmt.Errorf("%.20q is neither a time nor a fate", word)
		}
	}
	return t, nil
}

// Aggregate is a line of a log of intervals (--aggregate-interval). It has no percentiles: pgbench keeps sums.
type Aggregate struct {
	Start     float64 // seconds since 1970
	Count     uint64
	SumMicros float64
	LagMicros float64 // behind the schedule of --rate, summed
	Skipped   float64 // too late for --latency-limit
	Failed    uint64  // since version 15: for serialization, in deadlocks, since 19 for others
}

// ReadAggregate reads a line of a log of intervals.
func ReadAggregate(line []byte) (a Aggregate, err error) {
	cells := bytes.Fields(line)
	if len(cells) < 6 {
		return a, fmt.Errorf("%d columns; a line has at least six", len(cells))
	}
	var v [16]float64
	for i := range min(len(v), len(cells)) {
		if v[i], err = number(string(cells[i])); err != nil {
			return a, err
		}
	}
	if v[0] > 1<<33 {
		return a, fmt.Errorf("%.40q is no time", cells[0])
	}
	const before15 = 11 // columns, with skips, which it counts among the transactions
	if len(cells) == before15 {
		v[1] = max(0, v[1]-v[10])
	}
	return Aggregate{Start: v[0], Count: uint64(math.Min(v[1], 1<<53)), SumMicros: v[2], LagMicros: v[6],
		Skipped: v[10], Failed: uint64(math.Min(v[13]+v[14]+v[15], 1<<53))}, nil
}
