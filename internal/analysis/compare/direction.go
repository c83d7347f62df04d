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
		"reject",
		"rejects",
		"rejected",
		"rejections",
		"refused",
		"denied",
		"throttled",
		"skipped",
		"evicted",
		"evictions",
		"miss",
		"misses",
		"missed",
		"violation",
		"violations",
		"crash",
		"crashes",
	}
	// the spread of whatever else a name has
	spreads = []string{"stddev", "stdev", "std", "sd", "dev", "deviation", "variance", "cv", "iqr", "spread"}
	// times for which it goes well
	well = []string{"mtbf", "mttf", "mtbsi"}
	// words that turn what others say, or name what was asked for rather than what came: with one of them a name does
	// not say which way is good
	turning = []string{"met", "within", "without", "under", "over", "above", "below", "slo", "sla", "slos", "slas",
		"compliance", "budget", "headroom", "margin", "slack", "limit", "target", "goal", "quota", "cap", "allowed",
		"offered", "requested", "expected", "avoided", "saved", "recovered", "survived", "free", "idle", "between",
		"since", "until", "no", "not", "non", "zero", "wasted", "unused", "gain", "gains", "improvement", "reduction",
		"delta", "diff", "difference", "change"}
	// a part of something, of which only a part that failed is known to be bad
	parts = []string{"ratio", "share", "pct", "percent", "fraction"}
	slow  = []string{
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
		"latenz",
		"antwortzeit",
		"latence",
		"latencia",
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
		"durchsatz",
		"bandwidth",
		"bw",
		"goodput",
		"transactions",
		"mbps",
		"gbps",
	}
	// beside a word for times, what is no time: how many there were, or how much came with them
	counting = []string{"count", "counts", "n", "sum", "total", "rate", "per", "bytes", "b", "kb", "mb", "gb", "kib",
		"mib", "gib"}
	durations = []string{"ns", "us", "µs", "usec", "ms", "msec", "s", "sec", "seconds", "milliseconds", "microseconds",
		"nanoseconds"}
	// of which a long time is not known to be bad
	lasting = []string{"uptime", "runtime", "run", "elapsed", "time", "duration", "interval", "period", "age",
		"keepalive", "ttl", "lease", "retention", "lifetime", "window", "warmup", "ramp"}

	refusal        = regexp.MustCompile(`^[45]xx$`) // what a web server answers, by class
	percentileWord = regexp.MustCompile(`^p\d{1,2}([.]?\d+)?$|^(\d+(st|nd|rd|th))$|^percentile$|^median$`)
	perSecond      = regexp.MustCompile(
		`(?i)(/ ?s|/ ?sec|/ ?second|/ ?min|per[_ ]second|per[_ ]sec|per[_ ]s|per[_ ]minute|mbps|gbps)\b`)
	bitsOrBytes  = regexp.MustCompile(`(?i)\b([kmgt]i?)?(b|bytes?|bits?)( ?/ ?|ps\b)`)
	betweenWords = regexp.MustCompile(`[^a-z0-9.µ/]+`)
	unitAtEnd    = regexp.MustCompile(`[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$`)
	camel        = regexp.MustCompile(`([a-z0-9])([A-Z][a-z])`)
)

// known are words beside which a name says what it says: kinds of operations, statistics, places and sizes.
var known = []string{"read", "reads", "write", "writes", "rw", "randread", "randwrite", "randrw", "rand",
	"random", "seq", "sequential", "mixed", "trim", "discard", "sync", "fsync", "fdatasync", "flush",
	"commit", "commits", "io", "ios", "disk", "disks", "block", "file", "files", "net", "network", "db",
	"sql", "oltp", "olap", "tpcc", "tpch", "tproc", "new", "order", "payment", "delivery", "select",
	"selects", "insert", "inserts", "update", "updates", "delete", "deletes", "get", "gets", "put", "puts",
	"set", "sets", "scan", "scans", "query", "queries", "request", "requests", "req", "reqs", "transaction",
	"tx", "txn", "txns", "statement", "statements", "operation", "operations", "op", "row", "rows",
	"record", "records", "message", "messages", "connect", "connection", "connections", "http", "rpc",
	"mean", "avg", "average", "min", "max", "minimum", "maximum", "total", "sum", "count", "counts",
	"overall", "all", "completion", "submission", "end", "of", "per", "the", "rate", "second", "minute",
	"value", "result", "measured", "server", "client", "node", "host", "vm", "job", "jobs", "thread",
	"threads", "worker", "workers", "tail", "time", "times", "nvme", "ssd", "hdd", "kb", "mb", "gb", "kib",
	"mib", "gib", "bytes", "b", "bit", "bits"}

var (
	numbered = regexp.MustCompile(
		`^(qd|iodepth|t|c|n|j|bs|vm|node|disk|db|run|host|job|client|)\d+[a-z]{0,2}$`,
	)
	rated = regexp.MustCompile(`^[a-z]+/(s|sec|second|min|minute)$`)
)

// DirectionOf is which way of a measure is good by its name and unit, where the name is made of words that are known,
// and of one kind of them that says which way: "" of a stranger's name, of which Looks only guesses.
func DirectionOf(name, unit string) effect.Direction {
	way, sure := directionBy(name, unit)
	if !sure {
		return ""
	}
	return way
}

// Looks is which way of a measure seems good by its name and unit: a guess, by which nothing is judged.
func Looks(name, unit string) effect.Direction {
	way, _ := directionBy(name, unit)
	return way
}

func wordsOf(name string) []string {
	return betweenWords.Split(strings.ToLower(camel.ReplaceAllString(name, "${1}_$2")), -1)
}

// ofTime reports whether a name or its unit is that of times that operations took.
func ofTime(name, unit string) bool {
	words := wordsOf(name)
	in := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	return !in(failing) && (in(slow) || slices.ContainsFunc(words, percentileWord.MatchString) ||
		slices.Contains(durations, words[len(words)-1]) || slices.Contains(durations, unit))
}

// directionBy reads a name and its unit, either of which may be empty; the unit may also end the name, as in p99_ms,
// "p99 (ms)" or read_MB/s. Failures, times and percentiles of times are better low, rates high. "" when neither says,
// a word turns what the others say, as in slo_met_pct, or a rate is of what no word tells, as in spills/s. It is sure
// of names with one kind of such words beside which all are known.
func directionBy(name, unit string) (way effect.Direction, sure bool) {
	if unit == "" {
		if m := unitAtEnd.FindStringSubmatch(name); m != nil {
			unit = m[1]
		}
	}
	words := wordsOf(name)
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return slices.Contains(list, strings.TrimSuffix(w, "/s"))
		})
	}
	bare := strings.ToLower(strings.TrimSpace(unit))
	if bare == "" && len(words) > 1 {
		bare = words[len(words)-1]
	}
	tail := slices.ContainsFunc(words, percentileWord.MatchString)
	paced := perSecond.MatchString(name) || perSecond.MatchString(unit) || bitsOrBytes.MatchString(unit) ||
		unit == result.OperationsUnit
	rate := has(fast) || slices.Contains(fast, bare) || paced
	fails := has(failing) || slices.ContainsFunc(words, refusal.MatchString)
	kinds := 0
	for _, is := range []bool{fails, has(slow) || tail, has(fast) || slices.Contains(fast, bare) ||
		slices.ContainsFunc(words, bitsOrBytes.MatchString) || paced && !fails, has(spreads), has(well)} {
		if is {
			kinds++
		}
	}
	strange := slices.ContainsFunc(words, func(w string) bool {
		w = strings.TrimSuffix(w, "/s")
		for _, list := range [][]string{known, failing, slow, fast, durations, parts} {
			if slices.Contains(list, w) {
				return false
			}
		}
		return w != "" && !percentileWord.MatchString(w) && !numbered.MatchString(w) &&
			!(rated.MatchString(w) && bitsOrBytes.MatchString(w))
	})
	sure = kinds <= 1 && !strange && !has(spreads) && !has(well)
	upTo := false // a failure, as in ops_per_error
	for i, w := range words[1:] {
		upTo = upTo || slices.Contains([]string{"per", "to", "till"}, words[i]) && slices.Contains(failing, w) ||
			words[i] == "per" && slices.Contains(fast, w)
	}
	timed := slices.Contains(durations, bare) && !paced
	switch {
	case has(turning), upTo:
		return "", false
	case fails:
		return effect.LowerIsBetter, sure && !(timed && slices.Contains(words, "timeout")) // a setting
	case has(parts):
		return "", false
	case has(well):
		return effect.HigherIsBetter, false
	case (has(slow) || tail) && has(counting), timed && (has(fast) || has([]string{"count", "counts"})):
		return "", false
	case has(slow), has(spreads):
		return effect.LowerIsBetter, sure
	case rate && (strange || words[0] == "rate" && len(words) > 1): // of what, or what was asked for
		return "", false
	case rate:
		return effect.HigherIsBetter, sure
	case tail:
		return effect.LowerIsBetter, sure
	case slices.Contains(durations, bare) && !has(lasting):
		return effect.LowerIsBetter, sure
	}
	return "", false
}
