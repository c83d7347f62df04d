package pgbench

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"plimsoll/internal/pgwire"
	"plimsoll/internal/postgres"
)

// tool is what our mark calls tables of pgbench's, schema where pgbench makes them.
const (
	tool   = "pgbench"
	schema = "public"
)

// RowsOfScale is how many rows of pgbench_accounts make a scale of 1.
const RowsOfScale = 100_000

// initialize has pgbench make its tables, in a database that is empty or carries our mark. Tables of ours of the same
// scale stay, unless options say how they are to be made; all others of ours are dropped before. Of several machines
// with one server the first makes them while the others wait.
func (j Job) initialize(ctx context.Context, command *exec.Cmd, out *lines) error {
	began := time.Now()
	server, err := pgwire.ParseServer("")
	if err != nil {
		return err
	}
	c, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // all was written
	stop := context.AfterFunc(ctx, c.Stop)
	defer stop()
	if _, err := c.Do("select pg_advisory_lock(hashtext('plimsoll pgbench'))"); err != nil {
		return fmt.Errorf("wait for others that make tables: %w", err)
	}
	have, err := postgres.Guard(c, schema, postgres.Mark{Tool: tool})
	if err != nil {
		return err
	}
	want := postgres.Mark{Tool: tool, Scale: j.Scale}
	if have != nil && have.Scale == want.Scale && have.Complete && len(j.Options) == 0 {
		used := "used"
		if unused(c) {
			used = "unused"
		}
		out.write(fmt.Appendf(nil, "tables of scale %d are there, %s: left as they are\n", j.Scale, used))
		return j.done(out, began)
	}
	if err := postgres.Drop(c, schema, tool); err != nil {
		return err
	}
	if err := postgres.SetMark(c, schema, want); err != nil {
		return err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = command.Stdout // one pipe takes both
	if err := command.Start(); err != nil {
		return err
	}
	out.copyLines(stdout, func(string) {})
	if err := command.Wait(); err != nil {
		return fmt.Errorf("pgbench -i: %w", err)
	}
	want.Complete = true
	if err := postgres.SetMark(c, schema, want); err != nil {
		return err
	}
	return j.done(out, began)
}

func (j Job) done(out *lines, began time.Time) error {
	out.write(fmt.Appendf(nil, "{\"initialized_ns\":%d}\n", time.Since(began).Nanoseconds()))
	return out.err
}

// unused reports whether no transaction that writes was ever done.
func unused(c *pgwire.Conn) bool {
	r, err := c.Do("select 1 from pgbench_history limit 1")
	return err == nil && !r.Next()
}
