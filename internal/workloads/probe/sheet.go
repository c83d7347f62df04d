package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/nearest"
	"plimsoll/unit"
)

// Measure tells what a line of a data sheet rates.
type Measure string

// What lines rate.
const (
	Bandwidth Measure = "bandwidth" // bytes per second
	Rate      Measure = "rate"      // operations per second
	Latency   Measure = "latency"   // mean seconds per operation
)

// Line is one line of a data sheet, with the load by which it is measured.
type Line struct {
	Name      string // of the rating: random-read
	Workload  string // each once: random-read, or random-read-2
	At        int    // its line in the file; 0 where it was not from one
	Measure   Measure
	Text      string  // as the sheet has it
	Rated     float64 // in the unit of the measure
	ReadWrite string
	Block     unit.Bytes
	Depth     int
	Processes int
}

// Writes reports whether measuring the line writes.
func (l Line) Writes() bool { return strings.HasSuffix(l.ReadWrite, "write") }

// Sheet holds what a vendor says of a device.
type Sheet struct {
	Device    string // any words
	Interface string // sata, sas, nvme, or "" for one that is not said
	Lines     []Line
}

// QueueMost is how many operations the interface queues, 0 where that is not known or more than matters.
func (s Sheet) QueueMost() int { return interfaces[s.Interface] }

// interfaces are the buses that a sheet may name, with how many commands a device on it queues; 0: more than matters.
var interfaces = map[string]int{"sata": 32, "sas": 256, "nvme": 0}

// ratings are the lines there are, with the usual load where the sheet does not say it.
var ratings = []struct {
	name      string
	measure   Measure
	readWrite string
	block     unit.Bytes
	depth     int
}{
	{"sequential-read", Bandwidth, "read", 128 * unit.KiB, 32},
	{"sequential-write", Bandwidth, "write", 128 * unit.KiB, 32},
	{"random-read", Rate, "randread", 4 * unit.KiB, 32},
	{"random-write", Rate, "randwrite", 4 * unit.KiB, 32},
	{"random-read-latency", Latency, "randread", 4 * unit.KiB, 1},
	{"random-write-latency", Latency, "randwrite", 4 * unit.KiB, 1},
}

// Ratings are the names of the lines there are.
func Ratings() (names []string) {
	for _, r := range ratings {
		names = append(names, r.name)
	}
	return names
}

// mostSheetLines is far more than a data sheet has.
const mostSheetLines = 100

// ParseSheet reads a data sheet: YAML lines of NAME: RATING, where a rating is a value, a mapping of rated with bs,
// iodepth and numjobs, or a list of them; besides them device and interface. The error holds all objections, each with
// its line. It is read as far as it can be all the same.
func ParseSheet(name string, data []byte) (Sheet, error) {
	var s Sheet
	var tree yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&tree); {
	case errors.Is(err, io.EOF), err == nil && (len(tree.Content) != 1 || tree.Content[0].Kind != yaml.MappingNode):
		return s, fmt.Errorf("%s: want lines of NAME: VALUE", name)
	case err != nil:
		return s, fmt.Errorf("%s: %w", name, err)
	}
	r := sheetReader{name: name, sheet: &s}
	seen := map[string]bool{}
	top := tree.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		key, value := top[i], top[i+1]
		twice := seen[key.Value]
		seen[key.Value] = true
		switch {
		case (key.Value == "device" || key.Value == "interface") && value.Kind != yaml.ScalarNode,
			value.Kind == yaml.ScalarNode && value.Value == "", value.Kind == yaml.AliasNode:
			r.object(key, "%s: want one value", key.Value)
			seen[key.Value] = twice
		case twice:
			r.object(key, "%s: is given twice", key.Value)
		case key.Value == "device":
			s.Device = value.Value
		case key.Value == "interface":
			s.Interface = strings.ToLower(value.Value)
			if _, ok := interfaces[s.Interface]; !ok {
				r.object(value, "interface %q: want sata, sas or nvme", value.Value)
			}
		case !slices.Contains(Ratings(), key.Value):
			if like := nearest.Of(key.Value, Ratings()); like != "" {
				r.object(key, "no rating %q; did you mean %q?", key.Value, like)
			} else {
				r.object(key, "no rating %q", key.Value)
			}
		case value.Kind == yaml.SequenceNode:
			if len(value.Content) == 0 {
				r.object(key, "%s: want one value", key.Value)
			}
			for _, one := range value.Content {
				r.rating(key, one)
			}
		default:
			r.rating(key, value)
		}
	}
	if len(s.Lines) > mostSheetLines {
		r.bad = append(r.bad, fmt.Errorf("%s: %d lines: at most %d", name, len(s.Lines), mostSheetLines))
	}
	s.fill(&r)
	return s, errors.Join(r.bad...)
}

type sheetReader struct {
	name  string
	sheet *Sheet
	bad   []error
}

func (r *sheetReader) object(at *yaml.Node, format string, args ...any) {
	r.bad = append(r.bad, fmt.Errorf("%s:%d: %w", r.name, at.Line, fmt.Errorf(format, args...)))
}

// rating reads one rating of a line.
func (r *sheetReader) rating(key, value *yaml.Node) {
	l := Line{Name: key.Value, At: value.Line}
	if value.Kind == yaml.ScalarNode {
		l.Text = value.Value
		r.add(key, l)
		return
	}
	if value.Kind != yaml.MappingNode {
		r.object(value, "%s: want a value, or rated: with bs:, iodepth: and numjobs:", key.Value)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(value.Content); i += 2 {
		k, v := value.Content[i], value.Content[i+1]
		if seen[k.Value] {
			r.object(k, "%s: %s: is given twice", key.Value, k.Value)
			continue
		}
		seen[k.Value] = true
		number := func(high int) int {
			n, err := strconv.Atoi(v.Value)
			if err != nil || n < 1 || n > high {
				r.object(v, "%s: %s: %q is not a whole number from 1 to %d", key.Value, k.Value, v.Value, high)
			}
			return n
		}
		switch k.Value {
		case "rated":
			l.Text, l.At = v.Value, v.Line
		case "bs":
			b, err := unit.ParseBytes(v.Value)
			if err != nil || b < 512 || b > largestBlock || b%512 != 0 {
				r.object(v, "%s: bs: %q is not a multiple of 512 B up to %s", key.Value, v.Value, largestBlock)
			}
			l.Block = b
		case "iodepth":
			l.Depth = number(deepest)
		case "numjobs":
			l.Processes = number(256)
		default:
			r.object(k, "%s: %q: want rated, bs, iodepth or numjobs", key.Value, k.Value)
		}
	}
	if !seen["rated"] {
		r.object(value, "%s: nothing is rated: write rated: VALUE", key.Value)
		return
	}
	r.add(key, l)
}

func (r *sheetReader) add(key *yaml.Node, l Line) {
	if err := l.rate(l.Text); err != nil {
		r.bad = append(r.bad, fmt.Errorf("%s:%d: %s: %w", r.name, l.At, key.Value, err))
		return
	}
	r.sheet.Lines = append(r.sheet.Lines, l)
}

// rate reads what is rated in the unit of the line.
func (l *Line) rate(text string) error {
	i := slices.Index(Ratings(), l.Name)
	l.Measure = ratings[i].measure
	var err error
	switch l.Measure {
	case Bandwidth:
		var b unit.Bandwidth
		b, err = unit.ParseBandwidth(text)
		l.Rated = float64(b)
	case Rate:
		var v unit.Rate
		v, err = unit.ParseRate(text)
		l.Rated = float64(v)
	default:
		var d unit.Duration
		d, err = unit.ParseDuration(text)
		l.Rated = float64(d) / 1e9
	}
	if err == nil && !(l.Rated > 0) {
		err = fmt.Errorf("%q: a rating above 0 is wanted", text)
	}
	return err
}

// fill gives lines the usual load where they say none, and names that differ.
func (s *Sheet) fill(r *sheetReader) {
	queue := interfaces[s.Interface]
	for i := range s.Lines {
		l := &s.Lines[i]
		usual := ratings[slices.Index(Ratings(), l.Name)]
		l.ReadWrite = usual.readWrite
		if l.Block == 0 {
			l.Block = usual.block
		}
		if l.Depth == 0 && l.Processes == 0 && s.Interface == "nvme" && l.Measure == Rate {
			l.Depth, l.Processes = 64, 4 // drives of many queues are rated with several filled
		}
		if l.Depth == 0 {
			l.Depth = usual.depth
		}
		l.Processes = max(l.Processes, 1)
		if queue > 0 && l.Depth*l.Processes > queue {
			r.bad = append(r.bad, fmt.Errorf("%s:%d: %s: %d in flight, and %s queues %d: what is beyond only waits; give an "+
				"iodepth and numjobs that fit", r.name, l.At, l.Name, l.Depth*l.Processes, strings.ToUpper(s.Interface),
				queue))
		}
		l.Workload = l.Name
		for n := 2; slices.ContainsFunc(s.Lines[:i], func(o Line) bool { return o.Workload == l.Workload }); n++ {
			l.Workload = fmt.Sprintf("%s-%d", l.Name, n)
		}
	}
}

// Spec measures the lines of a data sheet on one device.
type Spec struct {
	Sheet
	Sweep // Size, Duration, WarmUp and Repeats of it count
}

// Request is the job file that measures every line by itself, one after the other, what only reads first. The error
// holds all objections.
func (s Spec) Request() (workload.OwnRequest, error) {
	c := &composer{Sweep: s.Sweep}
	c.ReadWrite, c.Block, c.Depth, c.Processes = "read", 128*unit.KiB, 1, 1
	c.Devices, c.Factors = []string{"device"}, []Factor{{What: "iodepth"}}
	c.check()
	if len(s.Lines) == 0 {
		c.object("the data sheet has no line to be measured: %s", strings.Join(Ratings(), ", "))
	}
	if s.Repeats == 1 {
		c.object("--repeats 1: want 2 or more: without repeats nothing says what another run would give")
	}
	if s.ReadOnly {
		s.Lines = slices.DeleteFunc(slices.Clone(s.Lines), Line.Writes)
	}
	for _, l := range s.Lines {
		if l.Block*unit.Bytes(l.Processes) > s.Size {
			c.object("--size %s: too small for %s: %d processes with blocks of %s", s.Size, l.Name, l.Processes, l.Block)
		}
	}
	if len(c.bad) > 0 {
		return workload.OwnRequest{}, errors.Join(c.bad...)
	}
	var b strings.Builder
	b.WriteString("[global]\nioengine=libaio\ndirect=1\ntime_based\n")
	if s.WarmUp > 0 {
		fmt.Fprintf(&b, "ramp_time=%d\n", int(s.WarmUp.Seconds()))
	}
	for _, writes := range []bool{false, true} {
		for _, l := range s.Lines {
			if l.Writes() == writes {
				b.WriteString(l.section(s.Size))
			}
		}
	}
	title := "Data sheet"
	if s.Device != "" {
		title += " of " + s.Device
	}
	return workload.OwnRequest{Name: "data-sheet.fio", Data: []byte(b.String()), Repeats: s.Repeats,
		Runtime: s.Duration, Fill: true, ReadOnly: s.ReadOnly, Title: title,
		Summary: "What a device does by the lines of its data sheet, each measured by itself."}, nil
}

func (l Line) section(size unit.Bytes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n[%s]\nstonewall\nfilename=device\nrw=%s\nbs=%s\niodepth=%d\n", l.Workload, l.ReadWrite,
		short(l.Block), l.Depth)
	if strings.HasPrefix(l.ReadWrite, "rand") {
		b.WriteString("norandommap\nrandrepeat=0\n")
	}
	if l.Processes > 1 {
		fmt.Fprintf(&b, "numjobs=%d\n", l.Processes)
		if !strings.HasPrefix(l.ReadWrite, "rand") {
			size = max(size/unit.Bytes(l.Processes)/unit.MiB*unit.MiB, l.Block)
			fmt.Fprintf(&b, "offset_increment=%s\n", short(size))
		}
	}
	fmt.Fprintf(&b, "size=%s\n", short(size))
	return b.String()
}
