package pgload

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/testkit/postgrestest"
)

var (
	peers     = flag.Bool("peers", false, "measure this driver beside pgbench")
	pairs     = flag.Int("pairs", 7, "pairs of runs for each row")
	pairTime  = flag.Duration("pair-time", 2*time.Second, "length of each run")
	onlyPeers = flag.String("only-peers", "", "rows whose name has this")
)

// TestBesidePgbench measures the processor time of the client per transaction, select-only and prepared, of this driver
// and of pgbench by turns, and prints their ratios as a table. It judges nothing: a busy machine decides by chance.
// Both are whole processes, from their start to their end.
func TestBesidePgbench(t *testing.T) {
	if !*peers {
		t.Skip("make bench-peers runs it")
	}
	s := postgrestest.Start(t, "shared_buffers=512MB", "synchronous_commit=off", "jit=off", "max_connections=100",
		"search_path=plimsoll_pgbench,public")
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	base := append(os.Environ(), "PGUSER="+postgrestest.User, "PGPASSWORD="+password, "PGDATABASE=postgres",
		"PGPORT="+strconv.Itoa(s.Port))
	fill := job(func(j *Job) { j.Scale, j.Load = 10, true })
	if _, err := drive(t, server(t, s.URL()), fill); err != nil {
		t.Fatal(err)
	}
	fmt.Print("| socket | clients | pgbench µs | pg µs | pg / pgbench, median (range) | " +
		"open loop, always late / closed | open loop at 70 % / pgbench -R |\n|---|---|---|---|---|---|---|\n")
	for _, host := range []string{s.Sockets, "127.0.0.1"} {
		for _, clients := range []int{1, 2, 8, 32} {
			name := "unix"
			if host == "127.0.0.1" {
				name = "tcp"
			}
			if !strings.Contains(fmt.Sprintf("%s-%d-", name, clients), *onlyPeers) {
				continue
			}
			b := &beside{t: t, env: append(slices.Clone(base), "PGHOST="+host), bin: s.Bin, clients: clients}
			b.row(name)
		}
	}
}

// beside are the runs of a row of the table.
type beside struct {
	t       *testing.T
	env     []string
	bin     string
	clients int
}

// row measures pairs of runs, which of the two is first by turns; the open loops follow in the same minute.
func (b *beside) row(name string) {
	var theirs, ours, ratio, late, paced []float64
	for i := range *pairs {
		var p, c, tps float64
		for k := range 2 {
			if (i+k)%2 == 0 {
				p = b.pgbench(0)
			} else {
				c, tps = b.runPg(0)
			}
		}
		o, _ := b.runPg(3 * tps) // more than there can be: every arrival has waited
		q, _ := b.runPg(0.7 * tps)
		theirs, ours, ratio = append(theirs, p), append(ours, c), append(ratio, c/p)
		late, paced = append(late, o/c), append(paced, q/b.pgbench(0.7*tps))
	}
	for _, v := range [][]float64{theirs, ours, ratio, late, paced} {
		slices.Sort(v)
	}
	middle := func(v []float64) float64 { return (v[(len(v)-1)/2] + v[len(v)/2]) / 2 }
	fmt.Printf("| %s | %d | %.1f | %.1f | %.2f (%.2f to %.2f) | %.2f | %.2f |\n", name, b.clients, middle(theirs),
		middle(ours), middle(ratio), ratio[0], ratio[len(ratio)-1], middle(late), middle(paced))
}

var processed = regexp.MustCompile(`transactions actually processed: ([0-9]+)`)

func (b *beside) pgbench(rate float64) float64 {
	args := []string{filepath.Join(b.bin, "pgbench"), "-n", "-S", "-M", "prepared", "-j", "1", "-c",
		strconv.Itoa(b.clients), "-T", strconv.Itoa(int(pairTime.Seconds()))}
	if rate > 0 {
		args = append(args, "-R", strconv.FormatFloat(rate, 'f', 0, 64))
	}
	out, micros := b.process(args...)
	m := processed.FindSubmatch(out)
	if m == nil {
		b.t.Fatalf("pgbench says: %s", out)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || n == 0 {
		b.t.Fatalf("%v: pgbench says: %s", err, out)
	}
	return micros / n
}

func (b *beside) runPg(rate float64) (micros, tps float64) {
	j := job(func(j *Job) {
		j.Scale, j.Initialise, j.Clients, j.Duration, j.Rate = 10, Never, b.clients, *pairTime, rate
		j.Scripts = []Script{{Name: "select-only", Weight: 1}}
	})
	text, err := json.Marshal(j)
	if err != nil {
		b.t.Fatal(err)
	}
	config := filepath.Join(b.t.TempDir(), "job.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	out, micros := b.process(os.Args[0], WorkCommand, config)
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var last worker.State
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil || !last.Final {
		b.t.Fatalf("the worker says: %s", out)
	}
	n := float64(last.Operations[0].Times.Count())
	return micros / n, n / last.Elapsed.Seconds()
}

// process runs a program and gives what it printed and its processor time in microseconds.
func (b *beside) process(argv ...string) ([]byte, float64) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = b.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("%s: %v: %s", argv[0], err, stderr.Bytes())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return out, float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e3
}
