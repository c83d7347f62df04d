package exportertest_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/exportertest"
)

// Kind is the exporter `uptime`, the worked example of docs/how-to/add-an-exporter.md.
func Kind() exporter.Kind {
	return exporter.Kind{
		Name: "uptime", Summary: "how long this machine has been up",
		Options: []target.Option{{Name: "root", Default: "/", Help: "folder that holds the machine's /proc"}},
		New: func(o target.Values) (exporter.Collector, error) {
			return collector{os.DirFS(o.Text("root"))}, nil
		},
	}
}

type collector struct{ root fs.FS }

// Describe implements exporter.Collector.
func (collector) Describe() exporter.Description {
	return exporter.Description{Name: "uptime", Help: "How long the machine has been up.", Families: []exporter.Family{
		{
			Name: "uptime_seconds_total",
			Type: exporter.Counter,
			Unit: "seconds",
			Help: "Seconds since the machine started.",
		},
	}}
}

// Collect implements exporter.Collector.
func (c collector) Collect(_ context.Context, emit exporter.Emit) error {
	data, err := fs.ReadFile(c.root, "proc/uptime")
	if err != nil {
		return fmt.Errorf("%w: %w", exporter.ErrNoData, err)
	}
	var up float64
	if _, err := fmt.Sscan(string(data), &up); err != nil {
		return fmt.Errorf("/proc/uptime: %w", err)
	}
	emit("uptime_seconds_total", up, "clock", "boot")
	return nil
}

func TestUptime(t *testing.T) {
	machine := fstest.MapFS{"proc/uptime": {Data: []byte("350735.47 234388.90\n")}}
	exportertest.Run(t, exportertest.Subject{
		New:   func(*testing.T) exporter.Collector { return collector{machine} },
		Empty: func(*testing.T) exporter.Collector { return collector{fstest.MapFS{}} },
	})
}

// The suite objects to what Prometheus' conventions are against.
func TestObjections(t *testing.T) {
	family := func(name string, kind exporter.Type, unit string) exporter.Description {
		return exporter.Description{
			Name:     "x",
			Help:     "x",
			Families: []exporter.Family{{Name: name, Type: kind, Unit: unit, Help: "x"}},
		}
	}
	for _, c := range []struct {
		d    exporter.Description
		want string // in an objection; "" none
	}{
		{family("x_seen_total", exporter.Counter, ""), ""},
		{family("x_size_bytes", exporter.Gauge, "bytes"), ""},
		{family("x_*_total", exporter.Counter, ""), ""},
		{family("x_seen", exporter.Counter, ""), "names of counters, and no others, end with _total"},
		{family("x_seen_total", exporter.Gauge, ""), "names of counters, and no others, end with _total"},
		{family("x_wait_milliseconds", exporter.Gauge, "milliseconds"), "want the base unit"},
		{family("x_read_kb_total", exporter.Counter, ""), "want the base unit"},
		{family("x_busy_percent", exporter.Gauge, ""), "want the base unit"},
		{family("x_size", exporter.Gauge, "bytes"), "its unit is bytes: the name must end with it"},
		{family("x_size_bytes", exporter.Gauge, ""), "the name ends with bytes, and the unit is not given"},
		{family("x_size_sum", exporter.Gauge, ""), "_sum is for histograms"},
		{family("x-size", exporter.Gauge, ""), "the name must be letters"},
		{exporter.Description{Name: "x"}, "help of the collector"},
		{exporter.Description{Name: "x", Help: "x", Families: []exporter.Family{{Name: "x", Type: exporter.Gauge}}},
			"x: help"},
	} {
		list := exportertest.Objections(c.d)
		text := fmt.Sprint(list)
		if c.want == "" && len(list) > 0 || !strings.Contains(text, c.want) {
			t.Errorf("%+v: %s, want %q", c.d.Families, text, c.want)
		}
	}
}
