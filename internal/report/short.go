package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/report/answer"
	"plimsoll/result"
)

// How many sentences a summary has at most, in all and of each sort.
const (
	mostShort   = 5
	mostInvalid = 2
	mostAnswers = 3
)

// plainAnswer asks a run without any of them for the level at which it was steady.
const plainAnswer = "steady-state"

// InShort chooses the at most five findings that a reader needs first: what forbids a conclusion, what the run was
// made to find out, and what the figures must be read with. It judges nothing: severities and sentences are those of
// the analysis.
func InShort(all []result.Finding) []Short {
	var out []Short
	taken := map[string]bool{}
	take := func(f result.Finding) {
		taken[f.Check] = true
		out = append(out, Short{f.Severity, f.Check, f.Subject, answer.First(f)})
	}
	failed := 0
	for _, f := range all { // what the author said must hold comes first of all
		if failedAssert(f) && failed < mostInvalid {
			take(f)
			failed++
		}
	}
	for _, f := range all {
		if f.Severity == result.Invalid && len(out)-failed < mostInvalid && !taken[f.Check] {
			take(f)
		}
	}
	told := 0
	tell := func(f result.Finding, room int) {
		if told < mostAnswers && len(out) < room {
			take(f)
			told++
		}
	}
	for _, f := range headlines(all) {
		if !taken[f.Check] {
			tell(f, mostShort-1)
		}
	}
	for _, f := range changes(all, out) {
		tell(f, mostShort-warnings(all, taken))
	}
	if f, ok := tellable(all, plainAnswer); ok && told == 0 && len(out) < mostShort-1 {
		take(f)
		for _, other := range all { // several workloads beside each other are what the run was about
			if other.Check == plainAnswer && other.Severity == f.Severity && other.Subject != f.Subject &&
				len(out) < mostAnswers+1 {
				take(other)
			}
		}
	}
	for _, f := range all {
		if toMind(f, taken) && len(out) < mostShort {
			take(f)
		}
	}
	countAlike(out, all)
	if len(out) == 0 && len(all) > 0 {
		n := 0
		for _, f := range all {
			if f.Severity == result.Passed {
				n++
			}
		}
		if n == 0 {
			take(all[0])
			return out
		}
		out = append(
			out,
			Short{
				Severity: result.Passed,
				Check:    "all",
				Sentence: fmt.Sprintf("No warnings; %d checks passed.", n),
			},
		)
	}
	return out
}

// countAlike says of what is wrong in several places, of which one stands for all, in how many more it is.
func countAlike(told []Short, all []result.Finding) {
	for i, s := range told {
		one := func(o Short) bool { return o.Check == s.Check && o.Severity == s.Severity }
		n := 0
		for _, f := range all {
			if one(Short{Check: f.Check, Severity: f.Severity}) && !f.Answers() {
				n++
			}
		}
		wrong := s.Severity == result.Invalid || s.Severity == result.Warning
		if n < 2 || !wrong || s.Check == result.AssertCheck || slices.ContainsFunc(told[:i], one) ||
			slices.ContainsFunc(told[i+1:], one) {
			continue
		}
		told[i].Sentence = fmt.Sprintf("%s (and %d more like it).", strings.TrimSuffix(s.Sentence, "."), n-1)
	}
}

// failedAssert reports whether a finding is a condition of the author's that does not hold, or could not be judged.
func failedAssert(f result.Finding) bool {
	return f.Check == result.AssertCheck && f.Severity != result.Passed
}

// Short is one sentence of the summary with the finding it is from.
type Short struct {
	Severity result.Severity `json:"severity"`
	Check    string          `json:"check"`
	Subject  string          `json:"subject,omitempty"`
	Sentence string          `json:"sentence"`
}

// headlines are what is told of the answers to what the run was made to find out, by the ranks of their checks: of each
// check the finding that says most, and of those that set times against each other the one of rate or time that
// changed more. That nothing changed is an answer, too, where things are set against each other.
func headlines(all []result.Finding) []result.Finding {
	var out []result.Finding
	for _, f := range all {
		if !f.Answers() || f.Severity == result.Passed && f.Harm == nil {
			continue
		}
		i := slices.IndexFunc(out, func(o result.Finding) bool {
			return o.Rank == f.Rank && (o.Check == f.Check || o.Harm != nil || f.Harm != nil)
		})
		switch {
		case i < 0:
			out = append(out, f)
		case f.Check == out[i].Check && saysMore(f, out[i]), f.Check != out[i].Check && saysMuchMore(f, out[i]):
			out[i] = f
		}
	}
	slices.SortStableFunc(out, func(a, b result.Finding) int { return cmp.Compare(a.Rank, b.Rank) })
	return out
}

// changes are further answers, the largest change first: of subjects of which their check has told nothing yet.
func changes(all []result.Finding, told []Short) []result.Finding {
	type about struct {
		rank    int
		subject string
	}
	known := map[about]bool{}
	for _, f := range all {
		if slices.ContainsFunc(told, func(s Short) bool { return s.Check == f.Check && s.Subject == f.Subject }) {
			known[about{f.Rank, f.Subject}] = true
		}
	}
	var out []result.Finding
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b result.Finding) int {
		return cmp.Compare(b.Weight(), a.Weight())
	})
	for _, f := range sorted {
		of := about{f.Rank, f.Subject}
		if f.Answers() && f.Severity != result.Passed && f.Weight() > 0 && !known[of] {
			known[of] = true
			out = append(out, f)
		}
	}
	return out
}

// toMind reports whether a finding is a warning of a check of which nothing was told.
func toMind(f result.Finding, taken map[string]bool) bool {
	same := f.Check == "latency-kind" && taken["offered-rate"] // both say that the rate was missed
	return f.Severity == result.Warning && !taken[f.Check] && !same
}

// warnings is of how many checks there is a warning to be told.
func warnings(all []result.Finding, taken map[string]bool) int {
	of := map[string]bool{}
	for _, f := range all {
		if toMind(f, taken) && !(f.Check == "latency-kind" && of["offered-rate"]) {
			of[f.Check] = true
		}
	}
	return len(of)
}

// saysMore reports whether a finding is to be told rather than another of its kind.
func saysMore(f, than result.Finding) bool {
	return cmp.Or(cmp.Compare(severityRank(than.Severity), severityRank(f.Severity)),
		cmp.Compare(f.Weight(), than.Weight())) > 0
}

// saysMuchMore does so for findings of two kinds of one check: the first kind says more of what happened, so the other
// is told only when it changed by clearly more.
func saysMuchMore(f, than result.Finding) bool {
	const clearly = 1.25
	return cmp.Or(cmp.Compare(severityRank(than.Severity), severityRank(f.Severity)),
		cmp.Compare(f.Weight(), clearly*than.Weight())) > 0
}

// tellable is the finding of a check that says most: the most severe, then the one that changed most.
func tellable(all []result.Finding, check string) (best result.Finding, found bool) {
	for _, f := range all {
		if f.Check == check && (!found || saysMore(f, best)) {
			best, found = f, true
		}
	}
	return best, found
}

func severityRank(s result.Severity) int {
	return slices.Index([]result.Severity{result.Invalid, result.Warning, result.Info, result.Passed}, s)
}

// Where says where the load of a run went, by what is known of the place: folders with their file system, device and
// model, or devices. It is empty of places that tell none of this.
func Where(environment []result.Fact) string {
	type place map[string]string
	places := map[string]place{}
	var groups, unused, remote []string
	for _, f := range environment {
		switch {
		case f.Group == "storage" && strings.Contains(f.Name, ": "): // of a host by its name
			remote = append(remote, f.Name+" ("+f.Value+")")
		case f.Group == "load":
			unused = append(unused, f.Name+" is "+f.Value)
		case f.Group == "storage" || strings.HasPrefix(f.Group, "storage "):
			if places[f.Group] == nil {
				places[f.Group] = place{}
				groups = append(groups, f.Group)
			}
			places[f.Group][f.Name] = f.Value
		}
	}
	var parts []string
	for _, g := range groups {
		p := places[g]
		var what []string
		add := func(before, name string) {
			if p[name] != "" {
				what = append(what, before+p[name])
			}
		}
		at := p["raw device"]
		if at != "" {
			add("", "identity")
			add("", "size")
		} else if at = p["folder"]; at != "" {
			add("", "file system")
			add("device ", "device")
			add("", "device model")
		}
		if at != "" {
			parts = append(parts, at+" ("+strings.Join(what, ", ")+")")
		}
	}
	const most = 4
	if n := len(remote) - most; n > 0 {
		remote = append(remote[:most], fmt.Sprintf("%d more", n))
	}
	parts = append(parts, remote...)
	if len(parts) > 0 {
		parts = []string{"Load on " + strings.Join(parts, " and ") + "."}
	}
	if len(unused) > 0 {
		parts = append(parts, strings.Join(unused, "; ")+".")
	}
	return strings.Join(parts, " ")
}

// Where says where the load went.
func (doc *Document) Where() string { return Where(doc.Manifest.Environment) }

// limitUnknown ends what is said of a load that a limit held.
const limitUnknown = ": what could be had without that limit is not known"

// heldTo says of a workload that kept the rate it was given, or pauses between its operations, that this, and not what
// it loads, is what its figures are of; "" of others.
func (doc *Document) heldTo(l Latency) string {
	name := l.Workload
	met := slices.ContainsFunc(doc.Findings, func(f result.Finding) bool {
		return f.Check == "offered-rate" && f.Subject == name && f.Severity == result.Passed
	})
	rate, pause, free := 0.0, "", false
	for _, s := range doc.Workloads {
		if s.Name != name || s.Prefill || s.VM == "" {
			continue
		}
		for _, stream := range s.Streams {
			for other := range strings.SplitSeq(stream.Also, ", ") {
				if strings.HasPrefix(other, "thinktime=") {
					pause = other
				}
			}
			free = free || !(stream.Rate > 0)
			rate += stream.Rate
		}
	}
	if !met || free || rate == 0 || len(l.Windows[0].Rows) == 0 {
		if pause != "" {
			return fmt.Sprintf(", with the pauses its job asks for (%s): what could be had without them is not known", pause)
		}
		return doc.heldByQuota()
	}
	return fmt.Sprintf(", held to the %s its job asks for", quantity(rate, l.Windows[0].Rows[0].Unit)) + limitUnknown
}

// flushed says what the slower flushes of a load took: who asks for them waits for each. It is "" where none was
// measured.
func (doc *Document) flushed(name string) string {
	for _, f := range doc.Findings {
		if f.Check != "flushes" || f.Subject != name || f.Value == nil {
			continue
		}
		if len(f.Evidence) > 0 && f.Evidence[0].Value > 0 {
			return ", flushes p99 " + quantity(f.Evidence[0].Value, "s")
		}
		return ", flushes p50 " + quantity(*f.Value, "s")
	}
	return ""
}

// heldByQuota says of the one workload of a run that what a quota of its group allows is what its figures are of; ""
// where several ran, of which nobody knows which one met it.
func (doc *Document) heldByQuota() string {
	var names []string
	for _, s := range doc.Workloads {
		if !s.Prefill && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	i := slices.IndexFunc(doc.Findings, func(f result.Finding) bool {
		return f.Check == "io-limit" && f.Severity != result.Passed && len(f.Evidence) > 0
	})
	if i < 0 || len(names) != 1 {
		return ""
	}
	quota := doc.Findings[i].Evidence[0]
	return fmt.Sprintf(", held to the %s that a quota of its group allows", quantity(quota.Value, quota.Unit)) +
		limitUnknown
}
