package perf_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/result"
)

// tiered is plain storage of two tiers, on which sequential writes land below.
func tiered() perf.Truth {
	t := plain()
	t.Servers = 1024
	t.Fast = perf.Medium{ReadSeconds: 2e-4, WriteSeconds: 2e-4, Sequential: 0.5, BytesPerSecond: 1e9}
	t.Slow = perf.Medium{ReadSeconds: 8e-3, WriteSeconds: 4e-3, Sequential: 0.1, BytesPerSecond: 2e8}
	t.SequentialToSlow, t.Promotion = true, perf.Promotion{ExtentBytes: 1 << 20}
	return t
}

func fill(bytes int64, zero bool) result.Stream {
	return result.Stream{Name: "fill", Device: "/dev/sdb", Depth: 4, Writes: true, WriteBytes: 1 << 20, Bytes: bytes,
		Work: bytes, ZeroData: zero, Direct: true}
}

// ended runs a job to its end and returns its last report.
func ended(t *testing.T, w *perf.World, j *perf.Job) (workload.Report, time.Time) {
	t.Helper()
	for range 100 {
		end, ok := w.NextEnd()
		if !ok {
			t.Fatal("the job has no end")
		}
		if r := j.Report(end); r.Final {
			return r, r.Time
		}
	}
	t.Fatal("the job does not end")
	return workload.Report{}, time.Time{}
}

// TestTimeToResidency: data filled onto the slow tier moves up under random reads as the closed form says, with and
// without a limit on the speed.
func TestTimeToResidency(t *testing.T) {
	for _, speed := range []float64{0, 100e6, 20e6} {
		truth := tiered()
		truth.Promotion.BytesPerSecond = speed
		w := perf.New(truth, 1)
		const bytes = 16 << 30
		_, begin := ended(t, w, w.Start(start, "vm", 0, []result.Stream{fill(bytes, false)}, perf.JobOptions{}))
		if got := w.Resident(begin, "vm"); got > 1e-9 {
			t.Fatalf("%v of the data is on the fast tier after the fill", got)
		}
		stream := reads(4, 0)
		stream.ReadBytes, stream.Bytes = 16384, bytes
		j := w.Start(begin, "vm", 0, []result.Stream{stream}, perf.JobOptions{})
		for _, f := range []float64{0.05, 0.25, 0.5, 0.8, 0.95, 0.99} {
			seconds := truth.TimeToResidency(f, bytes, 16384, 4)
			got := w.Resident(begin.Add(time.Duration(seconds*1e9)), "vm")
			near(t, fmt.Sprintf("limit %v: resident after %.1f s", speed, seconds), got, f, 0.002)
		}
		late := begin.Add(time.Duration(3 * truth.TimeToResidency(0.99, bytes, 16384, 4) * 1e9))
		if got := w.Resident(late, "vm"); got != 1 {
			t.Errorf("%v is resident in the end", got)
		}
		from, to := j.Counters(late), j.Counters(late.Add(time.Minute))
		fast := truth.Fast.ReadSeconds + 16384/truth.Fast.BytesPerSecond
		near(t, "reads per second in the end", float64(to.Ops[0].Ops-from.Ops[0].Ops)/60, 4/fast, 0.01*4/fast)
	}
}

// TestZerosFreeData: what was overwritten with zeros is read at the speed of the cache, and a new fill puts it on the
// slow tier again.
func TestZerosFreeData(t *testing.T) {
	truth := tiered()
	truth.Promotion = perf.Promotion{}
	w := perf.New(truth, 1)
	const bytes = 1 << 30
	rate := func(at time.Time) (float64, time.Time) {
		stream := reads(1, 0)
		stream.Bytes = bytes
		r := w.Start(at, "vm", 0, []result.Stream{stream},
			perf.JobOptions{Runtime: time.Minute}).Report(at.Add(time.Minute))
		return float64(r.Ops[0].Ops) / 60, r.Time
	}
	_, at := ended(t, w, w.Start(start, "vm", 0, []result.Stream{fill(bytes, false)}, perf.JobOptions{}))
	slow, at := rate(at)
	_, at = ended(t, w, w.Start(at, "vm", 0, []result.Stream{fill(bytes, true)}, perf.JobOptions{}))
	freed, at := rate(at)
	_, at = ended(t, w, w.Start(at, "vm", 0, []result.Stream{fill(bytes, false)}, perf.JobOptions{}))
	again, _ := rate(at)
	below := truth.Slow.ReadSeconds + 4096/truth.Slow.BytesPerSecond
	cache := truth.CacheSeconds + 4096/truth.Fast.BytesPerSecond
	near(t, "reads from the slow tier", slow, 1/below, 0.05/below)
	near(t, "reads of freed data", freed, 1/cache, 0.02/cache)
	near(t, "reads after the second fill", again, 1/below, 0.05/below)
}

// TestWriteBurst: a burst of random writes goes at the fast tier's speed until the log is full, after bytes/(in -
// drained) seconds; from then on the node does what the log drains, in a saw tooth while the offer stays below.
func TestWriteBurst(t *testing.T) {
	truth := plain()
	truth.Servers = 8
	truth.WriteLog = perf.WriteLog{Bytes: 1 << 30, BytesPerSecond: 20e6}
	w := perf.New(truth, 1)
	stream := result.Stream{Name: "burst", Device: "/dev/sdb", Depth: 1000, Writes: true, WriteBytes: 8192, Random: 1,
		Bytes: 8 << 30, Direct: true}
	j := w.Start(start, "vm", 0, []result.Stream{stream}, perf.JobOptions{})
	in := 8e3 * 8192 // eight servers of a millisecond
	full := float64(1<<30) / (in - 20e6)
	a := j.Counters(after(full - 1)).Ops[1].Bytes
	near(t, "bytes per second in the burst", float64(a)/(full-1), in, 0.03*in)
	near(t, "log just before", float64(w.WriteLogBytes(after(full - 1))[0]), 1<<30-(in-20e6), 0.03*in)
	b, c := j.Counters(after(full + 1)).Ops[1].Bytes, j.Counters(after(full + 101)).Ops[1].Bytes
	near(t, "bytes per second when full", float64(c-b)/100, 20e6, 0.03*20e6)
	j.Stop(after(full + 101))
	near(t, "log after ten seconds of rest", float64(w.WriteLogBytes(after(full + 111))[0]), 1<<30-200e6, 0.01*(1<<30))
	near(t, "log in the end", float64(w.WriteLogBytes(after(full + 301))[0]), 0, 0.5)
}

// TestCacheAndSkew: the share of hits of the hottest part, seen in the mean response.
func TestCacheAndSkew(t *testing.T) {
	truth := plain()
	truth.Servers, truth.CacheBytes, truth.CacheSeconds = 64, 256<<20, 1e-5
	for _, c := range []struct {
		skew result.Skew
		hits float64
	}{
		{result.Skew{}, 0.25},
		{result.Skew{Kind: result.Pareto, Value: 0.25}, 0.75},
		{result.Skew{Kind: result.Zipf, Value: 1}, (math.Log(65536) + 0.5772157) / (math.Log(262144) + 0.5772157)},
	} {
		stream := reads(1, 0)
		stream.Skew = c.skew
		r := perf.New(truth, 1).Start(start, "vm", 0, []result.Stream{stream}, perf.JobOptions{}).Report(after(600))
		want := c.hits*1e-5 + (1-c.hits)*1e-3
		near(t, fmt.Sprintf("mean response with %v", c.skew), r.Ops[0].Seconds/float64(r.Ops[0].Ops), want, 0.01*want)
	}
	page := reads(1, 0)
	page.Direct = false
	truth.CacheBytes, truth.PageCacheBytes, truth.PageSeconds = 0, 512<<20, 2e-6
	r := perf.New(truth, 1).Start(start, "vm", 0, []result.Stream{page}, perf.JobOptions{}).Report(after(600))
	want := 0.5*2e-6 + 0.5*1e-3
	near(t, "mean response with half of it in the page cache", r.Ops[0].Seconds/float64(r.Ops[0].Ops), want, 0.01*want)
}

// TestCheckpoints: while one lasts, an open load waits for what it leaves: 1/(1-rho-load).
func TestCheckpoints(t *testing.T) {
	truth := plain()
	truth.Checkpoint = perf.Checkpoint{Every: 5 * time.Minute, Lasts: time.Minute, Load: 0.4}
	j := perf.New(truth, 1).Start(start, "vm", 0, []result.Stream{reads(1<<20, 300)}, perf.JobOptions{})
	mean := func(from, to float64) float64 {
		a, b := j.Counters(after(from)).Ops[0], j.Counters(after(to)).Ops[0]
		return (b.Seconds - a.Seconds) / float64(b.Ops-a.Ops)
	}
	for _, k := range []float64{0, 1, 2} {
		at := 300 * k
		during, between := mean(at, at+60), mean(at+60, at+300)
		quiet := 1e-3 / 0.7
		near(t, "mean response between", between, quiet, 5*quiet/math.Sqrt(300*240))
		// The background is a load like any other: an arrival finds servers busy with 0.7.
		if !(during > 1.7*between) {
			t.Errorf("mean response is %v during a checkpoint and %v between", during, between)
		}
	}
}

// TestFaults: a slow disk stretches services, a hang completes nothing until it ends and then what was outstanding, a
// neighbour takes its share.
func TestFaults(t *testing.T) {
	count := func(j *perf.Job, from, to float64) float64 {
		a := j.Counters(after(from)).Ops[0].Ops
		return float64(j.Counters(after(to)).Ops[0].Ops - a)
	}
	w := perf.New(plain(), 2)
	j := w.Start(start, "a", 0, []result.Stream{reads(8, 0)}, perf.JobOptions{})
	other := w.Start(start, "b", 1, []result.Stream{reads(8, 0)}, perf.JobOptions{})
	near(t, "before", count(j, 0, 60), 60e3, 1500)
	w.Fault(after(60), perf.Fault{Kind: perf.SlowDisk, Node: 0, Factor: 10, Until: after(120)})
	near(t, "slow", count(j, 60, 120), 6e3, 500)
	near(t, "mended", count(j, 120, 180), 60e3, 1500)
	w.Fault(after(180), perf.Fault{Kind: perf.HungIO, Node: 0, Until: after(240)})
	near(t, "hung", count(j, 180, 239.9), 0, 0)
	near(t, "released", count(j, 239.9, 240.0001), 8, 0)
	r := j.Report(after(241))
	if got := r.Ops[0].Hist.CountAbove(uint64(59e9)); got != 8 {
		t.Errorf("%d operations took longer than 59 s, not the 8 that hung", got)
	}
	near(t, "seconds", r.Ops[0].Seconds, 8*241, 1e-3)
	near(t, "the other node", float64(other.Counters(after(241)).Ops[0].Ops), 241e3, 5*math.Sqrt(241e3))
	w.Fault(after(300), perf.Fault{Kind: perf.NoisyNeighbour, Node: 0, Factor: 0.5})
	if got := count(j, 300, 360); !(got < 40e3) {
		t.Errorf("%v operations beside a neighbour with half of the storage", got)
	}
	w.Fault(after(400), perf.Fault{Kind: perf.HungIO, Node: 7})
	w.Fault(after(400), perf.Fault{Kind: perf.SlowDisk, Node: 0, Factor: -1})
}

// TestRunsToSize: a job without a time ends with its work, exactly, when its speed says, and later on a slower disk.
func TestRunsToSize(t *testing.T) {
	truth := plain()
	truth.NoiseCV = 0.05
	w := perf.New(truth, 1)
	j := w.Start(start, "vm", 0, []result.Stream{fill(8<<30, false)}, perf.JobOptions{})
	end, ok := w.NextEnd()
	near(t, "seconds to its end", end.Sub(start).Seconds(), 8.192, 1e-4)
	if r := j.Report(after(8.1)); r.Final || r.Ops[1].Ops < 7000 {
		t.Errorf("%d operations shortly before the end, final %v", r.Ops[1].Ops, r.Final)
	}
	r := j.Report(after(100))
	if !ok || r.Ops[1].Ops != 8192 || r.Ops[1].Bytes != 8<<30 || !r.Final || !r.Time.Equal(end) ||
		r.Ops[1].Hist.Count() != 8192 {
		t.Errorf("at its end %+v", r)
	}
	slow := w.Start(after(100), "vm", 0, []result.Stream{fill(8<<30, false)}, perf.JobOptions{})
	w.Fault(after(104.096), perf.Fault{Kind: perf.SlowDisk, Node: 0, Factor: 2, Until: after(1000)})
	end, _ = w.NextEnd()
	near(t, "seconds to its end on a disk that becomes slow", end.Sub(after(100)).Seconds(), 4.096+8.192, 1e-4)
	if r, at := ended(t, w, slow); r.Ops[1].Ops != 8192 || !at.Equal(end) {
		t.Errorf("%d operations at %v, not at %v", r.Ops[1].Ops, at, end)
	}
}

// TestStagesAndDelays: a stream begins after its delay, a stage when the one before has ended, and a job's limit ends
// them all.
func TestStagesAndDelays(t *testing.T) {
	w := perf.New(plain(), 1)
	first, second := reads(1, 0), fill(1<<30, false)
	first.Runtime, first.Delay = 20*time.Second, 10*time.Second
	second.Stage = 1
	j := w.Start(start, "vm", 0, []result.Stream{first, second}, perf.JobOptions{})
	if r := j.Counters(after(9.9)); r.Ops[0].Ops+r.Ops[1].Ops != 0 {
		t.Errorf("%d operations before the delay is over", r.Ops[0].Ops+r.Ops[1].Ops)
	}
	r := j.Counters(after(30))
	near(t, "reads", float64(r.Ops[0].Ops), 20e3, 800)
	near(t, "writes before the second stage", float64(r.Ops[1].Ops), 0, 0)
	end, ok := w.NextEnd()
	if !ok {
		t.Error("no end is known in the last stage")
	}
	near(t, "end", end.Sub(start).Seconds(), 30+1.024, 1e-4)
	if r := j.Counters(after(60)); r.Ops[1].Ops != 1024 || !r.Final {
		t.Errorf("at the end %+v", r)
	}
	cut := w.Start(after(60), "vm", 0, []result.Stream{first, second}, perf.JobOptions{Runtime: 15 * time.Second})
	if r := cut.Counters(after(100)); !r.Final || r.Elapsed != 15*time.Second || r.Ops[1].Ops != 0 {
		t.Errorf("cut off: %+v", r)
	}
	if none := w.Start(after(100), "vm", 0, nil, perf.JobOptions{}); !none.Counters(after(100)).Final {
		t.Error("a job without lanes goes on")
	}
}

// TestMoveAndForget: a moved VM loads the other node; a deleted one leaves nothing.
func TestMoveAndForget(t *testing.T) {
	w := perf.New(plain(), 2)
	a := w.Start(start, "a", 0, []result.Stream{reads(4, 0)}, perf.JobOptions{})
	b := w.Start(start, "b", 0, []result.Stream{reads(4, 0)}, perf.JobOptions{})
	near(t, "shared", float64(a.Counters(after(60)).Ops[0].Ops), 30e3, 1000)
	w.MoveVM("b", 1)
	near(t, "alone", float64(a.Counters(after(120)).Ops[0].Ops), 90e3, 1500)
	use := w.NodeMetrics(after(120))
	near(t, "reads of node 0", use[0].Reads, 1000, 1e-3)
	near(t, "reads of node 1", use[1].Reads, 1000, 1e-3)
	w.Forget(after(121), "b")
	if r := b.Counters(after(200)); !r.Final || r.Elapsed != 121*time.Second {
		t.Errorf("after its VM was deleted: %+v", r)
	}
	near(t, "reads of node 1 in the end", w.NodeMetrics(after(200))[1].Reads, 0, 0)
}

// TestNodeMetrics: processors pay for operations and bytes, and every byte sent to another node is received by one.
func TestNodeMetrics(t *testing.T) {
	truth := plain()
	truth.Host = perf.Host{Cores: 10, IdleShare: 0.1, OpSeconds: 1e-3, ByteSecond: 1e-9, Copies: 3, IdleBytes: 1000}
	w := perf.New(truth, 4)
	stream := reads(1<<20, 500)
	stream.Writes, stream.ReadShare, stream.WriteBytes, stream.ReadBytes = true, 0.2, 1e5, 1e4
	w.Start(start, "vm", 1, []result.Stream{stream}, perf.JobOptions{})
	use := w.NodeMetrics(after(10))
	near(t, "cpu", use[1].CPU, 0.1+(500*1e-3+(100*1e4+400*1e5)*1e-9)/10, 1e-9)
	near(t, "cpu of an idle node", use[0].CPU, 0.1, 1e-12)
	near(t, "sent", use[1].Sent, 2*400*1e5+1000, 1e-3)
	near(t, "storage", use[1].Storage, 0.5, 1e-6)
	var sent, received float64
	for _, u := range use {
		sent, received = sent+u.Sent, received+u.Received
	}
	near(t, "received of what was sent", received, sent, 1e-3)
}

// TestFreshDisk: with one write outstanding, to write x sizes of a disk of V bytes takes V/b·s·(F·x + (1-F)·x²/(2U))
// until U sizes are written, V/b·s for each after that; and as long again after a purge.
func TestFreshDisk(t *testing.T) {
	truth := plain()
	truth.Fresh = perf.Fresh{Factor: 0.25, Until: 2}
	w := perf.New(truth, 1)
	const size, block = 8 << 30, 1 << 20
	stream := fill(size, false)
	stream.Depth = 1
	service := truth.Fast.WriteSeconds*truth.Fast.Sequential + block/truth.Fast.BytesPerSecond
	pass := func(from, to float64) float64 {
		f, u := truth.Fresh.Factor, truth.Fresh.Until
		upTo := func(x float64) float64 { return f*min(x, u) + (1-f)*min(x, u)*min(x, u)/(2*u) + max(0, x-u) }
		return size / block * service * (upTo(to) - upTo(from))
	}
	at := start
	for round, from := range []float64{0, 1, 2, 3, 0, 1} { // purged before the fifth
		if round == 4 {
			w.Purge(at, "vm", "/dev/sdb")
		}
		_, end := ended(t, w, w.Start(at, "vm", 0, []result.Stream{stream}, perf.JobOptions{Name: fmt.Sprint(round)}))
		want := pass(from, from+1)
		near(t, fmt.Sprintf("pass %d", round+1), end.Sub(at).Seconds(), want, 0.005*want)
		at = end
	}
	w.Purge(at, "vm", "/dev/none") // of a disk that no load was on: nothing
	for _, bad := range []perf.Fresh{{Factor: 1.5, Until: 2}, {Factor: 0.5}, {Until: 2}, {Factor: math.NaN(), Until: 1},
		{Factor: 0.5, Until: math.Inf(1)}} {
		truth.Fresh = bad
		if truth.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestCheckpointsCountNothingTwice: a job that writes so much writes to its end, also where the storage's speed changes
// on whole seconds, where the cells of its noise begin.
func TestCheckpointsCountNothingTwice(t *testing.T) {
	truth := tiered()
	truth.NoiseCV, truth.Checkpoint = 0.01, perf.Checkpoint{Every: 45 * time.Second, Lasts: 3 * time.Second, Load: 0.3}
	const bytes, lately = 256 << 30, 5
	w := perf.New(truth, 1)
	j := w.Start(start, "vm", 0, []result.Stream{fill(bytes, false)}, perf.JobOptions{})
	var counts []uint64
	for at := start; ; at = at.Add(time.Second) {
		r := j.Report(at)
		counts = append(counts, r.Ops[1].Ops)
		if r.Final || len(counts) > 10_000 {
			break
		}
	}
	if n := len(counts); n < 300 || counts[n-1] != bytes>>20 || counts[n-1-lately] == counts[n-1] {
		t.Errorf("%d seconds, %d operations %d s before the end and %d then", n, counts[n-1-lately], lately,
			counts[n-1])
	}
}
