package mariadb

import (
	"context"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"

	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Block(ctx, d.terminal) }

func (d Dialect) terminal(ctx context.Context) (tprocc.Terminal, error) {
	db, conn, err := d.open(ctx, d.Server.Database, nil)
	if err != nil {
		return nil, err
	}
	return tprocc.Calls(ctx, db, conn, outcome, func(k tprocc.Kind, parameters int) string {
		return "CALL " + k.String() + "(" + strings.Repeat("?, ", parameters-1) + "?)"
	})
}

func outcome(in *tprocc.Input, err error) tprocc.Outcome {
	said := (*mysql.MySQLError)(nil)
	switch {
	case !errors.As(err, &said):
		return tprocc.Lost
	case in.Invalid() && string(said.SQLState[:]) == "45404":
		return tprocc.RolledBack
	case said.Number == 1213:
		return tprocc.Deadlock
	case said.Number == 1205 || said.Number == 1020: // a lock that was waited for too long; a row changed since
		return tprocc.Serialization
	case said.Number == 1021 || said.Number == 1114: // the disk, or a table, is full
		return tprocc.OutOfSpace
	case said.Number == 1317 || said.Number == 1969 || said.Number == 3024: // killed; max_statement_time
		return tprocc.Cancelled
	case said.Number == 1053 || said.Number == 1927: // the server shuts down; the connection was killed
		return tprocc.Lost
	}
	return tprocc.Failed
}
