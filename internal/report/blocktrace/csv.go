package blocktrace

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"

	"plimsoll/internal/storage/trace"
)

// CSV writes what happened over time as a tidy table: time, measure, value.
func CSV(w io.Writer, r *trace.Result) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"time", "series", "value", "unit"})
	for _, m := range r.Series {
		at := strconv.FormatFloat(m.Seconds, 'f', -1, 64)
		rows := map[string]struct {
			value float64
			unit  string
		}{
			"read_iops":       {float64(m.Reads) / r.Step, "ops/s"},
			"write_iops":      {float64(m.Writes) / r.Step, "ops/s"},
			"read_bandwidth":  {float64(m.ReadBytes) / r.Step, "bytes/s"},
			"write_bandwidth": {float64(m.WriteBytes) / r.Step, "bytes/s"},
			"queue_depth":     {m.QueueDepth, "count"}, "deepest_queue": {float64(m.DeepestQueue), "count"},
			"mean_latency": {m.MeanSeconds, "s"}, "max_latency": {m.MaxSeconds, "s"},
			"streams": {float64(m.Streams), "count"},
		}
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			_ = c.Write([]string{at, name, strconv.FormatFloat(rows[name].value, 'g', -1, 64), rows[name].unit})
		}
	}
	c.Flush()
	return c.Error()
}
