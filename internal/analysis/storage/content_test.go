package storage

import (
	"fmt"
	"testing"

	"plimsoll/result"
)

// Many machines with the same disk are counted, few are named.
func TestPlaces(t *testing.T) {
	var ps places
	for i := range 640 {
		w := &result.Workload{Name: "W", VM: fmt.Sprint("vm-", i)}
		ps.add(w, "/dev/sdb")
		ps.add(w, "/dev/sdb")
		if i < 2 {
			ps.add(w, "/dev/sdc")
		}
	}
	if got, want := ps.String(), "/dev/sdb of 640 VMs, vm-0 /dev/sdc, vm-1 /dev/sdc"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
