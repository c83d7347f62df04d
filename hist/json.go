package hist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// lastBucket is the bucket of the greatest value there is.
const lastBucket = (64-subBits)*subBuckets + subBuckets - 1

// wire is the stored form: Buckets alternates distances from the bucket before (the first one from 0) and counts.
type wire struct {
	Min     uint64   `json:"min"`
	Max     uint64   `json:"max"`
	Sum     float64  `json:"sum"`
	Buckets []uint64 `json:"buckets"`
}

// MarshalJSON writes only the non-empty buckets, e.g. {"min":5,"max":9,"sum":14,"buckets":[5,1,4,1]} for one 5
// and one 9: buckets alternates the distance to the bucket before it and its count. An empty histogram is {}.
// UnmarshalJSON gives back an Equal histogram.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	return h.AppendJSON(make([]byte, 0, 64+8*len(h.counts))), nil
}

// AppendJSON appends what MarshalJSON writes.
func (h *Histogram) AppendJSON(out []byte) []byte {
	if h.total == 0 {
		return append(out, "{}"...)
	}
	out = strconv.AppendUint(append(out, keyMin...), h.min, 10)
	out = strconv.AppendUint(append(out, keyMax...), h.max, 10)
	format := byte('f')
	if h.sum >= 1e21 {
		format = 'e'
	}
	out = strconv.AppendFloat(append(out, keySum...), h.sum, format, -1, 64)
	out = append(out, keyBuckets...)
	last := 0
	for i, n := range h.counts {
		if n > 0 {
			out = strconv.AppendUint(out, uint64(h.first+i-last), 10)
			out = strconv.AppendUint(append(out, ','), n, 10)
			out = append(out, ',')
			last = h.first + i
		}
	}
	return append(out[:len(out)-1], "]}"...)
}

// The literal parts of what MarshalJSON writes.
const (
	keyMin     = `{"min":`
	keyMax     = `,"max":`
	keySum     = `,"sum":`
	keyBuckets = `,"buckets":[`
)

// quick reads exactly what MarshalJSON writes, several times faster than encoding/json, of which a run's report
// would otherwise spend most of its time in. Anything else is left to encoding/json. The buckets are
// appended to room.
func quick(data []byte, room []uint64) (w wire, ok bool) {
	number := func(before string) (text []byte, ok bool) {
		if data, ok = bytes.CutPrefix(data, []byte(before)); !ok {
			return nil, false
		}
		end := 0
		for end < len(data) && data[end] != ',' {
			end++
		}
		text, data = data[:end], data[end:]
		return text, len(data) > 0
	}
	smallest, ok1 := number(keyMin)
	largest, ok2 := number(keyMax)
	sum, ok3 := number(keySum)
	if !ok1 || !ok2 || !ok3 || !whole(smallest, &w.Min) || !whole(largest, &w.Max) {
		return wire{}, false
	}
	var err error
	if w.Sum, err = strconv.ParseFloat(string(sum), 64); err != nil || !finite(w.Sum) {
		return wire{}, false
	}
	if data, ok1 = bytes.CutPrefix(data, []byte(keyBuckets)); !ok1 {
		return wire{}, false
	}
	n, digits := uint64(0), 0
	for i, c := range data {
		switch {
		case c >= '0' && c <= '9' && digits < 19 && (digits == 0 || n > 0):
			n, digits = n*10+uint64(c-'0'), digits+1
		case c == ',' && digits > 0:
			room = append(room, n)
			n, digits = 0, 0
		case c == ']' && digits > 0:
			room = append(room, n)
			w.Buckets = room
			return w, string(data[i:]) == "]}"
		default:
			return wire{}, false
		}
	}
	return wire{}, false
}

// whole reads a decimal number of at most 19 digits, which cannot overflow; longer ones are for encoding/json.
func whole(text []byte, to *uint64) bool {
	if len(text) == 0 || len(text) > 19 || text[0] == '0' && len(text) > 1 {
		return false
	}
	*to = 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
		*to = *to*10 + uint64(c-'0')
	}
	return true
}

// UnmarshalJSON replaces h by a stored histogram. It refuses, leaving h as it was, buckets out of range or without
// a count, counts whose total does not fit 64 bits, and bounds or sums that the buckets contradict.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var room [512]uint64 // on the stack: all but the widest fit
	w, ok := quick(data, room[:0])
	if !ok {
		var slow wire
		if err := json.Unmarshal(data, &slow); err != nil {
			return fmt.Errorf("histogram: %w", err)
		}
		w = slow
	}
	if len(w.Buckets) == 0 {
		if w.Min != 0 || w.Max != 0 || w.Sum != 0 {
			return errors.New("histogram: min, max or sum without buckets")
		}
		*h = Histogram{}
		return nil
	}
	if len(w.Buckets)%2 != 0 {
		return fmt.Errorf("histogram: %d numbers in buckets, want pairs", len(w.Buckets))
	}
	var read Histogram
	if w.Min <= w.Max {
		read.counts = make([]uint64, 0, Index(w.Max)-Index(w.Min)+1)
	}
	at := uint64(0)
	for i := 0; i < len(w.Buckets); i += 2 {
		distance, n := w.Buckets[i], w.Buckets[i+1]
		if distance > lastBucket || at+distance > lastBucket || (distance == 0 && read.total > 0) {
			return fmt.Errorf("histogram: bucket %d + %d is out of order or beyond %d", at, distance, lastBucket)
		}
		at += distance
		if n == 0 || read.total+n < n {
			return fmt.Errorf("histogram: bucket %d: count %d is zero or too large", at, n)
		}
		read.bump(int(at), n)
		read.total += n
	}
	if Index(w.Min) != read.first || Index(w.Max) != int(at) || w.Min > w.Max {
		return fmt.Errorf("histogram: min %d and max %d are not in the first and the last bucket", w.Min, w.Max)
	}
	if w.Sum < 0 {
		return fmt.Errorf("histogram: sum %v is negative", w.Sum)
	}
	read.min, read.max, read.sum = w.Min, w.Max, w.Sum
	*h = read
	return nil
}

// Equal reports whether both hold the same counts, bounds and sum. A nil histogram equals an empty one.
func (h *Histogram) Equal(o *Histogram) bool {
	if h == nil || h.total == 0 {
		return o == nil || o.total == 0
	}
	if o == nil || h.total != o.total || h.min != o.min || h.max != o.max || h.sum != o.sum {
		return false
	}
	for i, n := range h.counts {
		if n != o.at(h.first+i) {
			return false
		}
	}
	return true // totals agree, so o has nothing outside h's window
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
