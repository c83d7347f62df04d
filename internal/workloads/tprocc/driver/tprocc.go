// Package tprocc is an order-entry workload derived from TPC-C, with its five transactions as stored procedures of the
// database: the data of a warehouse, the inputs of the transactions, the loader, the conditions of consistency, and the
// virtual users with their times. Its results are not comparable with published TPC-C results: they are called NOPM
// (new orders that were committed, per minute) and TPM (all transactions per minute).
//
// It stands between internal/workloads/tprocc, which makes a Job of a scenario's file, and a Dialect for each database,
// which knows its statements, its procedures and its wire. Work is what runs on the machine of the clients.
//
// It refuses a schema that does not carry its mark, one of another scale, and to empty anything but a warehouse that it
// began to load itself.
package tprocc

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Kind is a type of transaction.
type Kind int

// The transactions, in the order in which everything here counts them.
const (
	NewOrder Kind = iota
	Payment
	OrderStatus
	Delivery
	StockLevel
	Kinds // is how many there are
)

// String is the name that operations and procedures have.
func (k Kind) String() string {
	return [...]string{"new_order", "payment", "order_status", "delivery", "stock_level"}[k]
}

// Sizes of what belongs to a warehouse.
const (
	Items              = 100_000 // shared by all warehouses, and as many stocks in each
	Districts          = 10
	Customers          = 3_000 // of a district, each with one order
	firstUndelivered   = 2_101
	MostLines          = 15
	fewestLines        = 5
	MostWarehouses     = 100_000
	invalidItem        = Items + 1
	deckSize           = 23
	thinkTruncatedAt   = 10 // times the mean
	remotePaymentShare = 15 // percent
	byNameShare        = 60 // percent
)

// deck is the mix: 10 new orders, 10 payments and one of each other in 23 transactions.
var deck = func() (d [deckSize]Kind) {
	for i := range d {
		switch {
		case i < 10:
			d[i] = NewOrder
		case i < 20:
			d[i] = Payment
		default:
			d[i] = OrderStatus + Kind(i-20)
		}
	}
	return d
}()

// Keying is how long a user of kind k types, Think the mean of how long they look at the result.
func (k Kind) Keying() time.Duration {
	return [...]time.Duration{18, 3, 2, 2, 2}[k] * time.Second
}

// Think is the mean of an exponential distribution, cut off at ten times that.
func (k Kind) Think() time.Duration {
	return [...]time.Duration{12, 12, 10, 5, 5}[k] * time.Second
}

// Line is one line of a new order.
type Line struct{ Item, Supply, Quantity int }

// Input holds what a transaction is asked with.
type Input struct {
	Kind                Kind
	Warehouse, District int // the order's, the payment's, the terminal's
	// CustomerWarehouse and CustomerDistrict are where a paying customer lives.
	CustomerWarehouse, CustomerDistrict int
	Customer                            int    // 0 when asked by Last
	Last                                string // last name, "" when asked by Customer
	Lines                               []Line // by supplier and item, so that stocks are locked in one order
	Cents                               int    // of a payment
	Carrier                             int    // of a delivery
	Threshold                           int    // of a stock level
}

// Invalid says that the order names an item that does not exist: its transaction ends with a rollback, as one in a
// hundred is to.
func (in *Input) Invalid() bool {
	n := len(in.Lines)
	return n > 0 && in.Lines[n-1].Item == invalidItem
}

// Packed are the lines as text, for procedures without arrays: item and supplier in six digits each, quantity in two.
func (in *Input) Packed() string {
	text := make([]byte, 0, 14*MostLines)
	for _, l := range in.Lines {
		for _, of := range [...]struct{ n, ten int }{{l.Item, 100_000}, {l.Supply, 100_000}, {l.Quantity, 10}} {
			for ten := of.ten; ten > 0; ten /= 10 {
				text = append(text, byte('0'+of.n/ten%10))
			}
		}
	}
	return string(text)
}

// Amount is Cents as SQL has it: 12.34.
func (in *Input) Amount() string {
	return strconv.Itoa(in.Cents/100) + string([]byte{'.', byte('0' + in.Cents/10%10), byte('0' + in.Cents%10)})
}

// User is a virtual user: a terminal of one warehouse and district, which stay its own for all of a run.
type User struct {
	Number              int // from 0
	Warehouse, District int // from 1

	warehouses int
	random     source
	cards      [deckSize]Kind
	card       int
	in         Input
	lines      [MostLines]Line

	turn // where it is in its transactions
}

// Home is where user n of a run has its terminal: users are dealt to warehouses in turn, and to districts after that.
func Home(user, warehouses int) (warehouse, district int) {
	return user%warehouses + 1, user/warehouses%Districts + 1
}

// NewUser is user n of a run on so many warehouses; the same seed gives the same inputs.
func NewUser(n, warehouses int, seed uint64) *User {
	w, d := Home(n, warehouses)
	u := &User{Number: n, Warehouse: w, District: d, warehouses: warehouses, cards: deck, card: deckSize,
		random: newSource(seed, 1<<40+uint64(n))}
	return u
}

// Next draws the next transaction. The Input holds until the next call.
func (u *User) Next() *Input {
	r := &u.random
	if u.card == deckSize {
		rand.New(r).Shuffle(deckSize, func(i, j int) { u.cards[i], u.cards[j] = u.cards[j], u.cards[i] })
		u.card = 0
	}
	u.in = Input{Kind: u.cards[u.card], Warehouse: u.Warehouse, District: r.between(1, Districts)}
	u.card++
	switch in := &u.in; in.Kind {
	case NewOrder:
		in.Customer = r.customer()
		u.order(r.between(fewestLines, MostLines), r.between(1, 100) == 1)
	case Payment:
		in.CustomerWarehouse, in.CustomerDistrict = u.Warehouse, in.District
		if r.between(1, 100) <= remotePaymentShare && u.warehouses > 1 {
			in.CustomerWarehouse, in.CustomerDistrict = u.other(), r.between(1, Districts)
		}
		u.asked()
		in.Cents = r.between(100, 500_000)
	case OrderStatus:
		u.asked()
	case Delivery:
		in.Carrier = r.between(1, 10)
	case StockLevel:
		in.District, in.Threshold = u.District, r.between(10, 20)
	}
	return &u.in
}

// other is a warehouse that is not the user's own.
func (u *User) other() int {
	w := u.random.between(1, u.warehouses-1)
	if w >= u.Warehouse {
		w++
	}
	return w
}

func (u *User) asked() {
	if u.random.between(1, 100) <= byNameShare {
		u.in.Last = lastNames[u.random.name(nameRun)]
	} else {
		u.in.Customer = u.random.customer()
	}
}

func (u *User) order(n int, invalid bool) {
	u.in.Lines = u.lines[:n]
	for i := range u.in.Lines {
		l := Line{Item: u.random.item(), Supply: u.Warehouse, Quantity: u.random.between(1, 10)}
		if u.warehouses > 1 && u.random.between(1, 100) == 1 {
			l.Supply = u.other()
		}
		u.in.Lines[i] = l
	}
	last := n
	if invalid {
		last--
		u.in.Lines[last].Item, u.in.Lines[last].Supply = invalidItem, u.Warehouse
	}
	slices.SortFunc(u.in.Lines[:last], func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Supply, b.Supply), cmp.Compare(a.Item, b.Item))
	})
}
