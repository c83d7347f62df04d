package tproch_test

import (
	"fmt"
	"strings"

	tproch "plimsoll/internal/workloads/tproch/driver"
)

func ExampleGenerator_Append() {
	g, err := tproch.NewGenerator(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, lines, err := g.Append(tproch.Order, nil, nil, 1_499_999, 1) // the last one
	fmt.Println(strings.ReplaceAll(string(orders), "\t", "|"), strings.Count(string(lines), "\n"), err)
	// Output:
	// 6000000|110063|O|37625.29|1996-08-31|2-HIGH|Clerk#000000411|0|ess pinto beans boost slyly regular accounts! furiously even
	//  2 <nil>
}
