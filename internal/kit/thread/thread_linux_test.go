package thread_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/kit/thread"
)

func ExampleRun() {
	err := thread.Run(func() error { return os.ErrPermission })
	fmt.Println(err)
	// Output: permission denied
}

// TestThreadEnds takes a user name space's worth of a thread away and finds the next thread as it was.
func TestThreadEnds(t *testing.T) {
	var first, second int
	if err := thread.Run(func() error { first = unix.Gettid(); return unix.Unshare(unix.CLONE_FS) }); err != nil {
		t.Fatal(err)
	}
	if err := thread.Run(func() error { second = unix.Gettid(); return nil }); err != nil {
		t.Fatal(err)
	}
	if first == second || first == unix.Getpid() || second == unix.Getpid() {
		t.Errorf("threads %d and %d of process %d", first, second, unix.Getpid())
	}
}
