package analysis

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestAdverseSeries damages the series, windows, events and facts of a believable run in every way a folder can be
// damaged: whatever comes in, every finding is complete, encodable and in plain words.
func TestAdverseSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := []func(uint64) *reporttest.Synthetic{
			func(s uint64) *reporttest.Synthetic { return neighboured(s, 3600) },
			func(s uint64) *reporttest.Synthetic { return scaleOut(s, 0.01, 1e-5) },
			func(s uint64) *reporttest.Synthetic { return outage(s, 120) },
			migrating, workingSets, drawing, disturbed,
			func(s uint64) *reporttest.Synthetic { return linked(s, 4000e6) },
			func(s uint64) *reporttest.Synthetic { return counted(s, 0.5) },
			func(s uint64) *reporttest.Synthetic { return logAndFlush(s, 0) },
			func(s uint64) *reporttest.Synthetic { return oltpSections(s, 0, flusher) },
			func(s uint64) *reporttest.Synthetic { return oltpSections(s, 0.1, bursting) },
			func(s uint64) *reporttest.Synthetic { return hanging(s, 4, 1, 30, true) },
			func(s uint64) *reporttest.Synthetic { return hanging(s, 4, 2, 30, false) },
			quietly,
			func(s uint64) *reporttest.Synthetic { return logged(s, 4, 25, 0.5) },
			func(s uint64) *reporttest.Synthetic {
				return crowded(onMachine(served(s, 32, map[string]float64{"CPU": 2, "Lock": 28, "Lock tuple": 8}), 98))
			},
		}
		s := rapid.SampledFrom(run).Draw(t, "run")(1)
		odd := rapid.SampledFrom([]float64{0, -1, 1e-300, 1, 12345, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)})
		moment := rapid.SampledFrom([]time.Time{{}, s.At(-1e6), s.At(0), s.At(100), s.At(1e9), time.Unix(1<<40, 0)})
		for range rapid.IntRange(1, 6).Draw(t, "damages") {
			series := &s.Data.Series[rapid.IntRange(0, len(s.Data.Series)-1).Draw(t, "series")]
			load := &s.Data.Workloads[rapid.IntRange(0, len(s.Data.Workloads)-1).Draw(t, "workload")]
			switch rapid.IntRange(0, 15).Draw(t, "damage") {
			case 0:
				series.Step = odd.Draw(t, "step")
			case 1:
				series.Start = moment.Draw(t, "start")
			case 2:
				series.Values = series.Values[:rapid.IntRange(0, len(series.Values)).Draw(t, "cut")]
			case 3:
				v := odd.Draw(t, "value")
				for i := range series.Values {
					series.Values[i] = &v
				}
			case 4:
				for i := range series.Values {
					if i%rapid.IntRange(1, 9).Draw(t, "every") == 0 {
						series.Values[i] = nil
					}
				}
			case 5:
				s.Data.Series = append(s.Data.Series, *series)
			case 6:
				load.Start, load.End = moment.Draw(t, "from"), moment.Draw(t, "to")
			case 7:
				load.Ops = nil
			case 8:
				load.Streams = nil
			case 9:
				s.Mark(rapid.IntRange(-100, 2000).Draw(t, "fault"), result.KindFault, "fault")
			case 10:
				s.Data.Start, s.Data.End = moment.Draw(t, "start of run"), moment.Draw(t, "end of run")
			case 11:
				load.Windows = append(
					load.Windows,
					result.Window{
						Name:  "alone (9)",
						Start: moment.Draw(t, "w"),
						End:   moment.Draw(t, "w2"),
						Ops:   load.Ops,
					},
				)
			case 12:
				s.Manifest.Nodes = nil
			case 14:
				s.Fault(rapid.IntRange(-100, 2000).Draw(t, "begins"), rapid.IntRange(-100, 2000).Draw(t, "is over"),
					rapid.SampledFrom([]string{"", "node-1", "node-2"}).Draw(t, "node"), "fault")
			case 15:
				for i := range load.Streams {
					n := &load.Streams[i]
					n.Random, n.ReadShare = odd.Draw(t, "random"), odd.Draw(t, "share")
					n.ReadBytes, n.WriteBytes = odd.Draw(t, "read size"), odd.Draw(t, "write size")
				}
			case 13:
				v := odd.Draw(t, "value")
				if len(series.Values) > 0 {
					series.Values[rapid.IntRange(0, len(series.Values)-1).Draw(t, "at")] = &v
				}
			}
		}
		findings := append(Run(s.Manifest, s.Data), Across(repeats(s, s))...)
		if _, err := json.Marshal(findings); err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			if f.Check == "" || f.Sentence == "" || f.Basis == "" || f.Metric == "" || f.Unit == "" ||
				(f.Low == nil) == (f.NoInterval == "") {
				t.Fatalf("incomplete: %+v", f)
			}
			if f.Low != nil && *f.Low > *f.High {
				t.Fatalf("upside down: %+v", f)
			}
			for _, bad := range []string{"NaN", "Inf", "%!"} {
				if strings.Contains(f.Sentence, bad) {
					t.Fatalf("not plain words: %s: %s", f.Check, f.Sentence)
				}
			}
		}
	})
}
