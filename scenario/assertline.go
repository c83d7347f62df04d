package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"plimsoll/unit"
)

var (
	assertForm  = regexp.MustCompile(`^(.*\S)\s*(<=|>=|<|>)\s*(\S.*)$`)
	percentiles = regexp.MustCompile(`^p\d{1,2}(\.\d+)?$`)
	timeUnit    = regexp.MustCompile(`[a-z]$`)
	noneAllowed = regexp.MustCompile(`([^<>=\s])\s*(?:<|=)?=\s*0$`)
)

// NoneAllowed is the one spelling of a condition that nothing of a measure happens; others stay as they are.
func NoneAllowed(text string) string { return noneAllowed.ReplaceAllString(text, "$1 = 0") }

// ParseAssert reads a condition on a workload as a command line has it: "OLTP read p99 < 10ms", WORKLOAD [OPERATION]
// MEASURE, then <, <=, > or >=, then a value: a time for mean, max and percentiles, bytes per second for bandwidth, a
// plain number or rate for operations (iops and rate mean the same) and all others. A limit itself holds; "= 0",
// "== 0" and "<= 0" are one, which is named by the first.
// The workload is one of the given; whether it has the operation and the measure its generator says, and not this.
func ParseAssert(text string, workloads []string) (Assert, error) {
	bad := func(format string, args ...any) (Assert, error) {
		return Assert{}, fmt.Errorf("assert %q: %s", text, fmt.Sprintf(format, args...))
	}
	plain := noneAllowed.ReplaceAllString(strings.TrimSpace(text), "$1 <= 0")
	m := assertForm.FindStringSubmatch(plain)
	if m == nil {
		return bad(`want WORKLOAD [OPERATION] MEASURE < VALUE, like "OLTP read p99 < 10ms"`)
	}
	a := Assert{Name: NoneAllowed(plain), Operation: "all"}
	rest := ""
	for _, w := range workloads { // names may hold blanks: the longest that fits
		if after, ok := strings.CutPrefix(m[1], w+" "); ok && len(w) > len(a.Workload) {
			a.Workload, rest = w, after
		}
	}
	words := strings.Fields(rest)
	switch {
	case a.Workload == "":
		return bad("it begins with no workload of the scenario, which has: %s", strings.Join(workloads, ", "))
	case len(words) == 2:
		a.Operation = words[0]
	case len(words) != 1:
		return bad("after the workload stand an operation, if one is meant, and a measure")
	}
	a.Measure = words[len(words)-1]
	if slices.Contains([]string{"iops", "rate"}, strings.ToLower(a.Measure)) {
		a.Measure = "operations"
	}
	var value float64
	var err error
	switch {
	case slices.Contains([]string{"mean", "max"}, a.Measure) || percentiles.MatchString(a.Measure):
		var d unit.Duration
		d, err = unit.ParseDuration(m[3])
		value = float64(d) / 1e9
	case a.Measure == "bandwidth":
		var b unit.Bandwidth
		b, err = unit.ParseBandwidth(m[3])
		value = float64(b)
	default:
		var r unit.Rate
		r, err = unit.ParseRate(m[3])
		if value = float64(r); err != nil {
			if _, isTime := unit.ParseDuration(m[3]); isTime == nil && timeUnit.MatchString(m[3]) {
				return bad("%q is no measure of times, as mean, max and percentiles like p99 are; others take a plain number",
					a.Measure)
			}
		}
	}
	if err != nil {
		return bad("%v", err)
	}
	if strings.HasPrefix(m[2], "<") {
		a.AtMost = &value
	} else {
		a.AtLeast = &value
	}
	return a, nil
}
