package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

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
