package loads

import (
	"testing"

	"plimsoll/internal/contract/target"
)

func TestOfJob(t *testing.T) {
	t.Parallel()
	j := &job{vm: target.VM{Name: "vm-7"}}
	for why, want := range map[string]string{
		"the tool refused":                     `workload "W" on vm-7: the tool refused`,
		"run: workload W on vm-7: exit code 1": "run: workload W on vm-7: exit code 1",
	} {
		if got := ofJob("W", j, why); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
