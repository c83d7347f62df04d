package trace_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/storage/trace"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/fio/fiofile"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	os.Exit(code)
}

// Two writers that take turns are two sequential streams, not random writes.
func Example() {
	a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
	for i := range uint64(1000) {
		for stream := range uint64(2) {
			a.Add([]trace.Event{{Time: int64(i * 1e6), Offset: stream<<40 + i*65536, Bytes: 65536, Op: trace.Write,
				Action: trace.Whole, Aux: 500_000}})
		}
	}
	r := a.Result()
	fmt.Println(r.Verdict.Sentence, r.Streams.Opened, r.Operations[0].Kinds[0].Kind)
	// Output: Log: sequential 64 KiB writes. 2 sequential
}

// whole makes requests into a result, one every so often.
func whole(every time.Duration, requests []trace.Event) *trace.Result {
	a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
	for i := range requests {
		e := requests[i]
		e.Time, e.Action = int64(i)*int64(every), trace.Whole
		if e.Aux == 0 {
			e.Aux = trace.UnknownTime
		}
		a.Add([]trace.Event{e})
	}
	return a.Result()
}

func kinds(r *trace.Result) map[string]uint64 {
	out := map[string]uint64{}
	for _, o := range r.Operations {
		for _, k := range o.Kinds {
			out[k.Kind] += k.Requests
		}
	}
	return out
}

// TestKinds: each order by itself, mixed with random reads, and streams that take turns.
func TestKinds(t *testing.T) {
	t.Parallel()
	const n, size = 3000, 8192
	rng := rand.New(rand.NewPCG(5, 5))
	at := func(offset uint64) trace.Event { return trace.Event{Offset: offset, Bytes: size, Op: trace.Read} }
	far := func() trace.Event { return at(1<<45 + rng.Uint64N(1<<30)*size) }
	for name, c := range map[string]struct {
		next func(i uint64) trace.Event
		want map[string]uint64
	}{
		"random":     {func(uint64) trace.Event { return far() }, map[string]uint64{"random": n}},
		"sequential": {func(i uint64) trace.Event { return at(i * size) }, map[string]uint64{"sequential": n}},
		"reverse":    {func(i uint64) trace.Event { return at((n - i) * size) }, map[string]uint64{"reverse": n}},
		// The first three of a stride are known only later.
		"strided": {func(i uint64) trace.Event { return at(i << 20) }, map[string]uint64{"random": 3,
			"strided": n - 3}},
		"200 streams in turn": {func(i uint64) trace.Event { return at(i%100<<40 + i/100*size) },
			map[string]uint64{"sequential": n}},
		"a log among random reads": {func(i uint64) trace.Event {
			if i%50 != 0 {
				return far()
			}
			e := at(i / 50 * size)
			e.Op = trace.Write
			return e
		}, map[string]uint64{"sequential": n / 50, "random": n - n/50}},
		"skips": {func(i uint64) trace.Event { return at(i*size + i/10*size*3) },
			map[string]uint64{"sequential": n - n/10 + 1, "near": n/10 - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var list []trace.Event
			for i := range uint64(n) {
				list = append(list, c.next(i))
			}
			r := whole(time.Millisecond, list)
			if d := cmp.Diff(c.want, kinds(r)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestStreamsAtOnce counts the streams that go on at the same time.
func TestStreamsAtOnce(t *testing.T) {
	t.Parallel()
	var list []trace.Event
	for i := range uint64(40_000) {
		streams := uint64(5)
		if i >= 20_000 {
			streams = 20
		}
		list = append(list, trace.Event{Offset: i%streams<<40 + i/streams*4096 + i/20_000<<50, Bytes: 4096,
			Op: trace.Write})
	}
	r := whole(time.Millisecond, list)
	if r.Streams.Opened != 25 || r.Streams.Most != 20 || math.Abs(r.Streams.AtOnce-12.5) > 0.1 {
		t.Errorf("%+v, want 25 opened, 20 at most, 12.5 on average", r.Streams)
	}
	if first, last := r.Series[1].Streams, r.Series[len(r.Series)-2].Streams; first != 5 || last != 20 {
		t.Errorf("%d streams at first and %d at last, want 5 and 20", first, last)
	}
}

// TestBursts: clockwork, arrivals at random, and bursts have the dispersion that they should.
func TestBursts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 8))
	for name, c := range map[string]struct {
		gap       func(i int) float64 // seconds
		low, high float64             // dispersion in windows of 100 ms
		empty     float64
	}{
		"clockwork": {func(int) float64 { return 0.001 }, 0, 0.01, 0},
		"random":    {func(int) float64 { return rng.ExpFloat64() * 0.001 }, 0.8, 1.2, 0},
		"bursts": {func(i int) float64 { // 100 at once, each second
			if i%100 == 0 {
				return 1
			}
			return 0
		}, 85, 95, 0.9},
	} {
		a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
		now := 0.0
		for i := range 100_000 {
			if i > 0 {
				now += c.gap(i)
			}
			a.Add([]trace.Event{{Time: int64(now * 1e9), Offset: rng.Uint64N(1<<30) * 512, Bytes: 512, Op: trace.Read,
				Action: trace.Whole, Aux: trace.UnknownTime}})
		}
		b := a.Result().Bursts[1]
		if b.Dispersion < c.low || b.Dispersion > c.high || math.Abs(b.Empty-c.empty) > 0.01 {
			t.Errorf("%s: %+v, want a dispersion from %v to %v", name, b, c.low, c.high)
		}
	}
}

// TestSplitAndRequeue: the response time of a request that was cut in two is that of its last piece; one that the
// device did not take is sent again, and its service time counts from then.
func TestSplitAndRequeue(t *testing.T) {
	t.Parallel()
	ev := func(at int64, a trace.Action, sector uint64, sectors uint32, aux uint64) trace.Event {
		return trace.Event{Time: at, Action: a, Op: trace.Write, Offset: sector * 512, Bytes: sectors * 512,
			Aux: aux * 512}
	}
	a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
	a.Add([]trace.Event{ev(0, trace.Queue, 100, 16, 0), ev(1, trace.Split, 100, 8, 108), ev(10, trace.Issue, 100, 8, 0),
		ev(11, trace.Issue, 108, 8, 0), ev(12, trace.Requeue, 108, 8, 0), ev(20, trace.Issue, 108, 8, 0),
		ev(90, trace.Complete, 108, 8, 0), ev(100, trace.Complete, 100, 8, 0)})
	r := a.Result()
	o := r.Operations[0]
	if o.Response.Count != 1 || o.Response.Max != 100e-9 || o.Service.Count != 2 ||
		math.Abs(o.Service.Mean-80e-9) > 1e-15 || r.Queue.Max != 2 {
		t.Errorf("response %+v, service %+v, depth %+v", o.Response, o.Service, r.Queue)
	}
	if l := r.Layer; l.Split != 1 || l.Requeued != 1 || l.Pending != 0 || l.NotIssued != 0 {
		t.Errorf("%+v", l)
	}
}

// TestQueuedLevel: a device without a queue of its own is analysed by what was asked of it.
func TestQueuedLevel(t *testing.T) {
	t.Parallel()
	a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
	for i := range int64(100) {
		for _, e := range []trace.Event{{Time: i * 1000, Action: trace.Queue}, {Time: i*1000 + 400,
			Action: trace.Complete}} {
			e.Offset, e.Bytes, e.Op, e.Device = uint64(i)<<20, 4096, trace.Read, 253<<20
			a.Add([]trace.Event{e})
		}
	}
	r := a.Result()
	o := r.Operations[0]
	if r.Level != "queued" || o.Requests != 100 || o.Service != nil || o.Response.Count != 100 ||
		o.Response.Max != 400e-9 ||
		math.Abs(r.Queue.Mean-0.4) > 0.01 || r.Devices[0].Name != "253,0" {
		t.Errorf("%s, %+v, %+v, %+v", r.Level, o, r.Queue, r.Devices)
	}
}

// TestLostCompletions: what never ends is given up on when there is too much of it, and counted.
func TestLostCompletions(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const n = 600_000
	a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
	for i := range int64(n) {
		a.Add([]trace.Event{{Time: i, Action: trace.Issue, Op: trace.Read, Offset: uint64(i) * 4096, Bytes: 4096}})
	}
	if r := a.Result(); r.Layer.Pending != n || !r.Partial {
		t.Errorf("%d never ended, want %d; partial %v", r.Layer.Pending, n, r.Partial)
	}
}

// TestOnePlace: any number of requests at one place on their way at once are paired in their order, each with one
// of its size, without a search that grows with their number.
func TestOnePlace(t *testing.T) {
	t.Parallel()
	const n = 200_000
	a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
	e := trace.Event{Op: trace.Read, Bytes: 4096}
	for i := range int64(n) {
		e.Time, e.Action, e.Bytes = i, trace.Issue, 4096+4096*uint32(i%2)
		a.Add([]trace.Event{e})
	}
	for i := range int64(n) {
		e.Time, e.Action, e.Bytes = n+i, trace.Complete, 4096+4096*uint32((i+1)%2) // not in the order of issue
		a.Add([]trace.Event{e})
	}
	r := a.Result()
	if s := r.Operations[0].Service; s.Count != n || math.Abs(s.Mean-n*1e-9) > 1e-12 || r.Layer.Pending != 0 {
		t.Errorf("%+v, %d pending", s, r.Layer.Pending)
	}
	if r.Queue.Max != 1024 || len(r.Problems) > 0 {
		t.Errorf("deepest queue %d, problems %+v", r.Queue.Max, r.Problems)
	}
}

// TestLargeRequests: what no device takes at once is counted, and does not take its size in time.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	r := whole(time.Millisecond, []trace.Event{{Bytes: 1<<32 - 512, Op: trace.Read}, {Bytes: 4096, Op: trace.Read}})
	if r.WorkingSet.Bytes != 64<<20 || len(r.Problems) != 1 || r.Partial || r.Operations[0].Bytes != 1<<32+4096-512 {
		t.Errorf("%+v %+v", r.WorkingSet, r.Problems)
	}
}

// TestAnyEvents: whatever comes, sums hold and nothing is negative.
func TestAnyEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := trace.NewAnalyzer(trace.Options{}, trace.NewNames(), &trace.Problems{})
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			a.Add([]trace.Event{{Time: rapid.Int64Range(0, 1<<40).Draw(t, "time"),
				Offset: rapid.Uint64Range(0, 64).Draw(t, "place") * 512, Bytes: rapid.Uint32Range(0, 9).Draw(t,
					"size") * 512,
				Device: rapid.Uint32Range(0, 2).Draw(t, "device"), Aux: rapid.Uint64Range(0, 99).Draw(t, "aux") * 512,
				Action: trace.Action(rapid.IntRange(0, int(trace.Actions)-1).Draw(t, "action")),
				Op:     trace.Op(rapid.IntRange(0, int(trace.Ops)-1).Draw(t, "op")), Flags: rapid.Uint8().Draw(t,
					"flags")}})
		}
		r := a.Result()
		if r.Queue != nil {
			sum := 0.0
			for _, d := range r.Queue.Depth {
				sum += d.Share
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Fatalf("shares of time add up to %v", sum)
			}
		}
		for _, m := range r.Series {
			if m.QueueDepth < 0 || m.MeanSeconds < 0 {
				t.Fatalf("%+v", m)
			}
		}
		_ = r.FioJob(io.Discard)
	})
}

// TestFioJob: the job is a job file, whose figures are those of the load, and which fio takes.
func TestFioJob(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	var list []trace.Event
	for i := range uint64(8000) {
		e := trace.Event{Offset: rng.Uint64N(1<<17) * 8192, Bytes: 8192, Op: trace.Read, Aux: 2_000_000}
		switch {
		case i%4 == 3:
			e.Offset, e.Bytes, e.Op = 1<<40+i/4*16384, 16384, trace.Write
		case i%4 == 2:
			e.Op = trace.Write
		}
		list = append(list, e)
	}
	r := whole(time.Millisecond, list)
	var b strings.Builder
	if err := r.FioJob(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "job.fio")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), needs.Fio(t), "--parse-only", "--filename=x", file).CombinedOutput()
	if err != nil {
		t.Errorf("fio: %v: %s", err, out)
	}
	job, err := fiofile.Parse("job.fio", []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	got := map[string]string{}
	for _, s := range job.Sections {
		for _, o := range s.Options {
			got[s.Name+" "+o.Key] = o.Value
		}
	}
	want := map[string]string{"data-file rw": "randrw", "data-file rwmixread": "67",
		"data-file bssplit":   "8192/100,8192/100",
		"data-file rate_iops": "500,250", "log rw": "write", "log bssplit": "16384/100", "log rate_iops": ",250"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s=%s, want %s\n%s", key, got[key], value, b.String())
		}
	}
}
