package ssh_test

import (
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/ssh"
)

// What is wrong with options is said at once; the hosts are looked at by Check.
func ExampleProvider() {
	_, err := ssh.Provider{}.New(target.Config{Options: target.Options{"inventry": "lab.yml", "patience": "0s"}})
	fmt.Println(err)
	// Output:
	// target ssh: option "patience": "0s" is no time from 1s to 24h
	// target ssh: option "inventry": unknown; did you mean "inventory"? known are inventory, agents, patience, lease
}
