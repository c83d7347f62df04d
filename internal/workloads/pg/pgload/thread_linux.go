package pgload

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/kit/pgwire"
)

// thread is one locked thread with its clients. Times are nanoseconds since the load began.
type thread struct {
	r       *runner
	loop    *pgwire.Loop
	clients []*client
	stats   *stats
	random  *rand.Rand
	timers  timers
	idle    []*client // of an open loop: those that wait for an arrival, first the one that waits longest
	next    int64     // when the next arrival is due
	gap     float64   // nanoseconds between arrivals on average
	busy    int       // clients with a transaction under way
	over    bool      // nothing is begun any more
	failure error     // ends the load
	out     []byte    // of the request that is being made
	text    []byte    // of a simple one
	args    []pgwire.Arg
	done    []uint64 // transactions by script, that ended well
	vain    []uint64 // and those that failed before the first that did

	refusals map[string]*refusal // by SQLSTATE

	mu      sync.Mutex
	arrived []arrival   // connections, made by goroutines
	asked   atomic.Bool // for the stats
	answer  chan *stats // copies of them
	stop    atomic.Bool // the load is given up
	ended   chan struct{}
}

// arrival is a connection that a goroutine has made, or not.
type arrival struct {
	client *client
	conn   *pgwire.Detached
	err    error
	nanos  int64 // that it took
}

type phase byte

const (
	waiting    phase = iota // for an arrival, or for the end
	running                 // a transaction is under way
	sleeping                // within a transaction
	thinking                // between two
	connecting              // a goroutine does, or will
	rolling                 // a failed transaction is rolled back
)

// client is one session of the load.
type client struct {
	scope
	place    int // in thread.clients
	link     *pgwire.Link
	phase    phase
	pcg      rand.PCG
	prepared []bool // by statement: this connection has it
	fresh    []int  // statements that are prepared by the request under way

	script   int
	at       int   // the next command
	intended int64 // when the transaction was due
	begun    int64 // when its first try was
	goesOn   int64 // by its timer, -1 without one
	sent     int64 // when the statement was
	asking   int   // the statement under way; -1 a pipeline
	full     bool  // its last transaction met a full disk
	piping   bool
	spoke    bool // the transaction has sent something
	waits    bool // a transaction waits for the connection
	tries    int
	failed   error // why the transaction is rolled back
	backoff  time.Duration
	before   struct { // the state at the beginning, for the next try
		pcg  rand.PCG
		vars []value
	}
}

// timer is when a client goes on.
type timer struct {
	at     int64
	client *client
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, k int) bool { return t[i].at < t[k].at }
func (t timers) Swap(i, k int)      { t[i], t[k] = t[k], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// later has a client go on at a time, and at none that was given before: its connection may be lost meanwhile.
func (t *thread) later(c *client, at int64) {
	c.goesOn = at
	heap.Push(&t.timers, timer{at, c})
}

// run serves the clients until the time is over and what was under way has ended.
func (t *thread) run() {
	end := int64(t.r.job.Duration)
	for _, c := range t.clients {
		t.available(c, t.r.now())
	}
	for t.failure == nil && !t.stop.Load() {
		now := t.r.now()
		if now >= end && !t.over {
			t.finish(end)
		}
		if t.over && (t.busy == 0 || now >= end+int64(grace)) {
			break
		}
		t.due(now)
		if t.asked.Load() {
			t.publish()
		}
		if err := t.loop.Wait(t.wait(now, end), t.ready); err != nil {
			t.failure = err
		}
		t.adopt()
	}
	if t.over {
		t.stats.cut = uint64(t.busy)
	}
}

// wait is for how long nothing is to be done but to serve answers.
func (t *thread) wait(now, end int64) time.Duration {
	until := end
	if t.over {
		until = end + int64(grace)
	}
	if len(t.timers) > 0 {
		until = min(until, t.timers[0].at)
	}
	if t.gap > 0 && len(t.idle) > 0 && !t.over {
		until = min(until, t.next)
	}
	return time.Duration(max(until-now, 0))
}

// due does what is due: timers and arrivals.
func (t *thread) due(now int64) {
	for len(t.timers) > 0 && t.timers[0].at <= now && t.failure == nil {
		next := heap.Pop(&t.timers).(timer)
		c := next.client
		if next.at != c.goesOn {
			continue
		}
		c.goesOn = -1
		switch c.phase {
		case sleeping:
			c.phase = running
			t.step(c, t.r.now())
		case thinking:
			t.available(c, now)
		case connecting:
			t.connect(c)
		}
	}
	for t.gap > 0 && !t.over && len(t.idle) > 0 && t.next <= now && t.failure == nil {
		c := t.idle[0]
		t.idle = append(t.idle[:0], t.idle[1:]...)
		if c.phase == waiting {
			now = t.r.now()
			t.available(c, now)
		}
	}
}

// finish is at the end of the time: arrivals that were due and not begun are counted.
func (t *thread) finish(end int64) {
	t.over = true
	const most = 200e6 // beyond that many they are estimated
	for n := 0.0; t.gap > 0 && t.next <= end; n++ {
		if n > most {
			t.stats.unserved += uint64(float64(end-t.next) / t.gap)
			break
		}
		if drop := int64(t.r.job.Drop); drop > 0 && end-t.next > drop {
			t.stats.dropped++
		} else {
			t.stats.unserved++
		}
		t.advance()
	}
}

// advance goes on to the next arrival.
func (t *thread) advance() {
	gap := t.gap
	if t.r.job.Arrivals == Poisson {
		gap *= t.random.ExpFloat64()
	}
	t.next += int64(gap)
}

// available has a client begin its next transaction, now or when one arrives.
func (t *thread) available(c *client, now int64) {
	c.phase = waiting
	if t.over {
		return
	}
	if t.gap == 0 {
		t.begin(c, now, now)
		return
	}
	for t.next <= now {
		at := t.next
		t.advance()
		if drop := int64(t.r.job.Drop); drop > 0 && now-at > drop {
			t.stats.dropped++
			continue
		}
		if late := int64(t.r.job.Late); now-at > late {
			t.stats.late++
		}
		t.begin(c, at, now)
		return
	}
	t.idle = append(t.idle, c)
}

// begin begins a transaction.
func (t *thread) begin(c *client, intended, now int64) {
	t.busy++
	c.phase, c.at, c.tries, c.spoke = running, 0, 1, false
	c.intended, c.begun = intended, now
	if scripts := t.r.program.scripts; len(scripts) > 1 {
		n := c.random.IntN(t.r.weights)
		for c.script = 0; n >= scripts[c.script].weight; c.script++ {
			n -= scripts[c.script].weight
		}
	}
	if t.r.job.Tries > 1 {
		c.before.pcg = c.pcg
		c.before.vars = append(c.before.vars[:0], c.vars...)
	}
	if c.link == nil {
		c.phase, c.waits = connecting, true
		t.connect(c)
		return
	}
	t.step(c, now)
}

// step goes through commands until something has to be waited for.
func (t *thread) step(c *client, now int64) {
	commands := t.r.program.scripts[c.script].commands
	for c.at < len(commands) {
		cmd := &commands[c.at]
		c.at++
		switch cmd.action {
		case setVariable:
			v, err := cmd.evaluate(&c.scope)
			if err != nil {
				t.broken(c, cmd, err)
				return
			}
			c.vars[cmd.slot] = v
		case sleep:
			d, err := cmd.sleeps(&c.scope)
			if err != nil {
				t.broken(c, cmd, err)
				return
			}
			c.phase, c.spoke = sleeping, true
			t.later(c, now+int64(d))
			return
		case jump:
			c.at = cmd.target
		case unless:
			v, err := cmd.evaluate(&c.scope)
			yes, err2 := v.truth()
			if err := errors.Join(err, err2); err != nil {
				t.broken(c, cmd, err)
				return
			}
			if !yes {
				c.at = cmd.target
			}
		case startPipeline:
			c.piping = true
			t.out = t.out[:0] // nothing else is made until its end: commands in between do not wait
		case endPipeline:
			c.piping = false
			c.asking = -1
			t.send(c, pgwire.AppendSync(t.out), now)
			return
		case sendSQL:
			if err := t.request(c, cmd.statement); err != nil {
				t.broken(c, cmd, err)
				return
			}
			if !c.piping {
				c.asking = cmd.statement
				if t.r.job.Mode != Simple {
					t.out = pgwire.AppendSync(t.out)
				}
				t.send(c, t.out, now)
				return
			}
		}
	}
	t.success(c, now)
}

// sleeps is how long a \sleep is.
func (cmd *command) sleeps(s *scope) (time.Duration, error) {
	if cmd.evaluate == nil {
		return cmd.pause, nil
	}
	v, err := cmd.evaluate(s)
	if err != nil {
		return 0, err
	}
	n, err := v.int()
	if err == nil && (n < 0 || n > int64(24*time.Hour/cmd.pause)) {
		err = fmt.Errorf("\\sleep of %d", n)
	}
	return time.Duration(n) * cmd.pause, err
}

// request makes the messages of a statement.
func (t *thread) request(c *client, i int) (err error) {
	st := &t.r.program.statements[i]
	if !c.piping {
		t.out = t.out[:0]
	}
	c.link.Reply.Keep, c.link.Reply.Describe = st.store != nil, false
	t.args, t.text = t.args[:0], append(t.text[:0], st.parts[0]...)
	for k, slot := range st.vars {
		v := c.vars[slot]
		switch name := t.r.program.names.order[slot]; {
		case v.kind == unset && st.quoted[k]:
			t.text = append(append(append(t.text, ':'), name...), st.parts[k+1]...)
			continue
		case v.kind == unset:
			return fmt.Errorf("variable %q has no value", name)
		}
		if t.r.job.Mode == Simple {
			t.text = append(v.append(t.text), st.parts[k+1]...)
		} else {
			t.args = append(t.args, v.arg())
		}
	}
	known := t.r.known[i].Load()
	switch {
	case t.r.job.Mode == Simple:
		t.out = pgwire.AppendQuery(t.out, t.text)
	case t.r.job.Mode == Extended:
		t.out, err = pgwire.AppendUnnamed(t.out, st.sql, t.args...)
	case c.prepared[i] && known != nil:
		t.out, err = known.Append(t.out, true, t.args...)
	case c.prepared[i]:
		t.out, err = pgwire.AppendNamed(t.out, st.name, t.args...)
	default:
		c.link.Reply.Describe = !c.piping
		t.out = pgwire.AppendPrepare(t.out, st.name, st.sql)
		t.out, err = pgwire.AppendNamed(t.out, st.name, t.args...)
		c.prepared[i] = true
		c.fresh = append(c.fresh, i)
	}
	return err
}

func (t *thread) send(c *client, request []byte, now int64) {
	c.spoke, c.sent = true, now
	if err := c.link.Send(request); err != nil {
		t.lost(c, err)
	}
}

// ready takes an answer, or the end of a connection.
func (t *thread) ready(link *pgwire.Link, err error) {
	c := t.clients[link.Owner]
	now := t.r.now()
	if err != nil {
		t.lost(c, err)
		return
	}
	if c.phase == rolling {
		t.rolled(c, now)
		return
	}
	if link.Reply.Err != nil {
		for _, i := range c.fresh {
			c.prepared[i] = false
		}
		c.fresh = c.fresh[:0]
		t.failed(c, link.Reply.Err, now)
		return
	}
	if len(c.fresh) > 0 {
		st := &t.r.program.statements[c.fresh[0]]
		if link.Reply.Describe {
			t.r.known[c.fresh[0]].CompareAndSwap(nil, link.Reply.Described(st.name, st.sql))
		}
		c.fresh = c.fresh[:0]
	}
	if c.asking >= 0 {
		st := &t.stats.statements[c.asking]
		st.count++
		st.nanos += uint64(now - c.sent)
		if t.r.program.statements[c.asking].store != nil {
			if err := t.store(c, &t.r.program.statements[c.asking]); err != nil {
				t.broken(c, &t.r.program.scripts[c.script].commands[c.at-1], err)
				return
			}
		}
	}
	t.step(c, now)
}

// store puts what a statement returned into variables: \gset of the one row of the last result, \aset of the last row
// of every result that has rows.
func (t *thread) store(c *client, st *statement) error {
	r := &c.link.Reply
	if !st.all && r.Rows != 1 {
		return fmt.Errorf("\\gset wants one row, and there are %d", r.Rows)
	}
	for r.Next() {
		for i, name := range r.Names() {
			slot, read := t.r.program.names.at[*st.store+name]
			if !read {
				continue
			}
			c.vars[slot] = value{kind: null}
			if text := r.Column(i); text != nil {
				c.vars[slot] = said(string(text))
			}
		}
	}
	return nil
}

// success counts a transaction that is done.
func (t *thread) success(c *client, now int64) {
	if c.link.Reply.Status == 'T' && c.spoke {
		cmd := &t.r.program.scripts[c.script].commands[c.at-1]
		t.broken(c, cmd, errors.New("the script leaves its transaction open: end it with COMMIT or ROLLBACK"))
		return
	}
	t.stats.times[c.script].Add(uint64(max(now-c.intended, 0)), 1)
	if t.gap > 0 {
		t.stats.service.Add(uint64(max(now-c.begun, 0)), 1)
	}
	t.done[c.script]++
	t.rest(c, now)
}

// rest is between two transactions.
func (t *thread) rest(c *client, now int64) {
	t.busy--
	c.phase = waiting
	if t.r.job.Connect && c.link != nil {
		c.link.Close()
		c.link = nil
	}
	switch think := int64(t.r.job.Think); {
	case t.over:
	case c.full: // room may be made; until then more tries only fill the server's log
		c.phase = thinking
		t.later(c, now+int64(whenFull))
	case think > 0:
		if t.r.job.ThinkTimes == Poisson {
			think = int64(float64(think) * c.random.ExpFloat64())
		}
		c.phase = thinking
		t.later(c, now+think)
	case !c.spoke: // others have their turn before a script that says nothing again
		c.phase = thinking
		t.later(c, now+1)
	default:
		t.available(c, now)
	}
}

// failed is a transaction that the server refused: it is rolled back, and tried again where that helps.
func (t *thread) failed(c *client, said *pgwire.Error, now int64) {
	c.failed, c.piping = said, false
	if c.link.Reply.Status != 'I' {
		c.phase = rolling
		c.link.Reply.Keep = false
		t.send(c, pgwire.AppendQuery(t.out[:0], "ROLLBACK"), now)
		return
	}
	t.rolled(c, now)
}

// rolled goes on after a failed transaction was rolled back.
func (t *thread) rolled(c *client, now int64) {
	class := pgwire.ClassOf(c.failed)
	if (class == pgwire.Serialization || class == pgwire.Deadlock) && c.tries < t.r.job.Tries && !t.over {
		c.tries++
		t.stats.retries++
		c.pcg = c.before.pcg
		c.vars = append(c.vars[:0], c.before.vars...)
		c.phase, c.at = running, 0
		t.step(c, now)
		return
	}
	if t.stats.failed[class]++; t.stats.failed[class] == 1 {
		t.r.say(c.failed)
	}
	t.refused(c.failed)
	if class >= pgwire.OutOfSpace && t.done[c.script] == 0 {
		if t.vain[c.script]++; t.vain[c.script] >= 10 {
			t.failure = fmt.Errorf("script %q fails each time: %w", t.r.program.scripts[c.script].name, c.failed)
			return
		}
	}
	c.full = class == pgwire.OutOfSpace
	t.rest(c, now)
	c.full = false
}

// refusal is an error that the server gave, by its SQLSTATE: the first one's words, and how many there were.
type refusal struct {
	words string
	at    int64
	count uint64
}

// refused counts an error that the server gave.
func (t *thread) refused(failed error) {
	e, code := (*pgwire.Error)(nil), ""
	if errors.As(failed, &e) {
		code = e.Code
	}
	r := t.refusals[code]
	if r == nil {
		if len(t.refusals) >= mostSaid {
			return
		}
		r = &refusal{words: failed.Error(), at: t.r.now()}
		if t.refusals == nil {
			t.refusals = map[string]*refusal{}
		}
		t.refusals[code] = r
	}
	r.count++
}

// broken ends the load: a script cannot go on.
func (t *thread) broken(c *client, cmd *command, err error) {
	t.failure = fmt.Errorf("%s:%d: %w", t.r.program.scripts[c.script].name, cmd.line, err)
}

// lost is a connection that has ended. What its transaction did is not known, so it is not tried again.
func (t *thread) lost(c *client, err error) {
	if c.link == nil {
		return
	}
	c.link.Close()
	c.link = nil
	t.stats.failed[pgwire.Lost]++
	t.r.say(err)
	if c.phase == running || c.phase == sleeping || c.phase == rolling {
		t.busy--
	}
	// One that waits or thinks, too, is connected anew; its place in the queue is void.
	c.piping = false
	if t.over {
		c.phase = waiting
		return
	}
	c.phase = connecting
	t.again(c)
}

// whenFull is the pause of a client that met a full disk.
const whenFull = time.Second

// again connects after a while, each time a longer one.
func (t *thread) again(c *client) {
	c.backoff = min(max(2*c.backoff, 50*time.Millisecond), 2*time.Second)
	t.later(c, t.r.now()+int64(c.backoff))
}

// connect has a goroutine make a connection.
func (t *thread) connect(c *client) {
	t.r.connecting.Go(func() {
		began := t.r.now()
		conn, err := t.r.detached()
		t.mu.Lock()
		t.arrived = append(t.arrived, arrival{c, conn, err, t.r.now() - began})
		t.mu.Unlock()
		t.loop.Wake()
	})
}

// adopt takes in the connections that were made.
func (t *thread) adopt() {
	t.mu.Lock()
	arrived := t.arrived
	t.arrived = nil
	t.mu.Unlock()
	for _, a := range arrived {
		c := a.client
		if a.err == nil {
			a.err = t.attach(c, a.conn)
		}
		if a.err != nil {
			t.stats.failed[pgwire.ClassOf(a.err)]++
			t.r.say(a.err)
			if c.waits { // the transaction that waited for it has failed
				c.waits = false
				t.busy--
			}
			c.phase = waiting
			if !t.over {
				c.phase = connecting
				t.again(c)
			}
			continue
		}
		c.backoff = 0
		if t.r.job.Connect {
			t.stats.times[len(t.stats.times)-1].Add(uint64(a.nanos), 1)
		}
		now := t.r.now()
		switch {
		case c.waits:
			c.waits, c.phase, c.begun = false, running, now
			if t.gap == 0 {
				c.intended = now
			}
			t.step(c, now)
		default:
			t.available(c, now)
		}
	}
}

// attach gives a client its connection.
func (t *thread) attach(c *client, conn *pgwire.Detached) (err error) {
	if c.link, err = t.loop.Add(conn); err != nil {
		return err
	}
	c.link.Owner = c.place
	clear(c.prepared)
	c.fresh = c.fresh[:0]
	return nil
}

// publish hands over a copy of the stats.
func (t *thread) publish() {
	t.asked.Store(false)
	s := newStats(len(t.stats.times), len(t.stats.statements))
	s.add(t.stats)
	t.answer <- s // it has room for one, and one was asked for
}
