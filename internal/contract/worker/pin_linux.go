package worker

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Pin keeps this program on the CPUs that CPUsVariable names, by starting it anew there: threads that run already would
// stay where they are, and the number of them depends on the CPUs at the start. Without the variable it does nothing.
// It is an error when the machine does not have all of them.
func Pin() error {
	list := os.Getenv(CPUsVariable)
	if list == "" {
		return nil
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("CPUs %s: %w", list, fmt.Errorf(format, args...))
	}
	there, err := cpusOf(list)
	if err != nil {
		return err
	}
	wanted, now := unix.CPUSet{}, unix.CPUSet{}
	for i, is := range there {
		if is {
			wanted.Set(i)
		}
	}
	if err := unix.SchedGetaffinity(0, &now); err != nil {
		return fail("%w", err)
	}
	if now == wanted {
		return nil
	}
	had := sayCPUs(now.IsSet)
	// The kernel gives a process all CPUs of its group back whenever those of the group, or of one above it, are set
	// anew, as beginning another run does: what was asked for may be gone at the next look.
	for range 10 {
		if err = unix.SchedSetaffinity(0, &wanted); err == nil {
			err = unix.SchedGetaffinity(0, &now)
		}
		if err != nil || now == wanted {
			break
		}
	}
	if err != nil || now != wanted {
		return fail("they are not all here: this machine gives %s", had)
	}
	return fail("start anew: %w", unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}
