package trust

import (
	"math"
	"math/rand/v2"

	"plimsoll/internal/analysis/mark"
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
	made     int
}

// latency is the limited value in the steady state.
func (t *Bearer) latency(rate float64) float64 {
	u := rate / t.Capacity
	switch t.Kind {
	case "cap", "generator", "metastable":
		return t.Base
	case "power":
		return t.Base * (1 + 8*u*u)
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

// Mark is the rate at which the latency reaches the limit, by bisection.
func (t *Bearer) Mark() float64 {
	if t.Kind == "cap" || t.Kind == "metastable" {
		return t.Capacity
	}
	low, high := 0.0, t.Capacity
	if t.Kind == "power" {
		high = 100 * t.Capacity
	}
	if t.Kind == "bump" {
		return t.Bump[0]
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

// Probe offers a rate.
func (t *Bearer) Probe(rate float64, r *rand.Rand) mark.Probe {
	t.made++
	p := mark.Probe{Offered: rate, Achieved: rate, Limit: "p99 < limit"}
	capacity := t.Capacity
	if t.Kind == "power" {
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
	value := t.latency(rate) * math.Exp(t.Noise*r.NormFloat64()) * math.Exp(t.Drift*float64(t.made))
	if rate > capacity {
		p.Achieved, p.Behind = capacity, true
		value += (1 - capacity/rate) * t.Seconds
	} else if t.Kind != "power" && t.Kind != "bump" && rate == t.Capacity {
		p.Behind = true
	}
	if math.IsInf(value, 1) {
		value = t.Seconds
	}
	p.Margin = t.Limit / value
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

// DrawBearer is a system of a kind: queue, cap, power, bump, generator, metastable.
func DrawBearer(kind string, r *rand.Rand) *Bearer {
	t := &Bearer{Kind: kind, Capacity: math.Exp(5 + 6*r.Float64()), Base: math.Exp(-9 + 4*r.Float64()),
		Servers: math.Floor(math.Exp(4 * r.Float64())), Noise: 0.01 + 0.09*r.Float64(), Seconds: 30}
	t.Limit = t.Base * (1.3 + 8*r.Float64())
	if kind == "cap" {
		t.Noise = min(t.Noise, 0.05)
		t.Limit = t.Base * (1.5 + 8*r.Float64())
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
	for _, k := range []struct {
		kind, name           string
		least, most, foundIn float64
	}{
		{"queue", "a queue of one to 55 servers", 0.93, 0.975, 0.93},
		{"power", "a latency that grows with the square of the rate", 0.93, 0.975, 0.88},
		{"cap", "a cap: the limit breaks from one rate to the next", 0.98, 1, 0.95},
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
		add(k.name+": a mark is given after at most 12 probes", k.foundIn, 1, func(r *rand.Rand) Count {
			a := anywhere(DrawBearer(k.kind, r), r)
			return yes(a.Verdict == mark.Found && len(a.Probes) <= 12)
		})
	}
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
