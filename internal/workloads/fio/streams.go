package fio

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
	"plimsoll/unit"
)

// describe works out what each section will do, and how long the job may run at most.
func (a *adaptation) describe() {
	known, total, most := true, time.Duration(0), time.Duration(0)
	stage := 0
	for _, job := range a.out.Jobs() {
		runtime, ok := a.runtime(job)
		known = known && ok
		if job.Enabled("stonewall") {
			total, most = total+most, 0
			stage++
		}
		l := a.stream(job)
		a.shape(job, &l, stage)
		if n := len(a.streams); n > 0 && a.streams[n-1].Stage == stage && a.streams[n-1].Delay != l.Delay {
			a.note("jobs do not begin together (startdelay): all of the load is offered only while all of them run")
		}
		a.streams = append(a.streams, l)
		most = max(most, runtime)
	}
	if known {
		a.limit = total + most
	}
	a.refuseTwoRates()
	a.refuseSleepers()
}

// refuseTwoRates refuses a job with a rate of bytes and one of operations, as fio does when it begins.
func (a *adaptation) refuseTwoRates() {
	given := func(text string) bool {
		rates, err := fiofile.ParseRates(text)
		return text != "" && err == nil && rates != fiofile.Rates{}
	}
	for _, job := range a.out.Jobs() {
		if o, ok := job.Get("rate"); ok && given(o.Value) && given(job.Value("rate_iops")) {
			a.object(job.Section, o, "rate_iops="+job.Value("rate_iops")+
				" beside it: fio takes one of them, leave one out")
		}
	}
}

// refuseSleepers refuses a rate at which a job sleeps for long between operations beside others. Asked for its state,
// fio (3.33 for one) waits for each job's next operation; a job that ends meanwhile gives up after 5 s without its
// figures, and those that exit_what was to end go on for ever.
func (a *adaptation) refuseSleepers() {
	const leastRate = 0.4 // operations per second: a rate may be of two directions, each with sleeps of its own
	processes := 0
	for _, l := range a.streams {
		processes += max(1, l.Processes)
	}
	jobs := a.out.Jobs()
	for i, l := range a.streams {
		each := l.Rate / float64(max(1, l.Processes))
		if processes == 1 || each == 0 || each >= leastRate {
			continue
		}
		for _, key := range []string{"rate", "rate_iops"} {
			if o, ok := jobs[i].Get(key); ok {
				a.object(jobs[i].Section, o, fmt.Sprintf("that is one operation each %.3g s, and beside other jobs fio hangs, or "+
					"loses figures, when a job sleeps so long: write a higher rate%s", 1/each,
					map[string]string{"rate": " (it is of bytes: 300k is 300 KiB a second)"}[key]))
			}
		}
	}
}

// runtime is the longest time one section may run, its delays included.
func (a *adaptation) runtime(job fiofile.Job) (time.Duration, bool) {
	text := job.Value("runtime")
	runtime, err := parseTime(text)
	if text == "" || err != nil || runtime == 0 {
		if a.spec.Runtime <= 0 || a.spec.Prefill {
			if job.Enabled("time_based") && !a.spec.Prefill {
				a.note("time_based without a runtime: fio drops it and the job ends when its size is done")
			}
			return 0, false
		}
		runtime = wholeSeconds(a.spec.Runtime)
	} else if a.spec.Runtime > 0 && !a.spec.Prefill {
		a.note("[%s] has a runtime of its own (%s), which wins over the step's", job.Name, runtime)
	}
	if job.Value("ramp_size") != "" { // how long that takes is the disk's to say
		return 0, false
	}
	for _, key := range []string{"ramp_time", "startdelay"} {
		runtime += longest(job.Value(key))
	}
	return runtime, true
}

// wholeSeconds cuts a duration to what --runtime takes, and to 1 s at least: 0 would mean no limit.
func wholeSeconds(d time.Duration) time.Duration {
	return max(d.Truncate(time.Second), time.Second)
}

func (a *adaptation) stream(job fiofile.Job) result.Stream {
	processes := number(job, "numjobs", 1)
	depth := 1
	engine := job.Value("ioengine")
	if e := engines[engine]; e.async {
		depth = number(job, "iodepth", 1)
	} else if number(job, "iodepth", 1) > 1 {
		a.note("[%s] iodepth has no effect: ioengine %s keeps one operation outstanding per process", job.Name,
			orDefault(engine, "psync"))
	}
	l := result.Stream{
		Name:      job.Name,
		Noun:      "fio job",
		Depth:     depth * processes,
		OpenLoop:  job.Value("rate_process") == "poisson" && (job.Value("rate_iops") != "" || job.Value("rate") != ""),
		Direct:    job.Enabled("direct") || job.Value("buffered") == "0",
		ZeroData:  zeroData(job),
		Reducible: reducible(job),
		Repeats:   percentage(job, "dedupe_percentage"),
		TimeBased: job.Enabled("time_based") && (job.Value("runtime") != "" || a.spec.Runtime > 0),
	}
	trims := false
	l.Reads, l.Writes, trims = directions(job.Value("rw"))
	l.Verifies = l.Reads && !l.Writes && !trims && !slices.Contains([]string{"", "0", "null"}, job.Value("verify"))
	if processes > 1 {
		l.Processes = processes
	}
	l.Rate = rate(job, l.Reads, l.Writes, trims) * float64(processes)
	l.Pauses, l.Also = pauses(job), also(job)
	if o, ok := job.Get("thinktime"); ok && longest(job.Value("thinktime")) > 0 {
		a.note("[%s] pauses between its operations (thinktime=%s): its rate is of that, too", job.Name, shortened(o.Value))
	}
	var names []string
	var space int64
	for _, d := range a.disksOf(job) {
		names = append(names, d.Device)
		space += d.Bytes
	}
	l.Device = strings.Join(names, ":")
	l.Bytes = a.extent(job, space)
	l.Offset = a.offset(job)
	return l
}

// extent is the number of bytes a job touches: its size, a share of its disks, or all of them after its offset.
func (a *adaptation) extent(job fiofile.Job, space int64) int64 {
	size, err := a.parseSize(job.Section, job.Value("size"))
	switch {
	case err == nil && size.Percent > 0:
		return int64(float64(space) * size.Percent / 100)
	case err == nil && size.Bytes > 0:
		increment, _ := a.bytes(job, "offset_increment") // of every further process
		return add63(size.Bytes, mul63(min(increment, size.Bytes), int64(number(job, "numjobs", 1))-1))
	}
	if offset, ok := a.bytes(job, "offset"); ok && space > offset {
		return space - offset
	}
	return 0
}

// offset is where the extent begins on each disk, in bytes.
func (a *adaptation) offset(job fiofile.Job) int64 {
	offset, err := a.parseSize(job.Section, job.Value("offset"))
	if err == nil && offset.Percent > 0 {
		return int64(float64(smallestDisk(a.disksOf(job)).Bytes) * offset.Percent / 100)
	}
	return offset.Bytes
}

// toldElsewhere are options that a stream has fields for, and those that change nothing of the load.
var toldElsewhere = strings.Fields("filename directory opendir filename_format size filesize io_size offset " +
	"offset_increment bs bssplit bsrange rw rwmixread rwmixwrite percentage_random random_distribution iodepth numjobs " +
	"rate rate_iops direct buffered zero_buffers refill_buffers scramble_buffers buffer_pattern " +
	"buffer_compress_percentage buffer_compress_chunk dedupe_percentage time_based runtime ramp_time startdelay " +
	"stonewall wait_for new_group group_reporting unified_rw_reporting name description thread randseed randrepeat " +
	"allrandrepeat disk_util continue_on_error percentile_list lat_percentiles clat_percentiles slat_percentiles " +
	"log_avg_msec log_hist_msec write_bw_log write_lat_log write_iops_log write_hist_log per_job_logs kb_base unit_base " +
	"bwavgtime iopsavgtime loops")

// also are the other options of a job, as its author has them; the way of a sequence (rw=read:8k) among them.
func also(job fiofile.Job) string {
	var others []string
	for _, o := range job.InForce() {
		key := canonical(o.Key)
		if _, way, ok := strings.Cut(o.Value, ":"); key == "rw" && ok {
			others = append(others, "rw="+way)
		}
		ofAll := o.Value == "0" && key != "invalidate" && key != "do_verify" || key == "ioengine" && o.Value == "psync"
		switch {
		case ofAll, slices.Contains(toldElsewhere, key): // as it is without the option
		case o.Flag:
			others = append(others, key)
		default:
			others = append(others, key+"="+shortened(o.Value))
		}
	}
	return strings.Join(others, ", ")
}

func directions(rw string) (reads, writes, trims bool) {
	rw, _, _ = strings.Cut(orDefault(rw, "read"), ":")
	switch rw {
	case "rw", "readwrite", "randrw":
		return true, true, false
	}
	return strings.HasSuffix(rw, "read"), strings.HasSuffix(rw, "write"), strings.Contains(rw, "trim")
}

// readsOnly reports whether no job of the file can write or trim: fio then has to refuse whatever would. With
// verify_only fio takes a job for one that writes, though it reads.
func (a *adaptation) readsOnly() bool {
	for _, job := range a.out.Jobs() {
		_, writes, trims := directions(job.Value("rw"))
		if writes || trims || number(job, "trim_percentage", 0) > 0 {
			return false
		}
	}
	return true
}

// ownDirections leaves every job the direction in force alone where a line of the file that is not says one that
// writes, such as one of [global]: with --readonly fio refuses the line, though no job does so.
func (a *adaptation) ownDirections() {
	if !slices.ContainsFunc(a.out.Sections, func(s fiofile.Section) bool {
		return slices.ContainsFunc(s.Options, func(o fiofile.Option) bool {
			_, writes, trims := directions(o.Value)
			return o.Key == "rw" && (writes || trims)
		})
	}) {
		return
	}
	for _, job := range a.out.Jobs() {
		of, _ := job.Get("rw")
		job.Delete("rw")
		job.Set("rw", orDefault(of.Value, "read"))
	}
	for i := range a.out.Sections {
		if s := &a.out.Sections[i]; s.Name == fiofile.Global {
			s.Delete("rw")
		}
	}
}

// rate is the load one process of a job offers, in operations per second; 0 is unlimited. One direction without a limit
// makes the whole unlimited. fio takes a rate of operations for one of bytes in blocks of the smallest size, which it
// holds, but for rate_process=poisson: that draws operations, as many as smallest blocks make the rate.
func rate(job fiofile.Job, reads, writes, trims bool) float64 {
	text, inBytes := job.Value("rate_iops"), false
	if text == "" {
		text, inBytes = job.Value("rate"), true
	}
	size, least := blocks(job)
	for i := range size {
		if job.Value("rate_process") == "poisson" {
			size[i] = least[i]
		}
		if !inBytes {
			size[i] /= least[i]
		}
	}
	rates, err := fiofile.ParseRates(text)
	if text == "" || err != nil {
		return 0
	}
	sum := 0.0
	for i, d := range []struct {
		used bool
		rate int64
	}{{reads, rates.Read}, {writes, rates.Write}, {trims, rates.Trim}} {
		if d.used && d.rate == 0 {
			return 0
		}
		if d.used {
			sum += float64(d.rate) / size[i]
		}
	}
	return sum
}

// zeroData reports whether what is written is zeros, or compresses or deduplicates away entirely.
func zeroData(job fiofile.Job) bool {
	pattern := strings.TrimLeft(strings.TrimPrefix(job.Value("buffer_pattern"), "0x"), "0")
	return job.Enabled("zero_buffers") ||
		number(job, "buffer_compress_percentage", 0) >= 100 ||
		number(job, "dedupe_percentage", 0) >= 100 ||
		job.Value("buffer_pattern") != "" && pattern == ""
}

// reducible is the share of what is written that goes when compressible parts and repeated blocks do. A pattern is all
// there is, unless a share is asked for: then it is what the compressible parts consist of, and of repeated blocks fio
// makes no use of it.
func reducible(job fiofile.Job) float64 {
	compressible, repeats := percentage(job, "buffer_compress_percentage"), percentage(job, "dedupe_percentage")
	if zeroData(job) || job.Value("buffer_pattern") != "" && compressible+repeats == 0 {
		return 1
	}
	return 1 - (1-compressible)*(1-repeats)
}

// percentage is an option in percent as a share, 0 to 1.
func percentage(job fiofile.Job, key string) float64 {
	return float64(min(100, number(job, key, 0))) / 100
}

func number(job fiofile.Job, key string, missing int) int {
	n, err := strconv.Atoi(job.Value(key))
	if err != nil || n < 0 || n > 1<<20 {
		return missing
	}
	return n
}

func orDefault(text, missing string) string {
	if text == "" {
		return missing
	}
	return text
}

// streamOf says what a job did by the options that stand in the output; entries of its name stand there so many times.
// Of one that is merged of several sections these are the options of one.
func (d *document) streamOf(e *entry, times int, merged bool) result.Stream {
	job := d.jobOf(e)
	l := result.Stream{Name: e.name, Noun: "fio job", Direct: job.Enabled("direct") || job.Value("buffered") == "0"}
	if len(e.options)+len(d.global) == 0 || merged { // fio before 2.3 prints none
		return l
	}
	processes := processesOf(job, times)
	depth, trims := 1, false
	if engines[job.Value("ioengine")].async || e.deep { // Windows' default engine, those of rbd and others
		depth = number(job, "iodepth", 1)
	}
	l.Depth = depth * processes
	if processes > 1 {
		l.Processes = processes
	}
	l.Reads, l.Writes, trims = directions(job.Value("rw"))
	l.Rate = rate(job, l.Reads, l.Writes, trims) * float64(processes)
	l.OpenLoop = job.Value("rate_process") == "poisson" && l.Rate > 0
	l.ReadShare, _ = shares(job)
	blocks := meanBlocks(job)
	if l.Reads {
		l.ReadBytes = blocks[0]
	}
	if l.Writes {
		l.WriteBytes = blocks[1]
	}
	if strings.HasPrefix(job.Value("rw"), "rand") {
		l.Random = float64(min(100, number(job, "percentage_random", 100))) / 100
	}
	l.Brief, l.Also = pauses(job) || !job.Enabled("time_based"), also(job)
	return l
}

// processesOf is how many processes are one entry, by the options, where entries of its name stand there so many times.
func processesOf(job fiofile.Job, times int) int { return max(1, number(job, "numjobs", 1)/times) }

// merged reports whether an entry is the sum of processes of which its options do not tell, as group_reporting makes of
// several sections, and says what is known of those that ended before others, "" where all worked as long. A process
// works as long as its longest operation, or as all of them where they were stages.
func (d *document) merged(e *entry, times int) (is bool, uneven string) {
	length := e.longestMS()
	for _, r := range e.dirs {
		if r.runtimeMS > 0 && Unlike(r.runtimeMS, e.longestMS()) {
			length = e.dirs[0].runtimeMS + e.dirs[1].runtimeMS + e.dirs[2].runtimeMS
		}
	}
	if len(e.options)+len(d.global) == 0 || length == 0 || e.runtimeMS == 0 {
		return false, ""
	}
	const slack = 50.0
	together, one := float64(e.runtimeMS), float64(length)
	n := float64(processesOf(d.jobOf(e), times))
	more, fewer := together > n*one*1.02+slack, together < n*float64(e.longestMS())*0.95-slack && e.host == ""
	if more {
		n = math.Round(together / one)
	}
	if off := math.Abs(together - n*one); fewer || more && off > n*one*0.02+slack {
		uneven = fmt.Sprintf("fio added processes up in it that did not work as long: %s together, the longest %s; its "+
			"rate is of all their operations over the longest time, below what was had while all worked",
			unit.Duration(time.Duration(together)*time.Millisecond), unit.Duration(time.Duration(one)*time.Millisecond))
	}
	return more || fewer, uneven
}

// jobOf is a job as a file of it would say it.
func (d *document) jobOf(e *entry) fiofile.Job {
	file := fiofile.File{Sections: []fiofile.Section{
		{Name: fiofile.Global, Options: d.global}, {Name: e.name, Options: e.options}}}
	return file.Jobs()[0]
}

// pauses reports whether a job does something between its operations that is in no time of theirs, or lowers its depth.
func pauses(job fiofile.Job) bool {
	return flushes(job) || triesDepths(job) || job.Value("sync_file_range") != "" ||
		number(job, "fsync_on_close", 0) > 0 || job.Value("read_iolog") != "" ||
		number(job, "iodepth_batch", 1) > 1 || number(job, "iodepth_batch_submit", 1) > 1 ||
		slices.ContainsFunc([]string{"thinktime", "flow", "iodepth_low"}, func(key string) bool {
			return !slices.Contains([]string{"", "0"}, job.Value(key))
		})
}

// triesDepths reports whether a job looks for a depth up to its own.
func triesDepths(job fiofile.Job) bool {
	return !slices.Contains([]string{"", "0"}, job.Value("latency_target"))
}

// flushes reports whether a job has what it wrote flushed between its operations.
func flushes(job fiofile.Job) bool { return number(job, "fsync", 0)+number(job, "fdatasync", 0) > 0 }
