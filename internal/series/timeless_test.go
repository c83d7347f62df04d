package series_test

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/series"
)

// feed writes four hours of several series, each with gaps of its own and some with repeated points, and of a histogram.
func feed(tb testing.TB, s *series.Store) {
	tb.Helper()
	h := &hist.Histogram{}
	for i := range 3000 {
		at := t0.Add(time.Duration(i) * 5 * time.Second)
		b := s.Batch()
		for k := range 7 {
			if i%(k+1) == 0 {
				b.Float("ops_total", []series.Label{{Name: "vm", Value: fmt.Sprint(k)}}, at, math.Floor(float64(i*1000)*math.Sqrt(float64(k+2))))
			}
		}
		b.Float("node", nil, at, float64(i/100))
		b.Float("node", nil, at, float64(i/100)+7) // the first one wins
		h.Add(uint64(1e6+i*1000), 3)
		b.Histogram("seconds", nil, at, h)
		if err := b.Commit(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
}

// TestTimelessHoldsTheSame: a database of a run in virtual time answers every query as one that went through the log.
func TestTimelessHoldsTheSame(t *testing.T) {
	answers := func(timeless bool) (out [][]series.Series) {
		dir := filepath.Join(t.TempDir(), "metrics")
		s, err := series.Open(dir, series.Options{Timeless: timeless})
		if err != nil {
			t.Fatal(err)
		}
		feed(t, s)
		view, err := series.OpenReadOnly(dir, series.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close() //nolint:errcheck // a view for reading
		for _, q := range []string{"ops_total", "sum(rate(ops_total[1m]))", "node", "histogram_quantile(0.9, rate(seconds[1m]))", "count_over_time(ops_total[30m])"} {
			found, err := view.Range(t.Context(), q, t0, t0.Add(4*time.Hour), 37*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				t.Errorf("timeless %v: %s finds nothing", timeless, q)
			}
			out = append(out, found)
		}
		oldest, newest, ok := view.Bounds()
		out = append(out, []series.Series{{Points: []series.Point{{Time: oldest}, {Time: newest}}}})
		if !ok {
			t.Error("no bounds")
		}
		return out
	}
	if diff := cmp.Diff(answers(false), answers(true)); diff != "" {
		t.Error(diff)
	}
}

// TestTimelessIsRepeatable: the same points make the same files, also in the place of a run that was killed.
func TestTimelessIsRepeatable(t *testing.T) {
	files := func(killed bool) map[string]string {
		dir := filepath.Join(t.TempDir(), "metrics")
		if killed {
			if err := os.MkdirAll(filepath.Join(dir, "00000000000000000001000001", "chunks"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "00000000000000000001000001", "chunks", "000001"), []byte("half a chunk"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := series.Open(dir, series.Options{Timeless: true})
		if err != nil {
			t.Fatal(err)
		}
		feed(t, s)
		found := map[string]string{}
		err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(name)
			rel, _ := filepath.Rel(dir, name)
			found[rel] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := files(false)
	for name := range want {
		t.Log(name)
	}
	if len(want) != 6*4 {
		t.Errorf("%d files, not those of six blocks", len(want))
	}
	for _, killed := range []bool{false, true} {
		if !cmp.Equal(want, files(killed)) {
			t.Errorf("killed before %v: other files", killed)
		}
	}
}

func TestTimelessWithoutPoints(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	s, err := series.Open(dir, series.Options{Timeless: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	view, err := series.OpenReadOnly(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := view.Bounds(); ok {
		t.Error("it holds points")
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkTimeless is one scrape of a thousand machines, 13 floats each.
func BenchmarkTimeless(b *testing.B) {
	s, err := series.Open(b.TempDir(), series.Options{Timeless: true})
	if err != nil {
		b.Fatal(err)
	}
	all := sandboxes(1000)
	i, began := 0, cpu()
	for b.Loop() {
		batch := s.Batch()
		for n, machine := range all {
			for k, h := range machine.counters {
				batch.Append(h, t0.Add(time.Duration(i)*5*time.Second), float64(i*(k+1)*1000+n*i%777))
			}
		}
		if err := batch.Commit(); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(13_000*b.N), "cpu-ns/point")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
