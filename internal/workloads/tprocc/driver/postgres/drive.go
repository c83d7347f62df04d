package postgres

import (
	"context"
	"errors"
	"strconv"

	"plimsoll/internal/kit/pgwire"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
)

// calls are the transactions as statements.
var calls = [tprocc.Kinds]string{
	tprocc.NewOrder:    "SELECT tprocc.new_order($1, $2, $3, $4, $5, $6)",
	tprocc.Payment:     "SELECT tprocc.payment($1, $2, $3, $4, $5, $6, $7)",
	tprocc.OrderStatus: "SELECT tprocc.order_status($1, $2, $3, $4)",
	tprocc.Delivery:    "SELECT tprocc.delivery($1, $2)",
	tprocc.StockLevel:  "SELECT tprocc.stock_level($1, $2, $3)",
}

type statements [tprocc.Kinds]*pgwire.Statement

// prepare has a connection prepare the calls.
func prepare(c *pgwire.Conn) (*statements, error) {
	made := &statements{}
	var err error
	for k, sql := range calls {
		if made[k], err = c.Prepare(tprocc.Kind(k).String(), sql); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// terminal is a user's connection with its statements.
type terminal struct {
	conn       *pgwire.Conn
	forget     func() bool
	statements *statements
	caller
}

// Terminal is a connection that waits for its answers. Where there are loops, Drive does without.
func (d Dialect) Terminal(ctx context.Context) (tprocc.Terminal, error) {
	c, err := d.Server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t := &terminal{conn: c, forget: context.AfterFunc(ctx, c.Stop)}
	if t.statements, err = prepare(c); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// Close implements tprocc.Terminal.
func (t *terminal) Close() error {
	t.forget()
	return t.conn.Close()
}

// Do implements tprocc.Terminal.
func (t *terminal) Do(in *tprocc.Input) (tprocc.Outcome, error) {
	r, err := t.conn.Query(t.statements[in.Kind], t.args(in)...)
	if err == nil && !r.Next() {
		err = errors.New("the procedure returned nothing")
	}
	return outcome(in, err), err
}

func outcome(in *tprocc.Input, err error) tprocc.Outcome {
	if err == nil {
		return tprocc.Committed
	}
	if said := (*pgwire.Error)(nil); in.Invalid() && errors.As(err, &said) && said.Code == "TP404" {
		return tprocc.RolledBack
	}
	switch pgwire.ClassOf(err) {
	case pgwire.Serialization:
		return tprocc.Serialization
	case pgwire.Deadlock:
		return tprocc.Deadlock
	case pgwire.Lost:
		return tprocc.Lost
	case pgwire.Refused:
		return tprocc.Refused
	case pgwire.OutOfSpace:
		return tprocc.OutOfSpace
	case pgwire.Cancelled:
		return tprocc.Cancelled
	}
	return tprocc.Failed
}

// caller makes arguments of inputs.
type caller struct {
	list []pgwire.Arg
	text []byte
}

func (c *caller) args(in *tprocc.Input) []pgwire.Arg {
	c.list = c.list[:0]
	ints := func(values ...int) {
		for _, v := range values {
			c.list = append(c.list, pgwire.Int(int64(v)))
		}
	}
	customer := func() {
		if in.Last != "" {
			c.list = append(c.list, pgwire.Null(), pgwire.Text(in.Last))
		} else {
			c.list = append(c.list, pgwire.Int(int64(in.Customer)), pgwire.Null())
		}
	}
	switch in.Kind {
	case tprocc.NewOrder:
		ints(in.Warehouse, in.District, in.Customer)
		c.arrays(in.Lines)
	case tprocc.Payment:
		ints(in.Warehouse, in.District, in.CustomerWarehouse, in.CustomerDistrict)
		customer()
		c.list = append(c.list, pgwire.Text(in.Amount()))
	case tprocc.OrderStatus:
		ints(in.Warehouse, in.District)
		customer()
	case tprocc.Delivery:
		ints(in.Warehouse, in.Carrier)
	case tprocc.StockLevel:
		ints(in.Warehouse, in.District, in.Threshold)
	}
	return c.list
}

// arrays adds items, suppliers and quantities, parts of one text.
func (c *caller) arrays(lines []tprocc.Line) {
	c.text = c.text[:0]
	var ends [3]int
	for k := range ends {
		c.text = append(c.text, '{')
		for _, l := range lines {
			c.text = strconv.AppendInt(c.text, int64([...]int{l.Item, l.Supply, l.Quantity}[k]), 10)
			c.text = append(c.text, ',')
		}
		c.text[len(c.text)-1] = '}'
		ends[k] = len(c.text)
	}
	all, begin := string(c.text), 0
	for _, end := range ends {
		c.list = append(c.list, pgwire.Text(all[begin:end]))
		begin = end
	}
}
