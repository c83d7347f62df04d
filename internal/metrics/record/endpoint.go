package record

import (
	"time"

	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// Exporter is an endpoint whose pages become series of the run, under their own names and with the run's labels. It
// is used by one goroutine at a time.
type Exporter struct {
	r      *Recorder
	vm     string
	source *series.Source
	about  *series.Row // up, duration, samples
}

// Exporter prepares an endpoint called name, of the machine that the label instance names. Of a VM that is the VM's
// name, with its group; a machine underneath has no group, and its series are not the VMs'.
func (r *Recorder) Exporter(name, instance, group string) *Exporter {
	ls := r.o.Scope.labels(series.Label{Name: "instance", Value: instance}, series.Label{Name: "endpoint", Value: name})
	e := &Exporter{r: r}
	if group != "" {
		e.vm = instance
		ls = append(ls, series.Label{Name: "vm_group", Value: group})
	}
	e.source = r.o.Store.Source(ls, series.Limits{})
	e.about = series.NewRow(handles(ls, EndpointUp, EndpointDuration, EndpointSamples)...)
	return e
}

// Now is the moment to enter a page at that is asked for now.
func (e *Exporter) Now() time.Time { return e.r.now().Truncate(time.Millisecond) }

// Served enters a page that took so long to get. A page that cannot be read is entered as Failed would, and returned
// as an error.
func (e *Exporter) Served(p series.Page, took time.Duration) error {
	n, err := e.source.Append(p)
	if err != nil {
		_ = e.Failed(p.Time, took) // what is wrong with the metrics is seen by the recorder, too
		return err
	}
	if e.vm != "" {
		for _, name := range diskSeries[1:] {
			if e.source.Serves(name) {
				e.r.standBack(e.vm)
				break
			}
		}
	}
	return e.tell(p.Time, 1, took, n)
}

// Failed notes that the endpoint did not answer: none of its series are carried on.
func (e *Exporter) Failed(t time.Time, took time.Duration) error {
	if err := e.source.End(t); err != nil {
		return err
	}
	return e.tell(t, 0, took, 0)
}

// Gone ends all series of an endpoint that is not expected to answer.
func (e *Exporter) Gone(t time.Time) error {
	if err := e.source.End(t); err != nil {
		return err
	}
	return e.write(t, series.Ended(), series.Ended(), series.Ended())
}

func (e *Exporter) tell(t time.Time, up float64, took time.Duration, n int) error {
	return e.write(t, up, took.Seconds(), float64(n))
}

// write adds a point to the series about the endpoint.
func (e *Exporter) write(t time.Time, values ...float64) error {
	b := e.r.o.Store.Batch()
	b.AppendRow(e.about, t, values...)
	return b.Commit()
}

// standBack ends the counters of a VM's disks that are derived from what load generators report: the VM counts for
// itself.
func (r *Recorder) standBack(vm string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counting == nil {
		r.counting = map[string]bool{}
	}
	r.counting[vm] = true
	if v := r.vms[vm]; v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.counts == nil {
			v.counts = series.NewHandle(VMNode, r.diskLabels(v))
		}
	}
}

// DiskCounters tells whose the counters of the VMs' disks are: one of the values of result.Manifest.DiskCounters.
func (r *Recorder) DiskCounters() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch n := len(r.counting); {
	case n == 0:
		return result.CountersDerived
	case n < len(r.vms):
		return result.CountersMixed
	}
	return result.CountersExported
}
