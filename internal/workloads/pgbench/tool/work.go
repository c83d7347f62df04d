package pgbench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/workloads/postgres"
)

const (
	tick        = 100 * time.Millisecond
	longestLine = 4096 // of pgbench's own words
	longestGap  = 3600 // seconds between two lines of the log for each of which a state is printed
)

// FindScript is a shell script that prints the path of pgbench and what it says of its version: the one in PATH, unless
// that is Debian's, which looks for servers of its own; else the newest of those that packages put below the folder $1,
// "" for the root.
const FindScript = `p=$(command -v pgbench) || p=
case "$(readlink -f "$p")" in */pg_wrapper) p= ;; esac
[ -n "$p" ] || p=$(ls "$1"/usr/lib/postgresql/*/bin/pgbench "$1"/usr/pgsql-*/bin/pgbench \
	"$1"/usr/local/pgsql/bin/pgbench 2>/dev/null | sort -V | tail -n 1)
[ -n "$p" ] && echo "$p" && LC_ALL=C "$p" --version`

// find gives the path of pgbench on this machine and its version.
func find(ctx context.Context) (path string, version int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", FindScript).Output()
	path, said, _ := strings.Cut(string(out), "\n")
	if path == "" {
		return "", 0, errors.New("pgbench is not installed there: install postgresql-contrib " +
			"(of Debian: postgresql-client-common and postgresql-15 or another version), or put it into PATH")
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s --version: %w", path, err)
	}
	version, _, err = ReadVersion(said)
	return path, version, err
}

// Work does a job in the working folder: it prints pgbench's own lines and a worker.State for every second. Its error
// says how pgbench ended when that was not with success.
func Work(ctx context.Context, config io.Reader, to io.Writer) error {
	var job Job
	if err := json.NewDecoder(io.LimitReader(config, 1<<20)).Decode(&job); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	path, version, err := find(ctx)
	if err == nil {
		err = job.Check(version)
	}
	if err != nil {
		return err
	}
	// Where the tables are the user's affair, theirs come first.
	first := job.Schema != "" || job.Initialise != postgres.Never
	job.Schema = cmp.Or(job.Schema, postgres.PgbenchSchema)
	claim, err := postgres.ClaimHere(ctx)
	if err != nil {
		return err
	}
	defer claim.Close()
	server, err := pgwire.ParseServer("")
	if err != nil {
		return err
	}
	conn, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // all was written
	defer context.AfterFunc(ctx, conn.Stop)()
	searched, err := postgres.Path(conn, job.Schema, first)
	if err != nil {
		return err
	}
	out := &lines{to: to}
	if job.Initialize {
		command := exec.CommandContext(ctx, path, job.Arguments(version)...)
		command.Env = append(os.Environ(), "LC_ALL=C")
		return job.initialize(conn, command, out)
	}
	c := newCounter(job)
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `read -r go && exec "$0" "$@"`, path},
		job.Arguments(version)...)...)
	command.Env = append(os.Environ(), "LC_ALL=C")
	if searched != "" {
		setPath(command, searched)
	}
	return c.run(command, out)
}

// lines lets several write whole lines to one writer.
type lines struct {
	mu  sync.Mutex
	to  io.Writer
	err error
}

func (l *lines) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.to.Write(line)
	}
}

// copyLines writes the lines of a stream, the end of one that is too long left out, and has them read as text.
func (l *lines) copyLines(r io.Reader, take func(string)) {
	in := bufio.NewReaderSize(r, longestLine)
	for {
		line, more, err := in.ReadLine()
		if err != nil {
			return
		}
		text := string(line)
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		if strings.HasPrefix(text, "{") {
			text = " " + text // only ours begin so
		}
		l.write([]byte(text + "\n"))
		take(text)
	}
}

// Counts of a second besides the histograms, by index.
const (
	failed = iota
	retried
	retries
	serialization
	deadlock
	other
	skipped
	late
	countsEnd
)

// second counts what ended within one.
type second struct {
	times   []*hist.Histogram // by operation, nanoseconds
	service *hist.Histogram   // of all, without the lag
	counts  [countsEnd]uint64
}

func (c *counter) newSecond() *second {
	s := &second{service: &hist.Histogram{}}
	for range c.operations {
		s.times = append(s.times, &hist.Histogram{})
	}
	return s
}

func (s *second) merge(o *second) {
	for i := range s.times {
		s.times[i].Merge(o.times[i])
	}
	s.service.Merge(o.service)
	for i := range s.counts {
		s.counts[i] += o.counts[i]
	}
}

// counter counts the log's lines by the second in which a transaction ended.
type counter struct {
	job        Job
	columns    Columns
	operations int
	began      time.Time

	mu      sync.Mutex
	text    Text
	total   *second
	pending map[int64]*second
	newest  *second // of pending, the second last counted into
	at      int64
	seen    []int64 // by thread, the second it was last heard of
	bad     int     // lines that could not be read
	badLine string

	printed time.Duration
}

func newCounter(job Job) *counter {
	c := &counter{job: job, operations: 1, pending: map[int64]*second{}, seen: make([]int64, job.Threads),
		columns: Columns{Lag: job.Rate > 0, Retries: job.MaxTries > 1}}
	if job.Apart {
		c.operations = len(job.Scripts)
	}
	c.total = c.newSecond()
	return c
}

// run has pgbench do its work and counts its log.
func (c *counter) run(command *exec.Cmd, out *lines) error {
	stdin, err := command.StdinPipe()
	stdout, err2 := command.StdoutPipe()
	stderr, err3 := command.StderrPipe()
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	c.began = time.Now()
	if err := command.Start(); err != nil {
		return err
	}
	fail := func(err error) error {
		return errors.Join(err, command.Process.Kill(), command.Wait())
	}
	var readers sync.WaitGroup
	var pipes []*pipe
	done := func() {
		for _, p := range pipes {
			_ = p.keeper.Close() // the readers come to the end
		}
		readers.Wait()
		for _, p := range pipes {
			_ = errors.Join(p.reader.Close(), os.Remove(p.path))
		}
	}
	if c.job.Log {
		for i := range c.job.Threads {
			path := "pgbench_log." + strconv.Itoa(command.Process.Pid)
			if i > 0 {
				path += "." + strconv.Itoa(i)
			}
			p, err := openPipe(path)
			if err != nil {
				done()
				return fail(fmt.Errorf("a pipe for the log: %w", err))
			}
			pipes = append(pipes, p)
			readers.Go(func() { c.read(i, p.reader) })
		}
	}
	var words sync.WaitGroup
	for _, r := range []io.Reader{stdout, stderr} {
		words.Go(func() { out.copyLines(r, c.line) })
	}
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		done()
		return fail(err)
	}
	_ = stdin.Close() // pgbench reads nothing
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	if c.job.Log {
		out.write(fmt.Appendf(nil, "{\"began_ns\":%d}\n", c.began.UnixNano()))
		c.print(out, time.Since(c.began), command, false)
		ticking.Go(func() { c.tick(stop, out, command) })
	}
	words.Wait()
	ended := command.Wait()
	close(stop)
	ticking.Wait()
	done()
	if c.job.Log {
		c.flush(math.MaxInt64)
		c.print(out, time.Since(c.began), command, ended == nil)
		if c.bad > 0 {
			out.write(fmt.Appendf(nil, "%d lines of pgbench's log could not be read, the first: %.200q\n", c.bad, c.badLine))
		}
	}
	if ended != nil {
		return fmt.Errorf("pgbench: %w", ended)
	}
	return out.err
}

// line takes one of pgbench's own lines.
func (c *counter) line(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Line(text)
}

// read counts the log of one thread to its end.
func (c *counter) read(thread int, from io.Reader) {
	buffer, held := make([]byte, 64<<10), 0
	for {
		n, err := from.Read(buffer[held:])
		rest := buffer[:held+n]
		c.mu.Lock()
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			c.count(thread, rest[:i])
			rest = rest[i+1:]
		}
		c.mu.Unlock()
		if held = copy(buffer, rest); held == len(buffer) {
			held = 0 // no line is so long
		}
		if err != nil {
			return
		}
	}
}

// count takes a line of a thread's log.
func (c *counter) count(thread int, line []byte) {
	t, err := ReadTransaction(line, c.columns)
	if err != nil {
		if c.bad++; c.bad == 1 {
			c.badLine = string(line)
		}
		return
	}
	at := t.EndedMicros / 1e6
	c.seen[thread] = max(c.seen[thread], at)
	if c.newest == nil || at != c.at {
		if c.pending[at] == nil {
			c.pending[at] = c.newSecond()
		}
		c.newest, c.at = c.pending[at], at
	}
	s := c.newest
	switch t.Fate {
	case Done:
		operation := 0
		if c.job.Apart {
			operation = min(t.Script, c.operations-1)
		}
		s.times[operation].Add(uint64(max(t.TookMicros*1000, 1)), 1)
		if c.columns.Lag {
			s.service.Add(uint64(max((t.TookMicros-t.LagMicros)*1000, 1)), 1)
		}
		if c.job.LatencyLimitMS > 0 && float64(t.TookMicros) > c.job.LatencyLimitMS*1e3 {
			s.counts[late]++
		}
	case Skipped:
		s.counts[skipped]++
		return
	default:
		s.counts[failed]++
		switch t.Fate {
		case Serialization:
			s.counts[serialization]++
		case Deadlock:
			s.counts[deadlock]++
		default:
			s.counts[other]++
		}
	}
	if t.Retries > 0 {
		s.counts[retried]++
		s.counts[retries] += uint64(t.Retries)
	}
}

// tick prints a state for every second of which all threads have been heard.
func (c *counter) tick(stop <-chan struct{}, out *lines, command *exec.Cmd) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	next := c.began.Unix() + 1
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		for {
			c.mu.Lock()
			heard := slices.Min(c.seen)
			c.mu.Unlock()
			if heard < next {
				break
			}
			if heard > next+longestGap {
				next = heard
			}
			c.flush(next)
			c.print(out, time.Unix(next, 0).Sub(c.began.Round(0)), command, false)
			next++
		}
	}
}

// flush counts the seconds before one into the total.
func (c *counter) flush(before int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, s := range c.pending {
		if at < before {
			c.total.merge(s)
			delete(c.pending, at)
		}
	}
	c.newest = nil
}

// print writes a state of all that was flushed.
func (c *counter) print(out *lines, elapsed time.Duration, command *exec.Cmd, final bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elapsed <= c.printed {
		return
	}
	c.printed = elapsed
	s := worker.State{Elapsed: elapsed, Began: c.began, Final: final, Errors: c.total.counts[failed],
		CPUSeconds: cpuSeconds(command)}
	for _, h := range c.total.times {
		s.Operations = append(s.Operations, worker.Counts{Times: h})
	}
	values := c.values(final)
	for _, name := range c.job.Measures {
		v, known := values[name]
		if !known || math.IsNaN(v) || math.IsInf(v, 0) {
			s.Values = append(s.Values, nil)
			continue
		}
		s.Values = append(s.Values, &v)
	}
	line, err := json.Marshal(s)
	if err != nil {
		line = fmt.Appendf(nil, "a state that cannot be printed: %v", err)
	}
	out.write(append(line, '\n'))
}

// values are those of the measures by name: counts at all times, the rest at the end.
func (c *counter) values(final bool) map[string]float64 {
	v := map[string]float64{}
	for name, i := range map[string]int{RetriedMeasure: retried, RetriesMeasure: retries, SkippedMeasure: skipped,
		LateMeasure: late, SerializationBad: serialization, DeadlockBad: deadlock, OtherBad: other} {
		v[name] = float64(c.total.counts[i])
	}
	if !final {
		return v
	}
	t := c.text.Totals()
	Singles(t, c.job.Measures, v)
	if h := c.total.service; h.Count() > 0 {
		v[ServiceMean] = h.Mean() / 1e6
		for name, q := range map[string]float64{ServiceP50: 0.5, ServiceP99: 0.99, ServiceP999: 0.999} {
			if at, ok := h.Percentile(q); ok {
				v[name] = float64(at) / 1e6
			}
		}
	}
	return v
}

// Singles puts the figures of pgbench's own making that have measures into v: of the statements, in order, those that
// are no commands of pgbench's.
func Singles(t Totals, measures []string, v map[string]float64) {
	for name, figure := range map[string]float64{TPS: t.TPS, TPSWith: t.TPSWith, InitialConnect: t.ConnectMS,
		LagMean: t.LagMS, LagMax: t.LagMaxMS} {
		v[name] = figure
	}
	next := slices.IndexFunc(measures, func(name string) bool { return strings.Contains(name, StatementWord) })
	for _, s := range t.Statements {
		if strings.HasPrefix(s.Text, `\`) {
			continue
		}
		if next < 0 || next >= len(measures) {
			return
		}
		v[measures[next]] = s.MeanMS
		next++
	}
}

// StatementWord is in the names of measures that are means of statements; they come last.
const StatementWord = "statement_"

// cpuSeconds returns what pgbench and this process have used.
func cpuSeconds(command *exec.Cmd) float64 {
	var own syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &own) // fails for no reason
	used := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if s := command.ProcessState; s != nil {
		return (used + s.UserTime() + s.SystemTime()).Seconds()
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(command.Process.Pid) + "/stat")
	if err != nil {
		return used.Seconds()
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return used.Seconds()
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return used.Seconds() + (user+system)/100
}
