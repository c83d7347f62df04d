// Package collect turns what a run measured into what is shown of it. While the run goes on a Recorder writes what engines report into the
// embedded metrics database, under node_exporter's names and its own. Afterwards, or at any time from the folder alone, Collect evaluates
// the scenario's results with PromQL, replays the raw output of every workload, and returns result.Data.
//
// It sits between the metrics database and raw output on one side and the run folder's data.json on the other. It judges nothing (package analysis
// does) and draws nothing. Every panel stands by itself: one that cannot be evaluated says why and hides no other.
package collect
