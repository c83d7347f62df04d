package importer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/result"
)

// bucket takes a row of a histogram. What lies in a bucket is taken as its upper end; of the last, which has none, as
// its lower.
func (p *vdbenchParser) bucket(n int, m []string) error {
	if p.run == nil {
		p.begin(&vdbenchRun{})
	}
	low, err := quantity(localNumber(m[1]))
	high := low
	if m[2] != "max" && err == nil {
		high, err = quantity(localNumber(m[2]))
	}
	digits := strings.NewReplacer(",", "", ".", "", " ", "", "\u00a0", "").Replace(m[3])
	count, err2 := strconv.ParseUint(digits, 10, 50)
	if err := errors.Join(err, err2); err != nil {
		p.book.skip(n, "a bucket that cannot be read: %.60q", m[0])
		return nil
	}
	if p.run.share, err = quantity(localNumber(m[4])); err != nil || count == 0 {
		return nil // a share is only looked at to tell whether the file is cut
	}
	all := &p.run.buckets
	i := slices.IndexFunc(*all, func(b vdbenchBuckets) bool { return b.heading == p.section })
	if i < 0 {
		i = len(*all)
		*all = append(*all, vdbenchBuckets{p.section, &hist.Histogram{}})
	}
	(*all)[i].hist.Add(uint64(max(high*1e6, 1)), count)
	return nil
}

// togetherHeading stands above what the headings after it divide.
const togetherHeading = "reads and writes"

// histogramSuffix ends the name of a run's histogram.
const histogramSuffix = " histogram"

// histograms makes a stretch of the buckets of a run. They hold what vdbench's averages do: all but the warm-up, or the
// first interval, whose length the file does not say. Unless it is given it is vdbench's usual one.
func (r *vdbenchRun) histograms(s *stretch, given format) {
	interval := max((r.planned / 60).Truncate(time.Second), time.Second)
	if given.Seconds > 0 {
		interval = time.Duration(given.Seconds * float64(time.Second))
	}
	length := r.planned
	if !r.warmedUp && length > interval {
		length -= interval
		s.notes = []string{fmt.Sprintf("a histogram does not say its time: rates are over elapsed= without the first "+
			"interval, taken as %v", interval)}
	}
	rep := workload.Report{Final: true}
	add := func(op result.Operation, h *hist.Histogram) {
		s.operations = append(s.operations, op)
		rep.Ops = append(rep.Ops, workload.Counters{Ops: h.Count(), Hist: h})
	}
	for _, b := range r.buckets {
		switch b.heading {
		case togetherHeading, "total", "all operations":
		case "reads":
			add(plainBlocks()[0], b.hist)
		case "writes":
			add(plainBlocks()[1], b.hist)
		default:
			add(result.Operation{Name: strings.ReplaceAll(strings.TrimSuffix(b.heading, "s"), " ", "_"),
				Noun: b.heading},
				b.hist)
		}
	}
	if len(s.operations) == 0 { // of both together alone
		add(result.Operation{Name: "io", Noun: "I/Os"}, r.buckets[0].hist)
	}
	s.workload += histogramSuffix
	s.length, rep.Elapsed = length, length
	s.reports = []workload.Report{rep}
	s.notes = append(s.notes, "percentiles are the upper ends of vdbench's buckets, the largest the lower end of the "+
		"last: the true ones lie within that bucket")
	if given.Length > 0 {
		s.lasted(time.Duration(given.Length * float64(time.Second)))
	}
	s.unseen = []string{"bytes and means: a histogram holds counts"}
}

// lasted says how long a histogram's run was measured, which is then no guess.
func (s *stretch) lasted(length time.Duration) {
	s.length, s.reports[0].Elapsed = length, length
	s.notes = s.notes[len(s.notes)-1:]
}
