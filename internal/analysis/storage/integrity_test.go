package storage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// TestLostWrites: what was lost is told by its kinds, that nothing was only where something could have been.
func TestLostWrites(t *testing.T) {
	t.Parallel()
	const intro = "Check: every acknowledged write"
	for name, c := range map[string]struct {
		lost, stale, checked float64
		writes               int // when the write began, in seconds; 0: the run does not tell of one
		change               func(*reporttest.Synthetic)
		severity             result.Severity
		want                 string
	}{
		"lost": {lost: 3, stale: 3, checked: 100, severity: result.Invalid,
			want: "Check: 3 of 100 acknowledged writes are not there: 3 stale. Unless somebody else wrote there, the " +
				"storage of VM acknowledges what it can lose. The notes and the raw output name the addresses."},
		"no fault": {checked: 2000, severity: result.Passed,
			want: intro +
				" was there, in all 2,000 blocks; no fault came before, so this says only that they can be read back."},
		"fault": {checked: 100, severity: result.Info, change: cut,
			want: intro + ` up to the moment of the fault ("Power off") was there, in all 100 blocks.`},
		"one host": {checked: 100, severity: result.Info,
			change: func(s *reporttest.Synthetic) { cut(s); s.Manifest.OneMachine = true },
			want: intro + ` up to the moment of the fault ("Power off") was there, in all 100 blocks; but the nodes are ` +
				"parts of one host, whose kernel lived through it and keeps what it has taken: this does not judge the " +
				"storage below."},
		"fault before the write": {checked: 100, severity: result.Passed, writes: 10, change: cut,
			want: intro + " was there, in all 100 blocks; no fault came after they were written, so this says only that " +
				"they can be read back."},
		"fault after the write": {checked: 100, severity: result.Info, writes: 10,
			change: func(s *reporttest.Synthetic) {
				cut(s)
				s.Data.Events[0].Time = s.Data.Start.Add(15 * time.Second)
			},
			want: intro + ` up to the moment of the fault ("Power off") was there, in all 100 blocks.`},
		"astray": {checked: 100, stale: 2, severity: result.Warning, want: intro +
			" was there, but where nothing had been " +
			"acknowledged the storage holds what no write had put there, or cannot be read: 2 stale. The notes and the " +
			"raw output name the addresses."},
		"nothing claimed": {severity: result.Warning,
			want: "Check held the storage to nothing: no write was acknowledged before the end of the record."},
		"not finished": {checked: 0, severity: result.Warning,
			change: func(s *reporttest.Synthetic) { s.Data.Workloads[0].Ended = "lost" },
			want: "Check came to an end on 0 of 1 VM only, so it is not known whether every acknowledged write is " +
				"there."},
	} {
		s := reporttest.NewSynthetic(1, 60, 1)
		measure := func(name string, v float64) reporttest.Measured {
			return reporttest.Measured{Measure: result.Measure{Name: name, Unit: "blocks", Kind: result.Count},
				Value: func(at int) float64 {
					if at == 59 {
						return v
					}
					return 0
				}}
		}
		s.Load(reporttest.Tool(reporttest.Load{Name: "Check", From: 20, To: 60}, measure("checked", c.checked),
			measure("lost", c.lost), measure("stale", c.stale)))
		if c.writes > 0 {
			s.Load(reporttest.Tool(reporttest.Load{Name: "Write", Group: "Check", From: c.writes,
				To: 18}, measure("acknowledged", c.checked)))
		}
		for i := range s.Data.Workloads {
			if w := &s.Data.Workloads[i]; w.VM != "" {
				w.VM = "VM"
				s.Data.Workloads[0], s.Data.Workloads[i] = s.Data.Workloads[i], s.Data.Workloads[0]
			}
		}
		if c.change != nil {
			c.change(s)
		}
		got := LostWrites.Run(view.New(s.Manifest, s.Data))
		if len(got) != 1 {
			t.Fatalf("%s: %d findings", name, len(got))
		}
		if diff := cmp.Diff([]string{string(c.severity), c.want},
			[]string{string(got[0].Severity), got[0].Sentence}); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// cut has a fault come before the check.
func cut(s *reporttest.Synthetic) {
	s.Data.Events = append(s.Data.Events, result.Mark{Kind: result.KindFault, State: result.FaultBegins,
		Text: "Power off", Time: s.Data.Start})
}

// TestVerifiedReads: a job whose reads fail where they are not what was written, as fio's with verify.
func TestVerifiedReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*reporttest.Synthetic)
		severity result.Severity
		want     string
	}{
		"no fault": {severity: result.Passed, want: "Check: all it read back was as it had been written, 1,600 reads; no " +
			"fault came before, so this says only that they can be read back."},
		"fault": {severity: result.Info, change: cut, want: "Check: all it read back was as it had been written up " +
			`to the moment of the fault ("Power off"), 1,600 reads.`},
		"lost": {severity: result.Warning,
			change: func(s *reporttest.Synthetic) { cut(s); each(s, func(w *result.Workload) { w.Errors = 3 }) },
			want: "Check: 3 reads failed: of blocks that are missing, old or damaged, or that could not be read. The " +
				"raw output names them."},
		"not finished": {severity: result.Warning,
			change: func(s *reporttest.Synthetic) { cut(s); each(s, func(w *result.Workload) { w.Ended = "lost" }) },
			want:   "Check came to an end on 0 of 1 VM only, so it is not known whether everything written is there."},
		"reads": {change: func(s *reporttest.Synthetic) {
			each(s, func(w *result.Workload) { w.Streams[0].Verifies = false })
		}},
	} {
		s := reporttest.NewSynthetic(1, 60, 1)
		s.Load(reporttest.Load{Name: "Check", From: 20, To: 60, Rate: func(int) float64 { return 40 }})
		each(s, func(w *result.Workload) { w.Streams[0].Verifies = true })
		if c.change != nil {
			c.change(s)
		}
		var want, got []string
		if c.want != "" {
			want = []string{string(c.severity) + " " + c.want}
		}
		for _, f := range LostWrites.Run(view.New(s.Manifest, s.Data)) {
			got = append(got, string(f.Severity)+" "+f.Sentence)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func each(s *reporttest.Synthetic, change func(*result.Workload)) {
	for i := range s.Data.Workloads {
		if w := &s.Data.Workloads[i]; len(w.Streams) > 0 {
			change(w)
		}
	}
}
