package fiojob_test

import (
	"fmt"

	"plimsoll/internal/formats/convert/fiojob"
)

// What other tools do not have is refused, since the load would be another without it.
func Example() {
	l, err := fiojob.Read(
		"my.fio",
		[]byte("[a]\nfilename=/srv/x\nsize=1g\nrw=randread\ndirect=1\nioengine=io_uring\niodepth=4\n"),
		nil,
	)
	fmt.Println(l.Stages[0].Streams[0].Depth, err)
	_, err = fiojob.Read("my.fio", []byte("[a]\nfilename=/srv/x\nsize=1g\niodetph=4\n"), nil)
	fmt.Println(err)
	// Output:
	// 4 <nil>
	// my.fio:4:1: iodetph=4: an option that no other tool here has; without it the load would be another; if it is a slip, did you mean iodepth?
}
