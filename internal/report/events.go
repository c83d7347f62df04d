package report

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll/result"
)

// eventView is a moment of the run, or several so close together that they are one line in a chart.
type eventView struct {
	Number   int
	At       string // since the run phase began
	Clock    string // UTC
	Texts    []string
	Fault    bool
	from, to time.Time
}

// When is the time of day for a page.
func (e eventView) When() template.HTML {
	if !strings.Contains(e.Clock, "–") {
		return Clock(e.from)
	}
	return Clock(e.from) + " – " + Clock(e.to)
}

// numbered is how many moments charts name in words; of more they show the numbers of the page's table.
const numbered = 4

// apart is the share of a run's length below which two moments are one.
const apart = 0.01

// digits make moments of one kind differ: those of nodes, VMs and times.
var digits = regexp.MustCompile(`\d+`)

// eventsOf gathers the moments of a run. Those closer together than a hundredth of its length, a second at least, are
// one event, in which texts that differ by numbers only are told once and counted.
func eventsOf(marks []result.Mark, origin time.Time, length float64) []eventView {
	near := time.Duration(max(apart*length, 1) * float64(time.Second))
	var out []eventView
	sorted := slices.SortedStableFunc(slices.Values(marks),
		func(a, b result.Mark) int { return a.Time.Compare(b.Time) })
	like := map[string]int{} // by event and text without its numbers
	first := map[string]string{}
	var keys []string
	flush := func() {
		if len(out) == 0 {
			return
		}
		e := &out[len(out)-1]
		for _, k := range keys {
			text := first[k]
			if n := like[k] - 1; n > 0 {
				text += fmt.Sprintf(", and %d more like it", n)
			}
			e.Texts = append(e.Texts, text)
		}
		e.At, e.Clock = elapsed(e.from.Sub(origin).Seconds()), e.from.UTC().Format(time.TimeOnly)
		if to := elapsed(e.to.Sub(origin).Seconds()); to != e.At {
			e.At += "–" + to
			e.Clock += "–" + e.to.UTC().Format(time.TimeOnly)
		}
		clear(like)
		clear(first)
		keys = nil
	}
	for _, m := range sorted {
		if len(out) == 0 || m.Time.Sub(out[len(out)-1].from) > near {
			flush()
			out = append(out, eventView{Number: len(out) + 1, from: m.Time})
		}
		e := &out[len(out)-1]
		e.to, e.Fault = m.Time, e.Fault || m.Strikes()
		k := digits.ReplaceAllString(m.Text, "#")
		if like[k]++; like[k] == 1 {
			first[k], keys = m.Text, append(keys, k)
		}
	}
	flush()
	return out
}

// events are the moments as charts and the page's table have them: in words where they are few, else by number.
func (v *view) events() {
	if len(v.Marks) <= numbered {
		for _, m := range v.Marks {
			at := m.Time.Sub(v.origin).Seconds()
			v.marks = append(v.marks, mark{At: at, Kind: kindClass(m.Strikes()), Text: m.Text})
		}
		return
	}
	v.Events = eventsOf(v.Marks, v.origin, v.End.Sub(v.origin).Seconds())
	for _, e := range v.Events {
		at := e.from.Sub(v.origin).Seconds()
		v.marks = append(v.marks, mark{At: at, Kind: kindClass(e.Fault), Text: fmt.Sprint(e.Number)})
	}
}

// tellApart returns what names of lines differ in: what all begin and end with is left out at whole words, but for the
// word before a number, so that "IOPS (VM 1)" and "IOPS (VM 2)" become "VM 1" and "VM 2".
func tellApart(names []string) []string {
	if len(names) < 2 {
		return names
	}
	words := make([][]string, len(names))
	least := 0
	for i, n := range names {
		words[i] = strings.Fields(n)
		if i == 0 || len(words[i]) < least {
			least = len(words[i])
		}
	}
	same := func(at func([]string) string) bool {
		return !slices.ContainsFunc(words, func(w []string) bool { return at(w) != at(words[0]) })
	}
	head := 0
	for head < least-1 && same(func(w []string) string { return w[head] }) {
		head++
	}
	tail := 0
	for head+tail < least-1 && same(func(w []string) string { return w[len(w)-1-tail] }) {
		tail++
	}
	number := func(w []string) bool { return len(w) > head && w[head] != "" && w[head][0] >= '0' && w[head][0] <= '9' }
	if head > 0 && slices.ContainsFunc(words, number) {
		head--
	}
	if head+tail == 0 {
		return names
	}
	out := make([]string, len(names))
	for i, w := range words {
		short := strings.Join(w[head:len(w)-tail], " ")
		if strings.Count(short, "(") == strings.Count(short, ")")+1 || strings.HasPrefix(short, "(") {
			short = strings.TrimSuffix(strings.Replace(short, "(", "", 1), ")")
		} else if strings.Count(short, ")") == strings.Count(short, "(")+1 {
			short = strings.TrimSuffix(short, ")")
		}
		out[i] = short
	}
	if sorted := slices.Sorted(slices.Values(out)); len(slices.Compact(sorted)) < len(out) || slices.Contains(out, "") {
		return names
	}
	return out
}

// companyOf shortens the name of a window that lists many neighbours: "with A 1 and A 2 and A 3 and B" becomes "with
// A 1–3 and B". Only names of the run's workloads are joined; a name of another form stays.
func companyOf(name string, workloads []string) string {
	rest, ok := strings.CutPrefix(name, "with ")
	if !ok {
		return name
	}
	longest := slices.SortedFunc(slices.Values(workloads), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var met []string
	for rest != "" {
		i := slices.IndexFunc(longest, func(w string) bool {
			return w != "" && strings.HasPrefix(rest, w) &&
				(len(rest) == len(w) || strings.HasPrefix(rest[len(w):], " and ") || strings.HasPrefix(rest[len(w):],
					" ("))
		})
		if i < 0 {
			return name
		}
		met = append(met, longest[i])
		rest = rest[len(longest[i]):]
		if strings.HasPrefix(rest, " (") {
			break
		}
		rest = strings.TrimPrefix(rest, " and ")
	}
	return "with " + strings.Join(ranges(met), ", ") + rest
}

// counted is a name that ends in a number.
var counted = regexp.MustCompile(`^(.*\D)(\d{1,6})$`)

// ranges joins names that count on: "A 1", "A 2", "A 3" are "A 1–3".
func ranges(names []string) []string {
	var out []string
	var stem string
	var from, to int
	flush := func() {
		if stem != "" && to > from {
			out[len(out)-1] = fmt.Sprintf("%s%d–%d", stem, from, to)
		}
		stem = ""
	}
	for _, n := range names {
		m := counted.FindStringSubmatch(n)
		at := 0
		if m != nil {
			_, _ = fmt.Sscan(m[2], &at)
		}
		if m != nil && stem == m[1] && at == to+1 {
			to = at
			continue
		}
		flush()
		out = append(out, n)
		if m != nil {
			stem, from, to = m[1], at, at
		}
	}
	flush()
	return out
}
