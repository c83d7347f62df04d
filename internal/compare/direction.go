package compare

import (
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/result"
)

// words of names that say which way is good. Those before win: "errors/s" is of errors, "latency_iops" of latency.
var (
	failing = []string{
		"error",
		"errors",
		"err",
		"errs",
		"fail",
		"fails",
		"failed",
		"failure",
		"failures",
		"retry",
		"retries",
		"timeout",
		"timeouts",
		"abort",
		"aborts",
		"aborted",
		"rollback",
		"rollbacks",
		"deadlock",
		"deadlocks",
		"drop",
		"drops",
		"dropped",
		"lost",
		"loss",
		"stall",
		"stalls",
		"stalled",
	}
	slow = []string{
		"latency",
		"latencies",
		"lat",
		"clat",
		"slat",
		"response",
		"rtt",
		"delay",
		"wait",
		"service",
		"jitter",
		"await",
		"svctm",
	}
	fast = []string{
		"iops",
		"ops",
		"tps",
		"qps",
		"rps",
		"tpm",
		"tpmc",
		"tpmtotal",
		"nopm",
		"throughput",
		"bandwidth",
		"bw",
		"goodput",
		"transactions",
		"mbps",
		"gbps",
	}
	durations = []string{"ns", "us", "µs", "usec", "ms", "msec", "s", "sec", "seconds", "milliseconds", "microseconds",
		"nanoseconds"}
	// of which a long time is not known to be bad
	lasting = []string{"uptime", "runtime", "run", "elapsed", "time", "duration", "interval", "period", "age"}

	percentileWord = regexp.MustCompile(`^p\d{1,2}([.]?\d+)?$|^(\d+(st|nd|rd|th))$|^percentile$|^median$`)
	perSecond      = regexp.MustCompile(
		`(?i)(/ ?s|/ ?sec|/ ?second|/ ?min|per[_ ]second|per[_ ]sec|per[_ ]minute|mbps|gbps)\b`)
	bitsOrBytes  = regexp.MustCompile(`(?i)\b([kmgt]i?)?(b|bytes?|bits?)( ?/ ?|ps\b)`)
	betweenWords = regexp.MustCompile(`[^a-z0-9.µ/]+`)
	unitAtEnd    = regexp.MustCompile(`[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$`)
	camel        = regexp.MustCompile(`([a-z0-9])([A-Z][a-z])`)
)

// DirectionOf is which way of a measure is good by its name and unit, either of which may be empty; the unit may also
// end the name, as in p99_ms, "p99 (ms)" or read_MB/s. Failures, times and percentiles of times are better low, rates
// high. "" when neither says.
func DirectionOf(name, unit string) effect.Direction {
	if unit == "" {
		if m := unitAtEnd.FindStringSubmatch(name); m != nil {
			unit = m[1]
		}
	}
	words := betweenWords.Split(strings.ToLower(camel.ReplaceAllString(name, "${1}_$2")), -1)
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains(list, strings.TrimSuffix(w, "/s"))
		})
	}
	bare := strings.ToLower(strings.TrimSpace(unit))
	if bare == "" && len(words) > 1 {
		bare = words[len(words)-1]
	}
	rate := has(fast) || slices.Contains(fast, bare) || perSecond.MatchString(name) || perSecond.MatchString(unit) ||
		bitsOrBytes.MatchString(unit) || unit == result.OperationsUnit
	switch {
	case has(failing):
		return effect.LowerIsBetter
	case has(slow):
		return effect.LowerIsBetter
	case rate:
		return effect.HigherIsBetter
	case slices.ContainsFunc(words, percentileWord.MatchString):
		return effect.LowerIsBetter
	case slices.Contains(durations, bare) && !has(lasting):
		return effect.LowerIsBetter
	}
	return ""
}
