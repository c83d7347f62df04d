package pgload

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"plimsoll/internal/pgwire"
	"plimsoll/internal/postgres"
)

// The tables of the built-in scripts are where pgbench has them, and as it makes them; their mark names it, for either
// may use what the other has made.
const (
	schema   = "public"
	markTool = "pgbench"
	lockKey  = 0x706c696d_70676c64 // of the server's advisory locks: one at a time makes tables
	aidBytes = 20_000              // from this scale on accounts' numbers are bigint
)

// initialise makes the tables as the job says.
func (j *Job) initialise(ctx context.Context, server *pgwire.Server) (err error) {
	if j.Initialise == Never {
		return nil
	}
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
	if _, err := c.Do(fmt.Sprintf("SELECT pg_advisory_lock(%d)", lockKey)); err != nil {
		return err
	}
	want := postgres.Mark{Tool: markTool, Scale: j.Scale}
	if j.Initialise == Always {
		want.Scale = 0
	}
	found, err := postgres.Guard(c, schema, want)
	if err != nil {
		return err
	}
	if found != nil && found.Complete && j.Initialise == Missing {
		return nil
	}
	if found != nil {
		if err := postgres.Drop(c, schema, markTool); err != nil {
			return err
		}
	}
	want.Scale = j.Scale
	if err := postgres.SetMark(c, schema, want); err != nil {
		return err
	}
	if err := makeTables(c, j.Scale); err != nil {
		return err
	}
	want.Complete = true
	return postgres.SetMark(c, schema, want)
}

// makeTables makes and fills the four tables.
func makeTables(c *pgwire.Conn, scale int) error {
	aid, freeze := "int", ""
	if scale >= aidBytes {
		aid = "bigint"
	}
	if release, err := strconv.Atoi(versionNumber(c.Parameters["server_version"])); err == nil && release >= 14 {
		freeze = " WITH (FREEZE ON)"
	}
	const path = schema + ".pgbench_"
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
