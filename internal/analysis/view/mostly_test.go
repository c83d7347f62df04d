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
