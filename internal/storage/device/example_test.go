package device_test

import (
	"bytes"
	"fmt"

	"plimsoll/internal/storage/device"
)

// Software marks what is its own, and claims it again by that mark.
func ExampleProbe() {
	disk := make([]byte, 1<<20)
	copy(disk[512:], "EFI PART")
	copy(disk[0x10000:], "ReIsEr4")
	found, err := device.Probe(bytes.NewReader(disk), int64(len(disk)))
	fmt.Println(found, err)
	// Output:
	// [GPT (partition table) at byte 512 Reiser4 (file system) at byte 65536] <nil>
}
