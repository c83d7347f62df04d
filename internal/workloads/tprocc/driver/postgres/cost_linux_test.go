package postgres_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/postgrestest"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/postgres"
)

var (
	peers  = flag.Bool("peers", false, "measure what the users cost, as make bench-peers does")
	users  = flag.Int("users", 0, "of -peers, the rows of so many users alone")
	rounds = flag.Int("rounds", 6, "of -peers, rounds of what live lines and recording cost")
)

// yardstick returns what a transaction of real pgbench costs now, select-only, prepared, two clients, TCP, in
// microseconds of its own processor time: what the machine does to programs at this moment.
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
	}{{"loop", 1, 1, false, 10}, {"blocking", 1, 1, false, 10}, {"loop", 2, 2, false, 10},
		{"blocking", 2, 2, false, 10}, {"loop", 2, 1, false, 10}, {"loop", 4, 2, false, 10},
		{"blocking", 4, 2, false, 10}, {"loop", 10, 2, false, 10}, {"blocking", 10, 2, false, 10},
		{"loop", 10, 2, false, 60}, {"loop", 1000, 2, true, 60}} {
		if only := *users; only != 0 && only != c.users {
			continue
		}
		bench := yardstick(t, server, "-S", "-M", "prepared", "-c", "2", "-j", "1", "-T", "3")
		r := tprocc.NewRun(0, c.users, warehouses, c.threads, 7)
		r.Duration, r.Keying = time.Duration(c.seconds)*time.Second, c.keying
		cost := measure(t, r, func() error {
			if c.how == "blocking" {
				return r.Block(t.Context(), d.Terminal)
			}
			return d.Drive(t.Context(), r)
		})
		n := r.Counts()
		p50, _ := n.Times[tprocc.NewOrder].Percentile(0.5)
		p99, _ := n.Times[tprocc.NewOrder].Percentile(0.99)
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		load, _ := os.ReadFile("/proc/loadavg") // for the reader
		fmt.Printf("%s: %d users, %d threads, keying %v, %d s: %d NOPM, client CPU %.1f us a new order, p50 %v, p99 %v, "+
			"late %d, errors %d, heap %d KiB, pgbench %.1f us, load %s\n", c.how, c.users, c.threads, c.keying, c.seconds,
			n.Committed[0]*60/uint64(c.seconds), cost, time.Duration(p50), time.Duration(p99), n.Late, n.Errors(),
			mem.HeapAlloc>>10, bench, strings.TrimSpace(string(load)))
	}
	if *users == 0 || *users == 10 {
		extras(t, d, warehouses)
	}
	consistent(t, d, s)
}

// measure gives the processor time of this process for a new order, in microseconds.
func measure(t *testing.T, r *tprocc.Run, drive func() error) float64 {
	t.Helper()
	if err := drive(); err != nil {
		t.Fatal(err)
	}
	return r.CPUSeconds() * 1e6 / float64(max(1, r.Counts().Committed[tprocc.NewOrder]))
}

// extras measures what a line every second costs and what keeping times does, beside runs without, in rounds whose
// order turns.
func extras(t *testing.T, d postgres.Dialect, warehouses int) {
	t.Helper()
	lines, err := os.Create(filepath.Join(t.TempDir(), "lines"))
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	const plain, live, untimed = 0, 1, 2
	ratios := map[string][]float64{}
	for round := range *rounds {
		var cost, tpm [3]float64
		for k := range 3 {
			what := (k + round) % 3
			if round%2 == 1 {
				what = 2 - what
			}
			r := tprocc.NewRun(0, 10, warehouses, 2, 7)
			r.Duration, r.Untimed = 5*time.Second, what == untimed
			cost[what] = measure(t, r, func() error {
				done, said := make(chan struct{}), make(chan error, 1)
				go func() {
					<-r.Begun()
					if what != live {
						said <- nil
						return
					}
					said <- r.Report(lines, done)
				}()
				err := d.Drive(t.Context(), r)
				close(done)
				if err != nil { // it may never have begun
					return err
				}
				return <-said
			})
			for _, n := range r.Counts().Committed {
				tpm[what] += float64(n) * 12
			}
		}
		for name, v := range map[string]float64{"live over plain, TPM": tpm[live] / tpm[plain],
			"live over plain, client CPU a new order":    cost[live] / cost[plain],
			"timed over untimed, client CPU a new order": cost[plain] / cost[untimed]} {
			ratios[name] = append(ratios[name], v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		v := slices.Sorted(slices.Values(ratios[name]))
		fmt.Printf("%s: %.3f (%.3f to %.3f) in %d rounds of 5 s\n", name, (v[(len(v)-1)/2]+v[len(v)/2])/2, v[0],
			v[len(v)-1], len(v))
	}
}
