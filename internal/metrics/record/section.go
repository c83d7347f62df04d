package record

import (
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/metrics/tally"
	"plimsoll/result"
)

// sections are the loads that a Recorder writes for the streams of a start.
func (v *vmState) sections(scope Scope, d result.RawJob) []*load {
	var out []*load
	for i, name := range SectionNames(d.Streams) {
		ls := scope.labels(series.Label{Name: "instance", Value: v.name},
			series.Label{Name: "vm_group", Value: v.group},
			series.Label{Name: "workload", Value: d.Workload}, series.Label{Name: "section", Value: name})
		l := newLoad(name, tally.Layout{Operations: d.Operations}, ls, SectionOps, SectionBytes, SectionService)
		for k, o := range d.Operations {
			l.seen[k] = d.Streams[i].Does(o)
		}
		out = append(out, l)
	}
	return out
}
