package vdbench_test

import (
	"fmt"

	"plimsoll/internal/formats/convert/vdbench"
)

// A run definition with loops is a stage for each of their combinations.
func Example() {
	l, _, err := vdbench.Read(vdbench.Request{Name: "my.vdb", Data: []byte(
		"sd=sd1,lun=/dev/sdb,openflags=o_direct\nwd=wd1,sd=sd1\n" +
			"rd=rd1,wd=wd1,iorate=max,elapsed=60,forxfersize=(4k-8k,d),forthreads=(1,32)\n")})
	for _, st := range l.Stages {
		fmt.Println(st.Name, st.Streams[0].Largest(), st.Streams[0].Depth)
	}
	fmt.Println(err)
	// Output:
	// rd1 xfersize=4k threads=1 4096 1
	// rd1 xfersize=4k threads=32 4096 32
	// rd1 xfersize=8k threads=1 8192 1
	// rd1 xfersize=8k threads=32 8192 32
	// <nil>
}
