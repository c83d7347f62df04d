package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// TestAsAsked: what was asked and found is passed; what differs, is zeros, cannot be told or could not be read is said.
func TestAsAsked(t *testing.T) {
	t.Parallel()
	s := result.Stored{Workload: "W", After: result.AfterRun, VMs: 2, Bytes: 32 << 20, Compressible: 0.5,
		CompressibleLow: 0.48, CompressibleHigh: 0.49, Seconds: 0.4}
	fine, zeros, differs, untold, unread := s, s, s, s, s
	zeros.ZerosWithin = 0.5
	differs.Differs = []string{"compressors save 0.0 % at most, 50 % was asked for"}
	untold.Repeats, untold.CannotTell = 0.3, []string{"only a part was looked at"}
	unread.Bytes = 0
	v := view.New(result.Manifest{}, &result.Data{Stored: []result.Stored{fine, zeros, differs, untold, unread}})
	var got []string
	for _, f := range AsAsked.Run(v) {
		if f.Value == nil != (f.NoInterval == "nothing was read") || f.Basis == "" || len(f.Evidence) != 8 {
			t.Errorf("%+v", f)
		}
		got = append(got, string(f.Severity)+": "+f.Sentence)
	}
	want := []string{
		"passed: W asks for data that are 50 % compressible, and its disks hold such after the run.",
		"warning: W asks for data that are 50 % compressible: what compresses of them is zeros (50 % of all bytes), which " +
			"storage may suppress instead of compressing. With fio, buffer_pattern puts something else in their place.",
		"warning: W asks for data that are 50 % compressible, and its disks hold others after the run: compressors save " +
			"0.0 % at most, 50 % was asked for.",
		"info: W asks for data that are 50 % compressible, 30 % of the blocks repeating others, and a sample after the " +
			"run cannot show all of it: only a part was looked at.",
		"info: W asks for data that are 50 % compressible: whether they are could not be looked at.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
