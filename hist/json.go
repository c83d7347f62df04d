package hist

import (
	"encoding/json"
	"fmt"
	"math"
)

// document is the JSON form: exact figures beside the buckets as pairs [index, count] in ascending order.
type document struct {
	Count   uint64      `json:"count"`
	Sum     float64     `json:"sum"`
	Min     uint64      `json:"min"`
	Max     uint64      `json:"max"`
	Buckets [][2]uint64 `json:"buckets"`
}

// MarshalJSON implements json.Marshaler: {"count","sum","min","max","buckets":[[index,count],...]}, where index is as in Index.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	doc := document{Count: h.total, Sum: h.sum, Min: h.min, Max: h.max, Buckets: [][2]uint64{}}
	for i, n := range h.counts {
		if n > 0 {
			doc.Buckets = append(doc.Buckets, [2]uint64{uint64(h.first + i), n})
		}
	}
	return json.Marshal(doc)
}

// UnmarshalJSON implements json.Unmarshaler. It refuses buckets out of range or order, and counts that do not add up.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return err
	}
	var out Histogram
	last := -1
	for _, b := range doc.Buckets {
		if b[0] > uint64(Index(math.MaxUint64)) || int(b[0]) <= last || b[1] == 0 {
			return fmt.Errorf("histogram: bucket [%d, %d] is out of range or order", b[0], b[1])
		}
		last = int(b[0])
		if out.total+b[1] < out.total {
			return fmt.Errorf("histogram: counts overflow")
		}
		out.AddBucket(last, b[1])
	}
	if out.total != doc.Count {
		return fmt.Errorf("histogram: count is %d, its buckets hold %d", doc.Count, out.total)
	}
	if math.IsNaN(doc.Sum) || doc.Sum < 0 {
		return fmt.Errorf("histogram: sum %v", doc.Sum)
	}
	if doc.Min > doc.Max {
		return fmt.Errorf("histogram: min %d is above max %d", doc.Min, doc.Max)
	}
	out.SetExact(doc.Min, doc.Max, doc.Sum)
	*h = out
	return nil
}
