package record_test

import (
	"testing"
	"time"

	"plimsoll/internal/testkit/recordtest"
)

// A tool's clock that is set by any amount moves none of what it did: its own time tells how long a report is of.
func TestClockSetMovesNothing(t *testing.T) {
	for _, every := range []int{1, 2, 4} {
		for _, step := range []time.Duration{-30 * time.Second, -5 * time.Second, -900 * time.Millisecond,
			-200 * time.Millisecond, 200 * time.Millisecond, 900 * time.Millisecond, 5 * time.Second, 30 * time.Second} {
			l := recordtest.New(t)
			l.Recorder.VM("vm", "G", 0, true)
			j := l.Start("vm", "G", "W", 1)
			for n := 1; n <= 80; n++ {
				if n == 40 {
					j.Skew = step
				}
				l.Second(func() {
					j.Do(&j.Next.Ops[0], 1000, 4096, time.Millisecond)
					if n%every == 0 {
						j.Report()
					}
				})
			}
			j.End("finished")
			l.Must(l.Recorder.Close())
			const query = `rate(node_disk_reads_completed_total[8s])`
			t.Logf("every %d s, set by %v: %s", every, step, l.Read(query, 80))
		}
	}
}
