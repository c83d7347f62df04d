package spread

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func second(v float64) *float64 { return &v }

// TestGroups: loads whose names differ by numbers are one group, told by its lowest, middle and highest; others, other
// operations and other units are groups of their own.
func TestGroups(t *testing.T) {
	t.Parallel()
	var loads []Load
	for i := range 12 {
		loads = append(loads, Load{Name: fmt.Sprintf("X-Large 4 flush %d", i+1), Op: "write", Unit: "ops/s",
			Rate: float64(100 + i), P99: second(0.001 * float64(i+1))})
	}
	loads = append(loads, Load{Name: "Steady", Op: "read", Unit: "ops/s", Rate: 7, Errors: 3},
		Load{Name: "8 VU in 4 KiB (2)", Rate: 5}, Load{Name: "8 VU in 4 KiB (3)", Rate: 6}, // unlike those of 64 KiB
		Load{Name: "8 VU in 64 KiB (2)", Rate: 1}, Load{Name: "16 VU in 64 KiB (2)", Rate: 1})
	want := []Group{
		{Name: "X-Large 4 flush *", Op: "write", Unit: "ops/s", N: 12, Rate: Range{100, 105, 111},
			P99: &Range{0.001, 0.006, 0.012}},
		{Name: "Steady", Op: "read", Unit: "ops/s", N: 1, Rate: Range{7, 7, 7}, Errors: 3},
		{Name: "8 VU in 4 KiB (*)", N: 2, Rate: Range{5, 5, 6}},
		{Name: "8 VU in 64 KiB (2)", N: 1, Rate: Range{1, 1, 1}},
		{Name: "16 VU in 64 KiB (2)", N: 1, Rate: Range{1, 1, 1}},
	}
	if diff := cmp.Diff(want, Groups(loads)); diff != "" {
		t.Error(diff)
	}
	if got := Groups(nil); got != nil {
		t.Errorf("of none: %v", got)
	}
}

// TestWorst: errors before slowness, slowness beside the load's own group, each load once.
func TestWorst(t *testing.T) {
	t.Parallel()
	var loads []Load
	for i := range 10 {
		loads = append(loads, Load{Name: fmt.Sprint("Fast ", i), Op: "read", P99: second(0.001)},
			Load{Name: fmt.Sprint("Slow ", i), Op: "read", P99: second(1)})
	}
	loads[4].P99 = second(0.003)    // Fast 2, ×3
	loads[5].P99 = second(2)        // Slow 2, ×2
	loads[8].Errors = 1             // Fast 4
	loads = append(loads, loads[4]) // another row of Fast 2
	var got []string
	for _, l := range Worst(loads, 3) {
		got = append(got, l.Name)
	}
	if diff := cmp.Diff([]string{"Fast 4", "Fast 2", "Slow 2"}, got); diff != "" {
		t.Error(diff)
	}
	if got := Worst([]Load{{Name: "A", Rate: 1}, {Name: "B", Rate: 9}}, 3); len(got) > 0 {
		t.Errorf("nothing is known against any, and yet the worst are %v", got)
	}
}

// TestParts: the parts that machines do of a load are a group, whatever the load and the machines are called.
func TestParts(t *testing.T) {
	t.Parallel()
	var loads []Load
	for i := range 4 {
		for _, of := range []string{"Random 1", "Random 2"} {
			loads = append(loads, Load{Name: of + " on VM " + string(rune('a'+i)), Of: of, Op: "read", Rate: float64(i),
				P99: second(float64(1 + i))})
		}
	}
	loads[1].P99 = second(9) // Random 2 on a
	want := []Group{{Name: "Random 1", Op: "read", N: 4, Rate: Range{0, 1, 3}, P99: &Range{1, 2, 4}},
		{Name: "Random 2", Op: "read", N: 4, Rate: Range{0, 1, 3}, P99: &Range{2, 3, 9}}}
	if diff := cmp.Diff(want, Groups(loads)); diff != "" {
		t.Error(diff)
	}
	if got := Worst(loads, 1); len(got) != 1 || got[0].Name != "Random 2 on VM a" {
		t.Errorf("worst: %v", got)
	}
}
