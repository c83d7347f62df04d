package mark

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/result"
	"plimsoll/unit"
)

// Verdict tells what kind of answer there is.
type Verdict string

// The verdicts.
const (
	Found        Verdict = "mark"          // Rate, Low and High are the mark
	AtLeast      Verdict = "at least"      // everything held: Rate is the highest that was offered
	Below        Verdict = "below"         // nothing held: Rate is the lowest that was offered
	Generator    Verdict = "generator"     // the load generator gave way first: Rate is the highest that held
	NotRecovered Verdict = "not recovered" // an overload outlasted its cause: Rate is the one that began it
	Inconclusive Verdict = "inconclusive"  // the probes contradict each other, or are too few
)

// Answer holds what a search has found.
type Answer struct {
	Verdict    Verdict  `json:"verdict"`
	Unit       string   `json:"rate_unit,omitempty"` // of all rates; "": IOPS
	Rate       *float64 `json:"rate_ops,omitempty"`  // operations per second; what it is depends on Verdict
	Low        *float64 `json:"low_ops,omitempty"`   // of Found: the interval
	High       *float64 `json:"high_ops,omitempty"`
	Confidence float64  `json:"confidence,omitempty"`
	// Step: of Found: the limit breaks from Low to High without a slope, and both were offered twice.
	Step   bool    `json:"step,omitempty"`
	Limit  string  `json:"limit,omitempty"` // the one that breaks first
	Spread float64 `json:"spread,omitempty"`
	Within bool    `json:"within"` // the interval is as narrow as asked
	// Unfinished: probes are left to be made, as after an early end, and may change the answer.
	Unfinished bool     `json:"unfinished,omitempty"`
	Sentence   string   `json:"sentence"`
	Warnings   []string `json:"warnings,omitempty"`
	// Gaps are pairs of rates that held, between which none was offered.
	Gaps [][2]float64 `json:"not_offered_ops,omitempty"`
	// Rises are what had to wait beyond the mark and did not below it, of what was counted.
	Rises []Rise `json:"rises,omitempty"`
	// Device is the share of the time that is added beyond the mark which is spent in the block device below the load.
	Device *float64 `json:"added_in_device_share,omitempty"`
	Probes []Probe  `json:"probes"`
	// HeldFor is the longest that the mark, or the highest rate that held, was offered at a time and held, in seconds:
	// a credit, or what else lets a system do more for a while, may last longer.
	HeldFor float64 `json:"held_seconds,omitempty"`
	// Coarse is by how much probes that are too short to tell widen the interval, as a share.
	Coarse float64 `json:"coarse_share,omitempty"`
}

// Offered says how many rates, or numbers of VMs, were tried.
func (a *Answer) Offered() string {
	tried := map[float64]bool{}
	for _, p := range a.Probes {
		tried[p.Offered] = true
	}
	if a.whole() {
		return unit.Plural(len(tried), "number") + " of " + a.Unit
	}
	return unit.Plural(len(tried), "rate")
}

// Conclude says what the probes show; the search need not be over.
func Conclude(s Settings, probes []Probe) (a Answer) {
	least := s.Least
	s = s.filled()
	a = Answer{Verdict: Inconclusive, Unit: s.Unit, Probes: probes}
	probes, disturbed := undisturbed(probes)
	if !s.Count {
		probes = lagging(probes)
	}
	b := bracket(probes)
	defer func() {
		a.gaps(probes)
		if len(probes) > 0 && Next(s, a.Probes).Rate > 0 {
			a.unfinished()
		}
		times := map[string]int{}
		for _, p := range disturbed {
			times[a.Say(p.Offered)]++
		}
		for _, p := range disturbed {
			at, often, left := a.Say(p.Offered), "once", "that probe is"
			switch n := times[at]; {
			case n == 0: // told
				continue
			case n > 1:
				often, left = fmt.Sprintf("%d times", n), "those probes are"
			}
			times[at] = 0
			a.Warnings = append(a.Warnings, fmt.Sprintf(
				"at %s the generator gave way %s, and as much or more held: %s left out", at, often, left))
		}
	}()
	switch {
	case len(probes) == 0:
		a.Sentence = "No mark: nothing was measured."
	case s.Count:
		a.count(s, probes)
		a.always(probes)
		return a
	case b.fell >= 0:
		a.fallen(probes, b.fell)
	case !b.broke:
		a.at(AtLeast, b.low)
		a.watch(probes, b.low.Offered)
		a.Sentence = fmt.Sprintf("No limit broke up to %s, the highest rate that was offered: the mark is above it.",
			a.Say(b.low.Offered))
		if least > 1.01*b.low.Offered {
			a.Warnings = append(a.Warnings, fmt.Sprintf(
				"below %s a probe does too little to know the percentile: longer ones tell", a.Say(least)))
		}
	case !b.held:
		lowest := lowestOf(probes)
		if lowest.Generator != "" {
			a.at(Generator, lowest)
			a.Sentence = fmt.Sprintf("No mark: at %s, the lowest rate offered, the generator gave way: %s.",
				a.Say(lowest.Offered), lowest.Generator)
			break
		}
		if highest := probes[0].Offered; len(probes) > 2 && !slices.ContainsFunc(probes, func(p Probe) bool {
			highest = max(highest, p.Offered)
			return p.Margin <= clearlyBroken
		}) {
			a.Sentence = fmt.Sprintf("Inconclusive: from %s to %s the limited value is about at its limit.",
				a.Say(lowest.Offered), a.Say(highest))
			break
		}
		if i := slices.IndexFunc(probes, func(p Probe) bool { return p.Held }); i >= 0 {
			a.Sentence = fmt.Sprintf("Inconclusive: %s held and %s, the lowest rate that was offered, did not: the system "+
				"did not stay as it was.", a.Say(probes[i].Offered), a.Say(lowest.Offered))
			break
		}
		a.at(Below, lowest)
		broken := cmp.Or(lowest.Limit, "The limit") + " breaks"
		if lowest.Limit == RateMet {
			broken = "The rate is not met"
		}
		a.Sentence = fmt.Sprintf("%s at %s, the lowest rate that was offered: the mark is below it.", broken,
			a.Say(lowest.Offered))
		if least > 0 && lowest.Offered <= 1.01*least {
			a.Warnings = append(a.Warnings,
				"at lower rates a probe does too little to know the percentile: longer ones go lower")
		}
	default:
		a.found(s, probes, b)
	}
	a.warn(s, probes)
	return a
}

// unfinished has the first sentence say that probes are left to be made, as after an early end.
func (a *Answer) unfinished() {
	a.Unfinished = true
	said := "Unfinished after " + unit.Plural(len(a.Probes), "probe") + ": "
	rest := strings.TrimPrefix(a.Sentence, strings.Replace(said, "Unfinished", "Inconclusive", 1))
	rest = strings.TrimPrefix(rest, "Inconclusive: ")
	if a.Limit == "" || !strings.HasPrefix(rest, a.Limit) { // a workload keeps its name
		rest = strings.ToLower(rest[:1]) + rest[1:]
	}
	a.Sentence = said + rest
}

// wideGap is the ratio of two neighbouring rates from which on it is said that none was offered between them.
const wideGap = 1.8

// gaps says between which rates that held none was offered: a limit may break there and hold again.
func (a *Answer) gaps(probes []Probe) {
	if a.Verdict != Found && a.Verdict != AtLeast {
		return
	}
	var held []float64
	for _, p := range probes {
		if p.Held && p.Offered <= *cmp.Or(a.Low, a.Rate)*(1+sameRate) {
			held = append(held, p.Offered)
		}
	}
	slices.Sort(held)
	var chain []string // neighbours, each that far from the one before
	var said []string
	end := func() {
		if n := len(chain); n > 0 {
			said = append(said, strings.Join(chain[:n-1], ", ")+" and "+chain[n-1])
		}
		chain = nil
	}
	for i := 1; i < len(held); i++ {
		low, high := held[i-1], held[i]
		if high < wideGap*low || a.whole() && high-low < 2 {
			end()
			continue
		}
		if chain == nil {
			chain = []string{a.bare(low)}
		}
		chain, a.Gaps = append(chain, a.bare(high)), append(a.Gaps, [2]float64{low, high})
	}
	if end(); len(said) > 0 {
		a.Sentence += fmt.Sprintf(" Nothing between %s %s was offered: what breaks only there is not seen.",
			strings.Join(said, ", or "), cmp.Or(a.Unit, "IOPS"))
	}
}

// whole reports whether what is offered is a number of something, and no rate.
func (a *Answer) whole() bool { return a.Unit != "" && !strings.HasSuffix(a.Unit, "/s") }

func (a *Answer) at(v Verdict, p Probe) { a.Verdict, a.Rate, a.Limit = v, &p.Offered, p.Limit }

// At holds a rate, 0 for none, against the mark: it says so, and returns the share of it; nil without a mark.
func (a *Answer) At(rate float64) *float64 {
	if rate == 0 || a.Verdict != Found {
		return nil
	}
	share := rate / *a.Rate
	a.Sentence += fmt.Sprintf(" Your %s are %.0f %% of it.", InUnit(rate, a.Unit), 100*share)
	return &share
}

// Outcome says in a line how a probe came out, with rates in their unit.
func (p Probe) Outcome(of string) string {
	switch {
	case p.Generator != "":
		return "the generator gave way: " + p.Generator
	case p.Behind && p.Margin == 0 && p.Grew == 0:
		return fmt.Sprintf("broken: %s achieved", InUnit(p.Achieved, of))
	case p.Grew > 0 && p.Limit == RateMet && !p.Held:
		return fmt.Sprintf("broken: its queue still grew at the end, by %.2g %% of what was offered", 100*p.Grew)
	case p.Limit == RateMet && !p.Held:
		return "broken: the rate is not met"
	case p.Held && strings.HasSuffix(p.Limit, "= 0"):
		return "held: " + p.Limit
	case p.Held:
		return fmt.Sprintf("held: %s at %.0f %% of its limit", p.Limit, 100/p.Margin)
	case p.Margin > 0 && p.Margin < 0.01:
		return fmt.Sprintf("broken: %s at %s times its limit", p.Limit,
			strings.TrimSuffix(unit.Rate(math.Round(1/p.Margin)).String(), " IOPS"))
	case p.Margin > 0:
		return fmt.Sprintf("broken: %s at %.3g times its limit", p.Limit, 1/p.Margin)
	}
	return "broken: " + p.Limit
}

// Say writes a rate with three or four digits and its unit.
func (a *Answer) Say(rate float64) string { return Say(rate, a.Unit) }

// Say writes a rate of that unit, "" for IOPS, in as many digits as a mark has.
func Say(rate float64, of string) string {
	order := math.Floor(math.Log10(math.Abs(rate)))
	digits := math.Pow(10, math.Max(order-3, math.Min(order-2, 0)))
	return InUnit(math.Round(rate/digits)*digits, of)
}

// InUnit writes a rate with its unit, "" for IOPS.
func InUnit(rate float64, of string) string {
	text := unit.Rate(rate).String()
	if of != "" {
		if text, _, _ = strings.Cut(text, " "); text == "1" {
			of = one.Replace(of)
		}
		text += " " + of
	}
	return text
}

// one makes units of numbers fit 1.
var one = strings.NewReplacer("VMs", "VM", "users", "user", "clients", "client")

// UnitOf is the unit of the rate of a workload: "transactions/s" and the like where it does one thing that is no block
// I/O, "" for IOPS.
func UnitOf(d *result.Data, workload string) string {
	for _, w := range d.Workloads {
		if w.Name != workload || w.Prefill {
			continue
		}
		switch done := w.Occurred(); {
		case slices.ContainsFunc(done, func(o result.Operation) bool { return o.Block != "" }):
			return ""
		case len(done) == 1:
			return done[0].RateUnit()
		case len(done) > 1:
			return "operations/s"
		}
	}
	return ""
}

func (a *Answer) fallen(probes []Probe, at int) {
	p := probes[at]
	began := p
	for i := at - 1; i >= 0; i-- {
		if probes[i].Held && same(probes[i].Offered, p.Offered) {
			for _, q := range probes[i:at] { // the first that broke after it
				if q.Margin <= clearlyBroken {
					began = q
					break
				}
			}
			break
		}
	}
	lower := slices.ContainsFunc(probes[at+1:], func(q Probe) bool { return q.Offered < 0.95*p.Offered })
	if count(probes[at+1:], p.Offered) == 0 || !lower { // it may be chance
		a.Sentence = fmt.Sprintf("Inconclusive: %s held before %s was offered, and broke after it; too few probes are "+
			"left to tell whether that stays.", a.Say(p.Offered), a.Say(began.Offered))
		return
	}
	a.at(NotRecovered, began)
	a.Sentence = fmt.Sprintf("No mark: after %s was offered it no longer bore %s, which it had borne before",
		a.Say(began.Offered), a.Say(p.Offered))
	if last := probes[len(probes)-1]; len(probes) > at+1 && last.Offered < 0.999*p.Offered {
		if last.Held {
			a.Sentence += fmt.Sprintf("; at %s it came back", a.Say(last.Offered))
		} else {
			a.Sentence += fmt.Sprintf("; at %s, the lowest rate that had held, it did not come back either",
				a.Say(last.Offered))
		}
	}
	watched := 0.0
	for _, q := range probes[at:] {
		watched += q.Seconds
	}
	if watched > 0 {
		a.Sentence += fmt.Sprintf(". It was watched for %s of load at %s", unit.Duration(watched*float64(time.Second)),
			unit.Plural(len(probes)-at, "lower rate"))
	}
	a.Sentence += "."
}

// onCredit says that what held is no mark, where one that was offered more ended far below it.
func (a *Answer) onCredit(probes []Probe, low, high float64) bool {
	p, ok := spentLater(probes, low)
	if !ok || p.Ended >= lasts*low {
		return false
	}
	a.Low, a.High = &p.Ended, &high
	held := 0.0
	for _, q := range probes {
		if q.Held && q.Offered >= low*(1-sameRate) {
			held = max(held, q.Seconds)
		}
	}
	a.Sentence = fmt.Sprintf("Inconclusive: %s held for %s, but %s ended at %s after more at first, as where a credit or a "+
		"buffer is used up, or too much load costs some: longer probes tell what it bears for longer.",
		a.Say(low), unit.Duration(held*float64(time.Second)), a.Say(p.Offered), a.Say(p.Ended))
	return true
}

func (a *Answer) found(s Settings, probes []Probe, b span) {
	e := estimate(probes)
	a.Limit, a.Spread = b.high.Limit, e.spread
	if p, q, ok := unsteady(probes); ok && !(e.chance && e.high <= apart*e.low) {
		a.Sentence = fmt.Sprintf("Inconclusive: it is not steady from probe to probe: of two at %s one %s, the other %s.",
			a.Say(p.Offered), strings.Replace(p.Outcome(a.Unit), ": ", " (", 1)+")",
			strings.Replace(q.Outcome(a.Unit), "broken: ", "broke (", 1)+")")
		a.Low, a.High = &b.low.Offered, &b.high.Offered
		return
	}
	if slices.ContainsFunc(probes, func(p Probe) bool {
		return p.Generator != "" && !p.Held && p.Offered <= max(e.high, b.high.Offered)*1.001
	}) {
		p := b.high
		for _, q := range probes {
			if q.Generator != "" && !q.Held && q.Offered <= p.Offered {
				p = q
			}
		}
		if a.onCredit(probes, borne(probes).Offered, p.Offered) {
			return
		}
		a.at(Generator, borne(probes))
		a.Limit = p.Limit
		a.Sentence = fmt.Sprintf("At least %s: at %s the load generator gave way, not the system: %s.",
			a.Say(*a.Rate), a.Say(p.Offered), cmp.Or(p.Generator, "it fell behind"))
		return
	}
	far := !e.ok || e.cliff && !e.twice || !e.cliff && (e.low <= 0 || e.high > 1.5*e.rate || e.low < 0.5*e.rate)
	if far {
		if low, high, ok := sides(probes); ok {
			far, e = false, edge{rate: low, low: low, high: high, cliff: true, twice: true}
		}
	}
	if far {
		a.between(probes, b)
		return
	}
	if a.onCredit(probes, e.low, e.high) {
		return
	}
	a.Within = s.near(e) || !e.cliff && s.narrow(e)
	sure := e
	if e.low, e.high, a.Coarse = told(probes, e); a.Coarse > 0 {
		a.Within = a.Within && (e.cliff && e.high/e.low <= 1+s.Within || !e.cliff && s.narrow(e))
	}
	a.Verdict, a.Rate, a.Low, a.High, a.Step = Found, &e.rate, &e.low, &e.high, e.cliff
	limit, span := "", a.watch(probes, e.rate)
	switch a.Limit {
	case "":
	case RateMet:
		limit = ", beyond which the rate is not met"
	default:
		limit = " at " + a.Limit
	}
	if text := a.near(probes, e.rate); text != "" {
		defer func() { a.Sentence += " " + text }()
	}
	if e.cliff {
		a.Sentence = fmt.Sprintf("Mark: %s%s, which held%s%s; %s broke%s.", a.Say(sure.low), limit,
			often(probes, sure.low, true), span, a.Say(sure.high), often(probes, sure.high, false))
		if a.Coarse > 0 {
			a.Sentence += fmt.Sprintf(" Probes as short as these tell it to %s to %s.", a.bare(e.low), a.Say(e.high))
		}
		return
	}
	a.Confidence = Confidence
	if span != "" {
		span = ", held" + span
	}
	a.Sentence = fmt.Sprintf("Mark: %s (95 %%: %s to %s)%s%s.", a.Say(e.rate), a.bare(e.low), a.bare(e.high), limit,
		span)
}

// watch notes for how long at a time a rate held, and says it.
func (a *Answer) watch(probes []Probe, rate float64) string {
	for _, p := range probes {
		if p.Held && p.Offered >= nearly*rate {
			a.HeldFor = max(a.HeldFor, p.Seconds)
		}
	}
	if a.HeldFor < 1 {
		return ""
	}
	return " for " + unit.Duration(math.Round(a.HeldFor)*float64(time.Second)).String()
}

// borne is the highest probe that held below all that the system broke: where the generator gave way by chance, the
// system bore a higher rate.
func borne(probes []Probe) (highest Probe) {
	broke := math.Inf(1)
	for _, p := range probes {
		if !p.Held && p.Generator == "" {
			broke = min(broke, p.Offered)
		}
	}
	for _, p := range probes {
		if p.Held && p.Offered < broke && p.Offered > highest.Offered {
			highest = p
		}
	}
	return highest
}

// between says what is known where no interval is: the two sides, where both are clear and nothing contradicts them.
func (a *Answer) between(probes []Probe, b span) {
	low, high := math.Inf(1), 0.0 // the lowest that broke, the highest that held
	for _, p := range probes {
		if p.Held {
			high = max(high, p.Offered)
		} else {
			low = min(low, p.Offered)
		}
	}
	a.Sentence = fmt.Sprintf("Inconclusive after %s: ", unit.Plural(len(probes), "probe"))
	switch clear := b.low.Margin >= clearlyHeld && b.high.Margin <= clearlyBroken; {
	case low <= high:
		a.Sentence += fmt.Sprintf("%s broke and %s held, so where the limit breaks is not known.", a.Say(low),
			a.Say(high))
	case clear:
		a.Sentence += fmt.Sprintf("%s held and %s did not, and the mark is somewhere between.",
			a.Say(b.low.Offered), a.Say(b.high.Offered))
		a.Low, a.High = &b.low.Offered, &b.high.Offered
	default:
		a.Sentence += fmt.Sprintf("%s held and %s did not, by too little to tell on which side the mark is.",
			a.Say(b.low.Offered), a.Say(b.high.Offered))
	}
}

// often is said of a side that was offered more than once.
func often(probes []Probe, rate float64, held bool) string {
	n, others := 0, 0
	for _, p := range probes {
		switch {
		case !same(p.Offered, rate):
		case p.Held == held:
			n++
		default:
			others++
		}
	}
	if n+others < 2 {
		return ""
	}
	return " " + times(n, others)
}

// apart is the ratio of two rates between which there is a mark, however it came out from probe to probe.
const apart = 1.3

// sides are the rates that bound a mark where there is no curve and too few probes for both to be offered twice: the
// highest that held by more than chance does, and the lowest that broke by as much, when no probe contradicts them and
// a rate close to the lower side has held after the first overload, so that what is bounded is not what that left.
func sides(probes []Probe) (low, high float64, ok bool) {
	high = math.Inf(1)
	for _, p := range probes {
		if p.Margin <= clearlyBroken {
			high = min(high, p.Offered)
		}
	}
	for _, p := range probes {
		if p.Held && p.Margin >= clearlyHeld && p.Offered < high {
			low = max(low, p.Offered)
		}
	}
	over, after := false, false
	for _, p := range probes {
		if !p.Held && p.Offered <= low {
			return 0, 0, false
		}
		over = over || p.Margin <= clearlyBroken
		after = after || over && p.Held && p.Offered >= nearly*low
	}
	return low, high, after && high <= apart*low
}

// unsteady finds two probes of one rate of which one clearly held and one clearly broke.
func unsteady(probes []Probe) (held, broke Probe, ok bool) {
	for _, p := range probes {
		for _, q := range probes {
			if !p.Behind && same(p.Offered, q.Offered) && p.Margin >= clearlyHeld && q.Margin <= clearlyBroken &&
				q.Generator == "" {
				return p, q, true
			}
		}
	}
	return Probe{}, Probe{}, false
}

// bare is a rate with four digits and without its unit.
func (a *Answer) bare(rate float64) string {
	text, _, _ := strings.Cut(a.Say(rate), " ")
	return text
}

// warn says what else the probes show.
func (a *Answer) warn(s Settings, probes []Probe) {
	if a.Verdict == Found && !a.Within {
		a.Warnings = append(a.Warnings, fmt.Sprintf(
			"the interval is wider than %s %% of the mark: %s",
			strconv.FormatFloat(100*s.Within, 'g', 3, 64), spreadOf(a)))
	}
	if e := estimate(probes); (a.Verdict == Found || a.Verdict == Inconclusive) && math.Abs(e.drift) >= leastDrift {
		word := "better"
		if e.drift < 0 {
			word = "worse"
		}
		a.Warnings = append(a.Warnings, fmt.Sprintf(
			"it drifted: at one rate the limited value came out %s %% %s at the end than at the beginning",
			strconv.FormatFloat(100*math.Abs(e.drift), 'f', 0, 64), word))
	}
	if a.Verdict != Found {
		a.always(probes)
		return
	}
	if a.Coarse > 0 && slices.ContainsFunc(probes, func(p Probe) bool { return p.Taken }) {
		a.Warnings = append(a.Warnings,
			"whether its operations are due evenly or at random is not known: the interval is that of random ones")
	}
	if p, _, ok := unsteady(probes); ok {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%s both held and broke", a.Say(p.Offered)))
	}
	var again []string
	for _, p := range probes {
		broke := slices.ContainsFunc(probes, func(q Probe) bool {
			return q.Margin <= clearlyBroken && q.Offered < p.Offered*0.97
		})
		if p.Held && p.Margin >= clearlyHeld && broke && p.Offered > *a.High {
			again = append(again, a.Say(p.Offered))
		}
	}
	if len(again) > 0 {
		a.Warnings = append(a.Warnings, "above the mark the limit holds again at "+
			strings.Join(slices.Compact(again), ", ")+": the mark is the lowest rate at which it breaks")
	}
	if i := slices.IndexFunc(probes, func(p Probe) bool { return p.Met > 0 && p.Offered <= apart**a.High }); i >= 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf(
			"the rate of %s was met for %s and then no longer, as where a buffer is full by then: longer probes may find "+
				"a lower mark",
			a.Say(probes[i].Offered), unit.Duration(probes[i].Met*float64(time.Second))))
	}
	if over, held := firstOverload(probes); held > 0 && over > 2.5*held {
		a.Warnings = append(a.Warnings, fmt.Sprintf(
			"the first overload (%s) came right after %s: if it left the system worse than before, the mark is of what was left; start nearer to the mark to rule that out",
			a.Say(over), a.Say(held)))
	}
}

// always says what was full at every rate or number: a mark says it where it says what was full.
func (a *Answer) always(probes []Probe) {
	u, ok := throughout(probes)
	if !ok || a.Verdict == Found {
		return
	}
	what := "rate"
	if a.whole() {
		what = "number"
	}
	a.Warnings = append(a.Warnings, fmt.Sprintf(usable[u.Measure]+" or more at every %s, the lowest too",
		u.Of, min(math.Floor(u.Percent), 99), what))
}

// leastDrift is the least drift that is told, as a share.
const leastDrift = 0.1

// firstOverload is the first rate that broke clearly, and the highest that had held before; 0 for none.
func firstOverload(probes []Probe) (over, held float64) {
	for _, p := range probes {
		if p.Margin <= clearlyBroken {
			return p.Offered, held
		}
		if p.Held {
			held = max(held, p.Offered)
		}
	}
	return 0, held
}

func spreadOf(a *Answer) string {
	if a.Coarse > 0 {
		return fmt.Sprintf("probes this short tell it to %s %%: longer ones tell more",
			strconv.FormatFloat(100*a.Coarse, 'g', 2, 64))
	}
	if a.Step {
		return "its two sides are that far apart"
	}
	if a.Spread == 0 {
		return "near it a rate holds or breaks by chance"
	}
	return fmt.Sprintf("the limited value differs by %s %% from probe to probe",
		strconv.FormatFloat(100*a.Spread, 'g', 2, 64))
}
