package diskspd_test

import (
	"fmt"

	"plimsoll/internal/formats/convert/diskspd"
)

// A command line is a stage, each of its targets a stream.
func Example() {
	_, err := diskspd.Read("my.cmd", []byte("diskspd -b8K -t2 -o16 -r -w30 -Sh -Zr -d60 -c1G D:\\a.dat #1\n"))
	fmt.Println(err)
	l, err := diskspd.Read("my.cmd", []byte("diskspd -b8K -t2 -o16 -r -w30 -Su -Zr -d60 -f1G D:\\a.dat #1\n"))
	for _, s := range l.Stages[0].Streams {
		fmt.Println(s.Name, s.Targets[0].Name, s.Reads, s.Threads*s.Depth)
	}
	fmt.Println(err)
	// Output:
	// my.cmd:1:44: -c1G: \\.\PhysicalDrive1 is no file
	// diskspd1.1 D:\a.dat 70 32
	// diskspd1.2 \\.\PhysicalDrive1 70 32
	// <nil>
}
