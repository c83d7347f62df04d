package runs

import (
	"strings"
	"testing"

	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/report"
)

// A condition that could not be judged fails the run, and is not told as one that was measured and missed.
func TestAssertsOfAll(t *testing.T) {
	t.Parallel()
	met, missed := report.Assertion{Verdict: assert.Met}, report.Assertion{Verdict: assert.NotMet, Failed: true}
	unjudged := report.Assertion{Verdict: assert.NotJudged, Failed: true}
	for want, all := range map[string][]report.Assertion{
		"PASS: 1 assertion met":                                         {met},
		"FAIL: 1 of 2 assertions not met":                               {met, missed},
		"FAIL: 2 of 2 assertions not judged":                            {unjudged, unjudged},
		"FAIL: 1 of 3 assertions not met, 1 of 3 assertions not judged": {met, missed, unjudged},
	} {
		var b strings.Builder
		if err := printAsserts(&b, all); err != nil || !strings.HasSuffix(b.String(), "\n"+want+"\n") {
			t.Errorf("%q, %v: want %q", b.String(), err, want)
		}
	}
}
