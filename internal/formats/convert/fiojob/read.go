package fiojob

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/workloads/fio/fiofile"
)

// reader is a job file on its way to a load.
type reader struct {
	*load.Teller
	name string
	job  fiofile.Job
	at   load.Place
}

// Read reads a job file; include reads a file beside it, nil: there is none. The error holds all objections at once.
func Read(name string, data []byte, include func(string) ([]byte, error)) (load.Load, error) {
	r := &reader{Teller: &load.Teller{}, name: name}
	file, err := fiofile.Parse(name, data)
	if err == nil {
		err = file.Include(include)
	}
	if all := (fiofile.Errors)(nil); errors.As(err, &all) {
		for _, e := range all {
			r.Object(load.Place{File: e.File, Line: e.Line, Col: e.Col}, "%s", e.What)
		}
		return load.Load{}, r.Err()
	}
	for i := range file.Sections {
		s := &file.Sections[i]
		for j := range s.Options {
			o := &s.Options[j]
			if first, ok := second[o.Key]; ok {
				o.Key = first
			}
			r.judge(*o)
		}
	}
	var l load.Load
	jobs := file.Jobs()
	if len(jobs) == 0 {
		r.Object(load.Place{File: name, Line: 1, Col: 1}, "no section other than [global]: nothing is to run")
	}
	for i, job := range jobs {
		r.job, r.at = job, load.Place{File: name, Line: job.Line, Col: job.Col}
		if i == 0 || job.Enabled("stonewall") {
			l.Stages = append(l.Stages, load.Stage{At: r.at})
		}
		st := &l.Stages[len(l.Stages)-1]
		r.time(st)
		st.Streams = append(st.Streams, r.streams()...)
	}
	for i := range l.Stages {
		st := &l.Stages[i]
		st.Name = fmt.Sprintf("stage%d", i+1)
		if len(st.Streams) == 1 {
			st.Name = st.Streams[0].Name
		}
	}
	l.Notes = r.Notes
	return l, r.Err()
}

// judge refuses what is not known, and notes what has no part.
func (r *reader) judge(o fiofile.Option) {
	a := r.ask(o)
	switch why, ok := nothing[o.Key]; {
	case strings.Contains(o.Value, "$"):
		r.Refuse(a, "write the value: variables of fio's environment are not filled in")
	case slices.Contains(read, o.Key):
	case ok:
		r.Note(a, "", "%s has no part in the load", why)
	default:
		hint := ""
		if len(o.Key) <= 40 {
			if near := nearest.Of(o.Key, read); near != "" {
				hint = fmt.Sprintf("; if it is a slip, did you mean %s?", near)
			}
		}
		r.Refuse(a, "an option that no other tool here has; without it the load would be another%s", hint)
	}
}

func (r *reader) ask(o fiofile.Option) load.Ask {
	text := o.Key
	if !o.Flag {
		text += "=" + o.Value
	}
	return load.Ask{Text: text, At: load.Place{File: r.name, Line: o.Line, Col: o.Col}}
}

// option returns the option in force, and how it was put.
func (r *reader) option(key string) (value string, a load.Ask, ok bool) {
	o, ok := r.job.Get(key)
	return o.Value, r.ask(o), ok
}

// size is an option that takes bytes.
func (r *reader) size(key string, missing int64) int64 {
	value, a, ok := r.option(key)
	if !ok {
		return missing
	}
	size, err := fiofile.ParseSize(value)
	if err != nil || size.Percent > 0 {
		r.Refuse(a, "it takes bytes here")
		return missing
	}
	return size.Bytes
}

// extent is an option that takes bytes or a percentage.
func (r *reader) extent(key string) load.Extent {
	value, a, ok := r.option(key)
	if !ok {
		return load.Extent{}
	}
	size, err := fiofile.ParseSize(value)
	if err != nil {
		r.Refuse(a, "%v", err)
	}
	return load.Extent{Bytes: size.Bytes, Percent: size.Percent}
}

// count is an option that takes a whole number within bounds.
func (r *reader) count(key string, missing, low, high int64) int64 {
	value, a, ok := r.option(key)
	if !ok {
		return missing
	}
	size, err := fiofile.ParseSize(value)
	if err != nil || size.Percent > 0 || size.Bytes < low || size.Bytes > high {
		r.Refuse(a, "it takes a whole number from %d to %d", low, high)
		return missing
	}
	return size.Bytes
}

// units are those of fio's times, in microseconds.
var units = []struct {
	end string
	is  int64
}{{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}}

// micros is an option that takes a time, in microseconds; bare is the unit of a number without one.
func (r *reader) micros(key string, bare int64) int64 {
	value, a, ok := r.option(key)
	if !ok {
		return 0
	}
	text, unit := strings.ToLower(strings.TrimSpace(value)), bare
	for _, u := range units {
		if digits, cut := strings.CutSuffix(text, u.end); cut {
			text, unit = digits, u.is
			break
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > 1e15/unit {
		r.Refuse(a, "it takes a time, like 30, 5m or 500us")
		return 0
	}
	return v * unit
}

// seconds is an option that takes a time, in whole seconds here.
func (r *reader) seconds(key string) int64 {
	micros := r.micros(key, 1e6)
	whole := (micros + 999_999) / 1e6
	if whole*1e6 != micros {
		_, a, _ := r.option(key)
		r.Note(a, fmt.Sprintf("%d s", whole), "the others take whole seconds")
	}
	return whole
}

// time takes the times of a job for its stage.
func (r *reader) time(st *load.Stage) {
	runtime, warmup := r.seconds("runtime"), r.seconds("ramp_time")
	_, a, given := r.option("runtime")
	if given && runtime > 0 && !r.job.Enabled("time_based") {
		r.Note(
			a,
			fmt.Sprintf("%d s in any case", runtime),
			"without time_based fio ends before when all was gone through once",
		)
	}
	if len(st.Streams) > 0 && (runtime != st.Runtime || warmup != st.Warmup) {
		r.Object(
			r.at,
			"[%s] runs for another time than those beside it: streams that run together end together in other "+
				"tools",
			r.job.Name,
		)
	}
	st.Runtime, st.Warmup = runtime, warmup
}

// async are the engines by which one process has several operations in flight.
var async = []string{"libaio", "io_uring", "posixaio", "windowsaio", "solarisaio"}

// asked are the options by which fields of a stream are asked for.
var asked = map[string]string{
	"Depth": "iodepth", "Reads": "rw", "Random": "percentage_random", "Sizes": "bs", "Align": "ba",
	"From": "offset", "Span": "size", "Spread": "offset_increment", "Rate": "rate_iops", "Bytes": "rate",
	"Zones": "random_distribution", "Skew": "random_distribution", "Weight": "flow",
	"Burst": "thinktime_blocks", "Think": "thinktime", "Direct": "direct", "Sync": "sync", "Mapped": "ioengine",
	"Data": "buffer_pattern", "Compressed": "buffer_compress_percentage", "Duplicate": "dedupe_percentage",
	"Seed": "randseed", "CPUs": "cpus_allowed", "Targets": "filename", "Threads": "numjobs",
}

// streams are what a job does: one stream, or one for each process that has files of its own.
func (r *reader) streams() []load.Stream {
	s := load.Stream{Name: r.job.Name, Reads: 100, Even: true, At: r.at, Asks: map[string]load.Ask{}}
	for field, key := range asked {
		if _, a, ok := r.option(key); ok {
			s.Asks[field] = a
		}
	}
	s.Threads = int(r.count("numjobs", 1, 1, mostProcesses))
	s.Direct = r.job.Enabled("direct") || r.job.Value("buffered") == "0"
	r.engine(&s)
	r.direction(&s)
	r.sizes(&s)
	s.Align = r.size("ba", 0)
	r.rates(&s)
	r.skew(&s)
	r.data(&s)
	if s.Think = r.micros("thinktime", 1); s.Think > 0 {
		s.Burst = r.count("thinktime_blocks", 1, 1, 1<<31)
	}
	switch value, a, ok := r.option("sync"); {
	case !ok || value == "0" || value == "none":
	case value == "1" || value == "sync":
		s.Sync = "sync"
	case value == "dsync":
		s.Sync = "dsync"
	default:
		r.Refuse(a, "it is none, sync or dsync")
	}
	s.Seed = r.count("randseed", 0, 0, math.MaxInt64)
	r.cpus(&s)
	s.Weight = float64(r.count("flow", 0, 0, 1000))
	if _, a, ok := r.option("loops"); ok && r.count("loops", 1, 1, math.MaxInt32) != 1 {
		r.Refuse(a, "going through it several times is not known elsewhere; say runtime and time_based")
	}
	s.From, s.Span = r.extent("offset"), r.extent("size")
	s.Spread = r.size("offset_increment", 0)
	return r.targets(s)
}

func (r *reader) engine(s *load.Stream) {
	name, a, ok := r.option("ioengine")
	s.Depth = int(r.count("iodepth", 1, 1, 1<<20))
	ask, given := s.Asks["Depth"]
	switch {
	case ok && slices.Contains(async, name):
		if !s.Direct && name == "libaio" && s.Depth > 1 {
			r.Note(ask, "one in flight", "without direct=1 libaio waits for every operation")
			s.Depth = 1
		}
		return
	case name == "mmap":
		s.Mapped = true
	case !ok || slices.Contains([]string{"sync", "psync", "vsync", "pvsync", "pvsync2"}, name):
	default:
		r.Refuse(a, "an engine that other tools do not have")
	}
	if given && s.Depth > 1 {
		r.Note(ask, "one in flight", "a process of this engine waits for every operation, whatever iodepth says")
	}
	s.Depth = 1
}

func (r *reader) direction(s *load.Stream) {
	value, a, ok := r.option("rw")
	if !ok {
		return
	}
	name, skip, has := strings.Cut(value, ":")
	random := strings.HasPrefix(name, "rand")
	switch strings.TrimPrefix(name, "rand") {
	case "read":
	case "write":
		s.Reads = 0
	case "rw", "readwrite":
		s.Reads = float64(r.count("rwmixread", 50, 0, 100))
		if _, a, ok := r.option("rwmixwrite"); ok {
			s.Reads = 100 - float64(r.count("rwmixwrite", 50, 0, 100))
			s.Asks["Reads"] = a
		} else if _, a, ok := r.option("rwmixread"); ok {
			s.Asks["Reads"] = a
		}
	default:
		r.Refuse(a, "only reads and writes are known elsewhere")
	}
	if has {
		size, err := fiofile.ParseSize(skip)
		if random || err != nil || size.Bytes <= 0 {
			r.Refuse(a, "only bytes left out between sequential operations are known elsewhere, as rw=read:8k")
		}
		s.Skip, s.Asks["Skip"] = size.Bytes, a
	}
	if random {
		s.Random = float64(r.count("percentage_random", 100, 1, 100))
		s.Once = !r.job.Enabled("norandommap")
	}
}

func (r *reader) sizes(s *load.Stream) {
	s.Sizes = []load.Share{{Bytes: 4096, Percent: 100}}
	// of lists by direction, one is enough where the others are the same or not used
	used := func(parts []string) (string, bool) {
		read, write := parts[0], parts[0]
		if len(parts) > 1 {
			if write = parts[1]; write == "" {
				write = read
			}
			if read == "" {
				read = write
			}
		}
		switch {
		case s.Reads == 0:
			return write, true
		case s.Reads == 100:
			return read, true
		}
		return read, read == write
	}
	for _, key := range []string{"bs", "bsrange", "bssplit"} {
		value, a, ok := r.option(key)
		if !ok {
			continue
		}
		s.Asks["Sizes"] = a
		text, same := used(strings.Split(value, ","))
		if !same {
			r.Refuse(a, "reads and writes of different sizes: write a job for each")
			return
		}
		switch key {
		case "bs":
			size, err := fiofile.ParseSize(text)
			if err != nil || size.Bytes < 1 || size.Bytes > 1<<40 {
				r.Refuse(a, "it is no size of operations")
				return
			}
			s.Sizes = []load.Share{{Bytes: size.Bytes, Percent: 100}}
		case "bsrange":
			s.Sizes = r.between(a, text)
		default:
			all, err := fiofile.ParseBSSplit(text)
			if err != nil {
				r.Refuse(a, "%v", err)
				return
			}
			s.Sizes = nil
			for _, share := range all[0] {
				s.Sizes = append(s.Sizes, load.Share{Bytes: share.Bytes, Percent: share.Percent})
			}
		}
	}
}

// between are all multiples of the smallest size up to the largest, which is what fio draws.
func (r *reader) between(a load.Ask, text string) []load.Share {
	lowText, highText, _ := strings.Cut(text, "-")
	low, err1 := fiofile.ParseSize(lowText)
	high, err2 := fiofile.ParseSize(highText)
	if err1 != nil || err2 != nil || low.Bytes < 1 || high.Bytes < low.Bytes || high.Bytes > 1<<40 {
		r.Refuse(a, "it takes a smallest and a largest size, like 4k-64k")
		return nil
	}
	n := (high.Bytes-low.Bytes)/low.Bytes + 1
	if n > 64 {
		r.Refuse(a, "%d sizes are too many to write out; 64 can be", n)
		return nil
	}
	all := make([]load.Share, n)
	for i := range all {
		all[i] = load.Share{Bytes: low.Bytes * int64(i+1), Percent: 100 / float64(n)}
	}
	return all
}

func (r *reader) rates(s *load.Stream) {
	total := func(key string) float64 {
		value, a, ok := r.option(key)
		if !ok {
			return 0
		}
		rates, err := fiofile.ParseRates(value)
		if err != nil {
			r.Refuse(a, "%v", err)
			return 0
		}
		read, write := float64(rates.Read), float64(rates.Write)
		switch {
		case s.Reads == 100:
			write = 0
		case s.Reads == 0:
			read = 0
		case read == 0 || write == 0:
			if read+write > 0 {
				r.Refuse(a, "a rate of reads or writes alone is not known elsewhere; write a job for each")
			}
			return 0
		default:
			if share := 100 * read / (read + write); math.Abs(share-s.Reads) > 1 {
				r.Note(a, fmt.Sprintf("%.0f %% reads of the rate as a whole", s.Reads),
					"fio's rates by themselves make %.0f %% of it reads", share)
			}
		}
		return (read + write) * float64(s.Threads)
	}
	s.Rate = total("rate_iops")
	s.Bytes = int64(math.Min(total("rate"), math.MaxInt64/4))
	switch value, a, ok := r.option("rate_process"); {
	case ok && value == "poisson":
		s.Even = false
		s.Asks["Even"] = a
	case ok && value != "linear":
		r.Refuse(a, "it is linear or poisson")
	}
	// fio counts a rate in blocks of the smallest size: bytes that it holds, but for poisson, which draws operations.
	if s.Even {
		s.Rate /= s.Uneven()
	} else {
		s.Bytes = int64(math.Min(float64(s.Bytes)*s.Uneven(), math.MaxInt64/4))
	}
}

func (r *reader) skew(s *load.Stream) {
	value, a, ok := r.option("random_distribution")
	kind, rest, _ := strings.Cut(value, ":")
	switch {
	case !ok || kind == "random":
	case kind == "zipf" || kind == "pareto" || kind == "normal" || kind == "gauss":
		s.Skew = value
	case kind == "zoned" || kind == "zoned_abs":
		if strings.Contains(rest, ",") {
			r.Refuse(a, "zones of reads and writes apart: write a job for each")
			return
		}
		for part := range strings.SplitSeq(rest, ":") {
			percentText, extent, _ := strings.Cut(part, "/")
			percent, err := strconv.ParseFloat(percentText, 64)
			size, sizeErr := fiofile.ParseSize(strings.TrimSuffix(extent, "%"))
			if err != nil || sizeErr != nil || !(percent >= 0 && percent <= 100) || size.Bytes <= 0 {
				r.Refuse(a, "%.40q is no zone: write both of its numbers", part)
				return
			}
			z := load.Zone{Percent: percent, Span: load.Extent{Bytes: size.Bytes}}
			if kind == "zoned" {
				z.Span = load.Extent{Percent: float64(size.Bytes)}
			}
			s.Zones = append(s.Zones, z)
		}
	default:
		r.Refuse(a, "a distribution that other tools do not have")
	}
}

func (r *reader) data(s *load.Stream) {
	s.Data.Kind = load.Reused
	pattern, a, hasPattern := r.option("buffer_pattern")
	s.Data.Compressed = float64(r.count("buffer_compress_percentage", 0, 0, 100))
	s.Data.Duplicate = float64(r.count("dedupe_percentage", 0, 0, 100))
	switch {
	case r.job.Enabled("zero_buffers"):
		s.Data.Kind = load.Zeros
		_, s.Asks["Data"], _ = r.option("zero_buffers")
	case s.Data.Compressed > 0 || s.Data.Duplicate > 0 || r.job.Enabled("refill_buffers"):
		s.Data.Kind = load.Unique
	case hasPattern:
		hex, ok := strings.CutPrefix(strings.ToLower(pattern), "0x")
		if !ok || len(hex)%2 != 0 || hex == "" || strings.Trim(hex, "0123456789abcdef") != "" {
			r.Refuse(a, "write the pattern as bytes, like 0xdeadbeef")
		}
		s.Data.Kind, s.Data.Pattern = load.Repeated, hex
	}
}

func (r *reader) cpus(s *load.Stream) {
	value, a, ok := r.option("cpus_allowed")
	if !ok {
		return
	}
	for part := range strings.SplitSeq(value, ",") {
		lowText, highText, span := strings.Cut(part, "-")
		low, err := strconv.Atoi(lowText)
		high := low
		if span && err == nil {
			high, err = strconv.Atoi(highText)
		}
		if err != nil || low < 0 || high < low || high > 4095 || len(s.CPUs) > 4096 {
			r.Refuse(a, "it takes numbers of processors, like 0-3,8")
			return
		}
		for c := low; c <= high; c++ {
			s.CPUs = append(s.CPUs, c)
		}
	}
}
