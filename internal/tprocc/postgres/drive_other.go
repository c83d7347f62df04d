//go:build !linux

package postgres

import (
	"context"

	"plimsoll/internal/tprocc"
)

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Block(ctx, d.Terminal) }
