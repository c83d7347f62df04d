package storage

import (
	"testing"

	"plimsoll/result"
)

func TestFlashUnder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		device, model, rotational string
		sure, flash               bool
	}{
		"a drive":           {"nvme0n1", "ExampleCorp X1", "0", true, true},
		"a spinning drive":  {"sda", "ExampleCorp H1", "1", false, false},
		"a guest's disk":    {"vda", "", "0", false, true},
		"an emulated drive": {"nvme0n1", "QEMU NVMe Ctrl", "0", false, true},
		"a mapping":         {"dm-0", "", "0", false, true},
		"not known":         {"", "", "", false, false},
	} {
		sure, flash := flashUnder([]result.Fact{{Group: "storage", Name: "device", Value: c.device},
			{Group: "storage", Name: "device model", Value: c.model},
			{Group: "storage", Name: "rotational", Value: c.rotational}})
		if sure != c.sure || flash != c.flash {
			t.Errorf("%s: %t, %t", name, sure, flash)
		}
	}
}
