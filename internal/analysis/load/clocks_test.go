package load

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Clocks that differ are one finding with the worst first; clocks that agree, or are not known, are none.
func TestClocksDiffer(t *testing.T) {
	of := func(name string, ahead ...float64) *view.Load {
		l := &view.Load{Name: name}
		for i, a := range ahead {
			l.Parts = append(l.Parts, &result.Workload{Name: name, VM: "vm" + string(rune('a'+i)), ClockSeconds: a})
		}
		return l
	}
	for _, c := range []struct {
		name  string
		loads []*view.Load
		want  []string
	}{
		{"none", []*view.Load{of("W", 0, 0), of("X", math.NaN())}, nil},
		{"one", []*view.Load{of("W", 0, -90), of("X", 0, -90)},
			[]string{"The clock of vmb was 1 min 30 s behind plimsoll's. The times in its reports are corrected for that; times in its own logs are not."}},
		{"several", []*view.Load{of("W", 2, -1.5, 3600)},
			[]string{"The clocks of 3 VMs differed from plimsoll's (vmc, vma, vmb); that of vmc was 1 h ahead of it. The times in their reports are corrected for that; times in their own logs are not."}},
	} {
		var got []string
		for _, f := range clocksDiffer(&view.Run{Loads: c.loads}) {
			got = append(got, f.Sentence)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}
