package trust

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/run/experiment"
	"plimsoll/result"
)

// Queue is a system of servers behind one queue, whose operations are made one by one and judged as a run's are.
type Queue struct {
	Capacity float64 // operations per second
	Servers  int
	Varies   bool    // service times are exponential, not all the same
	Even     bool    // operations are due evenly, not at random
	Depth    int     // most in flight; service times are measured, as fio's are. 0: response times
	Credit   float64 // operations that it does at once before its cap holds, as a cloud's disk does with its bursts
	Burst    float64 // operations per second while the credit lasts, which comes back between probes only as it is due
	Quantile float64 // that is limited; 0: errors are
	Limit    float64 // seconds
	Seconds  float64 // --probe
	Within   float64 // --within
	left     float64 // of the credit
}

// String says what it is, for a test that fails.
func (q *Queue) String() string { return fmt.Sprintf("%+v", *q) }

// Mark is the rate that it bears for ever under its limit: the capacity where operations are due evenly, else by the
// closed forms of M/M/c (Erlang's C) and M/D/1 (Erlang 1909; its tail is exponential).
func (q *Queue) Mark() float64 {
	if q.Even || q.Quantile == 0 {
		return q.Capacity
	}
	mean := float64(q.Servers) / q.Capacity
	beyond := func(rate float64) float64 { // the share of response times beyond the limit
		load, sum, term := rate*mean, 0.0, 1.0
		for i := range q.Servers {
			sum, term = sum+term, term*load/float64(i+1)
		}
		term /= 1 - rate/q.Capacity
		waits, left := term/(sum+term), q.Capacity-rate
		alone := math.Exp(-q.Limit / mean)
		if d := 1/mean - left; math.Abs(d*mean) > 1e-9 {
			return (1-waits)*alone + waits*(math.Exp(-left*q.Limit)*(1/mean)-left*alone)/d
		}
		return (1-waits)*alone + waits*(1+q.Limit/mean)*alone
	}
	if !q.Varies {
		beyond = func(rate float64) float64 { return longerThan(q.Limit/mean-1, rate*mean) }
	}
	low, high := 0.0, q.Capacity
	for range 60 {
		if m := (low + high) / 2; beyond(m) <= 1-q.Quantile {
			low = m
		} else {
			high = m
		}
	}
	return low
}

// Lasts is for how many seconds it does a rate above its capacity with all its credit, its most at most.
func (q *Queue) Lasts(rate float64) float64 { return q.Credit / (min(rate, q.Burst) - q.Capacity) }

// longerThan is the share of waits in an M/D/1 that are longer than so many service times.
func longerThan(t, load float64) float64 {
	const far = 8.0 // beyond it the sum is of large numbers that cancel
	if t > far {
		a, b := longerThan(far-2, load), longerThan(far, load)
		return b * math.Pow(b/a, (t-far)/2)
	}
	sum, product := 0.0, 0.0
	for k := 0.0; k <= t; k++ {
		x := load * (k - t)
		if product = math.Exp(-x); k > 0 {
			product *= math.Pow(x, k) / math.Gamma(k+1)
		}
		sum += product
	}
	return 1 - (1-load)*sum
}

// frees are when servers, or operations in flight, are free.
type frees []float64

func (t frees) Len() int           { return len(t) }
func (t frees) Less(i, j int) bool { return t[i] < t[j] }
func (t frees) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *frees) Push(x any)        { *t = append(*t, x.(float64)) }
func (t *frees) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

// between is for how many seconds nothing is offered from one probe to the next.
const between = 5

// Run offers a rate for a time, to a system that was at rest.
func (q *Queue) Run(rate, seconds float64, r *rand.Rand) *result.Data {
	columns := int(math.Ceil(seconds)) + 1
	counts, maps := make([]uint64, columns), make([][]uint64, columns)
	edges := make([]float64, 92) // as in collect
	for i := range edges {
		edges[i] = math.Pow(10, 3+float64(i)/10)
	}
	for i := range maps {
		maps[i] = make([]uint64, len(edges)-1)
	}
	free, flying := make(frees, q.Servers), frees{}
	h, sum, due, last := &hist.Histogram{}, 0.0, 0.0, 0.0
	credit, at := q.Credit, 0.0
	if q.Burst > 0 { // what a probe took is not there for the next
		credit = min(q.Credit, q.left+between*q.Capacity)
		defer func() { q.left = min(q.Credit, credit+max(seconds-at, 0)*q.Capacity) }()
	}
	for {
		gap := 1 / rate
		if !q.Even {
			gap *= r.ExpFloat64()
		}
		if due += gap; due > seconds {
			break
		}
		sent := max(due, last)
		if q.Depth > 0 && len(flying) == q.Depth {
			sent = max(sent, heap.Pop(&flying).(float64))
		}
		if last = sent; sent > seconds {
			break
		}
		need := float64(q.Servers) / q.Capacity
		if q.Varies {
			need *= r.ExpFloat64()
		}
		begin := max(sent, free[0])
		if q.Credit > 0 { // a token bucket
			credit, at = min(q.Credit, credit+(begin-at)*q.Capacity), begin
			need = (max(1-credit, 0) + 0.01) / q.Capacity
			if credit--; q.Burst > 0 {
				need = max(-credit/q.Capacity, 1/q.Burst)
			}
		}
		done := begin + need
		free[0] = done
		heap.Fix(&free, 0)
		from := due
		if q.Depth > 0 {
			heap.Push(&flying, done)
			from = sent
		} else if done > seconds {
			continue
		}
		ns := uint64(max((done-from)*1e9, 1))
		h.Add(ns, 1)
		sum += done - from
		i := min(int(done), columns-1)
		counts[i]++
		maps[i][min(max(int((math.Log10(float64(ns))-3)*10), 0), len(edges)-2)]++
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := result.Workload{Name: "w", VM: "a", Latency: "response time", Start: start,
		End: start.Add(time.Duration(seconds * 1e9)),
		Streams: []result.Stream{{Name: "job", Depth: cmp.Or(q.Depth, 64), Rate: rate, Reads: true,
			OpenLoop: !q.Even}},
		Operations: []result.Operation{{Name: "read", Noun: "reads", Bytes: true, Block: result.BlockRead}},
		Ops: []result.OpTotals{{Op: "read", Count: h.Count(), Seconds: sum, Hist: h,
			OverTime: &result.OverTime{Start: start, Step: 1, Counts: counts}}}}
	if q.Depth > 0 {
		w.Latency = "service time"
	}
	all := w
	all.VM, all.Heat = "", &result.HeatMap{Start: start, Step: 1, EdgesNs: edges, Counts: maps}
	return &result.Data{Start: start, End: w.End, Workloads: []result.Workload{w, all}}
}

// Search finds the mark as plimsoll mark does, with probes as long as it makes them.
func (q *Queue) Search(start float64, r *rand.Rand) (mark.Answer, error) {
	text := "w errors = 0"
	if q.Quantile > 0 {
		text = fmt.Sprintf("w p%g < %gms", 100*q.Quantile, q.Limit*1e3)
	}
	m := &experiment.Mark{Workload: "w", Seconds: q.Seconds, Limits: []string{text}, Within: q.Within}
	_, limits, err := judge.MarkLimits(m.Limits, "w")
	s := mark.Settings{Start: start, Within: q.Within, Least: judge.Needed(m) / (20 * q.Seconds)}
	q.left = q.Credit
	var probes []mark.Probe
	for step := mark.Next(s, probes); step.Rate > 0 && err == nil; step = mark.Next(s, probes) {
		var p mark.Probe
		p, err = mark.Judge(q.Run(step.Rate, judge.LoadTime(m, step.Rate, probes).Seconds(), r), nil, "w", limits)
		probes = append(probes, p)
	}
	return mark.Conclude(s, probes), err
}

// DrawQueue is a queue with one of the capacities, in probes of 12 or 30 s; without any of 20 to 2,000 a second, seldom
// high, as those take long to make, also in probes of 3 s.
func DrawQueue(kind string, r *rand.Rand, capacities ...float64) *Queue {
	of := func(v ...float64) float64 { return v[r.IntN(len(v))] }
	lengths, wide := []float64{12, 30}, len(capacities) == 0
	if wide {
		lengths, capacities = []float64{3, 12, 30}, []float64{20, 50, 100, 200}
	}
	q := &Queue{Capacity: of(capacities...), Servers: 1, Seconds: of(lengths...), Even: r.IntN(2) == 0,
		Quantile: of(0.5, 0.9, 0.99), Depth: []int{0, 1, 16, 512}[r.IntN(4)]}
	if wide && r.IntN(40) == 0 {
		q.Capacity = 2_000
	}
	service := float64(q.Servers) / q.Capacity
	q.Limit = max(service*math.Exp(math.Log(200)*r.Float64())*1.5, 0.002)
	switch kind {
	case "cap":
		q.Even = true
	case "even service":
		q.Even, q.Depth = false, []int{0, 512}[r.IntN(2)]
	case "errors":
		q.Quantile = 0
	case "queue":
		q.Even, q.Varies, q.Depth = false, true, 0
		q.Servers = []int{1, 4, 16}[r.IntN(3)]
		service = float64(q.Servers) / q.Capacity
		q.Limit = service * (1.5 - math.Log(1-q.Quantile)) * math.Exp(math.Log(30)*r.Float64())
	case "credit":
		q.Even, q.Credit = true, q.Capacity*of(1, 10, 60)
	case "burst": // of one to 20 probes
		q.Even, q.Depth, q.Burst = true, []int{0, 512}[r.IntN(2)], q.Capacity*of(2, 3, 10)
		q.Credit = q.Seconds * math.Exp(math.Log(20)*r.Float64()) * (q.Burst - q.Capacity)
	}
	return q
}
