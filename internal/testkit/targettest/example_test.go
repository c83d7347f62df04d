package targettest_test

import (
	"fmt"

	"plimsoll/internal/testkit/targettest"
)

// A place whose hosts have a POSIX shell joins with Shell as its Commands; the vectors are run as they are.
func Example() {
	fmt.Printf("%q\n", targettest.Shell.Print("hello"))
	fmt.Printf("%q\n", targettest.Shell.ReadDisk("/dev/sdb"))
	// Output:
	// ["printf" "%s" "hello"]
	// ["head" "-c" "16" "/dev/sdb"]
}
