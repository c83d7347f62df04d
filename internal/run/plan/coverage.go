package plan

import (
	"slices"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/run/step"
	"plimsoll/internal/storage/written"
	"plimsoll/unit"
)

// coverTolerance is how much of what a workload reads may lack a write: sizes that are scaled are rounded, each to
// blocks of its own.
const coverTolerance = 0.01

// cover holds what the steps so far write on the disks of a VM group, by device.
type cover struct {
	prefilled map[string][]written.Range // by prefills, and the passes of preconditionings
	worked    map[string][]written.Range // where workloads of the author write as well
}

// objectToReads refuses a workload that reads beyond what was prefilled for it: what it reads there nobody has written,
// unless another workload does, and storage answers such reads without its media. A disk that no step prefills is left
// to the findings: its author may know why.
func (b *builder) objectToReads() {
	groups := map[string]*cover{}
	for _, s := range b.plan.Steps {
		if strings.HasSuffix(s.Name, "cluster.DeleteCurieVMs") {
			clear(groups)
		}
		for _, use := range s.Do.Uses().Jobs {
			load, err := b.plan.view.Workload(use.Workload)
			job, known := b.jobs.job(use)
			if err != nil || !known {
				continue
			}
			c := groups[load.Group]
			if c == nil {
				c = &cover{map[string][]written.Range{}, map[string][]written.Range{}}
				groups[load.Group] = c
			}
			disks := b.jobs.disks(load)
			b.objectToRead(s, use, job, c, disks)
			to := c.worked
			if use.Prefill {
				to = c.prefilled
			}
			for device, ranges := range step.Extents(job.Streams, disks, step.Writes) {
				to[device] = append(to[device], ranges...)
			}
		}
	}
}

func (b *builder) objectToRead(s Step, use step.JobUse, job workload.Job, c *cover, disks []target.Disk) {
	read := step.Extents(job.Streams, disks, step.Reads)
	for _, d := range disks { // in their order
		ranges := written.Merge(read[d.Device])
		if len(ranges) == 0 || len(c.prefilled[d.Device]) == 0 {
			continue
		}
		lacks := written.Lacks(ranges, slices.Concat(c.prefilled[d.Device], c.worked[d.Device]))
		if all := written.Bytes(ranges); float64(written.Bytes(lacks)) > coverTolerance*float64(all) {
			b.object(
				"step %d (%s): workload %q reads %s of %s, of which %s from byte %d on are not prefilled and written by "+
					"nothing: storage answers such reads without its media; give the prefill the same size and offset",
				s.Number,
				s.Name,
				use.Workload,
				unit.Bytes(all),
				d.Device,
				unit.Bytes(written.Bytes(lacks)),
				lacks[0].From,
			)
		}
	}
}
