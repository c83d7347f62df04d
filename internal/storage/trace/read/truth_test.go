package read_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/hist"
	"plimsoll/internal/storage/trace"
	"plimsoll/internal/storage/trace/read"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/tracetest"
)

// load is a data file read and written at random and a log beside it, with every figure known.
func load(n int, seed uint64) []tracetest.Request {
	rng := rand.New(rand.NewPCG(seed, 1))
	var list []tracetest.Request
	logAt, now := uint64(40<<30), int64(1_000_000)
	used := map[uint64]bool{}
	for i := range n {
		now += int64(rng.ExpFloat64() * 200_000)
		r := tracetest.Request{Queued: now, Issued: now + 1000 + rng.Int64N(20_000), PID: 100 + uint32(i%3)}
		r.Completed = r.Issued + 50_000 + rng.Int64N(900_000)
		if i%4 == 3 { // the log: 16 KiB in a row, two pieces each
			r.Offset, r.Bytes, r.Write, r.Sync, r.Pieces, r.PID = logAt, 16<<10, true, true, 2, 200
			logAt += 16 << 10
		} else {
			for {
				r.Offset = rng.Uint64N(1<<21) * 8192 // 16 GiB
				if !used[r.Offset] && !used[r.Offset+8192] && (r.Offset == 0 || !used[r.Offset-8192]) {
					break
				}
			}
			used[r.Offset] = true
			r.Bytes, r.Write = 8192, rng.IntN(10) < 3
		}
		list = append(list, r)
	}
	return list
}

func inputs(files [][]byte) (list []read.Input) {
	for i, f := range files {
		list = append(list, read.Input{Name: fmt.Sprintf("sdb.blktrace.%d", i), From: bytes.NewReader(f)})
	}
	return list
}

func analyse(t testing.TB, in []read.Input, format string, o trace.Options) *trace.Result {
	t.Helper()
	opened, err := read.Open(in, format)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r, err := trace.Analyze(opened, o, opened.Names, opened.Problems, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func operation(t testing.TB, r *trace.Result, op string) trace.Operation {
	t.Helper()
	for _, o := range r.Operations {
		if o.Op == op {
			return o
		}
	}
	t.Fatalf("no %s in %+v", op, r.Operations)
	return trace.Operation{}
}

// TestEveryFigure compares all that the analysis says with what was put in, counted here in the plainest way.
func TestEveryFigure(t *testing.T) {
	t.Parallel()
	requests := load(20_000, 1)
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		t.Run(order.String(), func(t *testing.T) {
			t.Parallel()
			names := tracetest.Names{100: "postgres", 200: "wal"}
			r := analyse(t, inputs(tracetest.Files(requests, names, order, 3)), "", trace.Options{})
			check(t, r, requests)
			if r.Processes[0].Name != "wal" || r.Start == nil || r.Start.Unix() != 1_700_000_000 {
				t.Errorf("processes %+v, start %v", r.Processes, r.Start)
			}
		})
	}
}

func check(t *testing.T, r *trace.Result, requests []tracetest.Request) {
	t.Helper()
	if len(r.Problems) > 0 || r.Partial || r.Events != uint64(tracetest.Events(requests)) {
		t.Errorf("problems %+v, %d events, want %d", r.Problems, r.Events, tracetest.Events(requests))
	}
	for _, op := range []string{"read", "write"} {
		var service, response hist.Histogram
		var n, total, ordered uint64
		for _, q := range requests {
			if q.Write != (op == "write") {
				continue
			}
			n++
			total += uint64(q.Bytes)
			if q.Sync {
				ordered++
			}
			service.Add(uint64(q.Completed-q.Issued), 1)
			response.Add(uint64(q.Completed-q.Queued), uint64(max(q.Pieces, 1)))
		}
		o := operation(t, r, op)
		if o.Requests != n || o.Bytes != total || o.Sync != ordered || o.Whole4k != 1 {
			t.Errorf("%s: %d requests, %d bytes, %d sync, %v aligned; want %d, %d, %d", op, o.Requests, o.Bytes, o.Sync,
				o.Whole4k, n, total, ordered)
		}
		kinds := map[string]uint64{}
		for _, k := range o.Kinds {
			kinds[k.Kind] = k.Requests
		}
		if kinds["sequential"] != ordered || kinds["random"] != n-ordered-kinds["near"] || kinds["near"] > n/1000 {
			t.Errorf("%s: kinds %v, want %d sequential of %d", op, kinds, ordered, n)
		}
		same(t, op+" service time", o.Service, &service)
		same(t, op+" response time", o.Response, &response)
	}
	checkDepth(t, r, requests)
	if l := r.Layer; l.Issued != uint64(len(requests)) || l.Completed != l.Issued || l.Merged != l.Issued/4 ||
		l.Queued != l.Issued+l.Merged || l.NotIssued+l.NotQueued+l.Pending != 0 {
		t.Errorf("block layer %+v of %d requests", l, len(requests))
	}
	if r.Streams.Opened != 1 || r.Streams.Most != 1 || r.Streams.Longest != uint64(len(requests)/4)<<14 {
		t.Errorf("streams %+v, want one, of %d bytes", r.Streams, len(requests)/4<<14)
	}
	if len(r.Verdict.Parts) != 2 || r.Verdict.Parts[0].What != "data file" || r.Verdict.Parts[1].What != "log" ||
		!strings.Contains(r.Verdict.Sentence, "8 KiB random, 70 % reads") ||
		!strings.Contains(r.Verdict.Sentence, "sequential 16 KiB writes") {
		t.Errorf("verdict %+v", r.Verdict)
	}
	touched, w := 0, r.WorkingSet
	for _, q := range requests {
		touched += int(q.Bytes)
	}
	if off := math.Abs(float64(w.Bytes)/float64(touched) - 1); off > 2*w.BytesError {
		t.Errorf("touched %d, want %d within twice %v", w.Bytes, touched, w.BytesError)
	}
	if w.Overwrites != 0 || w.ReadsOfWrites != 0 || w.Curve[len(w.Curve)-1].Miss < 0.999 {
		t.Errorf("nothing comes back, but: %+v", w)
	}
}

func same(t *testing.T, what string, got *trace.Times, want *hist.Histogram) {
	t.Helper()
	p50, _ := want.Quantile(.5)
	p99, _ := want.Quantile(.99)
	near := cmpopts.EquateApprox(1e-9, 1e-12)
	if d := cmp.Diff([]float64{float64(want.Count()), want.Mean() / 1e9, float64(p50) / 1e9, float64(p99) / 1e9,
		float64(want.Max()) / 1e9}, []float64{float64(got.Count), got.Mean, got.P50, got.P99, got.Max}, near); d != "" {
		t.Errorf("%s: count, mean, p50, p99, max (-want +got)\n%s", what, d)
	}
}

// checkDepth counts what was on its way by going through all beginnings and ends.
func checkDepth(t *testing.T, r *trace.Result, requests []tracetest.Request) {
	t.Helper()
	area, first, last := 0.0, requests[0].Queued, int64(0)
	for _, q := range requests {
		area += float64(q.Completed - q.Issued)
		last = max(last, q.Completed)
	}
	if want := area / float64(last-first); math.Abs(r.Queue.Mean-want) > 1e-6*want {
		t.Errorf("mean queue depth %v, want %v", r.Queue.Mean, want)
	}
	sum, shares, series := 0.0, 0.0, 0.0
	for _, d := range r.Queue.Depth {
		sum += float64(d.Depth) * d.Share
		shares += d.Share
	}
	for i, m := range r.Series {
		span := r.Step
		if i == len(r.Series)-1 {
			span = r.Seconds - m.Seconds
		}
		series += m.QueueDepth * span / r.Seconds
	}
	if math.Abs(sum-r.Queue.Mean) > 1e-9 || math.Abs(shares-1) > 1e-9 || math.Abs(series-r.Queue.Mean) > 1e-3*series {
		t.Errorf("depths add up to %v (shares %v), their series to %v, want %v", sum, shares, series, r.Queue.Mean)
	}
}

// TestBesideBlkparse has blkparse and btt read the same files: its text must give the same result as the binary, its
// summary the same counts, btt the same mean times.
func TestBesideBlkparse(t *testing.T) {
	t.Parallel()
	blkparse, btt := needs.Blktrace(t)
	requests := load(5_000, 2)
	files := tracetest.Files(requests, tracetest.Names{100: "postgres"}, binary.LittleEndian, 2)
	dir := t.TempDir()
	for i, f := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("sdb.blktrace.%d", i)), f, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return string(out)
	}
	text := run(blkparse, "-i", "sdb", "-d", "merged")
	binaryResult := analyse(t, inputs(files), "", trace.Options{})
	textResult := analyse(t, []read.Input{{Name: "text", From: strings.NewReader(text)}}, "", trace.Options{})
	ignore := cmp.Options{cmpopts.IgnoreFields(trace.Result{}, "Start", "Events", "Processes"),
		cmpopts.IgnoreUnexported(trace.Result{}, trace.Operation{}, trace.Hot{}, trace.Part{}, trace.Moment{}),
		cmpopts.EquateApprox(1e-6, 1e-9)}
	if d := cmp.Diff(binaryResult, textResult, ignore); d != "" {
		t.Errorf("the binary and what blkparse prints of it (-binary +text):\n%s", d)
	}
	total := text[strings.Index(text, "Total (sdb)"):]
	l := binaryResult.Layer
	for label, want := range map[string]uint64{"Read Dispatches": operation(t, binaryResult, "read").Requests,
		"Write Dispatches": operation(t, binaryResult, "write").Requests, "Write Merges": l.Merged} {
		m := regexp.MustCompile(label + `:\s+([\d,]+)`).FindStringSubmatch(total)
		if m == nil || strings.ReplaceAll(m[1], ",", "") != strconv.FormatUint(want, 10) {
			t.Errorf("blkparse: %s %v, here %d", label, m, want)
		}
	}
	bttAgrees(t, run(btt, "-i", "merged"), binaryResult)
}

func bttAgrees(t *testing.T, out string, r *trace.Result) {
	t.Helper()
	mean := func(of func(trace.Operation) *trace.Times) float64 {
		sum, n := 0.0, 0.0
		for _, o := range r.Operations {
			sum, n = sum+of(o).Mean*float64(of(o).Count), n+float64(of(o).Count)
		}
		return sum / n
	}
	for name, here := range map[string]float64{
		"Q2C": mean(func(o trace.Operation) *trace.Times { return o.Response }),
		// btt counts a request's service time once for each piece of it.
		"D2C": bttService(r)} {
		m := regexp.MustCompile(`(?m)^` + name + `\s+\S+\s+(\S+)\s`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no %s in what btt prints:\n%s", name, out)
		}
		there, err := strconv.ParseFloat(m[1], 64)
		if err != nil || math.Abs(there-here) > 2e-9+1e-6*here {
			t.Errorf("btt: %s %v, here %v (%v)", name, there, here, err)
		}
	}
}

func bttService(r *trace.Result) float64 {
	sum, n := 0.0, 0.0
	for _, o := range r.Operations {
		for _, c := range o.BySize {
			if c.Service == nil {
				continue
			}
			pieces := 1.0
			if c.UpTo == 16<<10 {
				pieces = 2
			}
			sum, n = sum+pieces*c.Service.Mean*float64(c.Service.Count), n+pieces*float64(c.Service.Count)
		}
	}
	return sum / n
}

// TestDamaged: what is damaged is named, and the rest counts.
func TestDamaged(t *testing.T) {
	t.Parallel()
	requests := load(2_000, 3)
	whole := tracetest.Files(requests, nil, binary.LittleEndian, 1)[0]
	cut := whole[:len(whole)-20]
	hole := append(append(bytes.Clone(whole[:48*1000]), "damage of thirty-one bytes....."...), whole[48*1000:]...)
	other := tracetest.Files(load(10, 4), nil, binary.BigEndian, 1)[0]
	unknown := bytes.Clone(whole)
	unknown[56+48*500+28] = 99
	far := bytes.Clone(whole)
	far[56+48*500+16+7] = 0xff
	for name, c := range map[string]struct {
		data []byte
		says string
		lost bool
	}{
		"cut off":        {cut, "a record is cut off", true},
		"a hole":         {hole, "no record where one should begin", true},
		"byte order":     {append(bytes.Clone(whole), other...), "the byte order changes", false},
		"unknown action": {unknown, "an unknown action", true},
		"out of range":   {far, "a sector or a time is out of range", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := analyse(t, []read.Input{{Name: "f", From: bytes.NewReader(c.data)}}, "", trace.Options{})
			found := false
			for _, p := range r.Problems {
				found = found || strings.HasPrefix(p.What, c.says) && p.Lost == c.lost && strings.HasPrefix(p.First,
					"f: byte ")
			}
			if !found || r.Partial != c.lost || r.Events < uint64(tracetest.Events(requests))*9/10 {
				t.Errorf("partial %v, %d events, problems %+v", r.Partial, r.Events, r.Problems)
			}
		})
	}
}

// TestOutOfOrder: records in disorder, as one CPU's buffers and pipes leave them, give the result of those in order.
func TestOutOfOrder(t *testing.T) {
	t.Parallel()
	requests := load(5_000, 5)
	file := tracetest.Files(requests, nil, binary.LittleEndian, 1)[0]
	mixed := bytes.Clone(file)
	body := mixed[56:]
	n := len(body) / 48
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i+100 < n; i += 100 { // blocks of 100 records change places
		j := i/100 + rng.IntN(3)
		if j*100+100 <= n {
			for k := range 100 * 48 {
				body[i*48+k], body[j*4800+k] = body[j*4800+k], body[i*48+k]
			}
		}
	}
	want := analyse(t, []read.Input{{Name: "f", From: bytes.NewReader(file)}}, "", trace.Options{})
	got := analyse(t, []read.Input{{Name: "f", From: bytes.NewReader(mixed)}}, "", trace.Options{})
	if len(got.Problems) != 1 || got.Problems[0].Lost {
		t.Errorf("problems %+v", got.Problems)
	}
	got.Problems = want.Problems
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(trace.Result{}, trace.Operation{}, trace.Hot{}, trace.Part{},
		trace.Moment{})); d != "" {
		t.Error(d)
	}
}

// endless gives the records of a few requests again and again, later each time.
type endless struct {
	block    []byte
	left     int
	shift    uint64
	at       int
	duration uint64
}

func newEndless(events int) *endless {
	requests := load(20_000, 6)
	file := tracetest.Files(requests, nil, binary.LittleEndian, 1)[0][56:]
	return &endless{block: file, left: events, duration: uint64(requests[len(requests)-1].Completed)}
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n+48 <= len(p) {
		if e.left == 0 {
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		}
		if e.at == len(e.block) {
			e.at, e.shift = 0, e.shift+e.duration
		}
		copy(p[n:], e.block[e.at:e.at+48])
		binary.LittleEndian.PutUint64(p[n+8:], binary.LittleEndian.Uint64(p[n+8:])+e.shift)
		n, e.at, e.left = n+48, e.at+48, e.left-1
	}
	return n, nil
}
