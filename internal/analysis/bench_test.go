package analysis

import (
	"fmt"
	"testing"

	"plimsoll/internal/testkit/reporttest"
)

// BenchmarkRun judges runs of growing size: VMs, each with four series of so many points.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct{ vms, seconds int }{{2, 600}, {20, 600}, {200, 600}, {20, 6000}} {
		s := reporttest.NewSynthetic(1, c.seconds, 4)
		half := c.seconds / 2
		s.Load(
			reporttest.Load{
				Name:   "OLTP",
				VMs:    c.vms,
				Spread: true,
				To:     c.seconds,
				Noise:  0.02,
				Rate:   flatRate(4000 * float64(c.vms)),
				Writes: 0.5,
				Cuts:   []reporttest.Cut{{At: half, Name: "alone"}, {At: c.seconds, Name: "with DSS"}},
			},
		)
		s.Load(
			reporttest.Load{
				Name:   "DSS",
				VMs:    c.vms,
				Spread: true,
				From:   half,
				To:     c.seconds,
				Noise:  0.02,
				Rate:   flatRate(900 * float64(c.vms)),
			},
		)
		b.Run(fmt.Sprintf("%dx%d", 2*c.vms, c.seconds), func(b *testing.B) {
			for b.Loop() {
				Run(s.Manifest, s.Data)
			}
		})
	}
}
