package collect

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
)

// What two machines did at the same moments is placed at the same moments, though the clock of one is ahead, drifts, or
// is set: where clocks are measured. Reports are 300 ms under way, so nothing else could tell.
func TestMeasuredClocks(t *testing.T) {
	const seconds, reading = 60, 10
	for name, c := range map[string]struct {
		ahead, drift, step time.Duration // drift per second; step at half time
		within             time.Duration
	}{
		"right":   {0, 0, 0, time.Millisecond},
		"ahead":   {400 * time.Millisecond, 0, 0, time.Millisecond},
		"behind":  {-700 * time.Millisecond, 0, 0, time.Millisecond},
		"drifts":  {400 * time.Millisecond, time.Millisecond, 0, 15 * time.Millisecond},
		"was set": {400 * time.Millisecond, 0, time.Hour, 1100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			l := recordtest.New(t)
			l.Event(result.KindPhase, "run", "")
			var jobs []*recordtest.Job
			for _, vm := range []string{"right", "wrong"} {
				l.Recorder.VM(vm, "G", 0, true)
				l.Recorder.Clock(vm, map[string]time.Duration{"wrong": c.ahead}[vm], time.Millisecond)
				jobs = append(jobs, l.Start(vm, "G", "W", 1))
			}
			epoch := l.Now
			for s := 1; s <= seconds; s++ {
				made := epoch.Add(time.Duration(s) * time.Second)
				skew := c.ahead + time.Duration(s)*c.drift
				if s > seconds/2 {
					skew += c.step
				}
				for i, j := range jobs {
					j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
					l.Now = made
					if j.Skew = 0; i == 1 {
						j.Skew = skew
					}
					if s%reading == 0 && i == 1 {
						l.Recorder.Clock("wrong", skew, time.Millisecond)
					}
					l.Now = made.Add(300 * time.Millisecond)
					j.Skew -= 300 * time.Millisecond
					j.ReportAt(made.Sub(epoch))
				}
				l.Must(l.Recorder.Tick())
			}
			for _, j := range jobs {
				j.End("finished")
			}
			l.Event(result.KindPhase, "teardown", "")
			l.Must(l.Recorder.Close())
			d := collected(l, nil)
			at := map[string][2]time.Time{}
			for _, w := range d.Workloads {
				at[w.VM] = [2]time.Time{w.Start, w.End}
			}
			near := func(a, b time.Time) bool { return a.Sub(b).Abs() <= c.within }
			if diff := cmp.Diff(at["right"], at["wrong"], cmp.Comparer(near)); diff != "" {
				t.Errorf("by its own clock the other one worked at another time:\n%s", diff)
			}
		})
	}
}

// A tool without a clock is as old as its command, where the host tells when that began, and not as the job, which had
// to be made ready first.
func TestReportsWithoutAClock(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm", "G", "W", 1)
	j.Clockless = true
	ready := l.Now.Add(40 * time.Second)
	l.Now = ready
	j.Sink.Begun(ready)
	j.Desc.Began = ready
	for range 10 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.ReportAt(l.Now.Sub(ready))
		})
	}
	if heard := j.Sink.Heard(); !heard.Equal(l.Now) {
		t.Errorf("recorded: the last report is of %v, want %v", heard, l.Now)
	}
	j.End("finished")
	l.Event(result.KindPhase, "teardown", "")
	l.Must(l.Recorder.Close())
	w := collected(l, nil).Workloads[0]
	if !w.Start.Equal(ready) || !w.End.Equal(l.Now) {
		t.Errorf("collected: from %v to %v, want %v to %v", w.Start, w.End, ready, l.Now)
	}
}
