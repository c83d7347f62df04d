package fio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/hist"
)

// LogUnit is the unit of a log's latencies. fio 2 writes microseconds, fio 3 nanoseconds; no log says which.
type LogUnit int64

// Units of latency logs.
const (
	Nanoseconds  LogUnit = 1
	Microseconds LogUnit = 1000
)

// LogDirection is the kind of operation a log line is about.
type LogDirection int

// Directions as fio numbers them.
const (
	LogRead LogDirection = iota
	LogWrite
	LogTrim
)

// LogPoint is one line of a bandwidth, IOPS or latency log. With log_avg_msec the value is an average over the time
// since the line before: a percentile of such values is not a percentile of operations.
type LogPoint struct {
	Elapsed   time.Duration // since the job began
	Value     int64         // KiB/s, operations/s or latency in the log's own unit
	Direction LogDirection
	Block     int64 // bytes per operation, 0 for averages
	Offset    int64 // -1 when the log has none
	// Both: beside the value stands the largest of its time (log_window_value=both of fio 3.37 and later), Most.
	Both bool
	Most int64
}

const (
	maxLogLine = 1 << 20
	// maxLogTimeMS is beyond any clock, too: with log_unix_epoch times are those since 1970.
	maxLogTimeMS = int64(1) << 43
)

// EachLog reads a bw, iops, lat, slat or clat log line by line, of any length: time in ms, value, direction, block size
// and, from newer versions, offset and priority. The first line that is none of these and an error of f end it with an
// error naming the line.
func EachLog(r io.Reader, f func(LogPoint) error) error {
	empty := true
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(64 << 10) // what stands in the way of reading comes again
	both := bothValues(head)
	err := eachLine(in, math.MaxInt, func(fields []int64) error {
		most := int64(0)
		if both && len(fields) > 5 {
			most = fields[2]
			fields = slices.Delete(fields, 2, 3)
		}
		if err := checkLine(fields, 2); err != nil {
			return err
		}
		if len(fields) < 4 || len(fields) > 7 {
			return fmt.Errorf("%d values; a line has time, value, direction, block size, and maybe offset and priority",
				len(fields))
		}
		p := LogPoint{
			Elapsed: time.Duration(fields[0]) * time.Millisecond, Value: fields[1],
			Direction: LogDirection(fields[2]), Block: fields[3], Offset: -1, Both: both, Most: most,
		}
		if len(fields) > 4 {
			p.Offset = fields[4]
		}
		if p.Value < 0 || p.Block < 0 || p.Most < 0 {
			return errors.New("a negative value")
		}
		empty = false
		return f(p)
	})
	if err == nil && empty {
		err = errors.New("parse: fio log: it is empty")
	}
	return err
}

// bothValues reports whether a log that begins so has two values a line (log_window_value=both). One line may not tell:
// where both are small, the second looks like a direction. A log has the one form throughout.
func bothValues(head []byte) bool {
	for line := range bytes.Lines(head) {
		var n []int64
		for field := range bytes.SplitSeq(bytes.TrimSpace(line), []byte(",")) {
			v, err := logNumber(strings.TrimSpace(string(field)))
			if err != nil {
				break
			}
			n = append(n, v)
		}
		if line[len(line)-1] != '\n' || len(n) < 6 || n[3] > int64(LogTrim) {
			continue
		}
		// No direction is so great, no block so short, and an average of reads has no offset.
		if n[2] > int64(LogTrim) || n[3] > 0 || n[2] == 0 && n[4] > 0 {
			return true
		}
	}
	return false
}

// HistPoint is one line of a histogram log: the operations of one interval, in nanoseconds.
type HistPoint struct {
	Elapsed   time.Duration
	Direction LogDirection
	Block     int64
	Hist      *hist.Histogram
}

// ParseHistLog reads a clat_hist log. Its bins have the layout of package hist in the given unit, thinned out by fio's
// log_hist_coarseness, which is worked out from their number; a coarse bin is counted at its middle. Bins in
// microseconds are finer than ours only below 128 µs; there and elsewhere the error grows by at most half a microsecond
// or 0.79 %, whichever is more.
func ParseHistLog(r io.Reader, unit LogUnit) ([]HistPoint, error) {
	if unit != Nanoseconds && unit != Microseconds {
		return nil, fmt.Errorf("parse: fio histogram log: unit of %d ns is neither of fio's", unit)
	}
	var points []HistPoint
	err := eachLine(r, 1, func(fields []int64) error {
		if len(fields) < 4 {
			return fmt.Errorf("%d values; a line has time, direction, block size and bins", len(fields))
		}
		bins := fields[3:]
		step, ok := coarseness(len(bins))
		if !ok {
			return fmt.Errorf("%d bins; fio writes 1856 or 1216, or these divided by a power of two", len(bins))
		}
		p := HistPoint{
			Elapsed: time.Duration(fields[0]) * time.Millisecond, Direction: LogDirection(fields[1]), Block: fields[2],
			Hist: &hist.Histogram{},
		}
		for i, n := range bins {
			if n < 0 || n > maxCount {
				return fmt.Errorf("bin %d holds %d", i, n)
			}
			addBin(p.Hist, i, step, unit, uint64(n))
		}
		points = append(points, p)
		return nil
	})
	if err == nil && len(points) == 0 {
		err = errors.New("parse: fio histogram log: it is empty")
	}
	return points, err
}

// addBin counts n operations in coarse bin i, which joins step buckets of fio's full layout.
func addBin(h *hist.Histogram, i, step int, unit LogUnit, n uint64) {
	if step == 1 && unit == Nanoseconds {
		h.AddBucket(i, n)
		return
	}
	low, _ := hist.Bounds(i * step)
	_, high := hist.Bounds(i*step + step - 1)
	h.Add((low+high+1)*uint64(unit)/2, n) // a bin holds [low, high+1): times are cut to whole units
}

// HistBins reports whether a histogram log may have lines of so many bins.
func HistBins(n int) bool {
	_, ok := coarseness(n)
	return ok
}

// MicrosecondBins reports whether a histogram log with lines of so many bins is of fio 2, which counted microseconds:
// it had 19 groups of buckets, fio 3 has 29.
func MicrosecondBins(bins int) bool {
	for shift := range 7 {
		if 19*64>>shift == bins {
			return true
		}
	}
	return false
}

// coarseness is how many buckets a bin joins: 29 groups of 64 since fio 3, 19 before.
func coarseness(bins int) (int, bool) {
	for _, full := range []int{29 * 64, 19 * 64} {
		for shift := range 7 {
			if full>>shift == bins {
				return 1 << shift, true
			}
		}
	}
	return 0, false
}

// eachLine calls f with the numbers of every line. direction is the place of the direction among them.
func eachLine(r io.Reader, direction int, f func([]int64) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLogLine)
	var fields []int64
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		fields = fields[:0]
		for field := range bytes.SplitSeq(text, []byte(",")) {
			v, err := logNumber(strings.TrimSpace(string(field)))
			if err != nil {
				return fmt.Errorf("parse: fio log: line %d: %w", n, err)
			}
			fields = append(fields, v)
		}
		if err := checkLine(fields, direction); err != nil {
			return fmt.Errorf("parse: fio log: line %d: %w", n, err)
		}
		if err := f(fields); err != nil {
			return fmt.Errorf("parse: fio log: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("parse: fio log: after line %d: %w", n, err)
	}
	return nil
}

func checkLine(fields []int64, direction int) error {
	switch {
	case fields[0] < 0 || fields[0] > maxLogTimeMS:
		return fmt.Errorf("time %d ms is out of range", fields[0])
	case len(fields) > direction && (fields[direction] < 0 || fields[direction] > int64(LogTrim)):
		return fmt.Errorf("direction %d is none of 0 (read), 1 (write), 2 (trim)", fields[direction])
	}
	return nil
}

func logNumber(text string) (int64, error) {
	if hex, ok := strings.CutPrefix(text, "0x"); ok { // priorities
		n, err := strconv.ParseInt(hex, 16, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number", clip([]byte(text)))
		}
		return n, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", clip([]byte(text)))
	}
	return n, nil
}
