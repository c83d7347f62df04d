package series_test

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/metrics/series"
)

// feed writes four hours of several series, each with gaps of its own and some with repeated points, and of a
// histogram.
func feed(tb testing.TB, s *series.Store) {
	tb.Helper()
	h := &hist.Histogram{}
	for i := range 3000 {
		at := t0.Add(time.Duration(i) * 5 * time.Second)
		b := s.Batch()
		for k := range 7 {
			if i%(k+1) == 0 {
				b.Float("ops_total", []series.Label{{Name: "vm", Value: fmt.Sprint(k)}}, at,
					math.Floor(float64(i*1000)*math.Sqrt(float64(k+2))))
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
		defer view.Close()
		for _, q := range []string{"ops_total", "sum(rate(ops_total[1m]))", "node",
			"histogram_quantile(0.9, rate(seconds[1m]))", "count_over_time(ops_total[30m])"} {
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
			if err := os.WriteFile(filepath.Join(dir, "00000000000000000001000001", "chunks", "000001"),
				[]byte("half a chunk"), 0o644); err != nil {
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

// TestRowsHoldTheSame: series written in rows, by several goroutines, hold what they hold when each is written by
// itself, whether or not some are alike.
func TestRowsHoldTheSame(t *testing.T) {
	for n := range uint64(4) {
		r := rand.New(rand.NewPCG(n, 1))
		dir := t.TempDir()
		step := []time.Duration{time.Second, 5 * time.Second, 7 * time.Second}[n%3]
		kinds := make([]int, 2+r.IntN(10)) // of equal kind: the same points
		for i := range kinds {
			kinds[i] = r.IntN(4)
		}
		width, late := 1+r.IntN(len(kinds)), r.IntN(200)
		value := func(kind, i int) float64 {
			return [4]float64{1, float64(i * 1000), math.Sqrt(float64(i)), float64(i / 7 * 3)}[kind]
		}
		write := func(name string, rows bool) [][]series.Series {
			dir := filepath.Join(dir, name)
			s, err := series.Open(dir, series.Options{Timeless: true})
			if err != nil {
				t.Fatal(err)
			}
			var all []*series.Row
			var alone []*series.Handle
			for k := range kinds {
				alone = append(alone, series.NewHandle("x", []series.Label{{Name: "k", Value: fmt.Sprint(k)}}))
			}
			for k := 0; k < len(alone); k += width {
				all = append(all, series.NewRow(alone[k:min(k+width, len(alone))]...))
			}
			for i := range 400 {
				at, b := t0.Add(time.Duration(i)*step), s.Batch()
				var g sync.WaitGroup
				parts := b.Split(3)
				for n, p := range parts {
					g.Go(func() {
						for r := n; r < len(all); r += len(parts) {
							var values []float64
							for k := r * width; k < min((r+1)*width, len(kinds)) && (r == 0 || i >= late); k++ {
								if values = append(values, value(kinds[k], i)); !rows {
									p.Append(alone[k], at, value(kinds[k], i))
								}
							}
							if rows && values != nil {
								p.AppendRow(all[r], at, values...)
							}
						}
					})
				}
				g.Wait()
				if err := b.Commit(); err != nil || b.Dropped() > 0 {
					t.Fatal(err, b.Dropped())
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			view, err := series.OpenReadOnly(dir, series.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			var out [][]series.Series
			for _, q := range []string{"x", "count_over_time(x[17m])"} {
				found, err := view.Range(t.Context(), q, t0, t0.Add(400*step), step)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, found)
			}
			return out
		}
		if diff := cmp.Diff(write("alone", false), write("rows", true)); diff != "" {
			t.Fatalf("%d: %s", n, diff)
		}
	}
}

// TestRowsRefuse: a series belongs to one row, and a row has a value for each of its series.
func TestRowsRefuse(t *testing.T) {
	s, err := series.Open(filepath.Join(t.TempDir(), "metrics"), series.Options{Timeless: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	handle := func(name string) *series.Handle { return series.NewHandle(name, nil) }
	commit := func(row *series.Row, values ...float64) string {
		b := s.Batch()
		b.AppendRow(row, t0, values...)
		if err := b.Commit(); err != nil {
			return err.Error()
		}
		return fmt.Sprint(b.Dropped())
	}
	row := series.NewRow(handle("a"), handle("b"))
	got := []string{
		commit(row, 1, 2), commit(series.NewRow(handle("a"), handle("b")), 1, 2), commit(row, 1),
		commit(series.NewRow(handle("b")), 1), commit(series.NewRow(handle("c"), handle("b")), 1, 2),
	}
	want := []string{
		"0", "2", "metrics: append a: 1 values for 2 series",
		`metrics: append: series {__name__="b"} is written in two rows that differ`,
		`metrics: append: series {__name__="b"} is written in two rows that differ`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
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
	var rows []*series.Row
	for _, machine := range all {
		rows = append(rows, series.NewRow(machine.counters[:]...))
	}
	values := make([]float64, len(all[0].counters))
	for b.Loop() {
		batch := s.Batch()
		for n, row := range rows {
			for k := range values {
				values[k] = float64(i*(k+1)*1000 + n*i%777)
			}
			batch.AppendRow(row, t0.Add(time.Duration(i)*5*time.Second), values...)
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
