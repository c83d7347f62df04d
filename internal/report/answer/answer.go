// Package answer says in one sentence what a run or an experiment found out about the question that it was made for,
// with a number and its interval. It judges nothing: what it says is in the findings, the shortest of them in the order
// in which a reader asks for it; of a run without such findings it is what each load did. It knows scenarios by what
// they did (a storm of boots, a fault, loads beside each other), not by their names, so that it answers for those of
// strangers, too.
package answer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
	"plimsoll/unit"
)

// Check is that of the sentence in a summary.
const Check = "answer"

// Load tells what one workload did in the time by which it is judged.
type Load struct {
	Name  string
	Does  []string // its kinds of operation
	Did   string   // in words
	Held  string   // to which rate it was, where not it but that was measured: ", held to ..."; else ""
	Wants bool     // Did are measures that it is run for, not its operations
	Began time.Time
	Size  float64 // mean bytes of its operations; 0 where it is not known
}

// Run holds what an answer is made of.
type Run struct {
	Findings []result.Finding
	Loads    []Load
	Unread   string // what should have been held to what was acknowledged and was not, in words; "": nothing
	Results  []string
}

// asking is a check that answers a question.
type asking struct {
	check string
	also  []string
	each  bool // every subject has a clause, not the one that changed most
}

// asked are the checks that answer questions, in the order in which readers ask for them, and which of them may stand
// beside the first: who loses power asks for lost writes and for the time until all works again, who boots or moves
// machines what it costs others, who loads data what the difference between two loads is.
var asked = []asking{
	{"lost-writes", []string{"recovery"}, true},
	{"lost-commits", []string{"recovery"}, true},
	{"boots", []string{"windows"}, true},
	{"migrations", []string{"windows"}, true},
	{"recovery", nil, false},
	{"scalability", nil, false},
	{"cache-steps", nil, false},
	{"residency", nil, true},
	{"windows", nil, false},
	{"ingest", []string{"in-turn"}, true},
	{"in-turn", nil, true},
	{kept, nil, false},
}

// uncut are checks whose sentences end with what they must not be read without.
var uncut = []string{"lost-writes", "lost-commits", "in-turn", "residency"}

const (
	steady = "steady-state" // has the rate of a load with its interval
	kept   = "kept"         // a recovery where nothing was lost: other answers come before it

	inFlight = "contention" // metric of how operations scale; that of a measure has its name

	// few is why a rate has no interval of which no check could say anything.
	few = "too little was reported"

	// most is of how many loads an answer speaks one by one.
	most = 4

	// large is the size of operations from which they are told in bytes, too.
	large = 128 << 10
)

// Of is the answer, which ends with a full stop, and the findings that it says; "" where nothing was measured.
func Of(r Run) (sentence string, said []result.Finding) {
	var clauses []string
	for _, a := range asked {
		all := telling(r, a.check)
		if len(all) == 0 {
			continue
		}
		if !a.each {
			all = all[:1]
		}
		told := all[:min(len(all), most)]
		said = append(said, told...)
		for _, check := range a.also {
			said = append(said, telling(r, check)[:min(len(telling(r, check)), 1)]...)
		}
		for i, f := range said {
			clause := r.clause(f, len(said) == 1 && r.Unread == "")
			if i > 0 {
				clause = r.goesOn(clause, f)
			}
			clauses = append(clauses, clause)
			if left := len(all) - len(told); left > 0 && i == len(told)-1 {
				clauses = append(clauses, fmt.Sprintf("%d more like these", left))
			}
		}
		break
	}
	switch {
	case r.Unread == "":
	case len(said) > 0 && said[0].Value == nil: // of two that are not known, what was to be read back comes first
		clauses = slices.Insert(clauses, 0, r.Unread)
		clauses[1] = r.goesOn(clauses[1], said[0])
	default:
		clauses = append(clauses, r.Unread)
	}
	unjudged, conditions := r.unjudged()
	var untimed []string // storms of boots that nobody timed
	for _, f := range r.Findings {
		if f.Check == "boots" && f.Value == nil && len(untimed) < most {
			untimed, said = append(untimed, strings.TrimSuffix(f.Sentence, ".")), append(said, f)
		}
	}
	if loads := r.meant(); len(clauses) == 0 && len(loads) <= most {
		r.Loads = loads
		why, reasons := r.noInterval()
		for _, l := range r.Loads {
			text, f := r.did(l)
			if why != "" {
				text = strings.TrimSuffix(text, unknown(reasons[l.Name]))
			}
			clauses = append(clauses, text)
			if f != nil {
				said = append(said, *f)
			}
		}
		if why != "" {
			clauses = append(clauses, "no rate has an interval: "+why)
		}
	}
	if len(clauses) == 0 {
		if clauses = r.Results[:min(len(r.Results), most)]; len(clauses) > 0 {
			clauses = append(slices.Clone(clauses), "no interval: only repeats show how these vary")
		}
	}
	for _, text := range untimed {
		if len(clauses) > 0 {
			text = strings.ToLower(text[:1]) + text[1:]
		}
		clauses = append(clauses, text)
	}
	if len(clauses) == 0 {
		return "", nil
	}
	if unjudged != "" {
		clauses, said = slices.Insert(clauses, 0, unjudged), append(said, conditions...)
	}
	return r.capital(strings.Join(clauses, "; ")) + ".", said
}

// goesOn is a clause of a finding as it goes on a sentence.
func (r Run) goesOn(clause string, f result.Finding) string {
	word := []rune(clause)
	if len(word) < 2 || r.named(clause, f.Subject) || unicode.IsUpper(word[1]) {
		return clause
	}
	return string(unicode.ToLower(word[0])) + string(word[1:])
}

// unjudged says that the author asks for a check of which the run has no finding, and which conditions do not hold; ""
// where there is none.
func (r Run) unjudged() (clause string, said []result.Finding) {
	for _, judged := range []bool{false, true} {
		for _, f := range r.Findings {
			if f.Check != result.AssertCheck || f.Severity == result.Passed || (f.Value != nil) != judged {
				continue
			}
			why := strings.TrimSuffix(f.Sentence, ".")
			if _, after, ok := strings.Cut(why, fmt.Sprintf("%q", f.Subject)); ok {
				_, why, _ = strings.Cut(after, ": ")
			}
			switch {
			case !judged && f.Metric == "findings" && clause == "":
				clause, said = fmt.Sprintf("whether %q holds cannot be told (%s)", f.Subject, why), append(said, f)
			case judged && clause != "":
				clause += fmt.Sprintf(", and %q does not hold: %s", f.Subject, why)
				return clause, append(said, f)
			}
		}
	}
	return clause, said
}

// meant are the loads that results are called after, where there are more than an answer speaks of: no warm-ups.
func (r Run) meant() []Load {
	if len(r.Loads) <= most {
		return r.Loads
	}
	out := slices.DeleteFunc(slices.Clone(r.Loads), func(l Load) bool {
		return !slices.ContainsFunc(r.Results, func(s string) bool { return strings.HasPrefix(s, l.Name+" ") })
	})
	if len(out) == 0 {
		return r.Loads
	}
	return out
}

// named reports whether a text begins with the name of a load, or with another.
func (r Run) named(s, other string) bool {
	return other != "" && strings.HasPrefix(s, other) ||
		slices.ContainsFunc(r.Loads, func(l Load) bool { return l.Name != "" && strings.HasPrefix(s, l.Name) })
}

// capital begins a sentence, but for one that begins with the name of a load.
func (r Run) capital(s string) string {
	if r.named(s, "") {
		return s
	}
	first, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[n:]
}

// telling are the findings of a check that answer, the largest change first.
func telling(r Run, check string) (out []result.Finding) {
	for _, f := range r.Findings {
		stayed := check == kept && f.Check == "recovery" && f.Severity == result.Passed
		if (f.Check == check || stayed) && tells(r, f, check) {
			out = append(out, f)
		}
	}
	wants := slices.ContainsFunc(r.Loads, func(l Load) bool { return l.Wants })
	several := slices.ContainsFunc(out, func(f result.Finding) bool { return f.Subject != out[0].Subject })
	late := r.late(out)
	slices.SortStableFunc(out, func(a, b result.Finding) int {
		if check == "recovery" && several { // who was not seen back comes before who was back last
			return cmp.Compare(back(b), back(a))
		}
		if wants && check == "scalability" && (a.Metric == inFlight) != (b.Metric == inFlight) {
			return map[bool]int{true: 1, false: -1}[a.Metric == inFlight] // orders come before operations
		}
		if check == "windows" && (a.Weight() > 0) == (b.Weight() > 0) {
			if i := cmp.Compare(late(a), late(b)); i != 0 {
				return i
			}
		}
		return cmp.Compare(b.Weight(), a.Weight())
	})
	return out
}

// late tells of a finding whether its load came beside others that were there: these are asked about before it.
func (r Run) late(all []result.Finding) func(f result.Finding) int {
	const joined = time.Second // starts closer than this are one
	var first time.Time
	for _, f := range all {
		if began := r.load(f.Subject).Began; first.IsZero() || began.Before(first) {
			first = began
		}
	}
	return func(f result.Finding) int {
		if r.load(f.Subject).Began.Sub(first) > joined {
			return 1
		}
		return 0
	}
}

// back is when what a fault struck was back; of what was not seen back it is never.
func back(f result.Finding) float64 {
	if f.Value == nil {
		return math.Inf(1)
	}
	return *f.Value
}

// tells reports whether a finding answers: of loads that took turns only where they do the same.
func tells(r Run, f result.Finding, check string) bool {
	switch check {
	case "boots":
		return f.Value != nil
	case "recovery":
		return f.Severity != result.Passed && f.NoInterval != "the load was not started again"
	case "in-turn":
		one, other, _ := strings.Cut(strings.TrimPrefix(f.Metric, "rate "), " / ")
		return f.Value != nil && slices.Equal(r.does(one), r.does(other)) &&
			!slices.ContainsFunc(r.Findings, func(o result.Finding) bool { // some differ in too much
				return o.Check == check && o.Unit == "count"
			})
	case "ingest": // that a load wrote is no answer where others were measured for what they read
		return !slices.ContainsFunc(r.Loads, func(l Load) bool {
			return !slices.ContainsFunc(r.Findings, func(o result.Finding) bool {
				return o.Check == check && o.Subject == l.Name && o.Severity != result.Passed
			})
		})
	}
	return true
}

// clause returns what a finding says, and of how many it is the one that changed most; alone it has all of its
// sentence.
func (r Run) clause(f result.Finding, alone bool) string {
	text := Clause(f, alone || slices.Contains(uncut, f.Check))
	check := f.Check
	if check == "recovery" && f.Severity == result.Passed {
		check = kept
	}
	subjects, missing := map[string]bool{}, map[string]bool{}
	for _, o := range telling(r, check) {
		subjects[o.Subject] = true
		if o.Value == nil {
			missing[o.Subject] = true
		}
	}
	each := slices.ContainsFunc(asked, func(a asking) bool { return a.check == check && a.each })
	switch n := len(subjects); {
	case check == "windows" && n > 1:
		of := "the one that changed most is"
		switch {
		case f.Weight() == 0:
			of = "none changed for sure;"
		case slices.ContainsFunc(telling(r, check), func(o result.Finding) bool { return o.Weight() > f.Weight() }):
			of = "the one that was there first is"
		}
		return fmt.Sprintf("of %d workloads that were set against others %s %s", n, of, text)
	case check == "recovery" && n > 1 && len(missing) > 0:
		return fmt.Sprintf("of %d groups that a fault struck %d had not come back; %s", n, len(missing), text)
	case check == "recovery" && n > 1:
		return fmt.Sprintf("of %d groups that a fault struck this one was back last: %s", n, text)
	case n > 1 && !each:
		return fmt.Sprintf("%s; %d more like it", text, n-1)
	case f.Check == "ingest":
		if rate := r.steady(f.Subject); rate != nil && rate.Low != nil {
			text = strings.TrimSuffix(Head(First(f)), ".") + fmt.Sprintf(" (when steady %s IOPS, %s; %s)",
				view.SayCount(*rate.Value), interval(*rate), f.NoInterval)
		}
		text += r.load(f.Subject).Held
	}
	return text
}

func (r Run) does(name string) []string { return r.load(name).Does }

func (r Run) load(name string) Load {
	for _, l := range r.Loads {
		if l.Name == name {
			return l
		}
	}
	return Load{}
}

// steady returns what is known of the rate of a load; nil: nothing.
func (r Run) steady(name string) *result.Finding {
	i := slices.IndexFunc(r.Findings, func(f result.Finding) bool { return f.Check == steady && f.Subject == name })
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

// unknown says why the rate of a load has no interval.
func unknown(why string) string { return " (no interval of its rate: " + why + ")" }

// noInterval is why no rate of several loads has an interval, and the reason of each by its name; "" where one has.
func (r Run) noInterval() (why string, reasons map[string]string) {
	reasons = map[string]string{}
	var order []string
	named := map[string][]string{}
	for _, l := range r.Loads {
		f := r.steady(l.Name)
		one := few
		if f != nil {
			one = f.NoInterval
		}
		if len(r.Loads) < 2 || f != nil && f.Low != nil || l.Did == "" {
			return "", nil
		}
		if named[one] == nil {
			order = append(order, one)
		}
		named[one] = append(named[one], l.Name)
		reasons[l.Name] = one
	}
	for i, one := range order {
		order[i] = strings.TrimPrefix(one, "it has ") // of whom it is told stands beside it
		if len(order) > 1 {
			order[i] += " (" + strings.Join(named[one], ", ") + ")"
		}
	}
	return strings.Join(order, "; "), reasons
}

// did returns what a load did, with the interval of its rate, and the finding that has it; nil: none has.
func (r Run) did(l Load) (string, *result.Finding) {
	f := r.steady(l.Name)
	switch {
	case f == nil && l.Did != "":
		return l.Name + ": " + l.Did + l.Held + unknown(few), nil
	case f == nil:
		return l.Name + ": " + l.Did + l.Held, nil
	case f.Low == nil && len(levels(*f)) > 0 && l.Did != "":
		return fmt.Sprintf("%s: %s; over all of it, at no time its rate, %s%s", l.Name,
			strings.Join(levels(*f), ", then "), l.Did, l.Held), f
	case f.Low == nil && l.Did != "":
		return l.Name + ": " + l.Did + l.Held + unknown(f.NoInterval), f
	case l.Wants:
		return fmt.Sprintf("%s: %s (%s)", l.Name, l.Did+l.Held, Clause(*f, false)), f
	}
	bytes := ""
	if l.Size >= large && f.Value != nil && f.Unit == result.OperationsUnit {
		bytes = ", " + unit.Bandwidth(*f.Value*l.Size).String()
	}
	return Clause(*f, false) + bytes + l.Held, f
}

// levels are those that a load had one after another.
func levels(f result.Finding) (out []string) {
	for _, e := range f.Evidence {
		until, isUntil := strings.CutPrefix(e.Name, view.LevelUntil)
		from, isFrom := strings.CutPrefix(e.Name, view.LevelFrom)
		switch {
		case isUntil:
			out = append(out, fmt.Sprintf("%s until %s", rate(e.Value, e.Unit), until))
		case isFrom:
			out = append(out, fmt.Sprintf("%s from %s on", rate(e.Value, e.Unit), from))
		}
	}
	return out
}

// rate is a rate in its unit, which of operations on blocks is IOPS.
func rate(v float64, unit string) string {
	if unit == result.OperationsUnit {
		unit = "IOPS"
	}
	return quantity(v, unit) + " " + unit
}

// Clause returns what a finding says first, without its full stop, with its interval or why there is none, and as a
// whole also what its sentence has after that.
func Clause(f result.Finding, whole bool) string {
	first := strings.TrimSuffix(First(f), ".")
	text := Head(first)
	rest := first[len(text):]
	if !whole {
		rest = withdrawn(rest)
	}
	switch in := interval(f); {
	case in == "" || strings.Contains(text, "(95 %") || strings.Contains(first, "(no interval: "):
	case later(f, text, first):
		value := view.SayDuration(*f.Value)
		rest = strings.Replace(rest, value, value+" ("+in+")", 1)
	case strings.HasSuffix(text, ")"):
		text = strings.TrimSuffix(text, ")") + "; " + in + ")"
	default:
		text += " (" + in + ")"
	}
	return text + rest
}

// later reports whether the time that a finding found is not in what its sentence says first, but in what follows.
func later(f result.Finding, text, all string) bool {
	if f.Unit != "s" || f.Value == nil || f.Low == nil {
		return false
	}
	value := view.SayDuration(*f.Value)
	return !strings.Contains(text, value) && strings.Contains(all, value)
}

// withdrawn are the parts of the rest of a sentence without which its beginning claims too much.
func withdrawn(rest string) (out string) {
	for rest != "" {
		part := ";" + Head(rest[1:])
		if rest = rest[len(part):]; strings.Contains(part, "not told") || strings.Contains(part, "cannot be told") ||
			strings.Contains(part, "inconclusive") {
			out += part
		}
	}
	return out
}

// interval says the interval of a finding's value: of a ratio as the change that it is.
func interval(f result.Finding) string {
	if f.Low == nil || f.High == nil {
		if slices.Contains([]string{"recovery", "lost-writes", "lost-commits"}, f.Check) && f.Value == nil {
			// that nothing is known is what the sentence says
			return ""
		}
		switch { // what explains nothing by itself
		case f.Unit == "ratio" && f.NoInterval != "":
			return "no interval: " + f.NoInterval
		case f.Check == "scalability" && f.Value != nil && f.NoInterval != "":
			return fmt.Sprintf("%s %s, no interval: %s", f.Metric, quantity(*f.Value, f.Unit), f.NoInterval)
		}
		return f.NoInterval
	}
	say := func(v float64) string { return view.SayCount(v) }
	switch f.Unit {
	case "ratio":
		say = func(v float64) string { return unit.Change(v - 1) }
	case "s":
		say = view.SayDuration
	}
	if f.Confidence >= 1 && *f.Low == 0 {
		return "within " + say(*f.High)
	}
	if f.Unit == "ratio" && f.Confidence < 1 {
		return "95 %: " + unit.Changes(*f.Low-1, *f.High-1)
	}
	if f.Confidence >= 1 {
		return fmt.Sprintf("between %s and %s", say(*f.Low), say(*f.High))
	}
	if f.Check == "scalability" { // its value is no part of what it says first
		return fmt.Sprintf("%s %s, 95 %%: %s to %s", f.Metric, quantity(*f.Value, f.Unit), quantity(*f.Low, f.Unit),
			quantity(*f.High, f.Unit))
	}
	return fmt.Sprintf("95 %%: %s to %s", say(*f.Low), say(*f.High))
}

func quantity(v float64, unit string) string {
	if unit == "%" {
		return view.Share(v / 100)
	}
	return view.SayCount(v)
}

// Head is a sentence up to its first semicolon outside of brackets and quoted names.
func Head(s string) string {
	depth, quoted := 0, false
	for i, r := range s {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ';' && depth == 0:
			return s[:i]
		}
	}
	return s
}
