// Package probe asks what a device can do: it writes the job files of sweeps and of the lines of a data sheet, and
// judges what was measured by the sheet.
//
// It stands before the reader of job files (workload.OwnReader), which makes a scenario of them, and after the
// comparison, whose figures it holds against the sheet; it runs nothing itself. Every device is loaded by itself, one
// after the other, by a section of its own that waits for the one before. It refuses loads that would not measure what
// they say: working sets below a block, levels given twice, a mix of one kind of operation.
//
// Pure: no I/O, no clock, no randomness.
package probe

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
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/unit"
)

// Sweep is a load on one device or several, and what of it takes several values.
type Sweep struct {
	Devices   []string // what the devices are called, each once: names of workloads
	Factors   []Factor // one or more; the last one turns fastest
	ReadWrite string   // read, write, randread, randwrite, rw or randrw
	Access    string   // how unevenly random offsets fall: "" or uniform, zipf:1.2, pareto:0.9, normal:20
	Block     unit.Bytes
	Size      unit.Bytes // what is worked on: the largest working set
	Depth     int        // operations outstanding per process
	Processes int
	ReadShare int // percent of a mix that reads
	Buffered  bool
	ReadOnly  bool          // the devices hold what is not ours: nothing is filled, and only reads are let through
	Duration  time.Duration // measured at every point, in whole seconds
	WarmUp    time.Duration // left out before it
	Repeats   int
}

// Factor is something that takes several values.
type Factor struct {
	What   string   // iodepth, bs, wss or mix
	Levels []string // nil: the usual ones
}

// What can be swept, with the generator's option and what people call it.
var whats = []struct{ name, key, called string }{
	{"iodepth", "iodepth", "queue depth"},
	{"bs", "bs", "block size"},
	{"wss", "size", "working set"},
	{"mix", "rwmixread", "share of reads"},
}

// Whats are the names of what can be swept.
func Whats() (names []string) {
	for _, w := range whats {
		names = append(names, w.name)
	}
	return names
}

// Usual levels. Working sets depend on the largest: usualSets at most, each a power of two times the one before.
var (
	usualDepths = []string{"1", "2", "4", "8", "16", "32", "64", "128", "256"}
	usualBlocks = []string{"4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m"}
	usualMixes  = []string{"100", "75", "50", "25", "0"}
)

const (
	usualSets    = 9
	smallestSet  = 16 * unit.MiB
	deepest      = 4096
	mostLevels   = 64
	mostPoints   = 1000
	largestBlock = 64 * unit.MiB
)

var readWrites = []string{"read", "write", "randread", "randwrite", "rw", "randrw"}

// Request is the job file of the sweep with its levels. The error holds all objections.
func (s Sweep) Request() (workload.OwnRequest, error) {
	c := &composer{Sweep: s}
	c.check()
	var sweeps []workload.Sweep
	points := 1
	var called []string
	for _, f := range s.Factors {
		i := slices.IndexFunc(whats, func(w struct{ name, key, called string }) bool { return w.name == f.What })
		if i < 0 {
			c.object("--what %q: want %s", f.What, strings.Join(Whats(), ", "))
			continue
		}
		levels := c.levels(f)
		points *= max(len(levels), 1)
		sweeps = append(sweeps, workload.Sweep{Key: whats[i].key, Values: levels})
		called = append(called, whats[i].called)
	}
	if points > mostPoints {
		c.object("%d points: at most %d; give fewer --levels", points, mostPoints)
	}
	if len(c.bad) > 0 {
		return workload.OwnRequest{}, errors.Join(c.bad...)
	}
	title := "sweep-of-" + strings.ReplaceAll(strings.Join(called, "-and-"), " ", "-")
	return workload.OwnRequest{
		Name: title + ".fio", Data: []byte(c.job()), Sweeps: sweeps, Repeats: s.Repeats, Runtime: s.Duration,
		Fill: true, ReadOnly: s.ReadOnly,
		Title: "Sweep of " + strings.Join(called, " and "), Summary: c.summary(called),
	}, nil
}

// Longest is the time that the points of a sweep measure and warm up, all repeats and devices together, and how many
// points there are. What is made, filled and removed around them comes on top.
func (s Sweep) Longest(r workload.OwnRequest) (points int, total time.Duration) {
	points = 1
	for _, w := range r.Sweeps {
		points *= len(w.Values)
	}
	return points, time.Duration(points*s.Repeats*len(s.Devices)) * (s.Duration + s.WarmUp)
}

type composer struct {
	Sweep
	bad []error
}

func (c *composer) object(format string, args ...any) {
	c.bad = append(c.bad, fmt.Errorf(format, args...))
}

func (c *composer) sweeps(what string) bool {
	return slices.ContainsFunc(c.Factors, func(f Factor) bool { return f.What == what })
}

var isLabel = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}$`)

func (c *composer) check() {
	if len(c.Factors) == 0 {
		c.object("nothing to sweep: --what takes %s", strings.Join(Whats(), ", "))
	}
	for i, f := range c.Factors {
		if slices.ContainsFunc(c.Factors[:i], func(o Factor) bool { return o.What == f.What }) {
			c.object("--what %s is given twice", f.What)
		}
	}
	if len(c.Devices) == 0 {
		c.object("no device")
	}
	for i, d := range c.Devices {
		if !isLabel.MatchString(d) || slices.Contains(c.Devices[:i], d) {
			c.object("device %q: its name has other characters than letters, digits and _ . -, or is there twice", d)
		}
	}
	if !slices.Contains(readWrites, c.ReadWrite) {
		c.object("--rw %q: want one of %s", c.ReadWrite, strings.Join(readWrites, ", "))
	}
	if c.sweeps("mix") && !c.mixed() {
		c.object("--rw %s does one kind of operation, and --what mix varies the share of reads: want rw or randrw",
			c.ReadWrite)
	}
	if c.ReadOnly && c.ReadWrite != "read" && c.ReadWrite != "randread" {
		c.object(
			"--rw %s writes, and devices are only read unless their --consent is given: what is on them would be lost",
			c.ReadWrite,
		)
	}
	if _, err := distribution(c.Access); err != nil {
		c.bad = append(c.bad, err)
	} else if !c.uniform() && !c.random() {
		c.object("--access %s: offsets of --rw %s are not drawn; want randread, randwrite or randrw", c.Access,
			c.ReadWrite)
	}
	if c.Block < 512 || c.Block > largestBlock || c.Block%512 != 0 {
		c.object("--bs %s: want a multiple of 512 B up to %s", c.Block.Exact(), largestBlock)
	}
	if c.Size < max(c.Block, unit.MiB) {
		c.object("--size %s: want %s or more", c.Size.Exact(), max(c.Block, unit.MiB))
	}
	if c.Depth < 1 || c.Depth > deepest {
		c.object("--iodepth %d: want 1 to %d", c.Depth, deepest)
	}
	if c.Processes < 1 || c.Processes > 256 {
		c.object("--numjobs %d: want 1 to 256", c.Processes)
	} else if c.Processes > 1 && !c.random() && c.sweeps("wss") {
		c.object("--numjobs %d with sequential --rw %s: the processes would read what another has just read; sweep the "+
			"working set at random, or with one process", c.Processes, c.ReadWrite)
	}
	if c.ReadShare < 0 || c.ReadShare > 100 {
		c.object("--read-share %d: want 0 to 100", c.ReadShare)
	}
	if c.Repeats < 1 || c.Repeats > 1000 {
		c.object("--repeats %d: want 1 to 1000", c.Repeats)
	}
	if c.Duration < time.Second || c.Duration%time.Second != 0 {
		c.object("--duration %s: want whole seconds, 1 or more", c.Duration)
	}
	if c.WarmUp < 0 || c.WarmUp%time.Second != 0 {
		c.object("--warm-up %s: want whole seconds, 0 or more", c.WarmUp)
	}
}

func (c *composer) mixed() bool   { return c.ReadWrite == "rw" || c.ReadWrite == "randrw" }
func (c *composer) random() bool  { return strings.HasPrefix(c.ReadWrite, "rand") }
func (c *composer) uniform() bool { return c.Access == "" || c.Access == "uniform" }

// distribution is how fio calls an access distribution, "" for an even one.
func distribution(access string) (string, error) {
	name, text, given := strings.Cut(access, ":")
	if access == "" || access == "uniform" {
		return "", nil
	}
	v, err := strconv.ParseFloat(text, 64)
	finite := err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	switch {
	case name == "zipf" && given && finite && v > 0 && v <= 10 && v != 1,
		name == "pareto" && given && finite && v > 0 && v < 1,
		name == "normal" && given && finite && v > 0 && v <= 100:
		return name + ":" + strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return "", fmt.Errorf(
		"--access %q: want uniform, zipf:THETA (above 0, not 1, like zipf:1.2), pareto:H (between 0 and "+
			"1, like pareto:0.9) or normal:PERCENT",
		access,
	)
}

// levels are the checked values of a factor as the generator reads them.
func (c *composer) levels(f Factor) (out []string) {
	given := f.Levels
	if given == nil {
		switch f.What {
		case "iodepth":
			given = usualDepths
		case "bs":
			given = usualBlocks
		case "mix":
			given = usualMixes
		case "wss":
			given = c.sets()
		}
	}
	if len(given) < 2 || len(given) > mostLevels {
		c.object("--levels of %s: %d values: want 2 to %d", f.What, len(given), mostLevels)
	}
	for _, text := range given {
		level, err := c.level(f.What, strings.TrimSpace(text))
		if err != nil {
			c.object("--levels of %s: %w", f.What, err)
		} else if slices.Contains(out, level) {
			c.object("--levels of %s: %q is there twice", f.What, text)
		}
		out = append(out, level)
	}
	return out
}

func (c *composer) level(what, text string) (string, error) {
	if what == "iodepth" || what == "mix" {
		low, high := 1, deepest
		if what == "mix" {
			low, high = 0, 100
		}
		n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		if err != nil || n < low || n > high || what != "mix" && strings.HasSuffix(text, "%") {
			return "", fmt.Errorf("%q: want a whole number from %d to %d", text, low, high)
		}
		return strconv.Itoa(n), nil
	}
	b, err := unit.ParseBytes(text)
	switch {
	case err != nil:
		return "", err
	case what == "bs" && (b < 512 || b > largestBlock || b%512 != 0):
		return "", fmt.Errorf("%q: want a multiple of 512 B up to %s", text, largestBlock)
	case what == "bs" && b > c.Size:
		return "", fmt.Errorf("%q: larger than --size %s", text, c.Size)
	case what == "wss" && (b < c.Block || b%512 != 0):
		return "", fmt.Errorf("%q: want a multiple of 512 B, and a block of %s or more", text, c.Block)
	case what == "wss" && b > c.Size:
		return "", fmt.Errorf("%q: larger than --size %s", text, c.Size)
	}
	return short(b), nil
}

// sets are working sets up to the largest, each the same power of two times the one before.
func (c *composer) sets() (out []string) {
	smallest := max(min(smallestSet, c.Size/256), c.Block, 512)
	for step := unit.Bytes(2); step <= 1<<20; step *= 2 {
		out = nil
		for b := c.Size; b >= smallest && b > 0; b /= step {
			out = append(out, short(b/512*512))
		}
		if len(out) <= usualSets {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// short writes a size as job files have it: 4k, 1m, 16g.
func short(b unit.Bytes) string {
	for _, u := range []struct {
		size unit.Bytes
		name string
	}{{unit.GiB, "g"}, {unit.MiB, "m"}, {unit.KiB, "k"}} {
		if b > 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// job is the job file. Random offsets are drawn independently (norandommap): a map would visit every block once before
// any twice, for which caches answer otherwise. Every run draws others (randrepeat=0), so that repeats are repeats.
func (c *composer) job() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[global]")
	line("ioengine=libaio")
	if c.Buffered {
		line("direct=0")
	} else {
		line("direct=1")
	}
	line("time_based")
	if c.WarmUp > 0 {
		line("ramp_time=%d", c.WarmUp/time.Second)
	}
	line("rw=%s", c.ReadWrite)
	if c.mixed() {
		line("rwmixread=%d", c.ReadShare)
	}
	if c.random() {
		line("norandommap")
		line("randrepeat=0")
	}
	if d, err := distribution(c.Access); err == nil && d != "" {
		line("random_distribution=%s", d)
	}
	line("bs=%s", short(c.Block))
	line("iodepth=%d", c.Depth)
	size := c.Size
	if c.Processes > 1 {
		line("numjobs=%d", c.Processes)
		if !c.random() { // each has its own part
			size = max(c.Size/unit.Bytes(c.Processes)/unit.MiB*unit.MiB, c.Block)
			line("offset_increment=%s", short(size))
		}
	}
	for _, d := range c.Devices {
		line("\n[%s]", d)
		line("stonewall")
		line("filename=%s", d)
		line("size=%s", short(size))
	}
	return b.String()
}

func (c *composer) summary(called []string) string {
	kind := map[string]string{"read": "sequential reads", "write": "sequential writes",
		"rw": "sequential reads and writes", "randread": "random reads", "randwrite": "random writes",
		"randrw": "random reads and writes"}[c.ReadWrite]
	var kept []string
	if !c.sweeps("bs") {
		kept = append(kept, "blocks of "+c.Block.String())
	}
	if !c.sweeps("iodepth") {
		kept = append(kept, "queue depth "+strconv.Itoa(c.Depth))
	}
	if c.Processes > 1 {
		kept = append(kept, unit.Plural(c.Processes, "process"))
	}
	if !c.sweeps("wss") {
		kept = append(kept, "over "+c.Size.String())
	}
	if !c.uniform() {
		kept = append(kept, "access "+c.Access)
	}
	if c.Buffered {
		kept = append(kept, "through the page cache")
	}
	return fmt.Sprintf("What %s gives for %s on %s: %s.", strings.Join(called, " with "), kind,
		strings.Join(c.Devices, ", "), cmp.Or(strings.Join(kept, ", "), "all else as it is"))
}
