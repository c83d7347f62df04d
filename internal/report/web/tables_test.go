package web

import (
	"testing"

	"plimsoll/result"
)

func TestCounted(t *testing.T) {
	t.Parallel()
	for of, want := range map[[4]int]string{
		{0, 0, 0, 0}:         "0 histories",
		{0, 1, 1, 1}:         "1 history",
		{0, 1, 1, 5}:         "1 of 5 histories",
		{100, 200, 219, 219}: "101 to 200 of 219 histories",
	} {
		if got := counted(of[0], of[1], of[2], of[3], "history", "histories"); got != want {
			t.Errorf("%v: %q, want %q", of, got, want)
		}
	}
}

// A fault that is over and power that is back are marked as no faults.
func TestMarkOfRecovery(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"": "fault", result.FaultBegins: "fault", result.PowerOff: "fault", result.FaultOver: "", result.PowerOn: "",
	} {
		e := result.Event{Kind: result.KindFault, Text: "node-0", Data: result.EventData{State: state}}
		if got := inWords(e).Mark; got != want {
			t.Errorf("%q: %q, want %q", state, got, want)
		}
	}
}
