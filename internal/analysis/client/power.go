package client

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Power tells of processors that save power under a load of few operations at a time: between two of them a processor
// slows down or sleeps, and what waking takes is in their times. How much that was nothing in a run measures; how much
// it may be at most the host says.
var Power = view.Check{Name: "cpu-power", Rank: 248, Run: cpuPower}

const (
	// fewInFlight is up to how many operations in flight a processor has time to sleep between them.
	fewInFlight = 1
	// muchOfMean is which share of a mean time waking from sleep must take to be told.
	muchOfMean = 0.1
)

// powerOf is a fact of the processors that a load ran on: of its own host where there are several, else of this one.
func powerOf(environment []result.Fact, vm, name string) (result.Fact, string) {
	for _, f := range environment {
		switch {
		case f.Group != "cpu":
		case f.Name == vm+": "+name:
			return f, vm
		case f.Name == name:
			return f, ""
		}
	}
	return result.Fact{}, ""
}

func cpuPower(v *view.Run) []result.Finding {
	var governors, states said
	var names []string
	slows, share := false, 0.0
	for _, l := range v.Loads {
		wake, idle, host, slow := 0.0, "", "", false
		for _, p := range l.Parts {
			if _, most := view.Depths(p.Streams); len(p.Streams) == 0 || most > fewInFlight {
				continue
			}
			governor, at := powerOf(v.Manifest.Environment, p.VM, "governor")
			if slices.Contains([]string{"powersave", "schedutil", "ondemand", "conservative"}, governor.Value) {
				slow = true
				governors.add("governor "+governor.Value, at)
			}
			if f, at := powerOf(v.Manifest.Environment, p.VM, "deepest idle state"); f.Kind == result.IdleWake &&
				f.Number > wake {
				wake, idle, host = f.Number, f.Value, at
			}
		}
		of := 0.0
		if w := l.Whole(); w != nil {
			if count, seconds := view.Totals(w.Ops); count > 0 && seconds > 0 {
				of = wake * float64(count) / seconds
			}
		}
		if of >= muchOfMean {
			states.add("deepest idle state "+idle, host)
		}
		if slow || of >= muchOfMean {
			names, share, slows = append(names, l.Name), max(share, of), slows || slow
		}
	}
	saw := governors.list()
	for _, name := range []string{"frequency driver", "idle driver"} {
		if f, _ := powerOf(v.Manifest.Environment, "", name); slows && f.Value != "" && f.Value != "none" {
			saw = append(saw, name+" "+f.Value)
		}
	}
	saw = append(saw, states.list()...)
	if len(names) == 0 {
		return nil
	}
	could, atMost := "could slow down and sleep", ""
	if share >= muchOfMean {
		atMost = fmt.Sprintf(", up to %s of their mean", view.Percent(min(share, 1)))
	}
	tells := "governor performance tells"
	if !slows {
		could, tells = "could sleep", "a run with that state off (cpupower idle-set) tells"
	}
	return []result.Finding{{
		Check: "cpu-power", Severity: result.Info, Subject: view.Three(names), Metric: "workloads with one in flight",
		Unit: "count", Value: view.Ptr(float64(len(names))), N: len(names),
		NoInterval: "settings of the host, as they were before the run",
		Basis:      "facts of the host, the queue depths of the jobs and their mean times",
		Sentence: fmt.Sprintf("The processors %s (%s) while %s kept one operation in flight: the times may hold what "+
			"waking takes%s. How much, nothing in this run measured; %s.", could,
			strings.Join(saw, ", "), view.Three(names), atMost,
			tells),
	}}
}

// said holds what was seen, in order, each with the hosts on which.
type said struct {
	order []string
	on    map[string][]string
}

func (s *said) add(what, host string) {
	if s.on == nil {
		s.on = map[string][]string{}
	}
	if _, there := s.on[what]; !there {
		s.order, s.on[what] = append(s.order, what), nil
	}
	if host != "" && !slices.Contains(s.on[what], host) {
		s.on[what] = append(s.on[what], host)
	}
}

func (s *said) list() (out []string) {
	for _, what := range s.order {
		if hosts := s.on[what]; len(hosts) > 0 {
			what += " on " + view.Three(hosts)
		}
		out = append(out, what)
	}
	return out
}
