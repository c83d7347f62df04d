package perf_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
)

func drawTruth(t *rapid.T) perf.Truth {
	truth := perf.DefaultTruth()
	truth.Seed = rapid.Uint64().Draw(t, "seed")
	truth.Servers = rapid.IntRange(1, 64).Draw(t, "servers")
	truth.FastTierBytes = rapid.SampledFrom([]int64{0, 1 << 30, 100 << 30}).Draw(t, "fast tier")
	truth.SequentialToSlow = rapid.Bool().Draw(t, "sequential to slow")
	truth.Promotion.BytesPerSecond = rapid.SampledFrom([]float64{0, 50e6}).Draw(t, "promotion")
	truth.WriteLog = rapid.SampledFrom([]perf.WriteLog{{}, {Bytes: 1 << 28, BytesPerSecond: 10e6}}).Draw(t, "log")
	truth.Contention = rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "contention")
	truth.Crosstalk = rapid.SampledFrom([]float64{0, 1e-5}).Draw(t, "crosstalk")
	truth.Checkpoint = rapid.SampledFrom([]perf.Checkpoint{{},
		{Every: 20 * time.Second, Lasts: 5 * time.Second, Load: 0.3}}).Draw(t, "checkpoint")
	truth.Law = rapid.SampledFrom([]perf.Law{{Kind: perf.Exponential}, {Kind: perf.Lognormal, Sigma: 1},
		{Kind: perf.Constant}}).Draw(t, "law")
	truth.NoiseCV = rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(t, "noise")
	truth.Grain = rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second}).Draw(t, "grain")
	return truth
}

func drawStream(t *rapid.T) result.Stream {
	return result.Stream{
		Name: "lane", Device: rapid.SampledFrom([]string{"/dev/sdb", "/dev/sdc"}).Draw(t, "device"),
		Depth:     rapid.IntRange(1, 64).Draw(t, "depth"),
		Rate:      rapid.SampledFrom([]float64{0, 0.5, 100, 1e5}).Draw(t, "rate"),
		OpenLoop:  rapid.Bool().Draw(t, "poisson"),
		ReadShare: rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "reads"),
		ReadBytes: 8192, WriteBytes: rapid.SampledFrom([]float64{4096, 1 << 20}).Draw(t, "block"),
		Bytes:  rapid.SampledFrom([]int64{0, 1 << 28, 20 << 30}).Draw(t, "extent"),
		Random: rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "random"),
		Skew: rapid.SampledFrom([]result.Skew{{}, {Kind: result.Zipf, Value: 1.1},
			{Kind: result.Pareto, Value: 0.2}}).Draw(t, "skew"),
		Direct:   rapid.Bool().Draw(t, "direct"),
		ZeroData: rapid.Bool().Draw(t, "zeros"),
		Work:     rapid.SampledFrom([]int64{0, 0, 1 << 28}).Draw(t, "work"),
		Runtime:  rapid.SampledFrom([]time.Duration{0, 37 * time.Second}).Draw(t, "runtime"),
		Delay:    rapid.SampledFrom([]time.Duration{0, 1500 * time.Millisecond}).Draw(t, "delay"),
		Stage:    rapid.IntRange(0, 2).Draw(t, "stage"),
	}
}

// TestConservation: whatever is done to a world, counters never fall, none that has not ended took time, histograms
// hold exactly the operations counted and only grow, no more is outstanding than the depth allows, nothing is done
// before the start or after the end, and work done to size is exactly that size.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := drawTruth(t)
		if err := truth.Check(); err != nil {
			t.Fatal(err)
		}
		const nodes = 3
		w := perf.New(truth, nodes)
		var jobs []*watched
		now := start
		for i := range rapid.IntRange(1, 10).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "wait")) * time.Millisecond)
			node := rapid.IntRange(0, nodes-1).Draw(t, "node")
			switch rapid.SampledFrom([]string{"start", "start", "stop", "move", "slow", "hang", "read",
				"forget"}).Draw(t, "what") {
			case "start":
				streams := rapid.SliceOfN(rapid.Custom(drawStream), 1, 2).Draw(t, "lanes")
				vm := fmt.Sprint("vm-", i%4)
				jobs = append(jobs, &watched{job: w.Start(now, vm, node, streams, perf.JobOptions{Name: fmt.Sprint(i)}),
					streams: streams, began: now})
			case "stop":
				if len(jobs) > 0 {
					jobs[i%len(jobs)].job.Stop(now)
				}
			case "move":
				w.Advance(now)
				w.MoveVM(fmt.Sprint("vm-", i%4), node)
			case "slow":
				w.Fault(now, perf.Fault{Kind: perf.SlowDisk, Node: node, Factor: 5, Until: now.Add(20 * time.Second)})
			case "hang":
				w.Fault(now, perf.Fault{Kind: perf.HungIO, Node: node, Until: now.Add(10 * time.Second)})
			case "forget":
				w.Forget(now, fmt.Sprint("vm-", i%4))
			}
			for _, j := range jobs {
				j.look(t, now)
			}
			for i, level := range w.WriteLogBytes(now) {
				if level < 0 || level > truth.WriteLog.Bytes {
					t.Fatalf("the log of node %d holds %d of %d bytes", i, level, truth.WriteLog.Bytes)
				}
			}
			for i, u := range w.NodeMetrics(now) {
				if !(u.CPU >= 0 && u.CPU <= 1 && u.Storage >= 0 && u.Storage <= 1 && u.Reads >= 0 && u.Writes >= 0 &&
					u.Sent >= 0 && u.Received >= 0) {
					t.Fatalf("node %d: %+v", i, u)
				}
			}
			if r := w.Resident(now, "vm-0"); !(r >= 0 && r <= 1+1e-9) {
				t.Fatalf("%v of the data is resident", r)
			}
		}
	})
}

// watched is a job with what it reported last.
type watched struct {
	job     *perf.Job
	streams []result.Stream
	began   time.Time
	last    workload.Report
}

func (j *watched) look(t *rapid.T, now time.Time) {
	r := j.job.Report(now)
	var ops, last, depth, most float64
	for i, c := range r.Ops {
		before := workload.Counters{}
		if j.last.Ops != nil {
			before = j.last.Ops[i]
		}
		if c.Ops < before.Ops || c.Bytes < before.Bytes || c.Seconds < before.Seconds || math.IsNaN(c.Seconds) {
			t.Fatalf("counters went from %+v to %+v", before, c)
		}
		if c.Ops == 0 && c.Seconds > 0 {
			t.Fatalf("no operation has ended, and they took %v s", c.Seconds)
		}
		if c.Ops > 0 {
			if c.Hist.Count() != c.Ops {
				t.Fatalf("%d operations, %d of them in the histogram", c.Ops, c.Hist.Count())
			}
			if _, err := c.Hist.Sub(before.Hist); err != nil {
				t.Fatal(err)
			}
		}
		ops, last = ops+float64(c.Ops), last+float64(before.Ops)
	}
	for _, l := range j.streams {
		depth += float64(l.Depth)
		if l.Work > 0 {
			mean := l.ReadShare*l.ReadBytes + (1-l.ReadShare)*l.WriteBytes
			most += math.Round(float64(l.Work) / mean)
		} else {
			most = math.Inf(1)
		}
	}
	if ops > most+1 {
		t.Fatalf("%v operations of a work of %v", ops, most)
	}
	if seconds := r.Ops[0].Seconds + r.Ops[1].Seconds; !hasOpen(j.streams) &&
		seconds > 1.0001*depth*r.Elapsed.Seconds()+1e-6 {
		t.Fatalf("%v s of responses in %v at depth %v", seconds, r.Elapsed, depth)
	}
	if j.last.Final && (ops != last || r.Elapsed != j.last.Elapsed) {
		t.Fatalf("after its end: %+v, then %+v", j.last, r)
	}
	j.last = r
}

func hasOpen(streams []result.Stream) bool {
	for _, l := range streams {
		if l.Rate > 0 {
			return true
		}
	}
	return false
}

// scenario starts a mixed load on ten VMs and lets things happen to it.
func scenario(truth perf.Truth) (*perf.World, []*perf.Job) {
	w := perf.New(truth, 3)
	var jobs []*perf.Job
	for i := range 10 {
		open := result.Stream{Name: "log", Device: "/dev/sdc", Depth: 16, Rate: 300, OpenLoop: true, Writes: true,
			WriteBytes: 32768, Random: 0.1, Direct: true, Bytes: 1 << 30}
		jobs = append(jobs, w.Start(start, fmt.Sprint("vm-", i), i%3, []result.Stream{reads(4, 0), open},
			perf.JobOptions{Name: "oltp"}))
	}
	w.Fault(after(100), perf.Fault{Kind: perf.SlowDisk, Node: 1, Factor: 3, Until: after(200)})
	return w, jobs
}

// TestReadersChangeNothing: counters are the same at a moment however often, in which order and by how many they were
// read before.
func TestReadersChangeNothing(t *testing.T) {
	truth := perf.DefaultTruth()
	truth.Checkpoint = perf.Checkpoint{Every: time.Minute, Lasts: 7 * time.Second, Load: 0.2}
	read := func(look func(w *perf.World, jobs []*perf.Job)) (out []workload.Report) {
		w, jobs := scenario(truth)
		look(w, jobs)
		for _, j := range jobs {
			out = append(out, j.Counters(after(600)))
		}
		return out
	}
	want := read(func(*perf.World, []*perf.Job) {})
	for name, look := range map[string]func(*perf.World, []*perf.Job){
		"every second": func(w *perf.World, jobs []*perf.Job) {
			for s := 101.0; s < 600; s++ {
				for _, j := range jobs {
					j.Counters(after(s))
				}
			}
		},
		"backwards, at odd times, with histograms": func(w *perf.World, jobs []*perf.Job) {
			for s := 101.0; s < 600; s += 0.37 {
				for i := range jobs {
					jobs[len(jobs)-1-i].Report(after(s))
				}
				w.NodeMetrics(after(s))
				w.Resident(after(s), "vm-3")
			}
		},
		"some of them every minute": func(w *perf.World, jobs []*perf.Job) {
			for s := 120.0; s < 600; s += 60 {
				jobs[int(s/60)%len(jobs)].Report(after(s))
			}
		},
		"by many at once": func(w *perf.World, jobs []*perf.Job) {
			var g sync.WaitGroup
			for _, j := range jobs {
				g.Go(func() {
					for range 20 {
						j.Counters(after(300))
					}
				})
			}
			g.Wait()
		},
	} {
		if diff := cmp.Diff(want, read(look), cmpopts.IgnoreFields(workload.Counters{}, "Hist"),
			cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("read %s: %s", name, diff)
		}
	}
}

// TestSeedsDecide: same Truth, same numbers, histograms included; another seed, others.
func TestSeedsDecide(t *testing.T) {
	run := func(seed uint64) (out []workload.Report) {
		truth := perf.DefaultTruth()
		truth.Seed = seed
		_, jobs := scenario(truth)
		for s := 150.0; s <= 600; s += 150 {
			for _, j := range jobs {
				out = append(out, j.Report(after(s)))
			}
		}
		return out
	}
	same := cmp.AllowUnexported(hist.Histogram{})
	if diff := cmp.Diff(run(1), run(1), same); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(run(1), run(2), same) {
		t.Error("two seeds give the same run")
	}
}

func TestLaws(t *testing.T) {
	for _, l := range []perf.Law{{Kind: perf.Exponential}, {Kind: perf.Lognormal, Sigma: 0.3},
		{Kind: perf.Lognormal, Sigma: 1}} {
		var mean, square float64
		const n = 200_000
		for i := range n {
			x := l.Quantile((float64(i) + 0.5) / n)
			mean, square = mean+x/n, square+x*x/n
			if i%20_000 == 10_000 {
				near(t, fmt.Sprintf("%v: share below its quantile", l), l.Below(x), (float64(i)+0.5)/n, 1e-9)
			}
		}
		near(t, fmt.Sprintf("%v: mean", l), mean, 1, 0.01)
		near(t, fmt.Sprintf("%v: squared coefficient of variation", l), square-1, l.CV2(), 0.02*l.CV2())
	}
	mix := perf.Mix{Law: perf.Law{Kind: perf.Exponential}, Parts: []perf.Part{{0.9, 1e-4}, {0.1, 1e-2}}}
	near(t, "mean of a mix", mix.Mean(), 0.9e-4+0.1e-2, 1e-12)
	near(t, "share below a quantile of a mix", mix.Below(mix.Quantile(0.95)), 0.95, 1e-6)
}

// TestHottest holds the formulas against sums of the first terms.
func TestHottest(t *testing.T) {
	for _, theta := range []float64{0.5, 0.99, 1, 1.2, 2} {
		const blocks = 10_000
		var sum, all float64
		for i := 1; i <= blocks; i++ {
			if all += math.Pow(float64(i), -theta); i == blocks/10 {
				sum = all
			}
		}
		got := perf.Hottest(result.Skew{Kind: result.Zipf, Value: theta}, 0.1, blocks)
		near(t, fmt.Sprintf("Zipf %v", theta), got, sum/all, 1e-6)
	}
	h := perf.Hottest(result.Skew{Kind: result.Pareto, Value: 0.2}, 0.2, 1e6)
	near(t, "Pareto 0.2", h, 0.8, 1e-12)
	near(t, "Pareto 0.2 of the hottest fifth", perf.Hottest(result.Skew{Kind: result.Pareto, Value: 0.2}, 0.04,
		1e6), 0.64, 1e-12)
	near(t, "uniform", perf.Hottest(result.Skew{}, 0.3, 1e6), 0.3, 0)
}

// TestParetoAsDrawn draws as fio does, at u^(ln h / ln(1-h)) of the extent for u even in (0, 1), and counts what the
// hottest tenth gets.
func TestParetoAsDrawn(t *testing.T) {
	for _, h := range []float64{0.01, 0.2, 0.5, 0.8, 0.95} {
		const draws, bins = 1_000_000, 1000
		var hits [bins]int
		for i := range draws {
			hits[int(bins*math.Pow((float64(i)+0.5)/draws, math.Log(h)/math.Log1p(-h)))]++
		}
		slices.Sort(hits[:])
		hottest := 0
		for _, n := range hits[bins-bins/10:] {
			hottest += n
		}
		near(t, fmt.Sprintf("Pareto %v", h), perf.Hottest(result.Skew{Kind: result.Pareto, Value: h}, 0.1, bins),
			float64(hottest)/draws, 1e-3)
	}
}

func TestCheckSaysEverything(t *testing.T) {
	if err := perf.DefaultTruth().Check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	bad := perf.DefaultTruth()
	bad.Servers, bad.Fast.ReadSeconds, bad.Contention, bad.Law.Kind = 0, 0, math.NaN(), "normal"
	bad.Background, bad.Grain, bad.Checkpoint = 0.7, 0, perf.Checkpoint{Every: time.Minute, Lasts: time.Hour, Load: 0.5}
	err := bad.Check()
	for _, want := range []string{"servers 0", "fast {ReadSeconds:0 ", "contention NaN",
		"background plus checkpoint.load 1.2", "every 1m0s", "grain 0s", `law.kind "normal"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// TestPassed: what a job notes between reports is what another reader sees who looks at those moments, whatever happens
// to the job in between.
func TestPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := drawTruth(t)
		streams := rapid.SliceOfN(rapid.Custom(drawStream), 1, 3).Draw(t, "lanes")
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) int {
			return rapid.IntRange(0, 120_000).Draw(t, "at")
		}), 0, 6).Draw(t, "events")
		slices.Sort(events)
		watch := func(every time.Duration) (seen []workload.Point) {
			w := perf.New(truth, 2)
			j := w.Start(start, "vm", 0, streams, perf.JobOptions{Trace: every})
			w.Start(start, "other", 0, streams, perf.JobOptions{})
			next := 0
			for i := range 24 {
				at := start.Add(time.Duration(i+1) * 5 * time.Second)
				for ; next < len(events) && !start.Add(time.Duration(events[next])*time.Millisecond).After(at); next++ {
					when := start.Add(time.Duration(events[next]) * time.Millisecond)
					w.Advance(when)
					switch next % 3 {
					case 0:
						w.Fault(when, perf.Fault{Kind: perf.SlowDisk, Node: 0, Factor: 5,
							Until: when.Add(11 * time.Second)})
					case 1:
						w.MoveVM("vm", 1)
					default:
						j.Stop(when)
					}
				}
				if every > 0 {
					continue
				}
				if r := j.Counters(at); r.Time.Equal(at) {
					p := workload.Point{Time: at}
					for d, c := range r.Ops {
						p.Ops[d], p.Bytes[d], p.Seconds[d] = c.Ops, c.Bytes, c.Seconds
					}
					seen = append(seen, p)
				}
			}
			if every > 0 {
				j.Counters(start.Add(2 * time.Minute))
				seen = slices.Clone(j.Passed())
			}
			return seen
		}
		if diff := cmp.Diff(watch(0), watch(5*time.Second)); diff != "" {
			t.Fatal(diff)
		}
	})
}
