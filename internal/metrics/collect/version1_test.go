package collect

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio"
	"plimsoll/result"
)

// A folder of version 1, made by the program of then with a real fio, reads as one of today, and collecting it anew
// gives the same; but for heat maps, where late reports were not spread then, and for the end, which was then that of
// fio's last report, 16 ms after its jobs had ended: the rate of the last second has no such wait in it now.
func TestVersion1(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "20261122-072750-version-one-ee59")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../../result/testdata/version1",
		filepath.Base(dir)))); err != nil {
		t.Fatal(err)
	}
	folder, err := result.Open(dir)
	if err != nil || len(folder.Problems()) > 0 {
		t.Fatal(err, folder.Problems())
	}
	then, err := folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	now, err := Collect(t.Context(), folder, map[string]workload.Engine{"fio": fio.Engine{}})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range then.Workloads {
		if late := w.End.Sub(now.Workloads[i].End); late != 16*time.Millisecond {
			t.Errorf("workload %d ends %v before fio's last report", i, late)
		}
		then.Workloads[i].End = now.Workloads[i].End
	}
	for i, p := range then.Panels {
		for j, s := range p.Series {
			last, after := s.Values[len(s.Values)-1], now.Panels[i].Series[j].Values
			if ratio := *after[len(after)-1] / *last; ratio < 1 || ratio > 1.03 {
				t.Errorf("panel %s: the last second has %v times what it had", p.Name, ratio)
			}
			*last = *after[len(after)-1]
		}
	}
	if diff := cmp.Diff(then, now, cmpopts.IgnoreFields(result.Data{}, "Version"),
		cmpopts.IgnoreTypes(&result.HeatMap{}, &result.OverTime{})); diff != "" {
		t.Errorf("collected anew (-then +now):\n%s", diff)
	}
	if n := len(now.Series); n < 12 || now.Series[0].Op != "read" || now.Series[0].Metric() != "read_iops" ||
		now.Workloads[0].Ops[0].Count == 0 {
		t.Errorf("%d series, the first is %s; workloads %+v", n, now.Series[0].Metric(), now.Workloads)
	}
}
