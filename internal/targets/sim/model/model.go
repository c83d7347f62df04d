// Package model is the performance model of the simulated cluster: a queueing network with a known answer.
//
// Every node's storage is one station with c servers. A Stream is a source of operations at a station: closed when it
// always keeps its depth outstanding or thinking, open when it offers a rate that the station can take within that
// depth.
// Cluster-wide contention and crosstalk multiply every service demand by the denominator of the Universal Scalability
// Law, taken at the number of operations outstanding in the whole cluster, so a cluster of idle stations obeys
//
//	X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1)),  gamma = 1 / mean service time
//
// exactly (N. J. Gunther, Guerrilla Capacity Planning, 2007, ch. 4). Within a node an operation waits for those it
// finds waiting and, with the probability that all servers are busy, for one of them to come free. That probability is
// Sakasegawa's rho^(sqrt(2(c+1))-1) (H. Sakasegawa, An approximation formula L_q = alpha rho^beta/(1-rho), Ann. Inst.
// Statist. Math. 29, 1977), exact for one server. What a closed stream finds is the Bard-Schweitzer estimate, the state
// without a share of its own; open streams stretch everyone's wait by 1/(1 - rho_open) (Lazowska, Zahorjan, Graham,
// Sevcik, Quantitative System Performance, 1984, ch. 6 and 7). Where that is exact (one open class on one server; one
// closed class; depth one; saturation) the tests demand the exact value, elsewhere they compare with a simulation of
// single operations and state the interval.
//
// What it is not: there is no order of arrivals, no scheduling, no deadline. Paced arrivals that are not Poisson are
// taken for Poisson, which overstates their waiting. The package is pure: no clock, no randomness, no I/O.
package model

import (
	"encoding/binary"
	"math"
)

// Stream is one source of operations at one node.
type Stream struct {
	Node  int
	Depth int     // most operations outstanding at once, at least 1
	Rate  float64 // offered operations per second, 0 for as fast as depth allows
	// Seconds is the mean service time of one operation at an idle cluster.
	Seconds float64
	// Think is the mean time between the end of an operation and the begin of the next in its place.
	Think float64
}

// Network is the cluster the streams share.
type Network struct {
	// Servers is how many operations each node serves at once.
	Servers []int
	// Contention and Crosstalk are alpha and beta of the Universal Scalability Law over the operations outstanding in
	// the cluster; both at least 0.
	Contention, Crosstalk float64
	// Background is the share of each node's capacity, in [0, 1), that something outside the scenario takes. Nil means
	// none.
	Background []float64
}

// Answer is the steady state of a network. Slices are indexed as the streams or the nodes were given.
type Answer struct {
	Throughput  []float64 // completed operations per second of each stream
	Response    []float64 // mean seconds from start to completion, queueing included, of each stream
	Limited     []bool    // the stream offers a rate it cannot reach
	Utilisation []float64 // share of each node's servers in use, background included
	Outstanding float64   // operations in flight in the cluster
	Inflation   float64   // factor on every service demand from contention and crosstalk
}

const (
	tolerance  = 1e-9
	iterations = 500
)

// Denominator is 1 + alpha (n-1) + beta n (n-1) of the Universal Scalability Law, never below 1.
func Denominator(alpha, beta, n float64) float64 {
	return max(1, 1+alpha*(n-1)+beta*n*(n-1))
}

// Solve returns the steady state.
func Solve(net Network, streams []Stream) Answer {
	a := Answer{
		Throughput: make([]float64, len(streams)), Response: make([]float64, len(streams)),
		Limited:     make([]bool, len(streams)),
		Utilisation: make([]float64, len(net.Servers)),
	}
	kinds := kindsOf(net, streams)
	at := func(inflation float64) float64 {
		var outstanding float64
		for _, k := range kinds {
			outstanding += a.solveNode(net, k.nodes[0], streams, k.streams[0], inflation) * float64(len(k.nodes))
		}
		return outstanding
	}
	a.Inflation = 1
	a.Outstanding = at(1)
	if net.Contention > 0 || net.Crosstalk > 0 {
		a.settle(net, streams, at)
	}
	for _, k := range kinds {
		a.copyAnswers(k)
	}
	return a
}

// kind is a set of nodes with the same servers, background and streams, of which one has to be solved.
type kind struct {
	nodes   []int
	streams [][]int // of each node, in the order given
}

func kindsOf(net Network, streams []Stream) []*kind {
	members := make([][]int, len(net.Servers))
	for i, s := range streams {
		members[s.Node] = append(members[s.Node], i)
	}
	known := map[string]*kind{}
	var kinds []*kind
	var key []byte
	for node, idx := range members {
		key = binary.LittleEndian.AppendUint64(key[:0], uint64(net.Servers[node]))
		if net.Background != nil {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(net.Background[node]))
		}
		for _, i := range idx {
			key = binary.LittleEndian.AppendUint64(key, uint64(streams[i].Depth))
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(streams[i].Rate))
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(streams[i].Seconds))
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(streams[i].Think))
		}
		k := known[string(key)]
		if k == nil {
			k = &kind{}
			known[string(key)] = k
			kinds = append(kinds, k)
		}
		k.nodes = append(k.nodes, node)
		k.streams = append(k.streams, idx)
	}
	return kinds
}

// copyAnswers gives the answer of the solved node of a kind to the others.
func (a *Answer) copyAnswers(k *kind) {
	for n := 1; n < len(k.nodes); n++ {
		a.Utilisation[k.nodes[n]] = a.Utilisation[k.nodes[0]]
		for p, i := range k.streams[n] {
			from := k.streams[0][p]
			a.Throughput[i], a.Response[i], a.Limited[i] = a.Throughput[from], a.Response[from], a.Limited[from]
		}
	}
}

// settle finds the inflation that the operations outstanding under it produce. It lies between none and that of all
// depths in use, and is found by false position with the Illinois rule (M. Dowell, P. Jarratt, BIT 11, 1971): closed
// loops, whose depth does not depend on it, take one step.
func (a *Answer) settle(net Network, streams []Stream, at func(float64) float64) {
	var depths float64
	for _, s := range streams {
		depths += float64(s.Depth)
	}
	excess := func(inflation float64) float64 {
		a.Inflation, a.Outstanding = inflation, at(inflation)
		return Denominator(net.Contention, net.Crosstalk, a.Outstanding) - inflation
	}
	low, above := 1.0, Denominator(net.Contention, net.Crosstalk, a.Outstanding)-1
	high, below := Denominator(net.Contention, net.Crosstalk, depths), 0.0
	next := low + above
	same := 0 // how often the same end has moved in a row, signed by which
	for range 100 {
		e := excess(next)
		if math.Abs(e) <= tolerance*next || high-low <= tolerance*low {
			return
		}
		if e > 0 {
			low, above = next, e
			if same = max(same, 0) + 1; same > 1 {
				below /= 2
			}
		} else {
			high, below = next, e
			if same = min(same, 0) - 1; same < -1 {
				above /= 2
			}
		}
		next = low + (high-low)/2
		if below < 0 {
			next = (low*below - high*above) / (below - above)
		}
	}
}

// solveNode solves one node under a given inflation of demands and returns the operations outstanding there.
func (a *Answer) solveNode(net Network, node int, streams []Stream, idx []int, inflation float64) float64 {
	st := station{streams: streams, idx: idx, inflation: inflation, servers: float64(net.Servers[node]), answer: a}
	if net.Background != nil {
		st.background = net.Background[node]
	}
	for _, i := range idx {
		a.Limited[i] = false
	}
	// Start with every paced stream open; those that do not fit become closed, worst first, until the rest do.
	for {
		worst := st.solve()
		if worst < 0 {
			break
		}
		a.Limited[worst] = true
	}
	var outstanding float64
	for _, i := range idx {
		if a.Limited[i] && a.Throughput[i] >= streams[i].Rate {
			a.Throughput[i], a.Limited[i] = streams[i].Rate, false
		}
		outstanding += min(a.Throughput[i]*a.Response[i], float64(streams[i].Depth))
	}
	a.Utilisation[node] = min(st.background+st.load(func(int) bool { return true }), 1)
	return outstanding
}

// station is one node while it is solved.
type station struct {
	streams    []Stream
	idx        []int
	inflation  float64
	servers    float64
	background float64
	answer     *Answer
}

func (st *station) closed(i int) bool { return st.streams[i].Rate == 0 || st.answer.Limited[i] }
func (st *station) open(i int) bool   { return !st.closed(i) }

// demand is the service time of one operation of stream i under the present inflation.
func (st *station) demand(i int) float64 { return st.streams[i].Seconds * st.inflation }

// load is the share of the servers that the chosen streams keep busy.
func (st *station) load(of func(int) bool) float64 {
	var rho float64
	for _, i := range st.idx {
		if of(i) {
			rho += st.answer.Throughput[i] * st.demand(i) / st.servers
		}
	}
	return rho
}

// allBusy is the probability that an arrival finds every server busy at the load rho.
func (st *station) allBusy(rho float64) float64 {
	return math.Pow(min(rho, 1), math.Sqrt(2*(st.servers+1))-1)
}

// solve finds the station's steady state and returns the open stream that does not fit into its depth and exceeds it
// most, or -1.
func (st *station) solve() int {
	a := st.answer
	for _, i := range st.idx {
		if st.open(i) {
			a.Throughput[i] = st.streams[i].Rate
		}
	}
	open := st.background + st.load(st.open)
	if open >= 1 {
		return st.heaviest()
	}
	t := st.solveClosed(open)
	wait := st.wait(t, t.queue, st.background+t.busy/st.servers, open)
	worst, excess := -1, 1.0
	for _, i := range st.idx {
		if st.closed(i) {
			continue
		}
		a.Response[i] = st.demand(i) + wait
		if e := a.Throughput[i] * (a.Response[i] + st.streams[i].Think) / float64(st.streams[i].Depth); e > excess {
			worst, excess = i, e
		}
	}
	return worst
}

// sums are running totals over the streams of a station.
type sums struct {
	queue float64 // operations of closed streams that wait
	busy  float64 // servers kept busy
	rate  float64 // operations per second
}

// add counts stream i in (sign 1) or out (sign -1).
func (st *station) add(t *sums, i int, sign float64) {
	x := sign * st.answer.Throughput[i]
	if st.closed(i) {
		t.queue += x * (st.answer.Response[i] - st.demand(i))
	}
	t.busy += x * st.demand(i)
	t.rate += x
}

// wait is the mean time an arrival waits that finds a queue of closed streams' operations and servers loaded by rho.
func (st *station) wait(t sums, queue, rho, open float64) float64 {
	if t.rate <= 0 {
		return 0
	}
	mean := t.busy / t.rate
	return mean / st.servers * (queue + st.allBusy(rho)) / (1 - open)
}

// solveClosed iterates over the streams that keep their depth outstanding and returns the sums over all streams.
func (st *station) solveClosed(open float64) sums {
	a := st.answer
	var t sums
	for _, i := range st.idx {
		if st.closed(i) {
			a.Response[i] = max(st.demand(i), a.Response[i]) // from where the last inflation left it
			a.Throughput[i] = float64(st.streams[i].Depth) / (a.Response[i] + st.streams[i].Think)
		}
		st.add(&t, i, 1)
	}
	for range iterations {
		var change float64
		for _, i := range st.idx {
			if st.open(i) {
				continue
			}
			depth := float64(st.streams[i].Depth)
			own := a.Throughput[i] / depth // of one of its operations, which does not find itself
			queue := t.queue - own*(a.Response[i]-st.demand(i))
			rho := st.background + (t.busy-own*st.demand(i))/st.servers
			r := st.demand(i) + st.wait(t, queue, rho, open)
			r = (r + a.Response[i]) / 2 // damped: undamped steps swing about the answer near saturation
			change = max(change, math.Abs(r-a.Response[i])/r)
			st.add(&t, i, -1)
			a.Response[i], a.Throughput[i] = r, depth/(r+st.streams[i].Think)
			st.add(&t, i, 1)
		}
		if change < tolerance {
			break
		}
	}
	return t
}

// heaviest is the open stream that asks most of the servers for each unit of its depth.
func (st *station) heaviest() int {
	worst, most := -1, 0.0
	for _, i := range st.idx {
		if s := st.streams[i]; st.open(i) && s.Rate*s.Seconds/float64(s.Depth) > most {
			worst, most = i, s.Rate*s.Seconds/float64(s.Depth)
		}
	}
	return worst
}
