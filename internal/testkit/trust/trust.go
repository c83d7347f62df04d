// Package trust measures anew the rates that testdata/claims.md lists, with fresh seeds, and says which do
// not hold.
//
//	make trust
//
// prints every claim beside what was measured and fails when one is outside; with UPDATE=1 it writes the table of the
// page, which is its output. go test runs the same list with few sets each, which notices what is badly wrong, and
// checks that the page shows every claim.
//
// A claim is one entry of All: a name, the bounds of a rate, and the function that counts it. A file per family of
// methods holds them; to add a claim is to add an entry. Tests only: no shipped package imports this one.
package trust

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"gonum.org/v1/gonum/mathext"
)

// Count is how often something happened in how many sets that could show it.
type Count struct{ Hits, Of int }

// Rate is the share of hits; NaN of nothing.
func (c Count) Rate() float64 { return float64(c.Hits) / float64(c.Of) }

// Claim is one rate that the page states.
type Claim struct {
	Family string // the part of the page's table it stands in, such as "steady"
	Name   string // what was simulated, and what is counted; once in its family
	// Low and High bound the rate: shares, 0 to 1. The claim holds as long as the measurement is not outside by more
	// than chance explains.
	Low, High float64
	Sets      int // simulated in the long form
	// Measure simulates n sets from a seed and counts. It must be a function of its arguments alone, and the same when
	// its sets are drawn in several calls with seeds of their own, which is how they are spread over processors.
	Measure func(seed uint64, n int) (Count, error)
}

// All are the claims in the order of the page.
func All() []Claim {
	return slices.Concat(steadyClaims(), spreadClaims(), changeClaims(), serialClaims(), effectClaims(), gateClaims(),
		singleClaims(), uslClaims(), markClaims(), honestClaims())
}

// Measured is a claim with what came out.
type Measured struct {
	Claim
	Count
	Err error
}

// outsideBy is the chance below which a measurement says that a claim does not hold. There are some hundred claims, and
// each run draws anew.
const outsideBy = 1e-4

// Holds reports whether chance explains the measurement if the true rate is within the bounds. Nothing counted holds
// nothing.
func (m Measured) Holds() bool {
	if m.Err != nil || m.Of == 0 {
		return false
	}
	switch rate := m.Rate(); {
	case rate < m.Low:
		return atMost(m.Hits, m.Of, m.Low) >= outsideBy
	case rate > m.High:
		return atMost(m.Of-m.Hits, m.Of, 1-m.High) >= outsideBy
	}
	return true
}

// atMost is the chance of at most k hits in n at a rate p, by the incomplete beta function (Abramowitz and Stegun
// 26.5.24).
func atMost(k, n int, p float64) float64 {
	if k >= n || p <= 0 {
		return 1
	}
	if p >= 1 {
		return 0
	}
	return mathext.RegIncBeta(float64(n-k), float64(k)+1, 1-p)
}

// bounds says what is claimed, in percent.
func (c Claim) bounds() string {
	percent := func(v float64) string { return fmt.Sprintf("%.4g", math.Round(1e4*v)/1e2) }
	switch {
	case c.Low == 0:
		return "at most " + percent(c.High)
	case c.High == 1:
		return "at least " + percent(c.Low)
	}
	return percent(c.Low) + " to " + percent(c.High)
}

// part is how many sets one call of Measure simulates at most, so that the long claims do not end last on one
// processor.
const part = 50

// least is how many sets are simulated of any claim: of five that should be one in twenty, all being so is no chance.
const least = 5

// Run measures claims on all processors: share of their sets each, at least five. Done, when not nil, is told each as
// it ends.
func Run(claims []Claim, seed uint64, share float64, done func(Measured)) []Measured {
	type work struct{ claim, first, n int }
	var todo []work
	left := make([]int, len(claims))
	for i, c := range claims {
		sets := min(c.Sets, max(least, int(math.Round(share*float64(c.Sets)))))
		for first := 0; first < sets; first += part {
			todo = append(todo, work{i, first, min(part, sets-first)})
			left[i]++
		}
	}
	out := make([]Measured, len(claims))
	for i, c := range claims {
		out[i].Claim = c
	}
	var lock sync.Mutex
	var all sync.WaitGroup
	queue := make(chan work)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for w := range queue {
				n, err := claims[w.claim].Measure(seed^(uint64(w.claim)<<40+uint64(w.first)), w.n)
				lock.Lock()
				m := &out[w.claim]
				m.Hits, m.Of = m.Hits+n.Hits, m.Of+n.Of
				if m.Err == nil {
					m.Err = err
				}
				if left[w.claim]--; left[w.claim] == 0 && done != nil {
					done(*m)
				}
				lock.Unlock()
			}
		})
	}
	for _, w := range todo {
		queue <- w
	}
	close(queue)
	all.Wait()
	return out
}

// Line is the row of the table: claim, measurement, sets.
func (m Measured) Line() string {
	measured := "nothing to count"
	switch {
	case m.Err != nil:
		measured = "error: " + m.Err.Error()
	case m.Of > 0:
		measured = fmt.Sprintf("%.1f", 100*m.Rate())
	}
	if !m.Holds() {
		measured += " **does not hold**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d |", m.Family, m.Name, m.bounds(), measured, m.Of)
}

// Head is the head of that table.
const Head = "| of | case | claimed, % | measured, % | sets |\n|---|---|---|---|---|"
