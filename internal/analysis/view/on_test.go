package view

import (
	"testing"
	"time"

	"plimsoll/result"
)

// A stretch after nodes were switched on again is not under what had switched them off: of one it is told that it came
// before, unless the stretch is named by its end, and several are counted.
func TestAfterNodesAreOnAgain(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	run := &Run{Data: &result.Data{Start: start, End: at(60)}}
	power := func(minute int, node, state, text string) {
		run.Data.Events = append(run.Data.Events, result.Mark{Time: at(minute), Kind: result.KindFault, Node: node,
			State: state, Text: text})
	}
	power(5, "a", result.PowerOff, "Switched a off")
	power(10, "a", result.PowerOn, "Switched a on")
	power(20, "b", result.PowerOff, "Switched b off")
	power(30, "b", result.PowerOn, "Switched b on")
	windows := []result.Window{{Start: at(5), End: at(10)}, {Start: at(10), End: at(20)}, {Start: at(20), End: at(30)},
		{Start: at(30), End: at(60)}}
	all := run.ConditionsOf(nil, windows)
	for i, want := range []string{`, under "Switched a off"`, `, after "Switched a off", since then on again`,
		`, under "Switched b off", after "Switched a off", since then on again`,
		`, after 2 faults whose nodes are on again`} {
		if got := all[i].Under(""); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if got := all[1].Under("Switched a on"); got != "" {
		t.Errorf("of the stretch that it began: %s", got)
	}
	if got := all[1].Under("Switched a off"); got != ", since then on again" {
		t.Errorf("of the stretch that is named by the fault: %s", got)
	}
	if got := all[0].Changes(all[1]); len(got) != 1 || got[0] != `nodes were on again after "Switched a off"` {
		t.Errorf("the change is %q", got)
	}
}
