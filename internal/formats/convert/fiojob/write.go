// Package fiojob reads and writes job files of fio as loads. It is a room of convert: what it reads becomes a load,
// and what it writes is a job file that fio 3.28 and later takes. Options that have no part in the load are noted, all
// others that it does not know are refused by name, since a load without them would be another. It runs nothing.
package fiojob

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/formats/convert/load"
	"plimsoll/internal/workloads/fio/fiofile"
)

// writer is a load on its way to a job file.
type writer struct {
	*load.Teller
	stream  *load.Stream
	options []fiofile.Option
}

// Write writes a load as a job file. The error holds all objections at once; the notes say what fio does differently.
func Write(l load.Load) (*fiofile.File, []load.Note, error) {
	w := &writer{Teller: &load.Teller{}}
	file := &fiofile.File{}
	for i := range l.Stages {
		stage := l.Stages[i]
		st := &stage
		st.Streams = w.apart(st.Streams)
		flows := w.flows(st)
		for j := range st.Streams {
			w.stream, w.options = &st.Streams[j], nil
			if i > 0 && j == 0 {
				w.flag("stonewall")
			}
			w.job(st)
			if flows != nil && flows[j] > 0 {
				w.set("flow_id", strconv.Itoa(i+1))
				w.set("flow", strconv.FormatInt(flows[j], 10))
			}
			file.Sections = append(file.Sections, fiofile.Section{Name: section(w.stream.Name), Options: w.options})
		}
		if st.Pause > 0 && i < len(l.Stages)-1 {
			w.Note(load.Ask{Text: fmt.Sprintf("a pause of %d s after %s", st.Pause, st.Name), At: st.At}, "",
				"the next stage begins at once")
		}
	}
	share(file)
	return file, w.Notes, w.Err()
}

// apart gives each target of a stream a job of its own where fio needs it: 3.33 breaks off (rate_ddir: Assertion
// "ddir_rw(ddir)" failed) when one job has rates of reads and of writes on several files.
func (w *writer) apart(streams []load.Stream) (all []load.Stream) {
	for _, s := range streams {
		n := len(s.Targets)
		rated := (s.Rate > 0 || s.Bytes > 0) && s.Reads > 0 && s.Reads < 100
		if rated && s.Targets[0].Files != nil {
			w.Refuse(
				s.Asked("Rate", "a rate"),
				"fio 3.33 breaks off when one job has rates of reads and writes on several files; "+
					"write a workload for reads and one for writes",
			)
		}
		if n == 1 || !rated {
			all = append(all, s)
			continue
		}
		w.Note(
			s.Asked("Targets", fmt.Sprintf("%d targets", n)),
			"a job for each, with its part of the rate and the depth",
			"fio 3.33 breaks off when one job has rates of reads and writes on several files",
		)
		for i, t := range s.Targets {
			one := s
			one.Name, one.Targets = fmt.Sprintf("%s.%d", s.Name, i+1), []load.Target{t}
			one.Rate, one.Bytes, one.Depth = s.Rate/float64(n), s.Bytes/int64(n), max(s.Depth/n, 1)
			all = append(all, one)
		}
	}
	return all
}

var notInSection = regexp.MustCompile(`[^\pL\pN _.,=%+:()/-]+`)

// section is a name that can stand in brackets.
func section(name string) string {
	if name = notInSection.ReplaceAllString(name, "_"); name == "" || name == fiofile.Global {
		name = "job_" + name
	}
	if len(name) > 150 {
		name = strings.ToValidUTF8(name[:150], "")
	}
	return strings.TrimSpace(name)
}

// share puts what all jobs have in common into [global].
func share(file *fiofile.File) {
	if len(file.Sections) == 0 {
		return
	}
	global := fiofile.Section{Name: fiofile.Global}
	for _, o := range file.Sections[0].Options {
		everywhere := o.Key != "filename" && o.Key != "stonewall" && !slices.ContainsFunc(file.Sections,
			func(s fiofile.Section) bool { return !slices.Contains(s.Options, o) })
		if everywhere && len(file.Sections) > 1 {
			global.Options = append(global.Options, o)
		}
	}
	if len(global.Options) == 0 {
		return
	}
	for i := range file.Sections {
		s := &file.Sections[i]
		s.Options = slices.DeleteFunc(
			s.Options,
			func(o fiofile.Option) bool { return slices.Contains(global.Options, o) },
		)
	}
	file.Sections = slices.Insert(file.Sections, 0, global)
}

func (w *writer) set(key, value string) {
	o := fiofile.Option{Key: key, Value: value}
	if strings.ContainsAny(value, "$`") {
		w.Object(w.stream.At, "%s=%.80q: fio would put something else in the place of $ and `", key, value)
		return
	}
	if err := o.Check(); err != nil {
		w.Object(w.stream.At, "%s=%.80q cannot stand in a job file: %v", key, value, err)
		return
	}
	w.options = append(w.options, o)
}

func (w *writer) flag(key string) {
	w.options = append(w.options, fiofile.Option{Key: key, Flag: true})
}

func (w *writer) number(key string, v int64) { w.set(key, strconv.FormatInt(v, 10)) }

func (w *writer) bytes(key string, v int64) { w.set(key, load.Size(v)) }

// job is one stream.
func (w *writer) job(st *load.Stage) {
	s := w.stream
	w.target()
	processes := w.concurrency()
	w.access()
	w.sizes()
	w.rates(processes)
	if s.Burst > 0 || s.Think > 0 {
		w.number("thinktime", s.Think)
		w.number("thinktime_blocks", max(s.Burst, 1))
	}
	if s.Reads < 100 {
		w.data()
	}
	if s.Seed != 0 {
		w.number("randseed", s.Seed)
	}
	if len(s.CPUs) > 0 {
		texts := make([]string, len(s.CPUs))
		for i, c := range s.CPUs {
			texts[i] = strconv.Itoa(c)
		}
		w.set("cpus_allowed", strings.Join(texts, ","))
		w.set("cpus_allowed_policy", "split")
	}
	if st.Runtime > 0 {
		w.flag("time_based")
		w.number("runtime", st.Runtime)
	}
	if st.Warmup > 0 {
		w.number("ramp_time", st.Warmup)
	}
}

// target says where the stream works.
func (w *writer) target() {
	s := w.stream
	if files := s.Targets[0].Files; files != nil {
		w.set("directory", strings.ReplaceAll(s.Targets[0].Name, ":", `\:`))
		// By name: of files that filename_format makes up the second process or job to use them gets none (fio 3.33).
		alias, length := section(strings.ReplaceAll(s.Targets[0].Alias, "/", "_")), 0
		var names []string
		for i := int64(0); i < files.Count && length < 4000; i++ {
			names = append(names, fmt.Sprintf("%s.%d", alias, i))
			length += len(names[i]) + 1
		}
		if length >= 4000 {
			w.Refuse(
				s.Asked("Count", "files="),
				"%d files: a job file names each, on a line of 4,095 bytes; take %d",
				files.Count,
				len(names)-1,
			)
			return
		}
		w.set("filename", strings.ReplaceAll(strings.Join(names, ":"), `\`, "_"))
		low, high := files.Sizes[0].Bytes, files.Sizes[0].Bytes
		for _, f := range files.Sizes {
			low, high = min(low, f.Bytes), max(high, f.Bytes)
		}
		w.bytes("filesize", low)
		if low != high {
			w.options[len(w.options)-1].Value = load.Size(low) + "-" + load.Size(high)
			w.Note(s.Asked("Files", "sizes="), fmt.Sprintf("filesize=%s-%s", load.Size(low), load.Size(high)),
				"sizes are spread evenly between the smallest and the largest")
		}
		w.set("file_service_type", files.Order)
		w.bytes("size", files.Bytes())
		return
	}
	names := make([]string, len(s.Targets))
	size := int64(0)
	for i, t := range s.Targets {
		names[i] = strings.NewReplacer(`:`, `\:`).Replace(t.Name)
		size += max(t.Bytes-s.From.Bytes, 0)
		if t.Bytes == 0 || t.Bytes != s.Targets[0].Bytes {
			if len(s.Targets) > 1 && t.Bytes != s.Targets[0].Bytes {
				w.Refuse(s.Asked("Targets", t.Name), "targets of one stream are of one size; say the size of each")
			}
			size = 0
		}
	}
	w.set("filename", strings.Join(names, ":"))
	extent := func(key string, e load.Extent, times int64) {
		switch {
		case e.Percent > 0 && e.Percent != math.Trunc(e.Percent):
			w.Refuse(
				s.Asked(key, load.Number(e.Percent)+"%"),
				"fio takes whole percentages; say the size of the target",
			)
		case e.Percent > 0:
			w.set(key, load.Number(e.Percent)+"%")
		case e.Bytes > 0:
			w.bytes(key, e.Bytes*times)
		}
	}
	extent("offset", s.From, 1)
	switch {
	case !s.Span.Zero():
		extent("size", s.Span, int64(len(s.Targets)))
	case size > 0:
		if apart := s.Spread * int64(s.Threads-1); apart > 0 {
			if size -= apart * int64(len(s.Targets)); size <= 0 {
				w.Refuse(
					s.Asked("Spread", "threads that begin apart"),
					"the last of them begins behind the end of the target",
				)
				return
			}
			w.Note(
				s.Asked("Spread", "threads that begin apart"),
				"parts of "+load.Size(size),
				"each thread of fio goes through a part of its own, here it would go on to the end and from the beginning",
			)
		}
		w.bytes("size", size)
	}
	if s.Spread > 0 {
		w.bytes("offset_increment", s.Spread)
	}
}

// mostProcesses is how many one job of fio may have.
const mostProcesses = 4096

// concurrency says how many operations are in flight, and returns the processes that keep them so.
func (w *writer) concurrency() int {
	s := w.stream
	processes := s.Threads
	switch {
	case s.Mapped:
		w.set("ioengine", "mmap")
		processes = s.Threads * s.Depth
	case s.Direct:
		w.set("ioengine", "libaio")
		w.number("iodepth", int64(s.Depth))
	case s.Spread > 0: // more processes would each begin elsewhere
		w.set("ioengine", "psync")
		if s.Depth > 1 {
			w.Note(s.Asked("Depth", fmt.Sprintf("%d in flight", s.Depth)), "one in flight for each thread",
				"through the page cache a process of fio waits for every operation")
		}
	default:
		w.set("ioengine", "psync")
		processes = s.Threads * s.Depth
	}
	if !s.Direct && s.Spread == 0 && s.Depth > 1 && s.Random < 100 {
		w.Note(
			s.Asked("Depth", fmt.Sprintf("%d in flight", s.Depth)),
			fmt.Sprintf("numjobs=%d", processes),
			"through the page cache one fio process has one operation in flight, and each process goes through the target "+
				"on its own: several sequential streams, not one",
		)
	}
	if processes > mostProcesses {
		w.Refuse(s.Asked("Depth", "operations in flight"), "%d processes of fio; it has up to %d", processes,
			mostProcesses)
	}
	if processes > 1 {
		w.number("numjobs", int64(processes))
	}
	if s.Direct {
		w.set("direct", "1")
	}
	if s.Sync != "" {
		w.set("sync", s.Sync)
	}
	return processes
}

// access says which way the operations go, and where to.
func (w *writer) access() {
	s := w.stream
	name := "rw"
	switch {
	case s.Reads == 100:
		name = "read"
	case s.Reads == 0:
		name = "write"
	}
	if s.Random > 0 {
		name = "rand" + name
	}
	if s.Skip > 0 {
		name += ":" + load.Size(s.Skip)
	}
	w.set("rw", name)
	if s.Reads > 0 && s.Reads < 100 {
		reads := math.Min(math.Max(math.Round(s.Reads), 1), 99)
		w.number("rwmixread", int64(reads))
		w.rounded("Reads", s.Reads, reads, "rwmixread")
		if s.Random < 100 {
			w.Note(s.Asked("Reads", "reads and writes mixed"), "rw="+name,
				"fio's reads and writes each have a position of their own, and are two sequential streams")
		}
	}
	if s.Random > 0 && s.Random < 100 {
		random := math.Min(math.Max(math.Round(s.Random), 1), 99)
		w.number("percentage_random", int64(random))
		w.rounded("Random", s.Random, random, "percentage_random")
	}
	if s.Random > 0 && !s.Once {
		w.flag("norandommap")
	}
	switch {
	case s.Random == 0:
	case s.Skew != "":
		w.set("random_distribution", s.Skew)
	case len(s.Zones) > 0:
		w.zones()
	}
}

// rounded notes that a number had to be a whole one.
func (w *writer) rounded(field string, asked, got float64, option string) {
	if math.Abs(asked-got) > 1e-9 {
		w.Note(w.stream.Asked(field, load.Number(asked)), fmt.Sprintf("%s=%s", option, load.Number(got)),
			"fio takes whole percentages: %s is asked for", load.Number(math.Round(asked*1000)/1000))
	}
}

// zones writes zones, which fio wants to add up to the whole.
func (w *writer) zones() {
	s := w.stream
	percentages, span := make([]float64, len(s.Zones)), 0.0
	for i, z := range s.Zones {
		percentages[i], span = z.Percent, span+z.Span.Percent
	}
	whole := load.Whole(percentages)
	kind, parts := "zoned_abs:", make([]string, len(s.Zones))
	if span > 0 {
		kind = "zoned:"
	}
	for i, z := range s.Zones {
		if extent := load.Number(z.Span.Percent); span == 0 {
			parts[i] = fmt.Sprintf("%d/%s", whole[i], load.Size(z.Span.Bytes))
		} else {
			parts[i] = fmt.Sprintf("%d/%s", whole[i], extent)
		}
		w.rounded("Zones", z.Percent, float64(whole[i]), "a zone")
	}
	w.set("random_distribution", kind+strings.Join(parts, ":"))
}

// sizes says how large operations are.
func (w *writer) sizes() {
	s := w.stream
	if len(s.Sizes) == 1 {
		w.bytes("bs", s.Sizes[0].Bytes)
	} else {
		percentages, even := make([]float64, len(s.Sizes)), true
		for i, share := range s.Sizes {
			percentages[i] = share.Percent
			even = even && math.Abs(share.Percent-s.Sizes[0].Percent) < 1e-9
		}
		whole := load.Whole(percentages)
		parts := make([]string, len(s.Sizes))
		for i, share := range s.Sizes {
			if even {
				parts[i] = load.Size(share.Bytes) + "/"
				continue
			}
			parts[i] = fmt.Sprintf("%s/%d", load.Size(share.Bytes), whole[i])
			w.rounded("Sizes", share.Percent, float64(whole[i]), "bssplit")
		}
		if len(parts) > 64 {
			w.Refuse(s.Asked("Sizes", "sizes"), "fio takes up to 64 sizes of operations")
		}
		w.set("bssplit", strings.Join(parts, ":"))
	}
	if s.Align > 0 {
		w.bytes("ba", s.Align)
	}
}
