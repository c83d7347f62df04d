package remote_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/ssh/remote"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
)

// me is who runs the test.
func me(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// fleet settles many hosts, which are folders of one real sshd.
func fleet(t testing.TB, count int) []*remote.Host {
	t.Helper()
	return fleetOf(t, sshtest.New(t, "one"), count)
}

func fleetOf(t testing.TB, l *sshtest.Lab, count int) []*remote.Host {
	t.Helper()
	access := remote.Access{Agents: l.Dir, Patience: 20 * time.Second, Lease: time.Hour, Clock: clock.Real{}}
	hosts := make([]*remote.Host, count)
	errs := make([]error, count)
	_ = clock.Parallel(access.Clock, count, count, func(i int) error {
		m := remote.Machine{
			Name: fmt.Sprint("h", i),
			Hop: remote.Hop{Address: l.Hosts[0].Address, Port: l.Hosts[0].Port,
				User: me(t), Keys: []string{l.Dir + "/key"}, KnownHosts: []string{l.Dir + "/known_hosts"}},
			Folder: filepath.Join(l.Hosts[0].Folder, fmt.Sprint("h", i)),
		}
		hosts[i] = access.NewHost(m, i)
		errs[i] = hosts[i].Settle(t.Context(), "cost")
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := hosts[i].Close(); err != nil {
				t.Error(err)
			}
			if err := m.Remove(ctx, "cost"); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

// values are some of what the agent of a host counts about itself.
func values(t testing.TB, h *remote.Host) map[string]float64 {
	t.Helper()
	page, _, err := h.Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	all := map[string]float64{}
	for lines := bufio.NewScanner(page); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(text, 64); err == nil && strings.HasPrefix(name, "plimsoll_agent_") {
			all[name] = v
		}
	}
	return all
}

func cpuTime() (cpu time.Duration) {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it does not fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap returns what this process holds in memory, in bytes.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

var agents = flag.Int("agents", 0,
	"agents whose cost TestCostOfScrapes measures; 0: 5, or 20 where everything runs")

// Scrapes every second are to cost an agent less than 1 % of a core and 25 MB. It prints what they cost here, and fails
// at three times that share: beside other tests a scrape takes longer.
func TestCostOfScrapes(t *testing.T) {
	const rounds = 5
	count := *agents
	if count == 0 {
		count = 5
		if needs.All() {
			count = 20
		}
	}
	empty := heap()
	hosts := fleet(t, count)
	before := make([]map[string]float64, count)
	for i, h := range hosts {
		before[i] = values(t, h)
	}
	cpu, began := cpuTime(), time.Now()
	for range rounds {
		next := time.Now().Add(time.Second)
		var group sync.WaitGroup
		for _, h := range hosts {
			group.Go(func() { values(t, h) })
		}
		group.Wait()
		time.Sleep(time.Until(next))
	}
	took, spent, held := time.Since(began), cpuTime()-cpu, heap()-empty
	var share, memory []float64
	for i, h := range hosts {
		after := values(t, h)
		share = append(share, (after["plimsoll_agent_cpu_seconds_total"]-
			before[i]["plimsoll_agent_cpu_seconds_total"])/took.Seconds())
		memory = append(memory, after["plimsoll_agent_resident_memory_bytes"])
	}
	slices.Sort(share)
	slices.Sort(memory)
	t.Logf(
		"%d agents, scraped every second for %v: agent %.2f %% of a core (median; most %.2f %%), %.1f MB (most %.1f); "+
			"here %.1f %% of a core and %.1f MB for 100 agents",
		count,
		took.Round(time.Second),
		share[count/2]*100,
		share[count-1]*100,
		memory[count/2]/1e6,
		memory[count-1]/1e6,
		spent.Seconds()/took.Seconds()*100*100/float64(count),
		held/1e6*100/float64(count),
	)
	if share[count/2] > 0.03 || memory[count-1] > 25e6 {
		t.Error("an agent takes 3 % of a core, or 25 MB")
	}
}

// BenchmarkStarts starts a command on 50 hosts at once, and tells how far apart the first and the last begin: released
// when all are ready, and without that.
func BenchmarkStarts(b *testing.B) {
	hosts := fleet(b, 50)
	for name, begin := range map[string]func(context.Context, []*remote.Host) ([]int64, error){
		"together": together, "each for itself": apart,
	} {
		b.Run(name, func(b *testing.B) {
			var skew, worst time.Duration
			for b.Loop() {
				began, err := begin(b.Context(), hosts)
				if err != nil {
					b.Fatal(err)
				}
				one := time.Duration(slices.Max(began) - slices.Min(began))
				skew, worst = skew+one, max(worst, one)
			}
			b.ReportMetric(skew.Seconds()*1e3/float64(b.N), "ms-apart/op")
			b.ReportMetric(worst.Seconds()*1e3, "ms-apart-at-most")
		})
	}
}

// clocked is a command that tells when it began, in nanoseconds since 1970.
var clocked = target.Command{Argv: []string{"date", "+%s%N"}, Stdout: "at", ReadOnly: true}

// each does something on every host at once.
func each(hosts []*remote.Host, do func(i int) error) error {
	errs := make([]error, len(hosts))
	var group sync.WaitGroup
	for i := range hosts {
		group.Go(func() { errs[i] = do(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// together starts a command on all hosts, when it is ready on each.
func together(ctx context.Context, hosts []*remote.Host) ([]int64, error) {
	ready, running := make([]target.Staged, len(hosts)), make([]target.Process, len(hosts))
	err := each(hosts, func(i int) (err error) { ready[i], err = hosts[i].Stage(ctx, clocked); return err })
	at := time.Now().Add(200 * time.Millisecond)
	if err == nil {
		err = each(hosts, func(i int) (err error) { running[i], _, err = ready[i].Release(ctx, at); return err })
	}
	if err != nil {
		return nil, err
	}
	return told(ctx, hosts, running)
}

// apart starts a command on all hosts at once.
func apart(ctx context.Context, hosts []*remote.Host) ([]int64, error) {
	running := make([]target.Process, len(hosts))
	err := each(hosts, func(i int) (err error) { running[i], err = hosts[i].Start(ctx, clocked); return err })
	if err != nil {
		return nil, err
	}
	return told(ctx, hosts, running)
}

// told returns what the commands say.
func told(ctx context.Context, hosts []*remote.Host, running []target.Process) ([]int64, error) {
	at := make([]int64, len(hosts))
	return at, each(hosts, func(i int) error {
		_, err := running[i].Wait(ctx)
		if err != nil {
			return err
		}
		data, err := target.ReadFile(ctx, hosts[i], "at", 0, 100)
		if err == nil {
			at[i], err = strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		}
		return err
	})
}
