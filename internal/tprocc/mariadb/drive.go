package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"plimsoll/internal/tprocc"
)

// Drive implements tprocc.Dialect.
func (d Dialect) Drive(ctx context.Context, r *tprocc.Run) error { return r.Block(ctx, d.terminal) }

// calls are the transactions as statements.
var calls = [tprocc.Kinds]string{
	tprocc.NewOrder:    "CALL new_order(?, ?, ?, ?, ?)",
	tprocc.Payment:     "CALL payment(?, ?, ?, ?, ?, ?, ?)",
	tprocc.OrderStatus: "CALL order_status(?, ?, ?, ?)",
	tprocc.Delivery:    "CALL delivery(?, ?)",
	tprocc.StockLevel:  "CALL stock_level(?, ?, ?)",
}

type terminal struct {
	ctx        context.Context //nolint:containedctx // of the run
	db         *sql.DB
	conn       *sql.Conn
	statements [tprocc.Kinds]*sql.Stmt
}

func (d Dialect) terminal(ctx context.Context) (tprocc.Terminal, error) {
	db, conn, err := d.open(ctx, d.Server.Database)
	if err != nil {
		return nil, err
	}
	t := &terminal{ctx: ctx, db: db, conn: conn}
	for k, call := range calls {
		if t.statements[k], err = conn.PrepareContext(ctx, call); err != nil {
			_ = t.Close()
			return nil, fmt.Errorf("prepare %q: %w", call, err)
		}
	}
	return t, nil
}

// Close implements tprocc.Terminal.
func (t *terminal) Close() error { return errors.Join(t.conn.Close(), t.db.Close()) }

// Do implements tprocc.Terminal.
func (t *terminal) Do(in *tprocc.Input) (tprocc.Outcome, error) {
	err := t.call(in)
	said := (*mysql.MySQLError)(nil)
	switch {
	case err == nil:
		return tprocc.Committed, nil
	case !errors.As(err, &said):
		return tprocc.Lost, err
	case in.Invalid() && string(said.SQLState[:]) == "45404":
		return tprocc.RolledBack, err
	case said.Number == 1213:
		return tprocc.Deadlock, err
	case said.Number == 1205 || said.Number == 1020: // a lock that was waited for too long; a row changed since
		return tprocc.Serialization, err
	case said.Number == 1053 || said.Number == 1927: // the server shuts down; the connection was killed
		return tprocc.Lost, err
	}
	return tprocc.Failed, err
}

var errNothing = &mysql.MySQLError{Message: "the procedure returned nothing"}

func (t *terminal) call(in *tprocc.Input) error {
	rows, err := t.statements[in.Kind].QueryContext(t.ctx, args(in)...)
	if err != nil {
		return err
	}
	n := 0
	for rows.Next() {
		n++
	}
	for rows.NextResultSet() { // the end of the call is a result of its own, and may be an error
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if n != 1 {
		return errNothing
	}
	return nil
}

func args(in *tprocc.Input) (list []any) {
	ints := func(values ...int) {
		for _, v := range values {
			list = append(list, v)
		}
	}
	customer := func() {
		if in.Last != "" {
			list = append(list, nil, in.Last)
		} else {
			list = append(list, in.Customer, nil)
		}
	}
	switch in.Kind {
	case tprocc.NewOrder:
		ints(in.Warehouse, in.District, in.Customer, len(in.Lines))
		list = append(list, in.Packed())
	case tprocc.Payment:
		ints(in.Warehouse, in.District, in.CustomerWarehouse, in.CustomerDistrict)
		customer()
		list = append(list, in.Amount())
	case tprocc.OrderStatus:
		ints(in.Warehouse, in.District)
		customer()
	case tprocc.Delivery:
		ints(in.Warehouse, in.Carrier)
	case tprocc.StockLevel:
		ints(in.Warehouse, in.District, in.Threshold)
	}
	return list
}
