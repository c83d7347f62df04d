package judge

import (
	"testing"

	"plimsoll/internal/report/catalogue"
	"plimsoll/result"
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

// What a limit may be on is said of what the generator gave, once each; nothing where it gave nothing of its own.
func TestMeasured(t *testing.T) {
	t.Parallel()
	value := func(name string) result.Value { return result.Value{Measure: name} }
	d := &result.Data{Workloads: []result.Workload{
		{Name: "Ask", Values: []result.Value{value("p99"), value("NOPM"), value("p99")}},
		{Name: "Ask", VM: "a", Values: []result.Value{value("p50")}},
		{Name: "Other", Values: []result.Value{value("p90")}},
	}}
	if got, want := measured(d, "Ask"), "beside operations and errors it gave: NOPM, p99"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := measured(d, "None"); got != "" {
		t.Errorf("%q of no workload", got)
	}
}
