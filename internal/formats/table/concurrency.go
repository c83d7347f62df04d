package table

import (
	"regexp"
	"slices"
	"strings"
)

// ConcurrencyNames are what columns are called that say how many were at work at once, the likeliest first.
var ConcurrencyNames = []string{"n", "concurrency", "load", "clients", "users", "workers", "threads", "jobs", "vms",
	"queue_depth", "iodepth", "depth", "qd", "outstanding", "numjobs", "connections", "sessions", "processes", "procs",
	"parallelism", "virtual_users", "vus", "vu", "terminals", "conns", "tasks", "nj", "njobs", "nthreads", "nclients",
	"io_depth", "queuedepth", "outstanding_ios", "oio", "qdepth", "inflight", "in_flight",
	"streams", "goroutines", "coroutines", "nusers", "nworkers", "threadcount", "clientcount", "usercount"}

var (
	notAWord   = regexp.MustCompile(`[^\pL\pN]+`)
	countWords = []string{"number", "num", "nr", "no", "of", "count", "total", "concurrent", "parallel", "active"}
)

// Concurrency finds the column that says how many were at work at once; -1 when there is none.
func (t *Table) Concurrency() int {
	for _, name := range ConcurrencyNames {
		for i, have := range t.Names {
			if calls(have, name) {
				return i
			}
		}
	}
	return -1
}

// IsConcurrency reports whether a column of that name says how many were at work at once.
func IsConcurrency(name string) bool {
	return slices.ContainsFunc(ConcurrencyNames, func(known string) bool { return calls(name, known) })
}

// calls reports whether a column's name means the known one: "# of Threads", thread_count and threads are one. A single
// one (thread) is a name of it, and no count, unless a word says that it is counted.
func calls(have, known string) bool {
	stem, _ := SplitUnit(have)
	counted := strings.HasPrefix(strings.TrimSpace(have), "#")
	var words []string
	for _, w := range strings.Fields(notAWord.ReplaceAllString(strings.ToLower(stem), " ")) {
		if slices.Contains(countWords, w) {
			counted = true
			continue
		}
		words = append(words, w)
	}
	name := strings.Join(words, "")
	if lower := strings.ToLower(stem); name == "requests" && (strings.HasPrefix(lower, "concurrent") ||
		strings.HasPrefix(lower, "parallel")) {
		name = "concurrency"
	}
	known = strings.ReplaceAll(known, "_", "")
	return name == known || counted && name+"s" == known
}
