package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/testkit/needs"
)

// TestPublishedCurves reads published measurements through the command and demands the coefficients printed with them.
func TestPublishedCurves(t *testing.T) {
	dir := needs.Corpus(t, "usl")
	for name, want := range map[string][3]float64{ // gamma, alpha, beta, and how closely they are printed
		"cisco.csv":     {995.6486, 0.02671591, 0.0007690945},
		"specsdm91.csv": {89.995, 0.02773, 0.0001044},
	} {
		a, out, _ := quiet(t)
		if code := a.main([]string{"usl", filepath.Join(dir, name), "--errors", "alike", "--json"}); code != 0 {
			t.Fatalf("%s: exit code %d", name, code)
		}
		var got struct{ Gamma, Alpha, Beta struct{ Value float64 } }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		for i, v := range []float64{got.Gamma.Value, got.Alpha.Value, got.Beta.Value} {
			if math.Abs(v/want[i]-1) > 5e-4 {
				t.Errorf("%s: coefficient %d is %v, printed as %v", name, i, v, want[i])
			}
		}
	}
}

// TestCurveOfNoConcurrency: two columns with names are a curve only when one of them is how many were at work.
func TestCurveOfNoConcurrency(t *testing.T) {
	t.Parallel()
	const rows = "1,1000\n2,1900\n4,3500\n8,6000\n16,9000\n32,11000\n"
	for head, want := range map[string]int{"time,iops\n": exit.Usage, "run,tps\n": exit.Usage,
		"block_kb,iops\n": exit.Usage, "threads,mb_s\n": exit.Done, "": exit.Done} {
		a, _, errs := quiet(t)
		file := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(file, []byte(head+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		if code := a.main([]string{"usl", file}); code != want {
			t.Errorf("%q: exit code %d, want %d: %s", head, code, want, errs)
		}
	}
}
