package fio

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/hist"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/unit"
)

// document is one status report of fio, as far as we read it.
type document struct {
	version  string
	stampMS  uint64 // wall clock, 0 when the version prints none
	ramp     bool   // some section has a ramp_time or ramp_size
	jobs     []entry
	clients  []entry // client/server mode
	problems []string
	global   settings
	disk     diskUse
}

// entry is one element of jobs or client_stats.
type entry struct {
	name, host string
	numjobs    uint64
	code       uint64 // "error": the errno a job ended with
	errors     uint64
	eta        uint64
	hasETA     bool
	elapsedS   uint64
	runtimeMS  uint64 // job_runtime, summed over processes
	cpuPercent float64
	dirs       [3]direction // read, write, trim
	mixed      direction    // unified_rw_reporting
	sync       timing       // of fsync and fdatasync
	group      uint64
	startMS    uint64 // wall clock, 0 when the version prints none
	options    settings
	steady     string
	deep       bool // "iodepth_level": it had more than one operation in flight at times
}

// direction holds what fio says of reads, writes or trims.
type direction struct {
	ios, bytes      uint64
	hasIOs, inBytes bool    // 2.1 prints no total_ios; io_bytes means KiB unless io_kbytes stands beside it
	iops            float64 // over the whole time so far
	runtimeMS       uint64
	lat, clat       timing
}

// timing is one of fio's latency blocks, in nanoseconds.
type timing struct {
	given    bool
	count    uint64
	hasCount bool
	min, max uint64
	mean     float64
	bins     *hist.Histogram
	// percentiles are fio's own figures, in nanoseconds.
	percentiles []percentile
}

func (t *timing) has(name string) bool {
	return slices.ContainsFunc(t.percentiles, func(p percentile) bool { return p.name == name })
}

type percentile struct {
	name string
	ns   float64
}

// maxEntries is above what fio bears, 4096 jobs, for those of several clients. An entry takes much more memory than
// its text.
const maxEntries = 1 << 14

const (
	millisecond = 1_000_000
	second      = 1_000_000_000
)

// decode reads the document at the start of b and returns its length.
func decode(b []byte) (*document, int, error) {
	s := &scanner{b: b}
	d := &document{}
	seconds := uint64(0)
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "fio version":
			var t []byte
			t, err = s.text()
			d.version = string(t)
		case "timestamp":
			seconds, err = s.whole()
		case "timestamp_ms":
			d.stampMS, err = s.whole()
		case "global options":
			err = s.object(func(key []byte) error { return d.option(s, key, nil) })
		case "jobs":
			d.jobs, err = d.entries(s)
		case "client_stats":
			d.clients, err = d.entries(s)
		case "disk_util":
			err = d.disks(s)
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return nil, s.i, err
	}
	if d.stampMS == 0 {
		d.stampMS = seconds * 1000
	}
	if len(d.jobs) == 0 && len(d.clients) == 0 {
		return nil, s.i, fmt.Errorf("it has neither jobs nor client_stats")
	}
	return d, s.i, nil
}

func (d *document) option(s *scanner, key []byte, e *entry) error {
	if s.space(); s.next() != '"' {
		return s.skip()
	}
	name := string(key)
	value, err := s.word()
	if err != nil {
		return err
	}
	switch name {
	case "ramp_time", "ramp_size":
		d.ramp = d.ramp || strings.Trim(value, "0smhkgtpib") != ""
	case "numjobs":
		if n, convErr := strconv.ParseUint(value, 10, 16); convErr == nil && e != nil {
			e.numjobs = n
		}
	}
	o := fiofile.Option{Key: name, Value: value, Flag: value == ""}
	if e == nil {
		d.global = append(d.global, o)
	} else {
		e.options = append(e.options, o)
	}
	return nil
}

func (d *document) entries(s *scanner) ([]entry, error) {
	var out []entry
	err := s.array(func() error {
		if len(out) == maxEntries {
			return fmt.Errorf("it has more than %d jobs, which fio cannot", maxEntries)
		}
		out = append(out, entry{numjobs: 1})
		return d.entry(s, &out[len(out)-1])
	})
	return out, err
}

func (d *document) entry(s *scanner, e *entry) error {
	return s.object(func(key []byte) (err error) {
		switch string(key) {
		case "groupid":
			e.group, err = s.whole()
		case "job_start":
			e.startMS, err = s.whole()
		case "sync":
			err = s.object(func(key []byte) error {
				if string(key) == "lat_ns" {
					return d.timing(s, &e.sync, 1)
				}
				return s.skip()
			})
		case "steadystate":
			e.steady, err = steadyState(s)
		case "jobname":
			e.name, err = s.word()
		case "hostname":
			e.host, err = s.word()
		case "port":
			var port uint64
			port, err = s.whole()
			e.host += ":" + strconv.FormatUint(port, 10)
		case "error":
			e.code, err = s.whole()
		case "total_err":
			e.errors, err = s.whole()
		case "eta":
			e.hasETA = true
			e.eta, err = s.whole()
		case "elapsed":
			e.elapsedS, err = s.whole()
		case "job_runtime":
			e.runtimeMS, err = s.whole()
		case "usr_cpu", "sys_cpu":
			var p float64
			p, err = s.float()
			e.cpuPercent += max(p, 0)
		case "iodepth_level":
			err = s.object(func(key []byte) error {
				p, err := s.float()
				e.deep = e.deep || p > 0 && string(key) != "1"
				return err
			})
		case "job options":
			err = s.object(func(key []byte) error { return d.option(s, key, e) })
		case "read":
			err = d.direction(s, &e.dirs[0])
		case "write":
			err = d.direction(s, &e.dirs[1])
		case "trim":
			err = d.direction(s, &e.dirs[2])
		case "mixed":
			err = d.direction(s, &e.mixed)
		default:
			err = s.skip()
		}
		return err
	})
}

// steadyState reads what fio says of the steady state that it was asked to end at.
func steadyState(s *scanner) (string, error) {
	asked, over, is := "", uint64(0), "was not reached"
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "ss":
			asked, err = s.word()
		case "duration":
			over, err = s.whole()
		case "attained":
			n := uint64(0)
			if n, err = s.whole(); n > 0 {
				is = "was reached, and ended it"
			}
		default:
			err = s.skip()
		}
		return err
	})
	asked = strings.Replace(asked, ".000000", "", 1)
	return fmt.Sprintf("fio's own steady state (%s over %d s) %s", asked, over, is), err
}

func (s *scanner) word() (string, error) {
	t, err := s.text()
	return string(t), err
}

func (d *document) direction(s *scanner, r *direction) error {
	return s.object(func(key []byte) (err error) {
		switch string(key) {
		case "total_ios":
			r.hasIOs = true
			r.ios, err = s.whole()
		case "io_bytes":
			r.bytes, err = s.whole()
		case "io_kbytes":
			r.inBytes = true
			err = s.skip()
		case "iops":
			r.iops, err = s.float()
		case "runtime":
			r.runtimeMS, err = s.whole()
		case "lat_ns":
			err = d.timing(s, &r.lat, 1)
		case "clat_ns":
			err = d.timing(s, &r.clat, 1)
		case "lat":
			err = d.timing(s, &r.lat, 1000)
		case "clat":
			err = d.timing(s, &r.clat, 1000)
		case "lat_us", "lat_ms", "clat_us", "clat_ms":
			d.problems = append(d.problems, fmt.Sprintf("%s is no key of fio's; its unit cannot be trusted, so it "+
				"was not read", key))
			err = s.skip()
		default:
			err = s.skip()
		}
		return err
	})
}

// timing reads a latency block whose numbers are in units of so many nanoseconds.
func (d *document) timing(s *scanner, t *timing, unit uint64) error {
	t.given = true
	return s.object(func(key []byte) (err error) {
		switch string(key) {
		case "min":
			t.min, err = s.whole()
			t.min *= unit
		case "max":
			t.max, err = s.whole()
			t.max *= unit
		case "mean":
			t.mean, err = s.float()
			t.mean = max(t.mean, 0) * float64(unit)
		case "N":
			t.hasCount = true
			t.count, err = s.whole()
		case "percentile":
			err = s.object(func(key []byte) error {
				name := string(key)
				v, err := s.float()
				_, bad := strconv.ParseFloat(name, 64)
				if bad == nil && v >= 0 && strings.Trim(name, "0.") != "" && !t.has(name) {
					t.percentiles = append(t.percentiles, percentile{name, v * float64(unit)})
				}
				return err
			})
		case "bins":
			t.bins, err = bins(s, unit > 1)
		default:
			err = s.skip()
		}
		return err
	})
}

// bins reads json+ bins. From fio 3 on, and its 2.99 before, a key is the middle of its bucket in nanoseconds; in old
// ones it is the bucket's index in a layout of the same shape but in microseconds, and constants of the layout stand
// beside them.
func bins(s *scanner, old bool) (*hist.Histogram, error) {
	h := &hist.Histogram{}
	err := s.object(func(key []byte) error {
		bin, ok := digits(key)
		if !ok {
			return s.skip()
		}
		n, err := s.whole()
		switch {
		case err != nil:
			return err
		case n > maxCount || old && bin > maxBin:
			return fmt.Errorf("bin %d holds %d: out of range", bin, n)
		case old:
			addBin(h, int(bin), 1, Microseconds, n)
		default:
			h.AddBucket(hist.Index(bin), n)
		}
		return nil
	})
	return h, err
}

const (
	maxCount = 1 << 53 // of operations in one bin: more are no count but damage
	maxBin   = 29*64 - 1
)

// diskUse holds what fio's disk_util counted, of all disks together: of one that lies on others, both.
type diskUse struct {
	names   []string
	count   [2]float64 // reads and writes, with those that were merged into others
	bytes   [2]float64
	inBytes bool // bytes are told, as from fio 3.36 on
}

const (
	mostNames = 64
	// fewClaimed is a number of operations below which file systems and others drown a comparison.
	fewClaimed = 1000
	// missesDisks is which share of what was claimed the disks must have counted.
	missesDisks = 0.5
)

// disks reads disk_util.
func (d *document) disks(s *scanner) error {
	return s.array(func() error {
		return s.object(func(key []byte) (err error) {
			n := uint64(0)
			switch string(key) {
			case "name":
				var name string
				if name, err = s.word(); len(d.disk.names) < mostNames {
					d.disk.names = append(d.disk.names, name)
				}
			case "read_ios", "read_merges":
				n, err = s.whole()
				d.disk.count[0] += float64(n)
			case "write_ios", "write_merges":
				n, err = s.whole()
				d.disk.count[1] += float64(n)
			case "read_sectors":
				d.disk.inBytes = true
				n, err = s.whole()
				d.disk.bytes[0] += 512 * float64(n)
			case "write_sectors":
				n, err = s.whole()
				d.disk.bytes[1] += 512 * float64(n)
			default:
				err = s.skip()
			}
			return err
		})
	})
}

// unseen says how much of what its jobs report fio's own counts of the disks lack, "" where they have it or too little
// was done to tell. Counts lack what was gathered to fewer operations; bytes what never came, or came later.
func (d *document) unseen() string {
	if len(d.disk.names) == 0 || len(d.clients) > 0 {
		return ""
	}
	var lacks []string
	for i, name := range []string{"reads", "writes"} {
		ios, bytes := 0.0, 0.0
		for j := range d.jobs {
			ios += float64(d.jobs[j].dirs[i].ios)
			bytes += float64(d.jobs[j].dirs[i].bytes)
		}
		few := d.disk.count[i] < missesDisks*ios
		short := d.disk.inBytes && d.disk.bytes[i] < missesDisks*bytes
		if ios < fewClaimed || !few && !short {
			continue
		}
		lack := fmt.Sprintf("%.0f %s of %.0f", d.disk.count[i], name, ios)
		if d.disk.inBytes {
			lack += fmt.Sprintf(" (%s of %s)", sized(d.disk.bytes[i]), sized(bytes))
		}
		lacks = append(lacks, lack)
	}
	if len(lacks) == 0 {
		return ""
	}
	return fmt.Sprintf("fio's own counts of %s (disk_util) show %s that all its jobs report: the page cache, or another "+
		"layer above the disks, served, gathered or kept the others, so its rates are not those of the disks",
		strings.Join(d.disk.names, ", "), strings.Join(lacks, " and "))
}

func sized(bytes float64) unit.Bytes { return unit.Bytes(min(bytes, 1<<62)) }
