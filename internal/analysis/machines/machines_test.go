package machines

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

func ask(check view.Check, d *result.Data) (said []string) {
	for _, f := range check.Run(&view.Run{Data: d}) {
		text := f.Sentence
		for _, e := range f.Evidence {
			text += fmt.Sprintf(" %s %g", e.Name, e.Value)
		}
		said = append(said, text)
	}
	return said
}

// A storm is what was asked for together: a lone boot is none, nor are four, two of them are never pooled, damage is
// left out.
func TestBoots(t *testing.T) {
	t.Parallel()
	d := &result.Data{Boots: []result.Boot{{VM: "lone", Group: "Gold", Asked: at(0), Started: at(0), Answered: at(9)}}}
	for i := range 20 { // 1 to 20 s each, one second after the other
		d.Boots = append(d.Boots, result.Boot{Group: "Desktops", Asked: at(10), Started: at(10 + float64(i)),
			Answered: at(10 + float64(i) + float64(20-i))})
	}
	for _, answered := range []float64{110, 120, 130, 140, 140} {
		d.Boots = append(d.Boots,
			result.Boot{Group: "Desktops", Asked: at(100), Started: at(100), Answered: at(answered)})
	}
	for range 4 { // a few are no storm
		d.Boots = append(d.Boots, result.Boot{Group: "Few", Asked: at(5), Started: at(5), Answered: at(6)})
	}
	d.Boots = append(d.Boots,
		result.Boot{Group: "Desktops", Asked: at(100), Started: at(100), Answered: at(1)},
		result.Boot{Group: "Desktops", Asked: at(100), Started: at(1), Answered: at(110)})
	want := []string{
		"20 VMs of Desktops were switched on together: half of them answered within 10 s of their start, 95 % within 19 s, the slowest " +
			"after 20 s; all of them answered 20 s after they were asked for. " +
			"median 10 95th percentile 19 longest 20 until all had answered 20",
		"5 VMs of Desktops were switched on together: half of them answered within 30 s of their start, 95 % within 40 s, the slowest " +
			"after 40 s; all of them answered 40 s after they were asked for. " +
			"median 30 95th percentile 40 longest 40 until all had answered 40"}
	if diff := cmp.Diff(want, ask(Boots, d)); diff != "" {
		t.Error(diff)
	}
	if said := ask(Boots, &result.Data{}); said != nil {
		t.Error(said)
	}
}

// Of a storm that the target does not time it is said that it was not timed; of a few machines, or where some boots
// were timed, nothing.
func TestUntimedBoots(t *testing.T) {
	t.Parallel()
	d := &result.Data{Start: at(0), Events: []result.Mark{{Time: at(-1), Text: "Powering on group Steady"},
		{Time: at(1), Text: "Powering on group Few"}, {Time: at(2), Text: "Powering on group Desktops"}}}
	for i, group := range []string{"Steady", "Steady", "Desktops", "Desktops", "Desktops", "Steady", "Steady", "Steady",
		"Desktops", "Desktops", "Desktops", "Few"} {
		d.VMs = append(d.VMs, result.VM{Name: fmt.Sprint(i), Group: group})
	}
	want := []string{"How long 6 VMs of Desktops took to boot is not known: target  tells of no boots (lab, kubernetes and " +
		"sim do)."}
	if diff := cmp.Diff(want, ask(Boots, d)); diff != "" {
		t.Error(diff)
	}
	d.Boots = []result.Boot{{VM: "lone", Group: "Gold", Asked: at(0), Started: at(0), Answered: at(9)}}
	if said := ask(Boots, d); said != nil {
		t.Error(said)
	}
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	d := &result.Data{Migrations: []result.Migration{
		{Group: "A", Seconds: 3, StillSeconds: 0.5}, {Group: "B", Seconds: 1, StillSeconds: 0.25},
		{Group: "A", Seconds: 2, StillSeconds: 0.75}, {Group: "A", Seconds: math.NaN()},
		{Group: "A", StillSeconds: -1}}}
	want := []string{
		"VMs of A moved to another node 2 times while they ran: the longest move " +
			"took 3 s, and none stood still for " +
			"more than 750 ms. median duration 2 longest duration 3 median standstill 0.5 longest standstill 0.75",
		"VMs of B moved to another node once while they ran: the longest move " +
			"took 1 s, and none stood still for " +
			"more than 250 ms. median duration 1 longest duration 1 median standstill 0.25 longest standstill 0.25"}
	if diff := cmp.Diff(want, ask(Migrations, d)); diff != "" {
		t.Error(diff)
	}
}

// The slowest are named; damage is left out.
func TestNodeReturns(t *testing.T) {
	t.Parallel()
	d := &result.Data{}
	if said := ask(NodeReturns, d); said != nil {
		t.Error(said)
	}
	for _, c := range []struct {
		node           string
		off, on, ready float64
		want           string
	}{
		{"n0", 10, 20, 24, "From power-on until ready: n0 4 s, after at least 10 s off. n0 4"},
		{"n1", 10, 21, 31, "From power-on until ready: n1 10 s and n0 4 s, after at least 10 s off. n1 10 n0 4"},
		{"damaged", 10, 9, 31,
			"From power-on until ready: n1 10 s and n0 4 s, after at least 10 s off. n1 10 n0 4"},
		{"damaged", 10, 20, 19,
			"From power-on until ready: n1 10 s and n0 4 s, after at least 10 s off. n1 10 n0 4"},
		{"n2", 40, 48, 49,
			"From power-on until ready: n1 10 s, n0 4 s and n2 1 s, after at least 8 s off. n1 10 n0 4 n2 1"},
	} {
		d.NodeReturns = append(d.NodeReturns,
			result.NodeReturn{Node: c.node, Off: at(c.off), On: at(c.on), Ready: at(c.ready)})
		if diff := cmp.Diff([]string{c.want}, ask(NodeReturns, d)); diff != "" {
			t.Error(diff)
		}
	}
}
