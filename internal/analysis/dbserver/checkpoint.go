package dbserver

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// When a checkpoint is taken to be at work.
const (
	atWork     = 0.10 // of the largest rate of its writes
	ends       = 2.0  // seconds before its last write, and
	syncs      = 5.0  // after it, in which files are synchronized
	fewer      = 0.75 // of the usual transactions: from below which they waited
	byChance   = 0.01 // from below which so many stalls at checkpoints, or at their ends, are no coincidence
	spreadWell = 0.85 // checkpoint_completion_target from which on nothing is gained by more
)

// Checkpoints looks for moments in which a server's log stood still, and says whether a checkpoint did it.
var Checkpoints = view.Check{Name: "log-stalls", Rank: 432, Run: checkpoints}

func checkpoints(v *view.Run) (out []result.Finding) {
	seen := map[string]bool{}
	for _, l := range v.Loads {
		for _, s := range serversOf(v, l) {
			if f, ok := logStalls(v, l, s); ok && !seen[s] {
				seen[s] = f.Severity != result.Passed || seen[s]
				out = append(out, f)
			}
		}
	}
	return out
}

func logStalls(v *view.Run, l *view.Load, server string) (f result.Finding, ok bool) {
	log := track(v, l, []string{server}, result.DatabaseLog, "")
	wrote := track(v, l, []string{server}, result.DatabaseCheckpoints, "")
	if log == nil || wrote == nil || len(wrote.Ops) != len(log.Ops) || log.Step > 5 {
		return f, false // a stall lasts seconds
	}
	level := levelled(log.Ops)
	s := log.Stalls(level)
	at := held(s, track(v, l, []string{server}, result.DatabaseTransactions, ""))
	some, _ := view.FiniteOf(log.Ops)
	if s.Share > view.OnAndOff || len(some) < fewestPoints || view.Total(some) == 0 {
		return f, false // it comes and goes by itself
	}
	s = log.Measured(level, at)
	whole, atEnds := active(wrote)
	share := shareOf(whole)
	f = result.Finding{
		Check: "log-stalls", Subject: l.Name, Severity: result.Passed, Metric: "time the log stood still", Unit: "%",
		Value: view.Ptr(100 * s.Share), Limit: view.Ptr(0), N: len(some),
		NoInterval: "counted over all its time, not estimated",
		Basis: fmt.Sprintf("growth of the write-ahead log in points of %s, below %s of the median of the points around "+
			"each, with fewer transactions",
			view.SayDuration(log.Step), view.Percent(view.StalledBelow)),
		Evidence: []result.Evidence{{Name: "time with a checkpoint at work", Value: 100 * share, Unit: "%"}},
	}
	if len(s.Runs) == 0 {
		if share == 0 {
			return f, false
		}
		f.Sentence = fmt.Sprintf("The log of the database server on %s did not stand still under %s, though checkpoints "+
			"were at work %s of the time.", server, l.Name, view.Percent(share))
		return f, true
	}
	during, no := 0, true
	for _, zone := range [][]bool{whole, atEnds} {
		n := 0
		for _, r := range s.Runs {
			if zone[r.First] {
				n++
			}
		}
		chance := distuv.Binomial{N: float64(len(s.Runs)), P: min(max(shareOf(zone), 1e-9), 1)}
		if 2*n > len(s.Runs) && chance.Survival(float64(n-1)) < byChance/2 {
			during, no = max(during, n), false
		}
	}
	if no {
		return f, false // what is to be said of the load's own stalls is said by stalls
	}
	f.Severity = result.Warning
	f.Evidence = append(f.Evidence, result.Evidence{Name: "stalls", Value: float64(len(s.Runs)), Unit: "count"},
		result.Evidence{Name: "at checkpoints", Value: float64(during), Unit: "count"},
		result.Evidence{Name: "longest", Value: view.Round(s.Longest()), Unit: "s"})
	f.Sentence = fmt.Sprintf("The log of the database server on %s all but stood still %s under %s, %s in all, the "+
		"longest %s; %d of them while a checkpoint wrote data files or had just done so, and commits waited.", server,
		view.Times(len(s.Runs)), l.Name, view.SayDuration(s.Seconds), view.SayDuration(s.Longest()), during)
	spread, n := mean(v, l, []string{server}, result.DatabaseSpread, "")
	if n > 0 && spread < spreadWell {
		f.Sentence += fmt.Sprintf(" Spread checkpoints further: checkpoint_completion_target is %.2g, 0.9 is usual.",
			spread)
	} else {
		f.Sentence += " Make checkpoints fewer (max_wal_size, checkpoint_timeout), or give the log a disk of its own."
	}
	f.Chart = v.Chart("Log and checkpoints on "+server, "bytes/s", log.Line("log", log.Ops),
		wrote.Line("checkpoint", wrote.Ops))
	return f, true
}

// beside is how many points on each side a point of the log is set against.
const beside = 30

// levelled sets every point against the median of those around it, and gives all the level of the whole: after each
// checkpoint a log grows several times as fast for a while, since it holds whole pages then, and slower is no stall.
func levelled(values []float64) []float64 {
	some, _ := view.FiniteOf(values)
	whole, out := resample.Median(some), slices.Clone(values)
	for i, x := range values {
		near, _ := view.FiniteOf(values[max(0, i-beside):min(len(values), i+beside+1)])
		if m := resample.Median(near); m > 0 {
			out[i] = x / m * whole
		}
	}
	return out
}

// held are the points of stalls in which transactions were fewer, too: a log that grows slower while they go on holds
// smaller records. Sessions tell of their transactions once a second, so the point after counts as well.
func held(s view.StallSet, transactions *view.Track) []bool {
	at := make([]bool, len(s.At))
	if transactions == nil || len(transactions.Ops) != len(at) {
		return at
	}
	all, _ := view.FiniteOf(transactions.Ops)
	for _, r := range s.Runs {
		some, _ := view.FiniteOf(transactions.Ops[r.First:min(r.Last+2, len(at))])
		if view.Total(some) < fewer*resample.Median(all)*float64(len(some)) {
			for i := r.First; i <= r.Last; i++ {
				at[i] = true
			}
		}
	}
	return at
}

// active are the points in which a checkpoint wrote, or had ended its writes not long before; and those about the ends
// of their writes.
func active(wrote *view.Track) (whole, atEnds []bool) {
	most := 0.0
	for _, x := range wrote.Ops {
		if view.IsFinite(x) {
			most = max(most, x)
		}
	}
	whole, atEnds = make([]bool, len(wrote.Ops)), make([]bool, len(wrote.Ops))
	mark := func(zone []bool, from, to int) {
		for k := max(from, 0); k <= min(to, len(zone)-1); k++ {
			zone[k] = true
		}
	}
	before, after := int(math.Ceil(ends/wrote.Step)), int(math.Ceil(syncs/wrote.Step))
	for i, x := range wrote.Ops {
		if !(most > 0 && x > atWork*most) {
			continue
		}
		mark(whole, i, i+after)
		if i+1 < len(wrote.Ops) && !(wrote.Ops[i+1] > atWork*most) {
			mark(atEnds, i-before, i+after)
		}
	}
	return whole, atEnds
}

// shareOf is the share of points.
func shareOf(zone []bool) (share float64) {
	for _, is := range zone {
		if is {
			share += 1 / float64(len(zone))
		}
	}
	return share
}

// Durable tells of servers whose commits do not wait for a disk.
var Durable = view.Check{Name: "durable-commits", Rank: 412, Run: durable}

func durable(v *view.Run) (out []result.Finding) {
	for _, l := range v.Loads {
		servers := serversOf(v, l)
		var loose []string
		known := 0
		for _, s := range servers {
			if m, n := mean(v, l, []string{s}, result.DatabaseDurable, ""); n > 0 {
				known++
				if m < 1 {
					loose = append(loose, s)
				}
			}
		}
		if known == 0 {
			continue
		}
		f := result.Finding{
			Check: "durable-commits", Subject: l.Name, Severity: result.Passed,
			Metric: "servers without durable commits",
			Unit:   "count", Value: view.Ptr(float64(len(loose))), Limit: view.Ptr(0), N: known,
			NoInterval: "settings, not sampled", Basis: "settings fsync and synchronous_commit of " + said(servers),
			Sentence: fmt.Sprintf("Commits of %s waited for the disk (fsync and synchronous_commit).", l.Name),
		}
		if len(loose) > 0 {
			f.Severity = result.Warning
			f.Sentence = fmt.Sprintf("Commits of %s did not wait for the disk (fsync or synchronous_commit is off on %s): a "+
				"crash loses some, and rates are not those of a server that keeps them.", l.Name, view.Three(loose))
		}
		out = append(out, f)
	}
	return out
}
