//go:build !linux

package pgload

import (
	"context"
	"errors"
	"time"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
)

// Run needs Linux.
func Run(context.Context, Job, *pgwire.Server, time.Duration, func(worker.State), func(string)) error {
	return errors.New("the load driver pg needs Linux: run it on a machine that has it")
}
