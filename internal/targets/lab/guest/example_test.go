//go:build linux

package guest_test

import (
	"fmt"
	"net/netip"

	"plimsoll/internal/targets/lab/guest"
)

// No two identities share a machine ID, a host key or a MAC.
func Example() {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me"
	network, gateway := netip.MustParsePrefix("192.0.2.100/24"), netip.MustParseAddr("192.0.2.1")
	a, err := guest.NewIdentity("vm-1", network, gateway, key)
	if err != nil {
		fmt.Println(err)
	}
	b, _ := guest.NewIdentity("vm-2", network, gateway, key)
	fmt.Println(a.MachineID != b.MachineID, string(a.HostKey) != string(b.HostKey),
		a.MAC().String() != b.MAC().String())
	// Output: true true true
}
