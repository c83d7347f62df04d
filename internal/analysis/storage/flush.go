package storage

import (
	"fmt"
	"math"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Flushes tells what flushes (fsync, fdatasync) took, and what that says of the device beside its word on its cache.
var Flushes = view.Check{Name: "flushes", Rank: 413, Run: flushes}

const (
	// fasterThanMedia is a time in which no flash is programmed and no disk turns: what was flushed by then went to
	// memory of some kind, or there was nothing to flush.
	fasterThanMedia = 50e-6
	// asLogsAsk is the 99th percentile of flushes up to which etcd calls a disk fast enough for its log.
	asLogsAsk = 10e-3
	// enoughFlushes have ten beyond their 99th percentile.
	enoughFlushes = 1000
)

func flushes(v *view.Run) (out []result.Finding) {
	cache := cacheWord(v.Manifest.Environment)
	for _, l := range v.Loads {
		// Of several jobs and machines, each with figures of its own: the fastest median and the slowest tail.
		median, tail, n := 0.0, 0.0, 0
		fewest := math.Inf(1) // flushes that such figures are of
		for _, p := range l.Parts {
			for _, value := range p.Values {
				seconds := value.Value / 1e6
				switch {
				case !(seconds > 0):
				case isFigure(value.Measure, "sync_p50"):
					if n++; n == 1 || seconds < median {
						median = seconds
					}
				case isFigure(value.Measure, "sync_p99"):
					tail = max(tail, seconds)
				case isFigure(value.Measure, "sync_count"):
					fewest = min(fewest, value.Value)
				}
			}
		}
		if n == 0 {
			continue
		}
		fastest, slowest := "", ""
		if n > 1 {
			fastest, slowest = " of the fastest job", " of the slowest"
		}
		took := fmt.Sprintf("Flushes of %s (fsync, fdatasync) took %s at the median%s", l.Name,
			view.SayDuration(median), fastest)
		if fewest < enoughFlushes {
			took += fmt.Sprintf(" (%s are too few for a 99th percentile)", view.SayCount(fewest))
			tail = 0
		} else if tail > 0 {
			took += fmt.Sprintf(", %s at the 99th percentile%s", view.SayDuration(tail), slowest)
		}
		f := result.Finding{
			Check: "flushes", Subject: l.Name, Severity: result.Passed, Metric: "median of flushes", Unit: "s",
			Value: view.Ptr(median), N: n, NoInterval: "figures of the load generator's own",
			Basis: "times of fsync and fdatasync that the load generator measured; what the device says of its cache",
		}
		if tail > 0 {
			f.Evidence = []result.Evidence{{Name: "p99 of flushes", Value: tail, Unit: "s"}}
		}
		switch {
		case median < fasterThanMedia && cache == "write back":
			f.Severity = result.Warning
			f.Sentence = took + ": shorter than flash or a disk takes to write, and the device says that its cache is " +
				"volatile (write back). Whether what was flushed outlasts a loss of power, only cutting it tells."
		case median < fasterThanMedia && cache == "write through":
			f.Sentence = took + ": shorter than flash or a disk takes to write; the device says that it keeps what it " +
				"has taken (write through)."
		case median < fasterThanMedia:
			f.Severity = result.Info
			f.Sentence = took + ": shorter than flash or a disk takes to write, and nothing here says whether what was " +
				"flushed outlasts a loss of power."
		case tail > asLogsAsk:
			f.Severity = result.Info
			f.Sentence = took + fmt.Sprintf(": a log that waits for each of them waits so long; etcd asks for at "+
				"most %s at the 99th.", view.SayDuration(asLogsAsk))
		default:
			f.Sentence = took + ", as long as writing to a medium may take."
			if tail == 0 {
				f.Severity = result.Info
			}
		}
		out = append(out, f)
	}
	return out
}

// isFigure reports whether a measure is a figure of the tool's own, or that of one of its jobs.
func isFigure(measure, name string) bool {
	return measure == name || strings.HasSuffix(measure, " "+name)
}

// cacheWord returns what the devices of the run say of their caches, "" where they say nothing or differ.
func cacheWord(facts []result.Fact) string {
	word := ""
	for _, f := range facts {
		if f.Name != "write cache" || f.Value == "" {
			continue
		}
		if word != "" && word != f.Value {
			return ""
		}
		word = f.Value
	}
	return word
}
