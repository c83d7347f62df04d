// Worker does a job of package integrity that it reads from its input: what the tests put on guests.
package main

import (
	"context"
	"fmt"
	"os"

	integrity "plimsoll/internal/workloads/integrity/driver"
)

func main() {
	if err := integrity.Work(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
