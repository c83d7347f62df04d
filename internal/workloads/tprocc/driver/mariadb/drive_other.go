//go:build !linux

package mariadb

import (
	"context"
	"strings"

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
