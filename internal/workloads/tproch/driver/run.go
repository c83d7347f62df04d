package tproch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"plimsoll/hist"
	"plimsoll/internal/workloads/postgres"
)

// Places of the refresh functions among what a run counts, after the queries.
const (
	refreshInsert = Queries + iota
	refreshDelete
	operations
)

// classes of errors, in the order of their measures.
const (
	lost = iota
	refused
	cancelled
	outOfSpace
	otherError
	classes
)

var classNames = [classes]string{"lost_connections", "refused_connections", "cancelled", "out_of_space", "other_errors"}

// diskFull is the SQLSTATE of a file that could not grow.
const diskFull = "53100"

func classOf(err error) int {
	refusal, server := (*pgconn.ConnectError)(nil), (*pgconn.PgError)(nil)
	switch {
	case errors.As(err, &refusal):
		return refused
	case !errors.As(err, &server) || strings.HasPrefix(server.Code, "08") || strings.HasPrefix(server.Code, "57P"):
		return lost
	case server.Code == "57014" || server.Code == "55P03":
		return cancelled
	case server.Code == diskFull:
		return outOfSpace
	}
	return otherError
}

// Run asks the queries: in a power run, of one stream, and in a throughput run, of several at once.
type Run struct {
	Store   *Store
	Streams int        // of the throughput run; 0: there is none
	Refresh *Generator // of what refreshes add; nil: there are none
	Seed    uint64     // of the parameters
	Words   io.Writer  // what went wrong, in words

	mu      sync.Mutex
	times   [2 * operations]hist.Histogram // of the power run, then of the throughput run
	errors  [classes]uint64
	ordinal int64 // of the last refresh begun
	figures Figures
}

// Figures are what a run comes to. What could not be known is NaN.
type Figures struct {
	GeometricMean     float64 // of the seconds that the queries of the power run took
	Power, Throughput float64 // queries per hour times the scale, see figures
	PowerSeconds      float64
	ThroughputSeconds float64
	Unanswered        int // queries and refreshes that the run has to do, and that failed or were not come to
}

// NewRun wants a data set that is loaded to its end.
func NewRun(s *Store, streams int, refresh *Generator, seed uint64, words io.Writer) (*Run, error) {
	r := &Run{Store: s, Streams: streams, Refresh: refresh, Seed: seed, Words: words, ordinal: s.state.Refreshes}
	r.figures = Figures{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN(), (1 + streams) * Queries}
	if !s.state.Loaded {
		return nil, fmt.Errorf("database %q: the data set is not loaded, or not to its end: prefill the workload first",
			s.config.Database)
	}
	if refresh != nil {
		r.figures.Unanswered += 2 * (1 + streams)
		if r.ordinal+int64(1+streams) > Refreshes {
			return nil, fmt.Errorf("database %q: the data set was refreshed %d times of %d: load it anew with reload: true",
				s.config.Database, r.ordinal, Refreshes)
		}
	}
	return r, nil
}

// client is a connection that asks one after the other, and is made again when it was lost.
type client struct {
	run  *Run
	conn *pgconn.PgConn
	part int  // 0 in the power run, 1 in the throughput run
	gone bool // it has given up the server, or its time is over: nothing more is asked
}

// reconnect is for how long a client tries; tests want it shorter.
var reconnect = 30 * time.Second

// do does one operation and counts it, or its error. ok is false when it has to be counted as unanswered.
func (c *client) do(ctx context.Context, operation int, f func(context.Context, *pgconn.PgConn) error) (
	took time.Duration, ok bool) {
	if c.gone {
		return 0, false
	}
	for tried := time.Now(); c.conn == nil || c.conn.IsClosed(); {
		var err error
		if c.conn, err = c.run.Store.connect(ctx); err == nil {
			break
		}
		if ctx.Err() != nil || time.Since(tried) > reconnect {
			c.run.failed(ctx, operation, err)
			c.gone = true
			return 0, false
		}
		time.Sleep(reconnect / 100)
	}
	begin := time.Now()
	err := f(ctx, c.conn)
	took = time.Since(begin)
	if err != nil {
		c.run.failed(ctx, operation, err)
		if !c.conn.IsClosed() && c.conn.TxStatus() != 'I' {
			_ = exec(ctx, c.conn, "rollback") // else the connection is lost, which shows at the next one
		}
		c.gone = ctx.Err() != nil
		return took, false
	}
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.times[c.part*operations+operation].Add(uint64(took), 1)
	c.run.figures.Unanswered--
	return took, true
}

func (c *client) close(ctx context.Context) {
	if c.conn != nil {
		_ = c.conn.Close(context.WithoutCancel(ctx)) // nothing is lost with it
	}
}

// failed counts an error, and says the first of its kind. The end of the run's time is none.
func (r *Run) failed(ctx context.Context, operation int, err error) {
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	class := classOf(err)
	if r.errors[class]++; r.errors[class] == 1 {
		name := strings.TrimPrefix(OperationNames()[operation], "power_")
		fmt.Fprintf(r.Words, "first of %s, in %s: %v\n", classNames[class], name, err)
	}
}

// OperationNames are what a run counts: power_q1 to power_q22, power_refresh_insert and power_refresh_delete, and the
// same of the throughput run.
func OperationNames() (names []string) {
	for _, part := range []string{"power_", "throughput_"} {
		for n := range Queries {
			names = append(names, fmt.Sprintf("%sq%d", part, n+1))
		}
		names = append(names, part+"refresh_insert", part+"refresh_delete")
	}
	return names
}

// ask asks the queries of a stream, and gives the seconds that each took, by number; 0 of one that failed.
func (c *client) ask(ctx context.Context, stream int) (seconds [Queries + 1]float64) {
	for _, number := range QueryOrder(stream) {
		sql, err := StreamQuery(number, c.run.Store.state.Scale, c.run.Seed, stream)
		if err != nil {
			return seconds // the order has only queries that there are
		}
		if took, ok := c.do(ctx, number-1, func(ctx context.Context, conn *pgconn.PgConn) error {
			return drain(conn.Exec(ctx, sql))
		}); ok {
			seconds[number] = took.Seconds()
		}
	}
	return seconds
}

// drain reads all rows and keeps none.
func drain(all *pgconn.MultiResultReader) error {
	for all.NextResult() {
		rows := all.ResultReader()
		for rows.NextRow() {
		}
		if _, err := rows.Close(); err != nil {
			return errors.Join(err, all.Close())
		}
	}
	return all.Close()
}

// refresh does the two refresh functions with what comes between them, and gives their seconds; 0 of one that failed.
func (c *client) refresh(ctx context.Context, between func()) (seconds [2]float64) {
	c.run.mu.Lock()
	c.run.ordinal++
	ordinal := c.run.ordinal
	c.run.mu.Unlock()
	orders, lines, err := c.run.Refresh.AppendRefresh(ordinal, nil, nil)
	if err != nil {
		c.run.failed(ctx, refreshInsert, err)
		return seconds
	}
	took, inserted := c.do(ctx, refreshInsert, func(ctx context.Context, conn *pgconn.PgConn) error {
		err := exec(ctx, conn, "begin", fmt.Sprintf("insert into refreshed values (%d)", ordinal))
		if err == nil {
			err = copyRows(ctx, conn, Order, orders, lines)
		}
		if err == nil {
			err = exec(ctx, conn, "commit")
		}
		return err
	})
	between()
	if !inserted {
		return seconds // and nothing is removed, so that the data set does not shrink
	}
	seconds[0] = took.Seconds()
	least, greatest := c.run.Store.state.Scale.Refreshed(ordinal)
	where := fmt.Sprintf("orderkey between %d and %d and ", least, greatest)
	took, removed := c.do(ctx, refreshDelete, func(ctx context.Context, conn *pgconn.PgConn) error {
		return exec(ctx, conn, "begin", "delete from lineitem where l_"+where+"l_orderkey & 24 = 0",
			"delete from orders where o_"+where+"o_orderkey & 24 = 0", "commit")
	})
	if removed {
		seconds[1] = took.Seconds()
	}
	return seconds
}

// Do is the power run and then the throughput run. Errors are counted; the one that is returned is ctx's.
func (r *Run) Do(ctx context.Context) error {
	c := &client{run: r}
	defer c.close(ctx)
	var queries [Queries + 1]float64
	var refreshes []float64
	begin := time.Now()
	if r.Refresh == nil {
		queries = c.ask(ctx, 0)
	} else {
		pair := c.refresh(ctx, func() { queries = c.ask(ctx, 0) })
		refreshes = pair[:]
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	r.figures.PowerSeconds = time.Since(begin).Seconds()
	r.figures.GeometricMean, r.figures.Power = figures(queries[1:], refreshes, r.Store.state.Scale)
	left := r.figures.Unanswered
	r.mu.Unlock()
	if r.Streams == 0 {
		return nil
	}
	begin = time.Now()
	var group sync.WaitGroup
	for stream := range r.Streams {
		group.Go(func() {
			c := &client{run: r, part: 1}
			defer c.close(ctx)
			c.ask(ctx, stream+1)
		})
	}
	if r.Refresh != nil {
		group.Go(func() {
			c := &client{run: r, part: 1}
			defer c.close(ctx)
			for range r.Streams {
				c.refresh(ctx, func() {})
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := time.Since(begin).Seconds()
	r.figures.ThroughputSeconds = seconds
	planned := r.Streams * Queries
	if r.Refresh != nil {
		planned += 2 * r.Streams
	}
	if left-r.figures.Unanswered == planned { // nothing failed in it
		r.figures.Throughput = float64(r.Streams*Queries) * 3600 / seconds * float64(r.Store.state.Scale)
	}
	return nil
}

// figures are the geometric mean of the queries' seconds, and the power: 3600 times the scale over the geometric mean
// of queries and refreshes, where no query counts as less than a thousandth of the longest. Both are NaN where a time
// is 0, of what failed.
func figures(queries, refreshes []float64, scale Scale) (mean, power float64) {
	longest, logs, raised := 0.0, 0.0, 0.0
	for _, s := range queries {
		longest = max(longest, s)
	}
	failed := false
	for _, s := range queries {
		failed = failed || s <= 0
		logs += math.Log(s)
		raised += math.Log(max(s, longest/1000))
	}
	n := float64(len(queries))
	if failed {
		return math.NaN(), math.NaN()
	}
	mean = math.Exp(logs / n)
	for _, s := range refreshes {
		if s <= 0 {
			return mean, math.NaN()
		}
		raised += math.Log(s)
		n++
	}
	return mean, 3600 * float64(scale) / math.Exp(raised/n)
}

// Plan is how the server answers a query with the parameters of which the answers are published.
type Plan struct {
	Query   int
	Text    string // without costs, which change by themselves
	Before  string // the one when it was last asked; "" at the first time
	Changed bool
}

// Plans asks for all plans and keeps them in the database, for the next time.
func (s *Store) Plans(ctx context.Context) (plans []Plan, err error) {
	before := map[string]string{}
	rows, err := s.rows(ctx, "select query, plan from plans")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		before[row[0]] = row[1]
	}
	for n := 1; n <= Queries; n++ {
		sql, err := ValidationQuery(n, s.state.Scale)
		if err != nil {
			return nil, err
		}
		rows, err := s.rows(ctx, "explain (costs off) "+sql)
		if err != nil {
			return nil, fmt.Errorf("plan of query %d: %w", n, err)
		}
		var lines []string
		for _, row := range rows {
			lines = append(lines, row[0])
		}
		p := Plan{Query: n, Text: strings.Join(lines, "\n"), Before: before[fmt.Sprint(n)]}
		p.Changed = p.Before != "" && p.Before != p.Text
		plans = append(plans, p)
		if p.Before != p.Text {
			if err := exec(ctx, s.conn, fmt.Sprintf("insert into plans values (%d, %s) on conflict (query) do update set "+
				"plan = excluded.plan", n, postgres.Literal(p.Text))); err != nil {
				return nil, err
			}
		}
	}
	return plans, nil
}
