package dbserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestLostCommits: what was lost is worth what the replication promised, and nothing is said of a standby that did not
// take over.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	took := map[string]float64{acknowledged: 5000, lost: 0, inDoubt: 8, kept: 1, without: 2.5, givenUp: 2,
		promotion: 0.25}
	const behind = "on the standby that took over, the first of them acknowledged 12 ms before the last of the " +
		"server that was lost: "
	const there = "Ledger: all of 5,000 acknowledged commits are on the standby that took over, with "
	const gap = "; for 2.5 s nothing was committed: 2 s until the server was given up, 250 ms until the standby had " +
		"taken over, and the rest to connect to it."
	with := func(name string, v float64) map[string]float64 {
		values := map[string]float64{name: v, reach: 0.012}
		for k, x := range took {
			if k != name {
				values[k] = x
			}
		}
		return values
	}
	for name, c := range map[string]struct {
		replication string
		values      map[string]float64
		severity    result.Severity
		want        string
	}{
		"asynchronous": {"asynchronous", with(lost, 39), result.Warning, "Ledger: 39 of 5,000 acknowledged commits " +
			"are not " + behind + "asynchronous replication acknowledges a commit before the standby has it" + gap},
		"synchronous": {"synchronous", with(lost, 1), result.Invalid, "Ledger: 1 of 5,000 acknowledged commits is " +
			"not " + behind + "although replication was synchronous" + gap},
		"the last": {"asynchronous", map[string]float64{acknowledged: 9, lost: 1, without: 2.5, givenUp: 2,
			promotion: 0.25, reach: 0}, result.Warning, "Ledger: 1 of 9 acknowledged commits is not on the standby that " +
			"took over, the last that the server acknowledged: asynchronous replication acknowledges a commit before the " +
			"standby has it" + gap},
		"none lost": {"synchronous", took, result.Info, there + "synchronous replication" + gap},
		"none lost by luck": {"asynchronous", took, result.Info, there + "asynchronous replication, which does " +
			"not wait for the standby: another failover may lose some" + gap},
		"only silent": {"synchronous", with(alive, 4), result.Warning, there + "synchronous replication" + gap +
			" The server that was given up was not lost, only silent: it answered 4 s later and had not stopped. Have it " +
			"given up later (give_up)."},
		"no failover": {"synchronous", map[string]float64{acknowledged: 10, lost: 0}, result.Passed, "Ledger: all of " +
			"10 acknowledged commits are there; no standby took over, so this says only that they can be read back."},
		"a fault that came late": {"synchronous", map[string]float64{acknowledged: 10, lost: 0}, result.Passed,
			"Ledger: all of 10 acknowledged commits are there; no standby took over " +
				"(the load had ended 2 s before \"crash\"), so this " +
				"says only that they can be read back."},
		"lost in place": {"synchronous", map[string]float64{acknowledged: 10, lost: 2}, result.Invalid, "Ledger: 2 " +
			"of 10 acknowledged commits are not there, on a server that was never taken away."},
		"not ended": {"synchronous", map[string]float64{acknowledged: 10}, result.Warning, "Ledger did not come to " +
			"its end, so it is not known whether every acknowledged commit is there."},
	} {
		s := reporttest.NewSynthetic(1, 60, 1)
		s.Load(reporttest.Tool(reporttest.Load{Name: "Ledger", To: 60},
			reporttest.Measured{Measure: result.Measure{Name: lost, Unit: "commits", Kind: result.Single},
				Value: func(int) float64 { return 0 }}))
		for i := range s.Data.Workloads {
			s.Data.Workloads[i].Values = nil
			for measure, v := range c.values {
				w := &s.Data.Workloads[i]
				w.Values = append(w.Values, result.Value{Measure: measure, Value: v})
			}
		}
		s.Manifest.Environment = []result.Fact{{Group: result.LoadGroup + "Ledger", Name: "replication",
			Value: c.replication}}
		if name == "a fault that came late" {
			s.Data.Events = []result.Mark{{Time: s.At(62), Kind: result.KindFault, Text: "crash", Node: "n",
				State: result.PowerOff}}
		}
		got := LostCommits.Run(view.New(s.Manifest, s.Data))
		if len(got) != 1 {
			t.Fatalf("%s: %d findings", name, len(got))
		}
		if diff := cmp.Diff([]string{string(c.severity), c.want},
			[]string{string(got[0].Severity), got[0].Sentence}); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
