package pgload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/workloads/postgres"
)

// WorkCommand is the hidden command of this program that Work is.
const WorkCommand = "pg-worker"

// Work runs the Job that config has as JSON on the server that the environment names as libpq has it (PGHOST,
// PGDATABASE, PGPASSFILE, ...), and prints worker.State lines to out and words to tell.
func Work(ctx context.Context, config io.Reader, out, tell io.Writer) error {
	var job Job
	d := json.NewDecoder(config)
	d.DisallowUnknownFields()
	if err := d.Decode(&job); err != nil {
		return fmt.Errorf("pg job: %w", err)
	}
	server, err := pgwire.ParseServer("")
	if err != nil {
		return err
	}
	claim, err := postgres.ClaimHere(ctx)
	if err != nil {
		return err
	}
	defer claim.Close()
	debug.SetGCPercent(400) // little is made, and a collection stops the clients
	lines := json.NewEncoder(out)
	var failed error
	err = Run(ctx, job, server, time.Second, func(s worker.State) { failed = errors.Join(failed, lines.Encode(s)) },
		func(text string) { fmt.Fprintln(tell, text) })
	return errors.Join(err, failed)
}
