package workloadtest

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Worker lets a test's own executable be the worker, as plimsoll is on a machine: called first in TestMain, it does the
// job when the command line has that word and the file of a job, and says how the process is to exit then.
func Worker(word string, work func(ctx context.Context, job io.Reader, out io.Writer) error) (code int, worked bool) {
	if len(os.Args) != 3 || os.Args[1] != word {
		return 0, false
	}
	job, err := os.Open(os.Args[2])
	if err == nil {
		err = work(context.Background(), job, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}
