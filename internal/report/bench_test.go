package report

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"testing"
	"time"

	"plimsoll/internal/analysis"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// large is the size the report is held to: one hour, 50 VMs, a value a second, twelve measures of each VM.
func large(tb testing.TB) Input {
	tb.Helper()
	run := reporttest.Neighbour(reporttest.Options{VMs: 50, Length: time.Hour})
	in := Input{Manifest: run.Manifest, Data: run.Data, Findings: analysis.Run(run.Manifest, run.Data),
		Events: run.Events, Plan: run.Plan}
	var each []result.Series
	for _, s := range in.Data.Series {
		if s.VM != "" && s.Op == "read" && s.Measure == result.Rate {
			each = append(each, s)
		}
	}
	for _, op := range []string{"read", "write"} {
		for _, m := range []string{result.Rate, result.Bandwidth, result.LatencyMean, result.LatencyP50,
			result.LatencyP99, result.LatencyP999} {
			for _, s := range each {
				s.Op, s.Measure, s.Unit = "b_"+op, m, "us"
				in.Data.Series = append(in.Data.Series, s)
			}
		}
	}
	return in
}

// maxPage is the promise for one hour of 50 VMs.
const maxPage = 3 << 20

func TestPageSize(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, New(large(t))); err != nil {
		t.Fatal(err)
	}
	if b.Len() >= maxPage {
		t.Errorf("one hour of 50 VMs makes a page of %d bytes, the limit is %d", b.Len(), maxPage)
	}
}

func BenchmarkReport(b *testing.B) {
	in := large(b)
	for name, render := range map[string]func(io.Writer, *Document) error{"html": HTML, "json": JSON, "csv": CSV,
		"markdown": Markdown} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var n counter
			for b.Loop() {
				n = 0
				if err := render(&n, New(in)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "bytes/doc")
			b.ReportMetric(heapMiB(), "heap-MiB")
		})
	}
}

// BenchmarkFromJSON is the way from the bytes of data.json to the page, findings included.
func BenchmarkFromJSON(b *testing.B) {
	in := large(b)
	data, err := json.Marshal(in.Data)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var d result.Data
		if err := json.Unmarshal(data, &d); err != nil {
			b.Fatal(err)
		}
		in.Data, in.Findings = &d, analysis.Run(in.Manifest, &d)
		if err := HTML(io.Discard, New(in)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(heapMiB(), "heap-MiB")
}

// heapMiB returns what the process has taken from the system for its heap, an upper bound of what the work needed.
func heapMiB() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapSys-m.HeapReleased) / (1 << 20)
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
