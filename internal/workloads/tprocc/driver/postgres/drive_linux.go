package postgres

import (
	"context"
	"errors"

	"plimsoll/internal/kit/pgwire"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Loops(ctx, d.seat) }

// seat makes a connection for a loop.
func (d Dialect) seat(ctx context.Context) (*pgwire.Detached, tprocc.Caller, error) {
	c, err := d.Server.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, c.Stop)
	made, err := prepare(c)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close() // it is of no use
		return nil, nil, err
	}
	detached, err := c.Detach()
	return detached, &asking{statements: made}, err
}

// asking is a tprocc.Caller.
type asking struct {
	statements *statements
	caller
}

// Append implements tprocc.Caller.
func (a *asking) Append(dst []byte, in *tprocc.Input) ([]byte, error) {
	dst, err := a.statements[in.Kind].Append(dst, false, a.args(in)...)
	return pgwire.AppendSync(dst), err
}

// Ended implements tprocc.Caller.
func (a *asking) Ended(in *tprocc.Input, k *pgwire.Link, err error) (tprocc.Outcome, error) {
	if err == nil && k.Reply.Err != nil {
		err = k.Reply.Err
	}
	if err == nil && k.Reply.Affected() != 1 {
		err = errors.New("the procedure returned nothing")
	}
	return outcome(in, err), err
}
