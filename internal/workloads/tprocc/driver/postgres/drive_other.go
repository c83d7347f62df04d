//go:build !linux

package postgres

import (
	"context"

	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Block(ctx, d.Terminal) }
