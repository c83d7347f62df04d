package pgload

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"

	"plimsoll/internal/kit/pgwire"
	"plimsoll/internal/workloads/postgres"
)

const (
	lockKey  = 0x706c696d_70676c64 // of the server's advisory locks: one at a time makes tables
	aidBytes = 20_000              // from this scale on accounts' numbers are bigint
)

// initialise makes the tables as the job says, and has the load find them.
func (j *Job) initialise(ctx context.Context, server *pgwire.Server, tell func(string)) (err error) {
	c, err := server.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // what matters was answered
	defer context.AfterFunc(ctx, c.Stop)()
	defer func() {
		if err != nil {
			err = fmt.Errorf("initialise: %w", err)
		}
	}()
	// Where the tables are the user's affair, theirs come first.
	first := j.Schema != "" || j.Initialise != Never
	j.Schema = cmp.Or(j.Schema, postgres.PgbenchSchema)
	path, err := postgres.Path(c, j.Schema, first)
	if err != nil {
		return err
	}
	if path != "" {
		server.Set("search_path", path)
	}
	if j.Initialise == Never {
		return nil
	}
	if _, err := c.Do(fmt.Sprintf("SELECT pg_advisory_lock(%d)", lockKey)); err != nil {
		return err
	}
	tables := postgres.Pgbench(c, j.Schema)
	want := postgres.Mark{Tool: tables.Tool, Scale: j.Scale}
	if j.Initialise == Always {
		want.Scale = 0
	}
	found, err := tables.Guard(want)
	if err != nil {
		return err
	}
	if old := postgres.OldPgbench(c, j.Schema); old != "" {
		tell(old)
	}
	if found != nil && found.Complete && j.Initialise == Missing {
		return nil
	}
	if err := tables.Drop(); err != nil {
		return err
	}
	if err := tables.Begin(j.Scale); err != nil {
		return err
	}
	if err := makeTables(c, j.Schema, j.Scale); err != nil {
		return err
	}
	return tables.Record(postgres.Mark{Tool: tables.Tool, Scale: j.Scale, Complete: true})
}

// makeTables makes and fills the four tables.
func makeTables(c *pgwire.Conn, schema string, scale int) error {
	aid, freeze := "int", ""
	if scale >= aidBytes {
		aid = "bigint"
	}
	if release, err := strconv.Atoi(versionNumber(c.Parameters["server_version"])); err == nil && release >= 14 {
		freeze = " WITH (FREEZE ON)"
	}
	path := postgres.Name(schema) + ".pgbench_"
	create := fmt.Sprintf("BEGIN; CREATE TABLE %[1]shistory (tid int, bid int, aid %[2]s, delta int, mtime timestamp, "+
		"filler char(22)); CREATE TABLE %[1]stellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) "+
		"WITH (fillfactor=100); CREATE TABLE %[1]saccounts (aid %[2]s NOT NULL, bid int, abalance int, filler char(84)) "+
		"WITH (fillfactor=100); CREATE TABLE %[1]sbranches (bid int NOT NULL, bbalance int, filler char(88)) "+
		"WITH (fillfactor=100)", path, aid)
	if _, err := c.Do(create); err != nil {
		return err
	}
	for _, t := range []struct {
		name     string
		perScale int
		row      func(dst []byte, i int64) []byte
	}{
		{"branches", branchesPerScale, func(dst []byte, i int64) []byte {
			return append(strconv.AppendInt(dst, i, 10), "\t0\t\\N\n"...)
		}},
		{"tellers", tellersPerScale, func(dst []byte, i int64) []byte {
			dst = append(strconv.AppendInt(dst, i, 10), '\t')
			return append(strconv.AppendInt(dst, (i-1)/tellersPerScale+1, 10), "\t0\t\\N\n"...)
		}},
		{"accounts", accountsPerScale, func(dst []byte, i int64) []byte {
			dst = append(strconv.AppendInt(dst, i, 10), '\t')
			return append(strconv.AppendInt(dst, (i-1)/accountsPerScale+1, 10), "\t0\t\n"...)
		}},
	} {
		i, last := int64(0), int64(t.perScale)*int64(scale)
		_, err := c.CopyIn("COPY "+path+t.name+" FROM STDIN"+freeze, func(dst []byte) ([]byte, error) {
			for len(dst) < 64<<10 {
				if i++; i > last {
					return dst, io.EOF
				}
				dst = t.row(dst, i)
			}
			return dst, nil
		})
		if err != nil {
			return fmt.Errorf("fill %s%s: %w", path, t.name, err)
		}
	}
	if _, err := c.Do("COMMIT"); err != nil {
		return err
	}
	for _, t := range []string{"branches", "tellers", "accounts", "history"} {
		if _, err := c.Do("VACUUM ANALYZE " + path + t); err != nil {
			return err
		}
	}
	for t, key := range map[string]string{"branches": "bid", "tellers": "tid", "accounts": "aid"} {
		if _, err := c.Do(fmt.Sprintf("ALTER TABLE %s%s ADD PRIMARY KEY (%s)", path, t, key)); err != nil {
			return err
		}
	}
	return nil
}

// versionNumber is the release in "15.18 (Debian ...)" or "17beta1".
func versionNumber(text string) string {
	for i := range len(text) {
		if !isDigit(text[i]) {
			return text[:i]
		}
	}
	return text
}
