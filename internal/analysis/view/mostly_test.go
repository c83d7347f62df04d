package view

import (
	"strings"
	"testing"
	"time"

	"plimsoll/result"
)

// A fault for most of one load's time and for all of the next one's is a difference between the two.
func TestFaultForMostOfATime(t *testing.T) {
	t0 := time.Unix(0, 0).UTC()
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	v := New(result.Manifest{}, &result.Data{Start: t0, Events: []result.Mark{
		{Kind: result.KindFault, State: result.FaultBegins, Text: "hangs", Node: "n", Time: at(9)}}})
	c := v.ConditionsOf(nil, []result.Window{{Start: at(0), End: at(60)}, {Start: at(60), End: at(120)}})
	if said := strings.Join(c[0].Changes(c[1]), "; "); !strings.Contains(said, "was in force") {
		t.Errorf("%q", said)
	}
}

// A VM was lost to the fault of its own node, though another came nearer to its last report.
func TestEndedBy(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	fault := func(s int, node, text string) result.Mark {
		return result.Mark{Kind: result.KindFault, State: result.FaultBegins, Time: at(s), Node: node, Text: text}
	}
	v := New(result.Manifest{Nodes: []result.Node{{Name: "a"}, {Index: 1, Name: "b"}}}, &result.Data{
		Events: []result.Mark{fault(10, "b", "long before"), fault(98, "a", "clock"), fault(104, "b", "crash")}})
	for _, c := range []struct {
		node int
		want string
	}{{0, "clock"}, {1, "crash"}, {2, "clock"}} {
		p := &result.Workload{Node: c.node, Start: at(0), End: at(99), Ended: result.Lost}
		if got := v.EndedBy(&Load{Parts: []*result.Workload{p}}, p); got == nil || got.Text != c.want {
			t.Errorf("of node %d: %+v, want %s", c.node, got, c.want)
		}
	}
}
