package series_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"pgregory.net/rapid"

	"plimsoll/hist"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/visibletest"
)

func nothingKnown(string) series.Description { return series.Description{} }

func export(t testing.TB, s *series.Store, sel series.Selection) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.OpenMetrics(t.Context(), &b, sel, nothingKnown); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestOpenMetrics(t *testing.T) {
	s := open(t)
	h := &hist.Histogram{}
	for i, v := range []float64{1, math.Inf(1), math.NaN(), 2.5} {
		b := s.Batch()
		b.Float("ops_total", []series.Label{{Name: "vm", Value: `a "b" \ c`}}, at(float64(i)*0.5), float64(i))
		b.Float("free", nil, at(float64(i)*0.5), v)
		b.Float("both", nil, at(float64(i)*0.5), v)
		b.Float("both_total", nil, at(float64(i)*0.5), v)
		h.Add(uint64(1+i)*1_000_000_000, uint64(i))
		b.Histogram("d_seconds", label("a"), at(float64(i)*0.5), h)
		commit(t, b)
	}
	var b bytes.Buffer
	err := s.OpenMetrics(
		t.Context(),
		&b,
		series.Selection{
			Match: []string{"ops_total", `{__name__=~"d_.*|both.*"}`, "ops_total{}"},
			From:  at(0.5),
			To:    at(1),
		},
		func(name string) series.Description {
			if name == "ops_total" {
				return series.Description{Type: "counter", Help: `what was done, a \ "quote"`}
			}
			return series.Description{}
		},
	)
	const want = `# TYPE both unknown
both +Inf 1700000000.5
both NaN 1700000001
# TYPE both_total unknown
both_total +Inf 1700000000.5
both_total NaN 1700000001
# TYPE d_seconds histogram
d_seconds_bucket{instance="a",le="2.1810154653305154"} 1 1700000000.5
d_seconds_bucket{instance="a",le="3.0844216508158815"} 1 1700000000.5
d_seconds_bucket{instance="a",le="+Inf"} 1 1700000000.5
d_seconds_count{instance="a"} 1 1700000000.5
d_seconds_sum{instance="a"} 2 1700000000.5
d_seconds_bucket{instance="a",le="2.1810154653305154"} 1 1700000001
d_seconds_bucket{instance="a",le="3.0844216508158815"} 3 1700000001
d_seconds_bucket{instance="a",le="+Inf"} 3 1700000001
d_seconds_count{instance="a"} 3 1700000001
d_seconds_sum{instance="a"} 8 1700000001
# TYPE ops counter
# HELP ops what was done, a \\ \"quote\"
ops_total{vm="a \"b\" \\ c"} 1 1700000000.5
ops_total{vm="a \"b\" \\ c"} 2 1700000001
# EOF
`
	if d := cmp.Diff(want, b.String()); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := s.OpenMetrics(t.Context(), io.Discard, series.Selection{Match: []string{"{"}}, nothingKnown); !errors.Is(
		err, series.ErrBadQuery) {
		t.Error(err)
	}
	if err := s.OpenMetrics(t.Context(), full{}, series.Selection{}, nothingKnown); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// parsed are all points of an OpenMetrics text, as Prometheus' own parser reads them.
func parsed(t require, text string) map[string]map[int64]float64 {
	t.Helper()
	p := textparse.NewOpenMetricsParser([]byte(text), labels.NewSymbolTable())
	out := map[string]map[int64]float64{}
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%v\n%.3000s", err, text)
		}
		if kind != textparse.EntrySeries {
			continue
		}
		var ls labels.Labels
		p.Labels(&ls)
		_, at, v := p.Series()
		if at == nil {
			t.Fatalf("%s has no time", ls)
		}
		if out[ls.String()] == nil {
			out[ls.String()] = map[int64]float64{}
		}
		out[ls.String()][*at] = v
	}
}

type require interface {
	Helper()
	Fatalf(string, ...any)
}

// What is exported is what was stored, whatever the names, labels, times and values are; buckets only grow.
func TestOpenMetricsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := series.Open(t.TempDir(), series.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		want := map[string]map[int64]float64{}
		for i := range rapid.IntRange(1, 6).Draw(rt, "series") {
			name := rapid.SampledFrom([]string{"a", "a_total", "b:c", "d_bytes", "e_count"}).Draw(rt, "name")
			// The number keeps the series apart; the text is anything.
			text := rapid.OneOf(rapid.String(), rapid.SampledFrom(hostile())).Draw(rt, "text")
			ls := []series.Label{{Name: "i", Value: fmt.Sprint(i)}, {Name: "text", Value: text}}
			b := labels.NewScratchBuilder(3)
			b.Add(series.MetricName, name)
			b.Add("i", fmt.Sprint(i))
			if text != "" {
				b.Add("text", strings.ToValidUTF8(text, "\uFFFD"))
			}
			b.Sort()
			key, at := b.Labels().String(), t0.UnixMilli()
			want[key] = map[int64]float64{}
			batch := s.Batch()
			for range rapid.IntRange(1, 200).Draw(rt, "points") {
				at += rapid.Int64Range(1, 5000).Draw(rt, "distance")
				v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0,
					-0.5})).
					Draw(rt, "value")
				want[key][at] = v
				batch.Float(name, ls, time.UnixMilli(at), v)
			}
			if err := batch.Commit(); err != nil {
				rt.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := s.OpenMetrics(t.Context(), &out, series.Selection{}, nothingKnown); err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(want, parsed(rt, out.String()), cmpopts.EquateNaNs()); d != "" {
			rt.Fatalf("%s\n%.2000s", d, out.String())
		}
	})
}

func hostile() (out []string) {
	for _, h := range visibletest.Texts {
		out = append(out, h.Text)
	}
	return out
}

// The classic form of a histogram says the same as the native one: quantiles agree within a bucket, counts and sums
// exactly.
func TestOpenMetricsHistograms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := series.Open(t.TempDir(), series.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		h := &hist.Histogram{}
		for i := range 3 {
			for range rapid.IntRange(0, 20).Draw(rt, "values") {
				h.Add(uint64(rapid.Int64Range(0, 1e12).Draw(rt, "value")),
					uint64(rapid.IntRange(1, 9).Draw(rt, "times")))
			}
			b := s.Batch()
			b.Histogram("d_seconds", nil, at(float64(i)), h)
			if err := b.Commit(); err != nil {
				rt.Fatal(err)
			}
		}
		var out bytes.Buffer
		if err := s.OpenMetrics(t.Context(), &out, series.Selection{}, nothingKnown); err != nil {
			rt.Fatal(err)
		}
		points := parsed(rt, out.String())
		last := at(2).UnixMilli()
		if points[`{__name__="d_seconds_count"}`][last] != float64(h.Count()) {
			rt.Fatalf("count %v, want %d", points[`{__name__="d_seconds_count"}`], h.Count())
		}
		text := strings.Split(out.String(), "\n")
		before := -1.0
		for _, line := range text {
			var v, moment float64
			_, rest, ok := strings.Cut(line, `_bucket{le="`)
			if !ok {
				before = -1
				continue
			}
			_, rest, _ = strings.Cut(rest, `"} `)
			if _, err := fmt.Sscan(rest, &v, &moment); err != nil {
				rt.Fatal(line, err)
			}
			if v < before {
				rt.Fatalf("a bucket holds less than the one before: %s", line)
			}
			before = v
		}
	})
}

// TestOpenMetricsInPrometheus: Prometheus' own tool makes a database of an export, in which are the same points.
func TestOpenMetricsInPrometheus(t *testing.T) {
	promtool := needs.Promtool(t)
	s := open(t)
	h := &hist.Histogram{}
	for i := range 50 {
		b := s.Batch()
		b.Float("ops_total", []series.Label{{Name: "vm", Value: "a\n\"b\" \\"}}, at(float64(i)), float64(i))
		b.Float("free", label("ü"), at(float64(i)), -0.25*float64(i))
		h.Add(uint64(i)*10_000_000, 2)
		b.Histogram("d_seconds", label("a"), at(float64(i)), h)
		commit(t, b)
	}
	text := export(t, s, series.Selection{})
	dir := t.TempDir()
	file, db := filepath.Join(dir, "metrics.txt"), filepath.Join(dir, "db")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "tsdb", "create-blocks-from", "openmetrics", file,
		db).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Read with our own, since promtool's dump is of another form in every version.
	there, err := series.OpenReadOnly(db, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if d := cmp.Diff(parsed(t, text), parsed(t, export(t, there, series.Selection{}))); d != "" {
		t.Error(d)
	}
}
