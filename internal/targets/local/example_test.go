package local_test

import (
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/local"
)

// All objections to options come at once, before anything is touched.
func Example() {
	_, err := local.Provider{}.New(target.Config{Nodes: 2000, Options: target.Options{"cgroups": "perhaps"}})
	fmt.Println(err)
	// Output:
	// target local: option "cgroups": "perhaps" is none of auto, off
	// target local: nodes 2000: want 1 to 1000
}
