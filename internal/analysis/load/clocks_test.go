package load

import (
	"math"
	"strings"
	"testing"
	"time"

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

// A clock that was set several times is told with where all its readings lie, also where the first report was right.
func TestClocksSetSeveralTimes(t *testing.T) {
	at := time.Unix(0, 0)
	of := func(vm string, least, most float64) result.HostClock {
		return result.HostClock{VM: vm, LeastSeconds: least, MostSeconds: most, Readings: 9,
			First: result.ClockReading{Time: at, BoundSeconds: 0.01},
			Last:  result.ClockReading{Time: at.Add(2 * time.Minute), AheadSeconds: most, BoundSeconds: 0.01}}
	}
	for name, c := range map[string]struct {
		first         float64 // of its first report
		clocks        []result.HostClock
		differ, moved string
	}{
		"still": {90, []result.HostClock{of("a", 90, 90.06)}, "The clock of a was 1 min 30 s ahead of plimsoll's.", ""},
		"to and fro": {-90, []result.HostClock{of("a", -90, 3600)},
			"The clock of a was between 1 min 30 s behind and 1 h ahead of plimsoll's.",
			"The clock of a moved by 1 h 02 min against plimsoll's within 2 min, " +
				"between 1 min 30 s behind and 1 h ahead of it in 9 readings: "},
		"right at first": {0, []result.HostClock{of("a", 0.001, 3600)}, "",
			"The clock of a moved by 1 h against plimsoll's within 2 min, between 1 ms and 1 h ahead of it in 9 readings: "},
		"behind": {-90, []result.HostClock{of("a", -90, -30), of("b", -5, 5)},
			"The clock of a was between 30 s and 1 min 30 s behind plimsoll's.",
			"The clocks of 2 VMs moved against plimsoll's (a and b); that of a by 1 min within 2 min, " +
				"between 30 s and 1 min 30 s behind it in 9 readings: "},
	} {
		v := &view.Run{Loads: []*view.Load{{Name: "W", Parts: []*result.Workload{{VM: "a", ClockSeconds: c.first}}}}}
		v.Manifest.Clocks = c.clocks
		for want, found := range map[string][]result.Finding{c.differ: clocksDiffer(v), c.moved: clocksMoved(v)} {
			got := ""
			if len(found) > 0 {
				got = found[0].Sentence
			}
			if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: want %s", name, got, want)
			}
		}
	}
}
