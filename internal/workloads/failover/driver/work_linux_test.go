package failover

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/testkit/postgrestest"
)

// values are those of a state by the names of its measures.
func values(s worker.State) map[string]float64 {
	out := map[string]float64{}
	for i, m := range Measures() {
		if s.Values[i] != nil {
			out[m.Name] = *s.Values[i]
		}
	}
	return out
}

// reported are the values of each state that a job writes.
func reported(t *testing.T, states io.Reader) iter.Seq[map[string]float64] {
	return func(yield func(map[string]float64) bool) {
		for lines := bufio.NewScanner(states); lines.Scan(); {
			var s worker.State
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				t.Fatalf("%v: %s", err, lines.Text())
			}
			if !yield(values(s)) {
				return
			}
		}
	}
}

// begin begins a job on a server and its standby, and gives its states and how it ended.
func begin(t *testing.T, first *postgrestest.Server, giveUp, duration time.Duration) (io.Reader, <-chan error) {
	t.Helper()
	t.Setenv("PGPORT", strconv.Itoa(first.Port))
	t.Setenv("PGUSER", postgrestest.User)
	t.Setenv("PGPASSWORD", postgrestest.Password)
	t.Setenv("PGDATABASE", "postgres")
	job, err := json.Marshal(Job{Servers: []string{"127.0.0.1", "127.0.0.2"}, Clients: 3, RowBytes: 50,
		Replication: Asynchronous, GiveUp: giveUp, Duration: duration})
	if err != nil {
		t.Fatal(err)
	}
	states, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Work(t.Context(), strings.NewReader(string(job)), to)
		_ = to.Close() // the reader sees the end
		ended <- err
	}()
	return states, ended
}

// A server that is silent while its machine takes connections is slow: nobody takes over, and nothing is in doubt. When
// that lasts it is given up, and told to have been there all the time.
func TestSilentServer(t *testing.T) {
	first := postgrestest.Start(t)
	first.Standby(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(first.Port)))
	const giveUp = 400 * time.Millisecond
	states, ended := begin(t, first, giveUp, 15*time.Second)
	var stopped []int // the processes that talk to clients
	signal := func(signal syscall.Signal) {
		for _, pid := range stopped {
			if err := syscall.Kill(pid, signal); err != nil {
				t.Error(err)
			}
		}
	}
	hold := func() {
		stopped = []int{first.Pid()}
		for pid := range strings.FieldsSeq(first.Exec("postgres", "SELECT pid FROM pg_stat_activity WHERE "+
			"backend_type = 'client backend' AND pid <> pg_backend_pid()")) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			stopped = append(stopped, n)
		}
		signal(syscall.SIGSTOP)
	}
	free := func() {
		signal(syscall.SIGCONT)
		stopped = nil
	}
	defer free()
	var last map[string]float64
	slow, after := false, -1.0
	for last = range reported(t, states) {
		switch n := last[Acknowledged]; {
		case !slow && n > 0:
			hold()
			time.Sleep(2 * giveUp) // longer than it may be silent that cannot be reached
			free()
			slow, after = true, n
		case slow && after > 0 && n > after:
			if _, took := last[Promotion]; took || last[InDoubt] > 0 {
				t.Errorf("a server that is slow was given up: %v", last)
			}
			hold()
			after = -1
		case stopped != nil && last[Promotion] > 0:
			free()
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !slow || after > 0 || last[GivenUp] < patient*giveUp.Seconds() || last[Alive] <= 0 {
		t.Errorf("it came to %v", last)
	}
}

// A standby that was cut off while its server went on acknowledging lacks what was acknowledged since: exactly what the
// rows of both servers, read by psql, say.
func TestLostCommits(t *testing.T) {
	first := postgrestest.Start(t)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first.Port))
	between, err := carry(t.Context(), "127.0.0.1:0", address, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer between.close()
	second := first.Standby(t, between.listener.Addr().String())
	states, ended := begin(t, first, time.Second, 15*time.Second)
	const some = 200 // commits
	var last map[string]float64
	cut, crash := -1.0, -1.0
	for last = range reported(t, states) {
		switch n := last[Acknowledged]; {
		case cut < 0 && n >= some:
			between.close()
			cut = 0
		case cut == 0: // what was acknowledged when the link was gone already
			cut = n
		case crash < 0 && cut > 0 && n >= cut+some:
			first.Crash()
			crash = n
		}
	}
	if err := <-ended; err != nil || crash < 0 {
		t.Fatalf("%v; it came to %v, cut off at %v, crashed at %v", err, last, cut, crash)
	}
	count := func(s *postgrestest.Server) float64 {
		n, err := strconv.ParseFloat(s.Exec("postgres", "SELECT count(*) FROM "+table), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	there := count(second)
	first.Restart()
	if want := last[Acknowledged] - last[Lost] + last[Kept]; there != want {
		t.Errorf("the standby has %v rows, of %v acknowledged %v lost and %v in doubt: want %v", there,
			last[Acknowledged], last[Lost], last[Kept], want)
	}
	if last[Lost] < crash-cut || last[Lost] > count(first) {
		t.Errorf("%v are lost, of %v between the cut and the crash and %v in all", last[Lost], crash-cut, count(first))
	}
	if last[Without] <= last[GivenUp] || last[GivenUp] <= 0 || last[Reach] <= 0 {
		t.Errorf("times are %v", last)
	}
}
