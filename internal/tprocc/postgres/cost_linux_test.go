package postgres_test

import (
	"flag"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/postgres/postgrestest"
	"plimsoll/internal/tprocc"
)

var (
	peers = flag.Bool("peers", false, "measure what the users cost, as make bench-peers does")
	users = flag.Int("users", 0, "of -peers, the rows of so many users alone")
)

// yardstick is what a transaction of real pgbench costs now, select-only, prepared, two clients, TCP, in microseconds
// of its own processor time: what the machine does to programs at this moment.
func yardstick(t *testing.T, s *postgrestest.Server, options ...string) float64 {
	t.Helper()
	c := osexec.Command(filepath.Join(s.Bin, "pgbench"), append(options, "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port),
		"-U", postgrestest.User, "postgres")...)
	c.Env = append(os.Environ(), "PGPASSWORD="+postgrestest.Password)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	done := regexp.MustCompile(`processed: ([0-9]+)`).FindSubmatch(out)
	if done == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(done[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return float64((c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Microseconds()) / n
}

// TestCost prints the table of docs/performance.md.
func TestCost(t *testing.T) {
	if !*peers {
		t.Skip("go test -run TestCost -args -peers")
	}
	server := postgrestest.Start(t, "shared_buffers=3GB", "max_connections=1100", "synchronous_commit=off",
		"max_wal_size=8GB", "jit=off", "fsync=on", "max_locks_per_transaction=128")
	d := dialect(t, server.URL())
	const warehouses = 4
	before, start := cpu(), time.Now()
	if err := (&tprocc.Load{Dialect: d, Warehouses: warehouses, Workers: 2, Data: data}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("load of %d warehouses: %.1f s, client CPU %.2f s a warehouse\n", warehouses, time.Since(start).Seconds(),
		(cpu()-before).Seconds()/warehouses)
	s := session(t, d)
	yardstick(t, server, "-i", "-q", "-s", "10")
	for _, c := range []struct {
		how            string
		users, threads int
		keying         bool
		seconds        int
	}{{"loop", 1, 1, false, 10}, {"blocking", 1, 1, false, 10}, {"loop", 2, 2, false, 10}, {"blocking", 2, 2, false, 10}, {"loop", 2, 1, false, 10}, {"loop", 4, 2, false, 10},
		{"blocking", 4, 2, false, 10}, {"loop", 10, 2, false, 10}, {"blocking", 10, 2, false, 10},
		{"loop", 10, 2, false, 60}, {"loop", 1000, 2, true, 60}} {
		if only := *users; only != 0 && only != c.users {
			continue
		}
		r := tprocc.NewRun(c.users, warehouses, c.threads, 7)
		r.Duration, r.Keying = time.Duration(c.seconds)*time.Second, c.keying
		bench := yardstick(t, server, "-S", "-M", "prepared", "-c", "2", "-j", "1", "-T", "3")
		var err error
		begun := make(chan syscall.Rusage, 1)
		go func() {
			<-r.Begun()
			begun <- usage()
		}()
		if c.how != "blocking" {
			err = d.Drive(t.Context(), r)
		} else {
			err = r.Block(t.Context(), d.Terminal)
		}
		was, is := <-begun, usage()
		user := time.Duration(is.Utime.Nano() - was.Utime.Nano())
		used := user + time.Duration(is.Stime.Nano()-was.Stime.Nano())
		if err != nil {
			t.Fatal(err)
		}
		n := r.Counts()
		p50, _ := n.Times[tprocc.NewOrder].Percentile(0.5)
		p99, _ := n.Times[tprocc.NewOrder].Percentile(0.99)
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		load, _ := os.ReadFile("/proc/loadavg") // for the reader
		fmt.Printf("%s: %d users, %d threads, keying %v, %d s: %d NOPM, client CPU %.1f us a new order (%.1f in user space), p50 %v, p99 %v, "+
			"late %d, errors %d, heap %d KiB, pgbench %.1f us, load %s\n", c.how, c.users, c.threads, c.keying, c.seconds,
			n.Committed[0]*60/uint64(c.seconds), used.Seconds()*1e6/float64(n.Committed[0]),
			user.Seconds()*1e6/float64(n.Committed[0]), time.Duration(p50), time.Duration(p99), n.Late, n.Errors(), mem.HeapAlloc>>10, bench, strings.TrimSpace(string(load)))
	}
	consistent(t, d, s)
}
