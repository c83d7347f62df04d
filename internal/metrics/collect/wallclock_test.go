package collect

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
)

// A wall clock that is set while a job goes on moves nothing: not what is recorded, and not what is collected. A tool
// that rests looks the same but for when its reports come, and is left as it is; so is one that waits for a processor
// between reading its own time and the clock.
func TestWallClockIsSet(t *testing.T) {
	const seconds, half = 30, 15
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		step, back, rest time.Duration         // set at half time, set again 8 s later; rests at half time
		says             int                   // how many notes
		waits            map[int]time.Duration // by report
	}{
		"never":             {},
		"ahead an hour":     {step: time.Hour, says: 1},
		"back an hour":      {step: -time.Hour, says: 1},
		"ahead":             {step: 3 * time.Second, says: 1},
		"back":              {step: -3 * time.Second, says: 1},
		"ahead a little":    {step: 400 * ms, says: 1},
		"back a little":     {step: -400 * ms, says: 1},
		"ahead, and again":  {step: time.Hour, back: -time.Hour, says: 2},
		"back, and again":   {step: -2 * time.Second, back: 2 * time.Second, says: 2},
		"the tool rests":    {rest: 3 * time.Second},
		"rests, then ahead": {rest: 3 * time.Second, back: 2 * time.Second, says: 1},
		"one report waits":  {waits: map[int]time.Duration{half: 800 * ms}},
		"two reports wait":  {waits: map[int]time.Duration{half: 800 * ms, half + 1: 400 * ms}},
		"the first waits":   {waits: map[int]time.Duration{1: 800 * ms}},
		"it waits, then back": {step: -2 * time.Second, waits: map[int]time.Duration{half - 3: 800 * ms},
			says: 1},
		"back, and one waits": {step: -2 * time.Second, waits: map[int]time.Duration{half - 1: 800 * ms}, says: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := recordtest.New(t)
			l.Event(result.KindPhase, "run", "")
			l.Recorder.VM("vm", "G", 0, true)
			j := l.Start("vm", "G", "W", 1)
			epoch := l.Now
			skew, made := time.Duration(0), epoch
			for s := 1; s <= seconds; s++ {
				made = made.Add(time.Second)
				switch s {
				case half:
					skew += c.step
					made = made.Add(c.rest)
				case half + 8:
					skew += c.back
				}
				own := time.Duration(s) * time.Second
				late := time.Duration(s*7919%97) * ms // until the report comes
				j.Do(&j.Next.Ops[0], 100, 4096, ms)
				l.Now, j.Skew = made.Add(late+c.waits[s]), skew-late
				j.ReportAt(own)
				l.Must(l.Recorder.Tick())
			}
			j.End("finished")
			l.Event(result.KindPhase, "teardown", "")
			l.Must(l.Recorder.Close())
			if c.rest == 0 && c.waits == nil {
				for _, word := range strings.Fields(l.Read(`rate(plimsoll_workload_ops_total{op="read"}[2s])`, seconds))[2:] {
					n, _, _ := strings.Cut(word, "*")
					if rate, err := strconv.ParseFloat(n, 64); err != nil || math.Abs(rate-100) > 10 {
						t.Errorf("recorded: a second has a rate of %s, want some 100", word)
					}
				}
			}
			w := collected(l, nil).Workloads[0]
			end := seconds*time.Second + c.rest
			if from, to := w.Start.Sub(epoch), w.End.Sub(epoch); (from-c.waits[1]).Abs() > ms || (to-end).Abs() > ms {
				t.Errorf("collected: from %v to %v, want %v to %v", from, to, c.waits[1], end)
			}
			if n := strings.Count(strings.Join(w.Notes, "\n"), "clock jumped"); n != c.says {
				t.Errorf("%q, want %d that say that the clock jumped", w.Notes, c.says)
			}
		})
	}
}
