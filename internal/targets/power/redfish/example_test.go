package redfish_test

import (
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/power/redfish"
)

// A setting opens a controller without asking the BMC; what is wrong with it is said at once.
func Example() {
	kinds := []target.PowerKind{redfish.Kind{}}
	_, err := target.PowerSetting{Kind: "redfish", Options: target.Options{"address": "bmc1", "user": "admin",
		"password": "env:BMC_PASSWORD"}}.Open("host db1", kinds)
	fmt.Println(err)
	_, err = target.PowerSetting{Kind: "redfish", Options: target.Options{"address": "bmc1", "password": "file:bmc.key",
		"user": "admin", "tls": "off"}}.Open("host db1", kinds)
	fmt.Println(err)
	// Output:
	// <nil>
	// host db1: power controller redfish: option "tls": "off" is none of verify, insecure
}
