package worker_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"plimsoll/internal/contract/worker"
)

// A program that is told its CPUs is started anew on them, and counts them alone; CPUs that are not there are an error.
func TestPin(t *testing.T) {
	const pinned = "PLIMSOLL_TEST_PINNED"
	if os.Getenv(pinned) != "" { // the program
		fmt.Printf("%v, %d CPUs\n", worker.Pin(), runtime.NumCPU())
		return
	}
	all := runtime.NumCPU()
	for cpus, want := range map[string]string{
		"":     fmt.Sprintf("<nil>, %d CPUs", all),
		"0":    "<nil>, 1 CPUs",
		"1023": "CPUs 1023: they are not all here: this machine gives 0",
		"x":    `"x"`,
	} {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPin$")
		program.Env = append(os.Environ(), pinned+"=1", worker.CPUsVariable+"="+cpus)
		out, err := program.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, it says %q, want %q", cpus, err, out, want)
		}
	}
}
