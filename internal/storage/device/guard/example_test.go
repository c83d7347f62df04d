package guard_test

import (
	"fmt"

	"plimsoll/internal/storage/device"
	"plimsoll/internal/storage/device/guard"
)

// Nothing but the phrase of the very device is consent.
func ExampleConsent() {
	d := device.Device{Node: "/dev/sdb", Identity: device.Identity{Phrase: "ST1800MM0129 WBN0ABCD", By: "serial"}}
	for _, typed := range []string{"", "yes", "ST1800MM0129 WBN0ABCD"} {
		if no := guard.Consent(d, typed); no != nil {
			fmt.Println(no.Kind)
		} else {
			fmt.Println("consented")
		}
	}
	// Output:
	// no consent
	// consent for another device
	// consented
}
