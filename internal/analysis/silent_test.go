package analysis_test

import (
	"strings"
	"testing"

	"plimsoll/internal/analysis"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestReportsThatAreMissing: 40 s without a report are neither steady nor without a stall, and are named.
func TestReportsThatAreMissing(t *testing.T) {
	t.Parallel()
	for _, missing := range []bool{false, true} {
		s := reporttest.NewSynthetic(77, 600, 2)
		s.Load(reporttest.Load{Name: "A", To: 600, Noise: 0.02, Rate: func(int) float64 { return 8000 }})
		for i := range s.Data.Series {
			for at := range s.Data.Series[i].Values {
				if missing && at >= 300 && at < 340 {
					s.Data.Series[i].Values[at] = nil
				}
			}
		}
		told := map[string]bool{}
		for _, f := range analysis.Run(s.Manifest, s.Data) {
			if f.Check != "stalls" && f.Check != "steady-state" {
				continue
			}
			told[f.Check] = true
			says := strings.Contains(f.Sentence, "it has no values from 5:00 to 5:40: a stall, or reports that are lost")
			if says != missing || missing == (f.Severity == result.Passed) {
				t.Errorf("missing %v: %s %s", missing, f.Severity, f.Sentence)
			}
		}
		if len(told) != 2 {
			t.Errorf("missing %v: told %v", missing, told)
		}
	}
}
