package answer

import (
	"testing"

	"plimsoll/result"
)

// A summary has the first sentence of a finding, which full stops within names do not end.
func TestFirstSentence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    result.Finding
		want string
	}{
		{result.Finding{Sentence: "It was steady. It had no stall."}, "It was steady."},
		{result.Finding{Sentence: "It took 1.5 s. of all"}, "It took 1.5 s. of all"},
		{result.Finding{Subject: "Avg. Disk sec/Read", Sentence: "Avg. Disk sec/Read was steady. A mean is a mean."},
			"Avg. Disk sec/Read was steady."},
		{result.Finding{Subject: "2 columns", Evidence: []result.Evidence{{Name: "Temp. Sensor No. 1"}},
			Sentence: "2 columns never vary: Temp. Sensor No. 1, x. They are left out."},
			"2 columns never vary: Temp. Sensor No. 1, x."},
	} {
		if got := First(c.f); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
