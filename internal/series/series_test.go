package series_test

import (
	"testing"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/series"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	s, err := series.Open(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t0 := time.Unix(1_700_000_000, 0)
	h := &hist.Histogram{}
	for i := range 200 {
		b := s.Batch()
		b.Float("x_total", []series.Label{{"instance", "a"}}, t0.Add(time.Duration(i)*time.Second), float64(i*10))
		h.Add(1_000_000, 10)
		h.Add(3_000_000, 1)
		b.Histogram("lat_seconds", []series.Label{{"instance", "a"}}, t0.Add(time.Duration(i)*time.Second), h)
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := series.OpenReadOnly(dir, series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{`irate(x_total[30s])`, `histogram_quantile(0.5, rate(lat_seconds[30s]))`, `histogram_count(rate(lat_seconds[30s]))`} {
		got, err := r.Range(t.Context(), q, t0.Add(30*time.Second), t0.Add(190*time.Second), 50*time.Second)
		t.Log(got, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
