package fio

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/workloads/fio/fiofile"
)

// sizeUnit rounds scaled sizes of at least as many bytes down. It is larger than nearly every
// block size, so that an extent and the offset of its neighbour, scaled apart, still meet.
const sizeUnit = 1 << 20

// scaleSizes multiplies every amount of data by the size scale.
func (a *adaptation) scaleSizes() {
	if a.spec.SizeScale == 1 || a.spec.Prefill && a.spec.Whole { // disks are as large as they are
		return
	}
	blocks := make(map[string]int64)      // by section name; "" holds the largest of all, for [global]
	for _, job := range a.source.Jobs() { // the author's blocks, also for prefill, so that both have one layout
		b := largestBlock(job)
		blocks[job.Name] = max(blocks[job.Name], b)
		blocks[""] = max(blocks[""], b)
	}
	for i := range a.out.Sections {
		s := &a.out.Sections[i]
		block := blocks[s.Name]
		if s.Name == fiofile.Global {
			block = blocks[""]
		}
		for j := range s.Options {
			o := &s.Options[j]
			if action := table[o.Key].action; action == scaleSize || action == scaleArea {
				a.scaleOption(s, o, max(block, 512))
			}
		}
	}
}

func (a *adaptation) scaleOption(s *fiofile.Section, o *fiofile.Option, block int64) {
	zeroStays := table[o.Key].action == scaleArea
	parts := strings.Split(o.Value, "-") // filesize may be a range
	for i, part := range parts {
		size, err := a.parseSize(s, part)
		switch {
		case err != nil:
			a.object(s, *o, fmt.Sprintf("cannot be scaled: %v", err))
			return
		case size.Percent > 0:
			continue
		case o.Key == "number_ios":
			parts[i] = strconv.FormatInt(max(1, int64(float64(size.Bytes)*a.spec.SizeScale)), 10)
		case size.Bytes == 0 || zeroStays && float64(size.Bytes)*a.spec.SizeScale < float64(block):
			parts[i] = "0"
		default:
			parts[i] = strconv.FormatInt(scaled(size.Bytes, a.spec.SizeScale, block), 10)
		}
	}
	o.Value = strings.Join(parts, "-")
}

// scaled multiplies n by scale, rounds down to whole units of 1 MiB (to whole blocks where blocks do not divide
// 1 MiB, or less than that is left) and gives at least one block.
func scaled(n int64, scale float64, block int64) int64 {
	product := float64(n) * scale
	if product >= math.MaxInt64/2 {
		product = math.MaxInt64 / 2
	}
	unit := block
	if product >= sizeUnit && sizeUnit%block == 0 {
		unit = sizeUnit
	}
	return max(int64(product)/unit, 1) * unit
}

func (a *adaptation) parseSize(s *fiofile.Section, text string) (fiofile.Size, error) {
	base := int64(1024)
	for _, job := range a.out.Jobs() {
		if (job.Name == s.Name || s.Name == fiofile.Global) && job.Value("kb_base") == "1000" {
			base = 1000
		}
	}
	return fiofile.ParseSizeBase(text, base)
}

// largestBlock is the largest block size of a job in bytes; fio's default is 4096.
func largestBlock(job fiofile.Job) int64 {
	largest := int64(0)
	take := func(text string) {
		if size, err := fiofile.ParseSize(text); err == nil {
			largest = max(largest, size.Bytes)
		}
	}
	if split := job.Value("bssplit"); split != "" {
		for entry := range strings.FieldsFuncSeq(split, func(r rune) bool { return r == ':' || r == ',' }) {
			size, _, _ := strings.Cut(entry, "/")
			take(size)
		}
	}
	for _, key := range []string{"bsrange", "bs"} {
		for entry := range strings.FieldsFuncSeq(job.Value(key), func(r rune) bool { return r == ',' || r == '-' }) {
			take(entry)
		}
	}
	if largest == 0 {
		return 4096
	}
	return largest
}

// scaleTimes multiplies the author's durations by the time scale. think times and latency targets are properties of
// the load, not of the schedule, and stay.
func (a *adaptation) scaleTimes() {
	for i := range a.out.Sections {
		s := &a.out.Sections[i]
		for j := range s.Options {
			o := &s.Options[j]
			if table[o.Key].action != scaleTime || a.spec.TimeScale == 1 {
				continue
			}
			parts := strings.Split(o.Value, "-") // startdelay may be a range
			for k, part := range parts {
				d, err := parseTime(part)
				if err != nil {
					a.object(s, *o, fmt.Sprintf("cannot be scaled: %v", err))
					break
				}
				parts[k] = formatTime(time.Duration(float64(d) * a.spec.TimeScale))
			}
			o.Value = strings.Join(parts, "-")
		}
	}
}

var timeUnits = map[string]time.Duration{
	"": time.Second, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second,
	"ms": time.Millisecond, "msec": time.Millisecond, "us": time.Microsecond, "usec": time.Microsecond,
}

// parseTime reads a duration as fio writes them: seconds, or a number with d, h, m, s, ms or us.
func parseTime(text string) (time.Duration, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(t, "abcdefghijklmnopqrstuvwxyz")
	unit, ok := timeUnits[t[len(digits):]]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%q is not a duration; write whole seconds, or a number with d, h, m, s, ms or us", text)
	}
	return time.Duration(n) * unit, nil
}

// formatTime writes a duration for fio, never rounding a positive one to zero.
func formatTime(d time.Duration) string {
	switch {
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10)
	case d >= time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return strconv.FormatInt(max(1, d.Microseconds()), 10) + "us"
}
