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

func cpuPower(v *view.Run) []result.Finding {
	fact := func(name string) string { return result.ValueOf(v.Manifest.Environment, "cpu", name) }
	var saw []string
	slows := slices.Contains([]string{"powersave", "schedutil", "ondemand", "conservative"}, fact("governor"))
	if slows {
		saw = append(saw, "governor "+fact("governor"))
		for _, name := range []string{"frequency driver", "idle driver"} {
			if value := fact(name); value != "" && value != "none" {
				saw = append(saw, name+" "+value)
			}
		}
	}
	wake := 0.0
	if idle := result.Find(v.Manifest.Environment, result.IdleWake); len(idle) == 1 {
		wake = idle[0].Number
	}
	var names []string
	share := 0.0
	for _, l := range v.Loads {
		if !slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
			_, most := view.Depths(p.Streams)
			return len(p.Streams) > 0 && most <= fewInFlight
		}) {
			continue
		}
		of := 0.0
		if w := l.Whole(); w != nil {
			if count, seconds := view.Totals(w.Ops); count > 0 && seconds > 0 {
				of = wake * float64(count) / seconds
			}
		}
		if slows || of >= muchOfMean {
			names, share = append(names, l.Name), max(share, of)
		}
	}
	if len(names) == 0 {
		return nil
	}
	could, atMost := "could slow down and sleep", ""
	if share >= muchOfMean {
		saw = append(saw, "deepest idle state "+fact("deepest idle state"))
		atMost = fmt.Sprintf(", up to %s of their mean", view.Percent(min(share, 1)))
	}
	tells := "governor performance tells"
	if !slows {
		could, tells = "could sleep", "a run with that state off (cpupower idle-set) tells"
	}
	return []result.Finding{{
		Check: "cpu-power", Severity: result.Info, Subject: view.Some(names), Metric: "workloads with one in flight",
		Unit: "count", Value: view.Ptr(float64(len(names))), N: len(names),
		NoInterval: "settings of the host, as they were before the run",
		Basis:      "facts of the host, the queue depths of the jobs and their mean times",
		Sentence: fmt.Sprintf("The processors %s (%s) while %s kept one operation in flight: the times may hold what "+
			"waking takes%s. How much, nothing in this run measured; %s.", could, strings.Join(saw, ", "), view.Some(names), atMost,
			tells),
	}}
}
