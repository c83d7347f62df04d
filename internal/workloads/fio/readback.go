package fio

import (
	"slices"

	"plimsoll/internal/workloads/fio/fiofile"
)

// add takes the next report. Where jobs read and write, and then read back what they wrote, it takes the one before:
// only the next tells whether they still wrote.
func (o *order) add(d *document) {
	if !o.apart && slices.ContainsFunc(d.jobs, func(e entry) bool { r, v := d.readsBack(&e); return r && v }) {
		d, o.delayed = o.delayed, d
		o.values, o.delayedValues = o.delayedValues, o.values
	}
	if d == nil {
		return
	}
	if !o.apart {
		o.leaveReadBack(d, o.delayed)
	}
	o.take(d, o.values)
}

// readsBack reports whether a job reads back what it wrote when all is written, and reads before that, too.
func (d *document) readsBack(e *entry) (reads, is bool) {
	job := d.jobOf(e)
	r, w, t := directions(job.Value("rw"))
	return r, w && !t && verifies(job) && number(job, "verify_backlog", 0) == 0
}

// verifies reports whether a job checks what it reads, and reads what it wrote.
func verifies(job fiofile.Job) bool {
	return !slices.Contains([]string{"", "0", "null"}, job.Value("verify")) && job.Value("do_verify") != "0"
}

// readBackMS is by how much the time of a job's reads is above that of its writes when it has read back: those of a mix
// are taken one right after the other.
const readBackMS = 2

// hasReadBack reports whether the reads of a job that ended are of what it wrote, or hold those.
func (d *document) hasReadBack(e *entry) bool {
	mixed, is := d.readsBack(e)
	return is && e.dirs[0].ios > 0 && (!mixed || e.dirs[0].runtimeMS > e.dirs[1].runtimeMS+readBackMS)
}

// leaveReadBack leaves what jobs read back to verify it out of a report. Of a mix nothing tells these reads from the
// others: it stays as it was when it last wrote, and without such a report its writes are what is known.
func (o *order) leaveReadBack(d, next *document) {
	o.back = false
	for i := range d.jobs {
		e := &d.jobs[i]
		mixed, is := d.readsBack(e)
		if !is || e.dirs[0].ios == 0 {
			continue
		}
		if mixed {
			kept, ok := o.clean[i]
			wrote := e.over() || !ok
			if next != nil {
				wrote = i < len(next.jobs) && next.jobs[i].dirs[1].ios > e.dirs[1].ios
			}
			if wrote && e.dirs[0].runtimeMS <= e.dirs[1].runtimeMS+readBackMS {
				if o.clean == nil {
					o.clean = map[int][operations]direction{}
				}
				o.clean[i] = e.dirs
				continue
			}
			if ok {
				e.dirs, o.back = kept, true
				continue
			}
		}
		o.back = true
		e.leave(2)
	}
}
