package trust

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/run/experiment"
	"plimsoll/unit"
)

// Bearer is a system of which all is known: a load is offered to it, and the rate that it bears under a limit is to be
// found.
type Bearer struct {
	Kind     string
	Capacity float64
	Base     float64 // latency without load, seconds
	Limit    float64 // seconds
	Servers  float64
	Noise    float64 // coefficient of variation of a measured latency, from probe to probe
	Seconds  float64 // length of a probe
	Gives    float64 // rate from which the generator is late
	Broken   bool    // state: an overload that stays
	After    float64 // rate that begins it
	Bump     [2]float64
	Drift    float64
	Slow     float64 // of its other state, or beyond a step: by how much longer it takes
	Often    float64 // of the other state: its chance, from how many probes to how many it comes, or goes away
	Other    *Bearer // what has a limit of its own, nil for none
	made     int
	factors  [2]float64 // least and largest that came to the latency from states and drift
}

// latency is the limited value in the steady state.
func (t *Bearer) latency(rate float64) float64 {
	u := rate / t.Capacity
	switch t.Kind {
	case "cap", "generator", "metastable", "errors", "tail":
		return t.Base
	case "plateau":
		if u < 0.6 {
			return t.Base
		}
		return t.Limit * (t.Slow + 2*(u-0.6)*(u-0.6))
	case "power":
		return t.Base * (1 + 8*u*u)
	case "cliff":
		if u < cliffAt {
			return t.Base * (1 + u/4)
		}
		return t.Limit * (1.4 + u)
	case "bump":
		if rate > t.Bump[0] && rate < t.Bump[1] {
			return t.Limit * 1.8
		}
	}
	if u >= 1 {
		return math.Inf(1)
	}
	return t.Base * (1 + math.Pow(u, math.Sqrt(2*(t.Servers+1))-1)/(t.Servers*(1-u))) // Sakasegawa
}

// cliffAt is the share of the capacity up to which a cache holds what is read.
const cliffAt = 0.7

// Mark is the rate at which the latency reaches the limit, by bisection.
func (t *Bearer) Mark() float64 {
	if slices.Contains([]string{"cap", "metastable", "errors", "tail"}, t.Kind) {
		return t.Capacity
	}
	low, high := 0.0, t.Capacity
	if t.Kind == "power" || t.Kind == "plateau" {
		high = 100 * t.Capacity
	}
	switch t.Kind {
	case "bump":
		return t.Bump[0]
	case "cliff":
		return cliffAt * t.Capacity
	}
	for range 200 {
		if m := (low + high) / 2; t.latency(m) < t.Limit {
			low = m
		} else {
			high = m
		}
	}
	return low
}

// Marks are the least and the highest that it had in the states that probes have seen.
func (t *Bearer) Marks() (low, high float64) {
	slow, fast := *t, *t
	slow.Limit, fast.Limit = t.Limit/t.factors[1], t.Limit/t.factors[0]
	low, high = slow.Mark(), fast.Mark()
	if t.Other != nil {
		low, high = min(low, t.Other.Mark()), min(high, t.Other.Mark())
	}
	return low, high
}

// state returns what is added to the latency of a probe.
func (t *Bearer) state(r *rand.Rand) float64 {
	f := math.Exp(t.Drift * float64(t.made))
	switch {
	case t.Kind == "bimodal" && r.Float64() < t.Often,
		t.Kind == "checkpoint" && math.Mod(float64(t.made), t.Often) < 1:
		f *= t.Slow
	case t.Kind == "warming":
		f *= 1 + (t.Slow-1)*math.Exp(-float64(t.made-1)/t.Often)
	}
	if t.made == 1 {
		t.factors = [2]float64{f, f}
	}
	t.factors = [2]float64{min(t.factors[0], f), max(t.factors[1], f)}
	return f
}

// breaks is a probe whose limit breaks without a slope: by an error, of which Slow are expected at twice the capacity;
// or as a percentile goes to slow operations, when their share, counted in 20,000, is more than what is beyond it.
func (t *Bearer) breaks(p mark.Probe, r *rand.Rand) mark.Probe {
	u := p.Offered / t.Capacity
	switch {
	case t.Kind == "tail" && math.Pow(u, t.Often)+0.07*r.NormFloat64() > 1:
		p.Margin = math.Exp(t.Noise*r.NormFloat64()) / t.Slow
	case t.Kind == "tail":
		p.Margin = t.Limit / t.Base * math.Exp(t.Noise*r.NormFloat64())
	case r.Float64() < math.Exp(-t.Slow*max(u-1, 0)):
		p.Margin = 100
	}
	p.Held = p.Margin >= 1
	return p
}

// Probe offers a rate.
func (t *Bearer) Probe(rate float64, r *rand.Rand) mark.Probe {
	t.made++
	p := mark.Probe{Offered: rate, Achieved: rate, Seconds: t.Seconds, Limit: "p99 < limit"}
	if t.Kind == "errors" || t.Kind == "tail" {
		return t.breaks(p, r)
	}
	capacity, noise := t.Capacity, t.Noise
	if t.Kind == "few" {
		noise *= math.Sqrt(t.Capacity / rate)
	}
	if t.Kind == "power" || t.Kind == "plateau" {
		capacity = math.Inf(1)
	}
	if t.Kind == "metastable" {
		if rate > t.After {
			t.Broken = true
		}
		if t.Broken {
			capacity *= 0.4
		}
	}
	if t.Gives > 0 && rate > t.Gives {
		capacity, p.Generator = t.Gives, "its thread was busy"
	}
	value := t.latency(rate) * math.Exp(noise*r.NormFloat64()) * t.state(r)
	if rate > capacity {
		p.Achieved, p.Behind = capacity, true
		value += (1 - capacity/rate) * t.Seconds
	} else if t.Kind != "power" && t.Kind != "plateau" && t.Kind != "bump" && rate == t.Capacity {
		p.Behind = true
	}
	if math.IsInf(value, 1) {
		value = t.Seconds
	}
	p.Margin = t.Limit / value
	if t.Other != nil {
		if o := t.Other.Probe(rate, r); o.Margin < p.Margin {
			o.Limit = "write p99 < limit"
			p = o
		}
	}
	p.Held = p.Margin >= 1 && !(p.Behind && p.Achieved < 0.99*rate)
	return p
}

// Search finds the mark of t.
func Search(t *Bearer, s mark.Settings, r *rand.Rand) mark.Answer {
	var probes []mark.Probe
	for {
		step := mark.Next(s, probes)
		if step.Rate == 0 {
			return mark.Conclude(s, probes)
		}
		probes = append(probes, t.Probe(step.Rate, r))
		if len(probes) > 50 {
			panic("it does not end")
		}
	}
}

// DrawBearer is a system of a kind: queue, cap, power, bump, generator, metastable; queues in one of two states
// (bimodal, checkpoint), that get better (warming) or drift, of which fewer operations are seen the lower the rate
// (few), or beside another with a limit of its own (two); limits that break without a slope (errors, tail); and a
// latency that jumps close to its limit and stays there (plateau) or far over it (cliff), or is there without load
// (flat).
func DrawBearer(kind string, r *rand.Rand) *Bearer {
	t := &Bearer{Kind: kind, Capacity: math.Exp(5 + 6*r.Float64()), Base: math.Exp(-9 + 4*r.Float64()),
		Servers: math.Floor(math.Exp(4 * r.Float64())), Noise: 0.01 + 0.09*r.Float64(), Seconds: 30}
	t.Limit = t.Base * (1.3 + 8*r.Float64())
	if kind == "cap" {
		t.Noise = min(t.Noise, 0.05)
		t.Limit = t.Base * (1.5 + 8*r.Float64())
	}
	t.Slow = 1.3 + 1.7*r.Float64()
	switch kind {
	case "bimodal":
		t.Often = 0.05 + 0.45*r.Float64()
	case "checkpoint":
		t.Often, t.made = 2.5+3.5*r.Float64(), r.IntN(6)
	case "warming":
		t.Often = 2 + 4*r.Float64()
	case "drift":
		t.Drift = 0.01 * float64(2*r.IntN(2)-1)
	case "few":
		t.Noise = 0.02 + 0.13*r.Float64()
	case "two":
		t.Other = DrawBearer("queue", r)
		t.Other.Capacity = t.Capacity * math.Exp(0.5*(r.Float64()-0.5))
	case "errors":
		t.Slow = 20 * math.Exp(math.Log(100)*r.Float64())
	case "tail":
		t.Slow, t.Often = 1.3+4*r.Float64(), 2+6*r.Float64()
	case "cliff":
		t.Limit, t.Noise = t.Base*(1.25+r.Float64()), min(t.Noise, 0.05)
	case "flat":
		t.Servers = 10 + 45*r.Float64()
		t.Limit = t.latency(t.Capacity * (0.3 + 0.65*r.Float64()))
	case "plateau":
		t.Slow, t.Noise = 0.9+0.2*r.Float64(), min(t.Noise, 0.05)
	}
	if slices.Contains([]string{"bimodal", "checkpoint", "warming"}, kind) {
		t.Limit *= t.Slow
	}
	return t
}

// Bore reports whether a rate above the given held before one broke.
func Bore(a mark.Answer, rate float64) bool {
	for _, p := range a.Probes {
		if !p.Held {
			return false
		}
		if p.Offered > rate {
			return true
		}
	}
	return false
}

// markClaims are the searches of plimsoll mark on systems whose mark is known.
func markClaims() (out []Claim) {
	const family, sets = "mark", 1000
	add := func(name string, low, high float64, see func(r *rand.Rand) Count) {
		out = append(out, Claim{family, name, low, high, sets, func(seed uint64, n int) (c Count, _ error) {
			r := rand.New(rand.NewPCG(seed, 83))
			for range n {
				one := see(r)
				c.Hits, c.Of = c.Hits+one.Hits, c.Of+one.Of
			}
			return c, nil
		}})
	}
	anywhere := func(x *Bearer, r *rand.Rand) mark.Answer {
		return Search(x, mark.Settings{Start: x.Capacity * math.Exp(-3+3*r.Float64())}, r)
	}
	soon := func(kind, name string, foundIn float64) {
		add(name+": a mark is given after at most 12 probes", foundIn, 1, func(r *rand.Rand) Count {
			a := anywhere(DrawBearer(kind, r), r)
			return yes(a.Verdict == mark.Found && len(a.Probes) <= 12)
		})
	}
	for _, k := range []struct {
		kind, name           string
		least, most, foundIn float64
	}{
		{"queue", "a queue of one to 55 servers", 0.93, 0.975, 0.95},
		{"power", "a latency that grows with the square of the rate", 0.93, 0.975, 0.93},
		{"cap", "a cap: the limit breaks from one rate to the next", 0.98, 1, 0.95},
		{"cliff", "a cliff: beyond a rate it takes more than twice as long", 0.98, 1, 0.85},
	} {
		add(k.name+", noise of 1 to 10 %: the interval of a mark that is given holds it", k.least, k.most,
			func(r *rand.Rand) Count {
				x := DrawBearer(k.kind, r)
				a := anywhere(x, r)
				if a.Verdict != mark.Found {
					return Count{}
				}
				m := x.Mark()
				return yes(*a.Low <= m*1.0001 && m <= *a.High*1.0001)
			})
		soon(k.kind, k.name, k.foundIn)
	}
	uncertain := []struct {
		kind, name     string
		least, foundIn float64
	}{
		{"two", "two limits that break at rates up to 28 % apart", 0.92, 0.95},
		{"few", "a percentile of few operations, noise of 2 to 15 % and more below the mark", 0.92, 0.95},
		{"errors", "a limit of no errors, which begin by chance", 0.93, 0.95},
		{"tail", "a percentile that goes to slow operations by chance", 0.93, 0.95},
		{"drift", "1 % better or worse with each probe", 0.95, 0.95},
		{"bimodal", "one of two states, by chance", 0.97, 0.91},
		{"checkpoint", "one of two states, the other every 2.5 to 6 probes", 0.97, 0.92},
		{"warming", "caches that warm over the first probes", 0.97, 0.94},
	}
	for _, k := range uncertain {
		add(k.name+": the interval of a mark that is given holds it, or one that it had", k.least, 1,
			func(r *rand.Rand) Count {
				x := DrawBearer(k.kind, r)
				a := anywhere(x, r)
				if a.Verdict != mark.Found {
					return Count{}
				}
				low, high := x.Marks()
				return yes(*a.Low <= high*1.0001 && low <= *a.High*1.0001)
			})
		soon(k.kind, k.name, k.foundIn)
	}
	queued := func(q *Queue, r *rand.Rand) (found, holds, close bool) {
		a, err := q.Search(q.Capacity*math.Exp(-2+2*r.Float64()), r)
		if err != nil || a.Verdict != mark.Found {
			return false, false, false
		}
		m := q.Mark()
		return true, *a.Low <= m*1.0001 && m <= *a.High*1.0001, len(a.Warnings) > 0 || *a.Low <= 1.1*m
	}
	for _, k := range []struct {
		name        string
		kinds       []string
		capacities  []float64
		least, most float64
	}{
		{"operations one by one at 20 to 2,000 a second, probes of 3 to 30 s",
			[]string{"cap", "errors", "queue", "even service"}, nil, 0.95, 1},
		{"queues of one to 16 servers at 100 to 500 a second, probes of 12 or 30 s", []string{"queue"},
			[]float64{100, 200, 500}, 0.93, 0.975},
		{"queues of even operations at 100 to 500 a second, probes of 12 or 30 s", []string{"even service"},
			[]float64{100, 200, 500}, 0.93, 1},
		{"caps at 100 to 500 a second, probes of 12 or 30 s", []string{"cap"}, []float64{100, 200, 500}, 0.98, 1},
	} {
		add(k.name+": the interval of a mark that is given holds it", k.least, k.most, func(r *rand.Rand) Count {
			found, holds, _ := queued(DrawQueue(k.kinds[r.IntN(len(k.kinds))], r, k.capacities...), r)
			if !found {
				return Count{}
			}
			return yes(holds)
		})
	}
	add("credits of 1 to 60 s, probes of 12 or 30 s: no mark, one at most a tenth above what lasts, or a warning", 0.95,
		1, func(r *rand.Rand) Count {
			found, _, close := queued(DrawQueue("credit", r, 100, 200, 500), r)
			return yes(!found || close)
		})
	const bursts = "credits of one to 20 probes, of 2 to 10 times what lasts, that probes use up together: "
	add(bursts+"up to 4, no mark, one at most a tenth above what lasts, or a warning", 0.98, 1,
		func(r *rand.Rand) Count {
			q := DrawQueue("burst", r, 50, 100, 200)
			if q.Lasts(q.Burst) > 4*q.Seconds {
				return Count{}
			}
			found, _, close := queued(q, r)
			return yes(!found || close)
		})
	add(bursts+"a mark above what lasts says for how long it held, which is less", 1, 1, func(r *rand.Rand) Count {
		q := DrawQueue("burst", r, 50, 100, 200)
		a, err := q.Search(q.Capacity*math.Exp(-2+2*r.Float64()), r)
		if err != nil || a.Verdict != mark.Found || *a.Low <= 1.1*q.Mark() {
			return Count{}
		}
		return yes(a.HeldFor > 0 && a.HeldFor <= q.Lasts(*a.Rate)+1 && strings.Contains(a.Sentence, " for "+
			unit.Duration(a.HeldFor*1e9).String()))
	})
	add("any of all these: a mark is given after at most 12 probes", 0.95, 1, func(r *rand.Rand) Count {
		kinds := []string{"queue", "power", "cap"}
		for _, k := range uncertain {
			kinds = append(kinds, k.kind)
		}
		return yes(anywhere(DrawBearer(kinds[r.IntN(len(kinds))], r), r).Verdict == mark.Found)
	})
	add("a queue, a power or a cap, from 0.05 of it on: at most 1.5 times the time of a sweep of 12 rates", 1, 1,
		func(r *rand.Rand) Count {
			m := &experiment.Mark{Workload: "w", Seconds: 30,
				Limits: []string{[]string{"w p90 < 1s", "w p99 < 1s", "w p99.9 < 1s"}[r.IntN(3)]}}
			x := DrawBearer([]string{"queue", "power", "cap"}[r.IntN(3)], r)
			took := 0.0
			a := anywhere(x, r)
			for i, p := range a.Probes {
				took += judge.LoadTime(m, p.Offered, a.Probes[:i]).Seconds()
			}
			return yes(took <= 1.5*12*judge.LoadTime(m, x.Mark(), []mark.Probe{{Held: true}, {}}).Seconds())
		})
	add("any of these: an overload that stays is said", 0, 0.005, func(r *rand.Rand) Count {
		return yes(anywhere(DrawBearer(uncertain[r.IntN(len(uncertain))].kind, r), r).Verdict == mark.NotRecovered)
	})
	add("a jump to within a tenth of the limit: no mark, one that holds it, or a warning", 0.97, 1,
		func(r *rand.Rand) Count {
			x := DrawBearer("plateau", r)
			a := anywhere(x, r)
			m := x.Mark()
			return yes(a.Verdict != mark.Found || len(a.Warnings) > 0 || *a.Low <= m && m <= *a.High)
		})
	add("a limit that is hardly above the latency without load: no mark, or one that is not off by a tenth", 0.99, 1,
		func(r *rand.Rand) Count {
			x := DrawBearer("flat", r)
			a, m := anywhere(x, r), x.Mark()
			return yes(a.Verdict != mark.Below && (a.Verdict != mark.Found || 0.9**a.Low <= m && m <= 1.1**a.High))
		})
	add("two conditions: the interval of what the second costs holds it", 0.94, 0.995, func(r *rand.Rand) Count {
		first := DrawBearer("queue", r)
		second := *first
		second.Capacity *= 0.4 + 0.6*r.Float64()
		lines := []mark.Line{{Answer: anywhere(first, r)}, {Answer: anywhere(&second, r)}}
		c := mark.Costs(lines)[0]
		if c.Low == nil || c.High == nil {
			return Count{}
		}
		cost := 1 - second.Mark()/first.Mark()
		return yes(*c.Low <= cost+1e-4 && cost-1e-4 <= *c.High)
	})
	add("a generator that gives way below the mark: no mark, and it is said", 1, 1, func(r *rand.Rand) Count {
		x := DrawBearer("queue", r)
		x.Noise = min(x.Noise, 0.05)
		x.Gives = x.Mark() * (0.2 + 0.6*r.Float64())
		a := Search(x, mark.Settings{Start: x.Gives * math.Exp(-3+4*r.Float64())}, r)
		return yes(a.Verdict == mark.Generator && *a.Rate <= 1.02*x.Gives)
	})
	add("an overload that stays after a rate it takes away had held: no mark", 1, 1, func(r *rand.Rand) Count {
		x := DrawBearer("cap", r)
		x.Kind, x.After = "metastable", x.Capacity*(1+r.Float64())
		a := anywhere(x, r)
		if !x.Broken || !Bore(a, 0.42*x.Capacity) {
			return Count{}
		}
		return yes(a.Verdict != mark.Found)
	})
	return out
}
