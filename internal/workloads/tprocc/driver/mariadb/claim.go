package mariadb

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// Claim implements tprocc.Dialect. A claim is a row of the record with the name of the run, and of a lock of the
// server's that the session holds: a row whose lock nobody holds is of one that has ended.
func (d Dialect) Claim(ctx context.Context, run string, load bool) (_ io.Closer, err error) {
	s, err := d.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close() // it holds nothing
		}
	}()
	gate := fmt.Sprintf("CONCAT('plimsoll_gate_', MD5('%s'))", d.Server.Database)
	rows, err := s.Rows("SELECT GET_LOCK(" + gate + ", 30)")
	if err != nil {
		return nil, err
	}
	if rows[0][0] != "1" {
		return nil, fmt.Errorf("claim database %q at %s: somebody else has been at it for 30 s", d.Server.Database,
			d.Server.Config.Addr)
	}
	found, err := d.look(s)
	if err == nil && found == nil && load {
		err = d.Create(s, 0)
	}
	if err != nil {
		return nil, err
	}
	if found == nil && !load {
		return s, nil // a run finds nothing to work on, and says so
	}
	record := d.Schema() + recordTable
	rows, err = s.Rows("SELECT name, shape, IS_USED_LOCK(name) IS NOT NULL FROM " + record + " WHERE kind = 'claim'")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		switch {
		case row[2] != "1":
			err = s.Exec(fmt.Sprintf("DELETE FROM %s WHERE kind = 'claim' AND name = '%s'", record, row[0]))
		case row[1] != run:
			err = fmt.Errorf("database %q at %s: run %s works on it: nothing was written; wait until it has ended, or name "+
				"another database", d.Server.Database, d.Server.Config.Addr, row[1])
		}
		if err != nil {
			return nil, err
		}
	}
	lock := "plimsoll_" + rand.Text()
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(run)
	for _, sql := range []string{"SET SESSION wait_timeout = 31536000", // it is idle for as long as the run lasts
		fmt.Sprintf("SELECT GET_LOCK('%s', 0)", lock),
		fmt.Sprintf("INSERT INTO %s VALUES ('claim', '%s', '', '%s')", record, lock, quoted),
		"SELECT RELEASE_LOCK(" + gate + ")"} {
		if err := s.Exec(sql); err != nil {
			return nil, err
		}
	}
	return s, nil
}

var _ tprocc.Session = (*session)(nil)
