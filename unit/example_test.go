package unit_test

import (
	"fmt"
	"time"

	"plimsoll/unit"
)

func Example() {
	size, _ := unit.ParseBytes("100GiB")
	fmt.Println(size, "scaled to", size.Scale(0.002, unit.MiB))
	fmt.Println(unit.Rate(4000), "of 8 KiB are", unit.Bandwidth(4000*8192), "or", unit.Bandwidth(4000*8192).Decimal())
	fmt.Println(unit.Duration(412*time.Microsecond), unit.Duration(5400*time.Second), unit.Percent(0.025))
	_, err := unit.ParseBandwidth("200 Mbit/s")
	fmt.Println(err)
	// Output:
	// 100 GiB scaled to 204 MiB
	// 4,000 IOPS of 8 KiB are 31.2 MiB/s or 32.8 MB/s
	// 412 µs 1 h 30 min 2.5 %
	// bandwidth "200 Mbit/s": unknown unit "Mbit/s" (want B/s, KiB/s, MiB/s, GiB/s, or KB/s, MB/s, GB/s; bits are not bytes)
}
