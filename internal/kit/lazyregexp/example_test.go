package lazyregexp_test

import (
	"fmt"

	"plimsoll/internal/kit/lazyregexp"
)

var version = lazyregexp.New(`^fio-(\d+)\.(\d+)`)

func Example() {
	fmt.Println(version.FindStringSubmatch("fio-3.28")[1:], lazyregexp.All() > 0)
	// Output: [3 28] true
}
