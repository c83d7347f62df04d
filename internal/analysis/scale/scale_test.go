package scale

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/usl"
	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// growing is a load that one more machine joins every few seconds, after a warm-up of all together.
func growing(stages, long, warmUp int) *reporttest.Synthetic {
	s := reporttest.NewSynthetic(11, warmUp+stages*long, 1)
	for i := range stages {
		rate := func(int) float64 { return 1000 }
		name := fmt.Sprintf("Worker %d", i)
		if warmUp > 0 {
			s.Load(reporttest.Load{Name: "Warmup of " + name, Group: name, To: warmUp, Depth: 1, Noise: 0.01,
				Rate: rate})
		}
		s.Load(reporttest.Load{Name: name, From: warmUp + i*long, To: warmUp + stages*long, Depth: 1, Noise: 0.01,
			Rate: rate})
	}
	return s
}

// A load that grows is told as such behind a warm-up, and where its stages are too short for a fit by its ends.
func TestScaling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stages, long, warmUp int
		want                 string
	}{
		"long":            {6, 60, 0, "between 1 and 6 operations in flight (×6); "},
		"after a warm-up": {6, 60, 100, "between 1 and 6 operations in flight (×6); "},
		"short": {6, 4, 0, "IOPS with 6: ×6 the throughput for ×6 the load. How throughput grows between them cannot be " +
			"told: the shortest of its 6 stages has 3 points, and each needs 5."},
		"few": {3, 60, 0, ""},
	} {
		s := growing(c.stages, c.long, c.warmUp)
		got := scaling(view.New(s.Manifest, s.Data))
		if c.want == "" {
			if len(got) != 0 {
				t.Errorf("%s: %v", name, got)
			}
			continue
		}
		if len(got) == 0 || !strings.Contains(got[0].Sentence, c.want) || got[0].Low == nil && got[0].NoInterval == "" {
			t.Errorf("%s: got %v, want %q", name, got, c.want)
		}
	}
}

// Where no point lies in a stage, the ends are those of which the workloads counted their operations.
func TestScalingCounted(t *testing.T) {
	t.Parallel()
	const long = 4 * time.Second
	for known, want := range map[int]string{
		6: "1,000 IOPS with 1 operation in flight, 6,000 IOPS with 6: ×6 the throughput for ×6 the load. How",
		4: "1,000 IOPS with 1 operation in flight, 4,000 IOPS with 4: ×4 the throughput for ×4 the load, and the test goes " +
			"on to ×6. How",
		1: "How throughput grows from 1 to 6 operations in flight cannot be told.",
	} {
		s := growing(6, 4, 0)
		s.Data.Series = nil
		for i := range s.Data.Workloads {
			w := &s.Data.Workloads[i]
			w.Ops, w.Windows = nil, nil
			end := s.Data.Start.Add(time.Duration(known) * long)
			for at := w.Start; at.Before(end); at = at.Add(long) {
				w.Windows = append(w.Windows, result.Window{Start: at, End: at.Add(long),
					Ops: []result.OpTotals{{Op: "read", Count: 4000}}})
			}
			w.Ops = []result.OpTotals{{Op: "read", Count: 4000 * uint64(max(1, len(w.Windows)))}}
		}
		if got := scaling(view.New(s.Manifest, s.Data)); len(got) == 0 || !strings.HasPrefix(got[0].Sentence, want) {
			t.Errorf("%d stages counted: %v, want %q", known, got, want)
		}
	}
}

// Five counts of clients are too few for an interval of a coefficient at its bound, so nothing is said to be absent.
func TestAbsentOnlyByInterval(t *testing.T) {
	t.Parallel()
	none, little := resample.Interval{}, resample.Interval{Low: 0, High: 0.0001, Confidence: 0.95}
	large := resample.Interval{Low: 0, High: 0.2, Confidence: 0.95}
	for _, c := range []struct {
		alpha, beta resample.Interval
		want        string
	}{
		{none, none, "contention inconclusive, crosstalk inconclusive"},
		{little, little, "no contention, no crosstalk"},
		{large, large, "contention inconclusive (up to 20 %), crosstalk inconclusive"},
	} {
		m := &usl.Model{AlphaParameter: usl.Parameter{Boot: c.alpha}, BetaParameter: usl.Parameter{Boot: c.beta}}
		if got := contended(m, false, 16) + crossed(m, 16); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Contention whose interval leaves only what takes little at the last stage is none.
func TestLittleContention(t *testing.T) {
	t.Parallel()
	for last, want := range map[float64]string{2048: "no contention", 200000: "contention inconclusive (0.00012 %)"} {
		m := &usl.Model{AlphaParameter: usl.Parameter{T: resample.Interval{Low: 0, High: 2.7e-5, Confidence: 0.95}}}
		m.Alpha = 1.2e-6
		if got := contended(m, false, last); got != want {
			t.Errorf("at %v: %q, want %q", last, got, want)
		}
	}
}
