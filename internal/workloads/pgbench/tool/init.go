package pgbench

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/workloads/postgres"
)

// RowsOfScale is how many rows of pgbench_accounts make a scale of 1.
const RowsOfScale = 100_000

// initialize has pgbench make its tables in the job's schema, where nothing is or what the record says we made. Tables
// of ours of the same scale stay, unless options say how they are to be made; all others of ours are dropped before. Of
// several machines with one server the first makes them while the others wait.
func (j Job) initialize(c *pgwire.Conn, command *exec.Cmd, out *lines) error {
	began := time.Now()
	if j.Initialise == postgres.Never {
		return j.done(out, began)
	}
	if _, err := c.Do("select pg_advisory_lock(hashtext('plimsoll pgbench'))"); err != nil {
		return fmt.Errorf("wait for others that make tables: %w", err)
	}
	tables := postgres.Pgbench(c, j.Schema)
	want := postgres.Mark{Tool: tables.Tool, Scale: j.Scale}
	have, err := tables.Guard(postgres.Mark{Tool: tables.Tool})
	if err != nil {
		return err
	}
	if old := postgres.OldPgbench(c, j.Schema); old != "" {
		out.write([]byte(old + "\n"))
	}
	if have != nil && have.Scale == want.Scale && have.Complete && len(j.Options) == 0 &&
		j.Initialise != postgres.Always {
		used := "used"
		if unused(c, j.Schema) {
			used = "unused"
		}
		out.write(fmt.Appendf(nil, "tables of scale %d are there, %s: left as they are\n", j.Scale, used))
		return j.done(out, began)
	}
	if err := tables.Drop(); err != nil {
		return err
	}
	if err := tables.Begin(j.Scale); err != nil {
		return err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = command.Stdout // one pipe takes both
	// It makes tables, and drops those that it finds, wherever its path leads: to this schema alone.
	setPath(command, postgres.Name(j.Schema))
	if err := command.Start(); err != nil {
		return err
	}
	out.copyLines(stdout, func(string) {})
	if err := command.Wait(); err != nil {
		return fmt.Errorf("pgbench -i: %w", err)
	}
	want.Complete = true
	if err := tables.Record(want); err != nil {
		return err
	}
	return j.done(out, began)
}

// setPath has the sessions of a command look for tables in the schemas of a search path, beside what the environment
// asks of them.
func setPath(command *exec.Cmd, path string) {
	value := strings.NewReplacer(`\`, `\\`, " ", `\ `).Replace(path)
	command.Env = append(command.Env, "PGOPTIONS="+strings.TrimSpace(os.Getenv("PGOPTIONS")+" -c search_path="+value))
}

func (j Job) done(out *lines, began time.Time) error {
	out.write(fmt.Appendf(nil, "{\"initialized_ns\":%d}\n", time.Since(began).Nanoseconds()))
	return out.err
}

// unused reports whether no transaction that writes was ever done.
func unused(c *pgwire.Conn, schema string) bool {
	r, err := c.Do("select 1 from " + postgres.Name(schema) + ".pgbench_history limit 1")
	return err == nil && !r.Next()
}
