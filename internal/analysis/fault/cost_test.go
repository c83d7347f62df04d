package fault

import (
	"regexp"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestWhatAFaultTook: what is lost after a fault is over, or was lost as often before it, is not told as its doing; the
// level before is that before an earlier one; and what goes on at a hundredth of the rate has not stopped.
func TestWhatAFaultTook(t *testing.T) {
	t.Parallel()
	type span struct {
		from, to int
		left     float64
	}
	for name, c := range map[string]struct {
		faults [][2]int
		spans  []span
		want   string // of the finding about the last fault
	}{
		"nothing, and the load is slower later": {[][2]int{{100, 160}}, []span{{250, 600, 0.8}},
			`^After "f" at 1:40: A kept its rate`},
		"all, just after another was over": {[][2]int{{200, 228}, {231, 0}}, []span{{200, 228, 0}, {231, 600, 0}},
			`^After "f" at 3:51: A was not back at 90 % of its former (4,9|5,0)\d\d IOPS .*no I/O reported again`},
		"nothing that was not lost before": {[][2]int{{560, 0}}, []span{{100, 130, 0.3}, {300, 330, 0.3},
			{570, 600, 0.3}}, `it had dropped so before the fault, too, so what the fault did cannot be told\.$`},
		"nearly all for a while": {[][2]int{{200, 260}}, []span{{200, 230, 0.2}, {230, 245, 0.008}, {245, 260, 0.2}},
			`^After "f" at 3:20: A was back .* \(below 1 % of it until 4\d s; lowest \d\d IOPS\)`},
	} {
		s := reporttest.NewSynthetic(77, 600, 1)
		s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(t int) float64 {
			for _, one := range c.spans {
				if t >= one.from && t < one.to {
					return 5000 * one.left
				}
			}
			return 5000
		}})
		for _, f := range c.faults {
			s.Fault(f[0], f[1], "node-0", "f")
		}
		got := ""
		for _, f := range recovered(view.New(s.Manifest, s.Data)) {
			got = f.Sentence
		}
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFell: a third of the load that stands still for a few reports is a drop, though that is less than two reports'
// work.
func TestFell(t *testing.T) {
	t.Parallel()
	track := func(values ...float64) *view.Track {
		s := reporttest.NewSynthetic(1, 600, 1)
		return &view.Track{Origin: s.At(0), Start: s.At(5), Step: 5, Ops: values}
	}
	const short = 11 // seconds for which the fault was in force
	for name, c := range map[string]struct {
		values []float64
		want   bool
		over   int // the second at which the fault was over; 0: nobody said so
	}{
		"a third is left": {[]float64{6000, 6010, 5980, 5990, 2000, 2010, 5990, 6000}, true, 20 + short},
		"left after it":   {[]float64{6000, 6010, 5980, 5990, 6000, 6000, 2000, 2010}, false, 20 + short},
		"left once":       {[]float64{6000, 6010, 5980, 5990, 2000, 6000, 5990, 6000}, false, 20 + short},
		"left as before":  {[]float64{6000, 2010, 5980, 5990, 2000, 2010, 5990, 6000}, false, 20 + short},
		"left, no end":    {[]float64{6000, 6010, 5980, 5990, 2000, 2010, 5990, 6000}, false, 0},

		"a third for 25 s": {[]float64{6000, 6010, 5980, 5990, 4800, 4000, 4010, 3990, 4000, 4400, 6000}, true, 0},
		"a third for 10 s": {[]float64{6000, 6010, 5980, 5990, 4800, 4000, 6000, 6000, 6000, 6000, 6000}, false, 0},
		"a third, noisy":   {[]float64{6000, 8000, 3900, 6100, 4800, 4000, 4010, 3990, 4000, 4400, 6000}, false, 0},
		"nothing":          {[]float64{6000, 6010, 5980, 5990, 6000, 5990, 6010, 5990, 6000, 6000, 6000}, false, 0},
		"little known":     {[]float64{6000, 6010}, false, 0},
	} {
		s := reporttest.NewSynthetic(1, 600, 1)
		o := Comeback{at: s.At(20), track: track(c.values...)}
		if c.over > 0 {
			o.ended = s.At(c.over)
		}
		o.Before.Value = 6000
		if got := o.fell(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLostForGood: where a fault takes all machines of a load and nothing does it again, that is told, whether the run
// ends with it or goes on.
func TestLostForGood(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{
		100: `After "f" at 1:40: A lost its load, which was not started again (the run ended at 1:40): no return was ` +
			`measured; no errors reported.`,
		600: `After "f" at 1:40: A was not back at 90 % of its former 5,000 IOPS by the end of the run (no I/O reported ` +
			`again); no errors reported.`,
	} {
		s := reporttest.NewSynthetic(77, seconds, 1)
		s.Load(reporttest.Load{Name: "A", To: 100, Ended: result.Lost, Rate: func(int) float64 { return 5000 }})
		s.Fault(100, 120, "node-0", "f")
		if got := recovered(view.New(s.Manifest, s.Data)); len(got) != 1 || got[0].Sentence != want {
			t.Errorf("a run of %d s: %+v, want %s", seconds, got, want)
		}
	}
}

// TestWhichIsOver: where the place says which of two faults of the same nodes is over, that one ends.
func TestWhichIsOver(t *testing.T) {
	t.Parallel()
	s := reporttest.NewSynthetic(1, 600, 2)
	mark := func(second int, state, text, ends string) {
		s.Data.Events = append(s.Data.Events, result.Mark{Time: s.At(second), Kind: result.KindFault, Text: text,
			State: state, Ends: ends})
	}
	mark(10, result.FaultBegins, "clocks go back", "")
	mark(20, result.FaultBegins, "storage is slow", "")
	mark(30, result.FaultOver, "data are rebuilt", "data are being rebuilt")
	mark(90, result.FaultOver, "storage is fast", "storage is slow")
	faults := view.New(s.Manifest, s.Data).Faults()
	if len(faults) != 2 || !faults[0].End.IsZero() || !faults[1].End.Equal(s.At(90)) {
		t.Errorf("%+v", faults)
	}
}
