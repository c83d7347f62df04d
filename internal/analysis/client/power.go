package client

import (
	"fmt"
	"strings"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

// Power tells of processors that save power under a load of few operations at a time: between two of them a processor
// slows down or sleeps, and what waking takes is in their times. How much that was nothing in a run measures.
var Power = view.Check{Name: "cpu-power", Rank: 248, Run: cpuPower}

// fewInFlight is up to how many operations in flight a processor has time to sleep between them.
const fewInFlight = 1

func cpuPower(v *view.Run) []result.Finding {
	fact := func(name string) string { return result.ValueOf(v.Manifest.Environment, "cpu", name) }
	governor := fact("governor")
	if governor != "powersave" && governor != "schedutil" && governor != "ondemand" && governor != "conservative" {
		return nil
	}
	var names []string
	for _, l := range v.Loads {
		for _, p := range l.Parts {
			if _, most := view.Depths(p.Lanes); len(p.Lanes) > 0 && most <= fewInFlight {
				names = append(names, l.Name)
				break
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	saw := []string{"governor " + governor}
	for _, name := range []string{"frequency driver", "idle driver"} {
		if value := fact(name); value != "" && value != "none" {
			saw = append(saw, name+" "+value)
		}
	}
	return []result.Finding{{
		Check: "cpu-power", Severity: result.Notice, Subject: view.Some(names), Metric: "workloads with one in flight",
		Unit: "count", Value: view.Ptr(float64(len(names))), N: len(names),
		NoInterval: "settings of the host, as they were before the run",
		Basis:      "facts of the host and the queue depths of the jobs",
		Sentence: fmt.Sprintf("The processors could slow down and sleep (%s) while %s kept one operation in flight: the "+
			"times may hold what waking takes. How much, nothing in this run measured; governor performance tells.",
			strings.Join(saw, ", "), view.Some(names)),
	}}
}
