package result

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Journals from before the states stood beside the texts are read as those of today.
func TestEventsOfOlderJournals(t *testing.T) {
	t.Parallel()
	events, skipped, err := readJournal(strings.NewReader(`{"kind":"run_start","text":"Mine","data":{"target":"sim","steps":3}}
{"kind":"workload","text":"start","data":{"vm":"","workload":"W","start":1,"group":"G","prefill":true}}
{"kind":"workload","text":"lost","data":{"vm":"a-0","workload":"W","start":"one"}}
{"kind":"fault","text":"node 0 is off","data":{"node":0,"power":"off"}}
{"kind":"step_end","text":"skipped"}
{"kind":"note","text":"start"}
{"kind":"run_end","text":"succeeded"}
`))
	if err != nil || len(skipped) > 0 {
		t.Fatal(skipped, err)
	}
	want := []EventData{{Scenario: "Mine", Target: "sim", Steps: 3},
		{State: WorkloadStart, Workload: "W", Start: 1, Group: "G", Prefill: true}, {State: WorkloadLost},
		{Node: new(int), Power: "off"}, {State: "skipped"}, {}, {State: StatusSucceeded}}
	got := make([]EventData, len(events))
	for i, e := range events {
		got[i] = e.Data
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
