//go:build linux

package thread

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs do on an operating system thread that ends with it, and returns its error. What do takes away from its
// thread is gone from nothing else: privileges, namespaces and Landlock are a thread's, and the runtime starts no
// threads from one that is locked. Processes and sockets that do starts and opens are where the thread is.
func Run(do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the main thread cannot end: keep it busy and take another
			defer runtime.UnlockOSThread()
			result <- Run(do)
			return
		}
		result <- do()
	}()
	return <-result
}

// InNetwork is Run on a thread in the network namespace that is bound to a file, as /run/netns has them.
func InNetwork(file string, do func() error) error {
	return Run(func() error {
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("network namespace: %w", err)
		}
		err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		_ = f.Close() // only entered
		if err != nil {
			return fmt.Errorf("network namespace %s: %w", file, err)
		}
		return do()
	})
}
