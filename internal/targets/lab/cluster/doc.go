// Package lab makes a miniature cluster on one Linux machine: nodes with an address, a power controller that real
// ipmitool and Redfish clients drive, and storage that outlives the loss of a node.
//
// A lab is a folder and network namespaces named after it: one for the switch, where the controllers (BMCs) and the
// dialling of [Lab.Dial] are, and one for each node. What runs in a node's namespace is the node: cutting its power
// kills exactly that. The folder says what is made before it is made, so that [Down] removes all of it from a fresh
// process, whatever was killed at whatever moment. It stands beneath the place of guests (internal/contract/target) and
// the command "plimsoll lab". Guests are not its own: it gives them taps, addresses and a folder for their disks.
//
// It refuses to touch what it did not make: no interface, bridge, route or port of the machine's own network is added
// or changed, and a process is killed only when the kernel says that it is in a namespace of the lab.
package lab
