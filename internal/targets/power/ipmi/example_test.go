package ipmi_test

import (
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/power/ipmi"
)

// A setting opens a controller without asking the BMC; what is wrong with it is said at once.
func Example() {
	kinds := []target.PowerKind{ipmi.Kind{}}
	_, err := target.PowerSetting{Kind: "ipmi", Options: target.Options{"address": "bmc1", "user": "admin",
		"password": "env:BMC_PASSWORD"}}.Open("host db1", kinds)
	fmt.Println(err)
	_, err = target.PowerSetting{Kind: "ipmi", Options: target.Options{"address": "bmc1", "password": "file:bmc.key",
		"cipher": "0"}}.Open("host db1", kinds)
	fmt.Println(err)
	// Output:
	// <nil>
	// host db1: power controller ipmi: option "cipher": "0" is none of auto, 17, 3
}
