package trace

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

func sortedSizes(sizes []Size) (list []Size, total uint64) {
	by := map[uint64]uint64{}
	for _, s := range sizes {
		by[s.Bytes] += s.Requests
		total += s.Requests
	}
	for bytes, n := range by {
		list = append(list, Size{Bytes: bytes, Requests: n})
	}
	slices.SortFunc(list, func(a, b Size) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return list, total
}

// FioJob writes a fio job that resembles the trace: a section for what is at random and one for each sequential part,
// with their sizes, mix, rate, depth and streams. What it does not keep is said in its first lines. It names no file:
// that is for whoever runs it.
func (r *Result) FioJob(w io.Writer) error {
	if len(r.Verdict.Parts) == 0 || r.Seconds <= 0 {
		return fmt.Errorf("a fio job is made of reads and writes over some time, and this trace has none")
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Made of a trace of %d events in %.3g s by plimsoll trace. It resembles that load:
# sizes, reads and writes, order, mean rate, skew, size of the working set.
# It does not keep bursts, the places themselves, the order of reads and writes, and what depended on what.
# Take the rates out (rate_iops) to see how much more the device can do.

[global]
ioengine=libaio
direct=1
time_based=1
runtime=%d
`, r.Events, r.Seconds, int(min(max(math.Ceil(r.Seconds), 10), 300)))
	total := 0.0
	for _, p := range r.Verdict.Parts {
		total += p.Share
	}
	for _, p := range r.Verdict.Parts {
		r.section(&b, p, p.Share/total)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) section(b *strings.Builder, p Part, share float64) {
	name, jobs := strings.ReplaceAll(p.What, " ", "-"), 1
	if p.ordered {
		jobs = max(int(math.Round(r.Streams.AtOnce)), 1)
		if n := orderedParts(r.Verdict.Parts); n > 1 {
			jobs = max(jobs/n, 1)
		}
	}
	jobs = min(jobs, 64)
	fmt.Fprintf(b, "\n# %s\n[%s]\n", p.Words, name)
	prefix := "rand"
	if p.ordered {
		prefix = ""
	}
	switch {
	case p.reads > 0 && p.writes > 0:
		fmt.Fprintf(b, "rw=%srw\nrwmixread=%.0f\n", prefix, 100*float64(p.reads)/float64(p.reads+p.writes))
		fmt.Fprintf(b, "bssplit=%s,%s\n", bssplit(p.sizes[Read]), bssplit(p.sizes[Write]))
	case p.reads > 0:
		fmt.Fprintf(b, "rw=%sread\nbssplit=%s\n", prefix, bssplit(p.sizes[Read]))
	default:
		fmt.Fprintf(b, "rw=%swrite\nbssplit=%s\n", prefix, bssplit(p.sizes[Write]))
	}
	size := uint64(1 << 20)
	if r.WorkingSet != nil {
		size = max(uint64(float64(r.WorkingSet.Bytes)*math.Max(share, 0.1)), size)
	}
	for _, list := range p.sizes {
		for _, s := range list {
			size = max(size, s.Bytes*16)
		}
	}
	fmt.Fprintf(b, "size=%dk\n", size/uint64(jobs)>>10)
	if jobs > 1 {
		fmt.Fprintf(b, "numjobs=%d\n", jobs)
	}
	if zones := r.zones(); !p.ordered && zones != "" {
		fmt.Fprintf(b, "random_distribution=zoned:%s\n", zones)
	}
	depth := 1.0
	if r.Queue != nil {
		depth = max(r.Queue.Busy*share/float64(jobs), 1)
	}
	fmt.Fprintf(b, "iodepth=%d\n", int(min(math.Ceil(depth), 1024)))
	reads, writes := rate(p.reads, r.Seconds, jobs), rate(p.writes, r.Seconds, jobs)
	switch {
	case p.reads == 0:
		fmt.Fprintf(b, "rate_iops=,%d\n", writes)
	case p.writes == 0:
		fmt.Fprintf(b, "rate_iops=%d\n", reads)
	default:
		fmt.Fprintf(b, "rate_iops=%d,%d\n", reads, writes)
	}
	if n := r.flushEvery(p); n > 0 {
		fmt.Fprintf(b, "fsync=%d\n", n)
	}
}

func orderedParts(list []Part) (n int) {
	for _, p := range list {
		if p.ordered {
			n++
		}
	}
	return n
}

func rate(n uint64, seconds float64, jobs int) int64 {
	return int64(max(math.Round(float64(n)/seconds/float64(jobs)), 1))
}

// flushEvery is after how many writes of a log a flush came; 0 is never.
func (r *Result) flushEvery(p Part) uint64 {
	flushes := uint64(0)
	for _, o := range r.Operations {
		if o.Op == Flush.String() {
			flushes = o.Requests
		} else if o.Op == Write.String() {
			flushes += o.Barrier
		}
	}
	if flushes == 0 || p.What != "log" {
		return 0
	}
	return max(p.writes/flushes, 1)
}

// bssplit is at most eight sizes with percentages that add up to 100.
func bssplit(sizes []Size) string {
	list, _ := sortedSizes(sizes)
	slices.SortStableFunc(list, func(a, b Size) int { return cmp.Compare(b.Requests, a.Requests) })
	list = list[:min(8, len(list))]
	total := uint64(0)
	for _, s := range list {
		total += s.Requests
	}
	var words []string
	left := 100
	for i := len(list) - 1; i >= 0; i-- {
		s := list[i]
		percent := max(int(math.Round(100*float64(s.Requests)/float64(total))), 1)
		if i == 0 {
			percent = left
		}
		left -= percent
		bytes := max((s.Bytes+511)/512*512, 512)
		words = append(words, fmt.Sprintf("%d/%d", bytes, percent))
	}
	slices.Reverse(words)
	return strings.Join(words, ":")
}

// zones are at most six parts of the range, with the share of accesses that each gets, the hottest first; "" where all
// get alike, or where too few are known.
func (r *Result) zones() string {
	hot := r.Hot.zones
	if len(hot) < 20 || r.Hot.Ninety*10 >= r.Hot.Touched*8 {
		return ""
	}
	var words []string
	from, leftShare, leftSize := 0, 100, 100
	for _, size := range []int{5, 5, 10, 20, 60} {
		to := min(from+max(len(hot)*size/100, 1), len(hot))
		sum := 0.0
		for _, s := range hot[from:to] {
			sum += s
		}
		share := max(int(math.Round(100*sum)), 1)
		if size == 60 || leftShare-share < 1 {
			share, size = leftShare, leftSize
		}
		words = append(words, fmt.Sprintf("%d/%d", share, size))
		leftShare, leftSize, from = leftShare-share, leftSize-size, to
		if leftShare <= 0 || leftSize <= 0 {
			break
		}
	}
	return strings.Join(words, ":")
}
