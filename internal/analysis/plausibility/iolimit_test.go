package plausibility

import (
	"strings"
	"testing"

	"plimsoll/internal/analysis/view"
	"plimsoll/internal/testkit/reporttest"
	"plimsoll/result"
)

// A load that is held at what a quota allows is told so, of operations as of bytes; one below it is not, nor is one
// that lies on two storages of which one has no quota.
func TestIOLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writes   float64
		kind     result.FactKind
		number   float64
		storages int
		want     string
	}{
		"reads at it": {0, result.LimitReadRate, 1000, 1,
			"Reads were at 1,000 a second on average, where the run's group is allowed 1,000 a second (Q): that quota was " +
				"measured, not the storage."},
		"writes at it, in bytes": {1, result.LimitWriteBandwidth, 8192e3, 1, "Writes were at 7.81 MiB a second on " +
			"average, where the run's group is allowed 7.81 MiB a second (Q): that quota was measured, not the storage."},
		"below it": {0, result.LimitReadRate, 4000, 1,
			"Reads were at 1,000 a second on average, where the run's group is allowed 4,000 a second (Q)."},
		"of the other kind":       {0, result.LimitWriteRate, 1000, 1, ""},
		"one of two storages has": {0, result.LimitReadRate, 1000, 2, ""},
	} {
		s := reporttest.NewSynthetic(360, 120, 1)
		s.Load(reporttest.Load{Name: "A", To: 120, Writes: c.writes, Rate: func(int) float64 { return 1000 }})
		for i := range c.storages {
			s.Manifest.Environment = append(s.Manifest.Environment, result.Fact{
				Group: "storage " + string(rune('a'+i)),
				Name:  "size", Value: "1 TiB", Kind: result.StorageSize, Number: 1 << 40})
		}
		s.Manifest.Environment = append(s.Manifest.Environment, result.Fact{Group: "storage a", Name: "quota",
			Value: "Q", Kind: c.kind, Number: c.number})
		var got []string
		for _, f := range ioLimit(view.New(s.Manifest, s.Data)) {
			got = append(got, f.Sentence)
			if (f.Severity == result.Warning) != strings.Contains(c.want, "quota was measured") {
				t.Errorf("%s: %s", name, f.Severity)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
