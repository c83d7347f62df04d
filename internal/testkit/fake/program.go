package fake

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/result"
)

// program is a job made ready to run: what Command puts on the host and Run reads back.
type program struct {
	Name    string        `json:"name"`
	VM      string        `json:"vm"`
	Seed    uint64        `json:"seed"`
	Every   time.Duration `json:"report_every_ns"`
	Law     Law           `json:"law"`
	Stalls  Stalls        `json:"stalls"`
	Streams []stream      `json:"streams"`
}

// stream is one section of the job file.
type stream struct {
	Name    string        `json:"name"`
	Depth   int           `json:"depth"`
	Rate    float64       `json:"rate,omitempty"` // operations per second offered, 0: the next when one is done
	Poisson bool          `json:"poisson,omitempty"`
	Reads   float64       `json:"reads"` // share of operations
	Trims   bool          `json:"trims,omitempty"`
	Block   int64         `json:"block_bytes"`
	Ops     uint64        `json:"ops,omitempty"`        // ends after so many, 0: does not
	Runtime time.Duration `json:"runtime_ns,omitempty"` // ends after so long, 0: does not
}

// compile reads the author's file and returns all objections at once.
func (e Engine) compile(spec workload.Spec) (program, []result.Stream, error) {
	objections := []error{e.law().validate(), e.Stalls.validate()}
	file, err := fiofile.Parse(spec.ConfigFile, spec.Config)
	if err != nil {
		return program{}, nil, errors.Join(append(objections, err)...)
	}
	for _, s := range spec.Settings {
		file.SetEverywhere(s.Key, s.Value)
	}
	p := program{
		Name: spec.Name, VM: spec.VM, Seed: max(spec.Seed, 1), Law: e.law(), Stalls: e.Stalls,
		Every: max(spec.Interval, time.Second).Truncate(time.Millisecond),
	}
	var streams []result.Stream
	if len(file.Jobs()) == 0 {
		objections = append(objections, fmt.Errorf("%s: no section besides [global]: there is nothing to run",
			spec.ConfigFile))
	}
	for _, job := range file.Jobs() {
		r := reader{spec: spec, job: job}
		s, stream := r.stream()
		objections = append(objections, r.objections...)
		p.Streams, streams = append(p.Streams, s), append(streams, stream)
	}
	return p, streams, errors.Join(objections...)
}

// reader reads one section.
type reader struct {
	spec       workload.Spec
	job        fiofile.Job
	objections []error
}

func (r *reader) object(key, why string) {
	line := r.job.Line
	if o, ok := r.job.Get(key); ok {
		line = o.Line
	}
	r.objections = append(r.objections, fmt.Errorf("%s:%d: [%s] %s=%s: %s", r.spec.ConfigFile, line, r.job.Name, key,
		r.job.Value(key), why))
}

func (r *reader) stream() (stream, result.Stream) {
	processes := r.count("numjobs", 1)
	s := stream{Name: r.job.Name, Depth: r.count("iodepth", 1) * processes, Block: r.block(), Reads: 1}
	reads, writes := r.mix(&s)
	rates, err := fiofile.ParseRates(orDefault(r.job.Value("rate_iops"), "0"))
	if err != nil {
		r.object("rate_iops", err.Error())
	}
	if reads {
		s.Rate += float64(rates.Read) * float64(processes)
	}
	if writes {
		s.Rate += float64(rates.Write) * float64(processes)
	}
	s.Poisson = s.Rate > 0 && r.job.Value("rate_process") == "poisson"
	size := r.size()
	s.Runtime = r.runtime()
	if r.spec.Prefill {
		s = stream{Name: s.Name, Depth: max(1, r.spec.Depth), Block: cmp.Or(r.spec.Block, 1<<20)}
		reads, writes = false, true
	}
	timed := r.job.Enabled("time_based") && s.Runtime > 0
	if !timed {
		s.Ops = uint64(max(1, size/s.Block)) * uint64(max(1, processes))
		if size == 0 && s.Runtime == 0 {
			r.object("size", "neither size nor runtime says when to end")
		}
		if size == 0 {
			s.Ops = 0
		}
	}
	return s, result.Stream{
		Name: s.Name, Device: r.device(), Depth: s.Depth, Rate: s.Rate, Reads: reads, Writes: writes, Bytes: size,
		OpenLoop: s.Poisson, Direct: true, TimeBased: timed,
	}
}

func (r *reader) mix(s *stream) (reads, writes bool) {
	rw, _, _ := strings.Cut(orDefault(r.job.Value("rw"), "read"), ":")
	switch rw {
	case "read", "randread":
		return true, false
	case "write", "randwrite":
		s.Reads = 0
		return false, true
	case "rw", "readwrite", "randrw":
		s.Reads = float64(r.count("rwmixread", 50)) / 100
		return true, true
	case "trim", "randtrim":
		s.Reads, s.Trims = 0, true
		return false, true
	}
	r.object("rw", "is none of read, write, rw, randread, randwrite, randrw, trim, randtrim")
	return true, false
}

func (r *reader) count(key string, missing int) int {
	text := r.job.Value(key)
	if text == "" {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<20 {
		r.object(key, "must be a whole number from 1 to 1048576")
		return missing
	}
	return n
}

func (r *reader) block() int64 {
	text, _, _ := strings.Cut(orDefault(r.job.Value("bs"), "4k"), ",")
	if split := r.job.Value("bssplit"); split != "" {
		shares, err := fiofile.ParseBSSplit(split)
		if err != nil {
			r.object("bssplit", err.Error())
			return 4096
		}
		mean := 0.0
		for _, share := range shares[0] {
			mean += float64(share.Bytes) * share.Percent / 100
		}
		return max(512, int64(math.Round(mean)))
	}
	size, err := fiofile.ParseSize(text)
	if err != nil || size.Bytes <= 0 {
		r.object("bs", "is not a block size")
		return 4096
	}
	return size.Bytes
}

// size is the scaled number of bytes of the section, that of its disk where it gives none, 0 when unknown.
func (r *reader) size() int64 {
	text := r.job.Value("size")
	disk := int64(0)
	for _, d := range r.spec.Disks {
		if slices.Contains(strings.Split(r.job.Value("filename"), ":"), d.Device) {
			disk += d.Bytes
		}
	}
	if text == "" || r.spec.Prefill && r.spec.Whole {
		return disk
	}
	size, err := fiofile.ParseSize(text)
	switch {
	case err != nil:
		r.object("size", err.Error())
	case size.Percent > 0:
		return int64(float64(disk) * size.Percent / 100)
	}
	return int64(float64(size.Bytes) * orOne(r.spec.SizeScale))
}

func (r *reader) runtime() time.Duration {
	text := strings.TrimSuffix(r.job.Value("runtime"), "s")
	if text == "" || r.spec.Prefill {
		if r.spec.Prefill {
			return 0
		}
		return r.spec.Runtime
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		r.object("runtime", "is not a number of seconds")
		return 0
	}
	return time.Duration(seconds * orOne(r.spec.TimeScale) * float64(time.Second))
}

func (r *reader) device() string {
	name := r.job.Value("filename")
	if name == "" {
		r.object("filename", "is missing; name a data disk such as /dev/sdb")
		return ""
	}
	for device := range strings.SplitSeq(name, ":") {
		known := len(r.spec.Disks) == 0 && strings.HasPrefix(device, "/dev/sd")
		for _, d := range r.spec.Disks {
			known = known || d.Device == device
		}
		if !known {
			r.object("filename", fmt.Sprintf("%q is not a data disk of this machine", device))
		}
	}
	return name
}

func orDefault(text, missing string) string {
	if text == "" {
		return missing
	}
	return text
}

func orOne(scale float64) float64 {
	if scale == 0 {
		return 1
	}
	return scale
}
