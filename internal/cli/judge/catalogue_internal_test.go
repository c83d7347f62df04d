package judge

import (
	"testing"

	"plimsoll/internal/report/catalogue"
)

// That a mark is of a search that may go on is said where it is recorded.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for want, unfinished := range map[string]bool{
		"1 load of rack 4: records/a.json":                                                 false,
		"1 load of rack 4, of an unfinished search, whose mark may change: records/a.json": true,
	} {
		r := catalogue.Record{System: "rack 4", Done: []catalogue.Done{{Figures: []catalogue.Figure{
			{Name: catalogue.Mark, Value: 310, Unfinished: unfinished}}}}}
		if got := recorded(r, "records/a.json"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
