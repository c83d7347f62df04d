package collect

import (
	"fmt"

	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// OpenMetrics opens the metrics of a run for queries. VMs that share the counters of one machine have them as if each
// had its own.
func OpenMetrics(folder *result.Folder, vms []result.VM) (*series.Store, error) {
	store, err := series.OpenReadOnly(folder.MetricsDir(), series.Options{})
	if err == nil {
		share(store, folder.Manifest(), vms)
	}
	return store, err
}

// share has queries see the counters of a machine as those of the VMs on it, when they have none of their own.
func share(store *series.Store, m result.Manifest, vms []result.VM) {
	if m.SharedCounters == nil {
		return
	}
	s := series.Shared{Of: []series.Label{{Name: "instance", Value: m.SharedCounters.Instance},
		{Name: "endpoint", Value: m.SharedCounters.Endpoint}}}
	for _, vm := range vms {
		s.As = append(s.As, []series.Label{{Name: "instance", Value: vm.Name}, {Name: "vm_group", Value: vm.Group}})
	}
	store.Share(s)
}

// sharedNote is said of a result that such counters went into.
func sharedNote(m *result.SharedCounters) string {
	return fmt.Sprintf("the VMs share one machine (%s): its counters stand for each of them, so a sum over VMs "+
		"counts it as often", m.Instance)
}
