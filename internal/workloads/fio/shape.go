package fio

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
)

// shape fills in what a model of the load needs besides what checks do. What it does not know (flushes, zones,
// flows) it leaves out.
func (a *adaptation) shape(job fiofile.Job, l *result.Stream, stage int) {
	l.Stage = stage
	l.ReadShare, l.TrimShare = shares(job)
	blocks := meanBlocks(job)
	if l.Reads {
		l.ReadBytes = blocks[0]
	}
	if l.Writes {
		l.WriteBytes = blocks[1]
	}
	if l.TrimShare > 0 {
		l.WriteBytes = blocks[2]
	}
	rw := job.Value("rw")
	if strings.HasPrefix(rw, "rand") {
		l.Random = float64(min(100, number(job, "percentage_random", 100))) / 100
		l.Skew = skew(job.Value("random_distribution"))
	}
	l.Think = think(job, l.Depth/max(1, l.Processes))
	l.Delay = longest(job.Value("startdelay"))
	if d, ok := a.runtime(job); ok {
		l.Runtime = d - l.Delay
	}
	if !l.TimeBased {
		l.Work = a.work(job, l)
	}
}

// shares are the parts of all operations that read and that trim: by rwmixread, or by the rates where each direction
// has one.
func shares(job fiofile.Job) (reads, trims float64) {
	rw, _, _ := strings.Cut(orDefault(job.Value("rw"), "read"), ":")
	switch rw {
	case "trim", "randtrim":
		return 0, 1
	case "trimwrite", "randtrimwrite":
		return 0, 0.5 // each block is trimmed and then written
	case "write", "randwrite":
		return 0, 0
	case "rw", "readwrite", "randrw":
	default:
		return 1, 0
	}
	rates, err := fiofile.ParseRates(job.Value("rate_iops"))
	if err == nil && rates.Read > 0 && rates.Write > 0 {
		return float64(rates.Read) / float64(rates.Read+rates.Write), 0
	}
	return mix(job), 0
}

// mix is the part of a mixed job's operations that are to read.
func mix(job fiofile.Job) float64 {
	if job.Value("rwmixwrite") != "" && job.Value("rwmixread") == "" {
		return float64(100-min(100, number(job, "rwmixwrite", 50))) / 100
	}
	return float64(min(100, number(job, "rwmixread", 50))) / 100
}

// meanBlocks are the mean block sizes of reads, writes and trims in bytes. A range is taken for an even spread.
func meanBlocks(job fiofile.Job) [3]float64 {
	means, _ := blocks(job)
	return means
}

// blocks are the mean and the smallest block sizes of reads, writes and trims in bytes.
func blocks(job fiofile.Job) (means, least [3]float64) {
	var mean, low []float64
	if split, err := fiofile.ParseBSSplit(job.Value("bssplit")); err == nil && len(split) > 0 {
		for _, direction := range split {
			sum, smallest := 0.0, math.Inf(1)
			for _, s := range direction {
				sum += float64(s.Bytes) * s.Percent / 100
				smallest = min(smallest, float64(s.Bytes))
			}
			mean, low = append(mean, sum), append(low, smallest)
		}
		return perDirection(mean), perDirection(low)
	}
	text := orDefault(job.Value("bsrange"), job.Value("bs"))
	for entry := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(entry, "-")
		from, err := fiofile.ParseSize(first)
		middle, smallest := float64(from.Bytes), float64(from.Bytes)
		if to, err := fiofile.ParseSize(last); ranged && err == nil {
			middle, smallest = (middle+float64(to.Bytes))/2, min(smallest, float64(to.Bytes))
		}
		if err != nil || middle <= 0 {
			middle, smallest = 4096, 4096
		}
		mean, low = append(mean, middle), append(low, smallest)
	}
	return perDirection(mean), perDirection(low)
}

// perDirection applies fio's rule for lists: what is not given is as the last one given.
func perDirection(given []float64) (all [3]float64) {
	for i := range all {
		all[i] = given[min(i, len(given)-1)]
	}
	return all
}

func skew(text string) result.Skew {
	kind, rest, _ := strings.Cut(text, ":")
	rest, _, _ = strings.Cut(rest, ":") // the centre of a distribution does not matter here
	value, err := strconv.ParseFloat(rest, 64)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return result.Skew{}
	}
	switch {
	case kind == "zipf" && (err == nil && value > 0 || rest == ""):
		return result.Skew{Kind: result.Zipf, Value: orNumber(value, 1.1)}
	case kind == "pareto" && (err == nil && value > 0 && value < 1 || rest == ""):
		return result.Skew{Kind: result.Pareto, Value: orNumber(value, 0.2)}
	}
	return result.Skew{}
}

// orNumber gives fio's own default.
func orNumber(value, missing float64) float64 {
	if value == 0 {
		return missing
	}
	return value
}

// longest reads a time that may be a range.
func longest(text string) time.Duration {
	if _, upper, ok := strings.Cut(text, "-"); ok {
		text = upper
	}
	d, err := parseTime(text)
	if text == "" || err != nil {
		return 0
	}
	return d
}

// think is the mean time a process that keeps depth operations outstanding lets pass between two in one place. Whenever
// the number of blocks that ended is a multiple of thinktime_blocks, fio has all that are outstanding end, and sleeps:
// of every block it issues one in a sleep, whatever its depth, and of fewer than its depth about halfway to that
// (measured with fio 3.33 at depths 4 to 16). One that thinks by time is not known.
func think(job fiofile.Job, depth int) time.Duration {
	text := job.Value("thinktime")
	if n := number(job, "thinktime", -1); n >= 0 {
		text += "us" // fio's own unit
	}
	if !slices.Contains([]string{"", "0"}, job.Value("thinktime_iotime")) {
		return 0
	}
	depth = max(1, depth)
	blocks := max(1, number(job, "thinktime_blocks", 1))
	if blocks > 1 && blocks < depth && job.Value("thinktime_blocks_type") != "issue" {
		blocks = (blocks + depth) / 2
	}
	return time.Duration(min(float64(longest(text))*float64(depth)/float64(blocks), 1<<62))
}

// work returns what a job moves before it ends by itself: its size, or io_size, as often as it loops and in each of its
// processes; fewer operations if number_ios says so.
func (a *adaptation) work(job fiofile.Job, l *result.Stream) int64 {
	work := l.Bytes
	if size, ok := a.bytes(job, "io_size"); ok && size > 0 {
		work = size
	}
	work = mul63(work, int64(max(1, number(job, "loops", 1))))
	if n, err := strconv.ParseInt(job.Value("number_ios"), 10, 64); err == nil && n > 0 {
		mean := l.ReadShare*l.ReadBytes + (1-l.ReadShare)*l.WriteBytes
		if bytes := float64(n) * mean; work == 0 || bytes < float64(work) {
			work = int64(min(bytes, 1<<62))
		}
	}
	return mul63(work, int64(max(1, number(job, "numjobs", 1))))
}
