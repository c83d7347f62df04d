package cli

import (
	"context"
	"io"
	"math"
	"slices"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/cli/storage"
	"plimsoll/internal/formats/convert"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/result"
)

// firstOfCurve reports whether the points of a file's curve are shares of one largest rate, which a run of its first
// point tells. Loops around a curve have a largest rate each.
func firstOfCurve(con *console.Console, given string, data []byte, from convert.Tool, set map[string]string) bool {
	to, err := convert.ByName("fio")
	if err != nil {
		return false
	}
	r := convert.Request{Name: given, Data: data, From: from, To: to, Set: set, Include: storage.Besides(con, given)}
	if _, err := convert.Convert(r); err == nil {
		return false
	}
	r.CurveMax = -1
	made, err := convert.Convert(r)
	return err == nil && len(made.Stages) == 1
}

// curve makes the first run of a curve, as fast as it goes, and then what sf has become: the same file with the rate
// that the first run reached.
func (rn *runner) curve(given string, sf *scenarioFlags, tf machines.Flags, rf runFlags) error {
	visible.Fprintf(rn.Notes(), "%s: the points of its curve are shares of the largest rate: a run that measures it comes "+
		"first\n", given)
	first, most := *sf, 0.0
	first.own.first, first.assert = false, nil
	rf.once, rf.junit, rf.sheet = true, "", nil
	rf.finish = func(_ context.Context, _ *result.Folder, d *result.Data) error {
		most = largest(d)
		return nil
	}
	if rn.JSON { // one document is printed, of the curve
		out := rn.Out
		rn.Out = io.Discard
		defer func() { rn.Out = out }()
	}
	if err := rn.run(given, first, tf, rf); err != nil {
		return err
	}
	if most <= 0 {
		return exit.Errorf(exit.Failed, "--curve-max says the rate", "run: the run that was to tell the largest rate of the curve "+
			"did nothing")
	}
	visible.Fprintf(rn.Notes(), "%s: its largest rate is %.0f operations a second; its curve comes now\n", given, most)
	sf.own.curveMax, sf.values = math.Round(most), sf.own.values
	return rn.scenarioOfJobs(given, sf)
}

// largest is the rate of all that ran at once, in operations a second.
func largest(d *result.Data) (rate float64) {
	for _, w := range d.Workloads {
		part := !w.Merged() && slices.ContainsFunc(d.Workloads,
			func(o result.Workload) bool { return o.Name == w.Name && o.Merged() })
		if w.Prefill || part || !(w.Seconds() > 0) {
			continue
		}
		for _, o := range w.Ops {
			rate += float64(o.Count) / w.Seconds()
		}
	}
	return rate
}
