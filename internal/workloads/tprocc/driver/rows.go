package tprocc

import (
	"fmt"
	"io"
	"strconv"
)

// Table is one of the tables that are loaded.
type Table struct {
	Name    string
	Columns []string
	// Warehouse is its column that says which warehouse a row belongs to, "" when all share it.
	Warehouse string
	Rows      int // in a warehouse; about, of order_line
}

// ItemTable is loaded once, WarehouseTables for every warehouse, in this order.
var (
	ItemTable = Table{"item", []string{"i_id", "i_im_id", "i_price", "i_name", "i_data"}, "", Items}

	WarehouseTables = []Table{
		{"warehouse", []string{"w_id", "w_tax", "w_ytd", "w_name", "w_street_1", "w_street_2", "w_city", "w_state",
			"w_zip"}, "w_id", 1},
		{"district", []string{"d_w_id", "d_id", "d_next_o_id", "d_tax", "d_ytd", "d_name", "d_street_1",
			"d_street_2", "d_city", "d_state", "d_zip"}, "d_w_id", Districts},
		{"customer", []string{"c_w_id", "c_d_id", "c_id", "c_payment_cnt", "c_delivery_cnt", "c_since",
			"c_credit_lim", "c_discount", "c_balance", "c_ytd_payment", "c_credit", "c_middle", "c_last", "c_first",
			"c_street_1", "c_street_2", "c_city", "c_state", "c_zip", "c_phone", "c_data"}, "c_w_id",
			Districts * Customers},
		{"history", []string{"h_w_id", "h_d_id", "h_c_w_id", "h_c_d_id", "h_c_id", "h_date", "h_amount", "h_data"},
			"h_w_id", Districts * Customers},
		{"stock", []string{"s_w_id", "s_i_id", "s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt", "s_dist_01",
			"s_dist_02", "s_dist_03", "s_dist_04", "s_dist_05", "s_dist_06", "s_dist_07", "s_dist_08", "s_dist_09",
			"s_dist_10", "s_data"}, "s_w_id", Items},
		{"orders", []string{"o_w_id", "o_d_id", "o_id", "o_c_id", "o_carrier_id", "o_ol_cnt", "o_all_local",
			"o_entry_d"}, "o_w_id", Districts * Customers},
		{"order_line", []string{"ol_w_id", "ol_d_id", "ol_o_id", "ol_number", "ol_i_id", "ol_supply_w_id",
			"ol_quantity", "ol_delivery_d", "ol_amount", "ol_dist_info"}, "ol_w_id", Districts * Customers * 10},
		{"new_order", []string{"no_w_id", "no_d_id", "no_o_id"}, "no_w_id",
			Districts * (Customers - firstUndelivered + 1)},
	}
)

// Data makes the rows that are loaded. The same seed gives the same rows.
type Data struct {
	Seed uint64
	Time string // when they are said to have come about, as "2006-01-02 15:04:05"
}

const batch = 64 << 10

// Read gives the rows of a table, of item those of all warehouses: values with tabs between and newlines after, \N for
// none. PostgreSQL's COPY and MariaDB's LOAD DATA read this as it is.
func (d Data) Read(table string, warehouse int) (io.Reader, error) {
	i := -1
	for j, t := range append([]Table{ItemTable}, WarehouseTables...) {
		if t.Name == table {
			i = j
		}
	}
	if i < 0 {
		return nil, fmt.Errorf("tprocc: table %q: there are no rows of it", table)
	}
	g := &rows{source: newSource(d.Seed, uint64(warehouse)<<8|uint64(i)), time: d.Time, w: warehouse,
		counts: newSource(d.Seed, uint64(warehouse)<<8|255)}
	g.next = [...]func() bool{g.item, g.warehouse, g.district, g.customer, g.history, g.stock, g.order, g.orderLine,
		g.newOrder}[i]
	return g, nil
}

// rows is a table while it is made: row says which comes next, counted from 0.
type rows struct {
	source
	counts source // of lines of orders, which two tables have to agree about
	time   string
	w, row int
	buf    []byte
	read   int
	next   func() bool
	owners []int // customers of a district in the order of their orders
}

// Read implements io.Reader.
func (g *rows) Read(p []byte) (int, error) {
	if g.read == len(g.buf) {
		g.buf, g.read = g.buf[:0], 0
		for len(g.buf) < batch && g.next() {
			g.row++
		}
		if len(g.buf) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, g.buf[g.read:])
	g.read += n
	return n, nil
}

func (g *rows) tab() { g.buf = append(g.buf, '\t') }
func (g *rows) ints(values ...int) {
	for _, v := range values {
		g.buf = strconv.AppendInt(g.buf, int64(v), 10)
		g.tab()
	}
}
func (g *rows) word(s string)         { g.buf = append(g.buf, s...); g.tab() }
func (g *rows) letters(low, high int) { g.buf = g.text(g.buf, low, high); g.tab() }
func (g *rows) end() bool             { g.buf[len(g.buf)-1] = '\n'; return true }

// fraction is n/10^places.
func (g *rows) fraction(n, places int) {
	ten := 1
	for range places {
		ten *= 10
	}
	g.buf = strconv.AppendInt(g.buf, int64(n/ten), 10)
	g.buf = append(g.buf, '.')
	at := len(g.buf)
	g.buf = strconv.AppendInt(g.buf, int64(ten+n%ten), 10) // a digit too many keeps the zeros
	g.buf = append(g.buf[:at], g.buf[at+1:]...)
	g.tab()
}

func (g *rows) address() {
	g.letters(10, 20)
	g.letters(10, 20)
	g.letters(10, 20)
	g.letters(2, 2)
	g.buf = append(g.digits(g.buf, 4), "11111"...)
	g.tab()
}

func (g *rows) item() bool {
	if g.row == Items {
		return false
	}
	g.ints(g.row+1, g.between(1, 10_000))
	g.fraction(g.between(100, 10_000), 2)
	g.letters(14, 24)
	g.buf = g.data(g.buf, 26, 50)
	g.tab()
	return g.end()
}

func (g *rows) warehouse() bool {
	if g.row == 1 {
		return false
	}
	g.ints(g.w)
	g.fraction(g.between(0, 2000), 4)
	g.word("300000.00")
	g.letters(6, 10)
	g.address()
	return g.end()
}

func (g *rows) district() bool {
	if g.row == Districts {
		return false
	}
	g.ints(g.w, g.row+1, Customers+1)
	g.fraction(g.between(0, 2000), 4)
	g.word("30000.00")
	g.letters(6, 10)
	g.address()
	return g.end()
}

func (g *rows) customer() bool {
	if g.row == Districts*Customers {
		return false
	}
	c := g.row%Customers + 1
	g.ints(g.w, g.row/Customers+1, c, 1, 0)
	g.word(g.time)
	g.word("50000.00")
	g.fraction(g.between(0, 5000), 4)
	g.word("-10.00")
	g.word("10.00")
	if g.between(1, 10) == 1 {
		g.word("BC")
	} else {
		g.word("GC")
	}
	g.word("OE")
	if c <= 1000 {
		g.word(lastNames[c-1])
	} else {
		g.word(lastNames[g.name(nameLoad)])
	}
	g.letters(8, 16)
	g.address()
	g.buf = g.digits(g.buf, 16)
	g.tab()
	g.letters(300, 500)
	return g.end()
}

func (g *rows) history() bool {
	if g.row == Districts*Customers {
		return false
	}
	d, c := g.row/Customers+1, g.row%Customers+1
	g.ints(g.w, d, g.w, d, c)
	g.word(g.time)
	g.word("10.00")
	g.letters(12, 24)
	return g.end()
}

func (g *rows) stock() bool {
	if g.row == Items {
		return false
	}
	g.ints(g.w, g.row+1, g.between(10, 100), 0, 0, 0)
	for range Districts {
		g.letters(24, 24)
	}
	g.buf = g.data(g.buf, 26, 50)
	g.tab()
	return g.end()
}

func (g *rows) order() bool {
	if g.row == Districts*Customers {
		return false
	}
	o := g.row%Customers + 1
	if o == 1 { // every customer of the district has one order
		g.owners = g.owners[:0]
		for i := range Customers {
			at := g.between(0, i)
			g.owners = append(g.owners, i+1)
			g.owners[i], g.owners[at] = g.owners[at], i+1
		}
	}
	g.ints(g.w, g.row/Customers+1, o, g.owners[o-1])
	if o < firstUndelivered {
		g.ints(g.between(1, 10))
	} else {
		g.word(`\N`)
	}
	g.ints(g.counts.between(fewestLines, MostLines), 1)
	g.word(g.time)
	return g.end()
}

// orderLine makes all lines of one order.
func (g *rows) orderLine() bool {
	if g.row == Districts*Customers {
		return false
	}
	o := g.row%Customers + 1
	for n := range g.counts.between(fewestLines, MostLines) {
		g.ints(g.w, g.row/Customers+1, o, n+1, g.between(1, Items), g.w, 5)
		if o < firstUndelivered {
			g.word(g.time)
			g.word("0.00")
		} else {
			g.word(`\N`)
			g.fraction(g.between(1, 999_999), 2)
		}
		g.letters(24, 24)
		g.end()
	}
	return true
}

func (g *rows) newOrder() bool {
	const each = Customers - firstUndelivered + 1
	if g.row == Districts*each {
		return false
	}
	g.ints(g.w, g.row/each+1, firstUndelivered+g.row%each)
	return g.end()
}

// AllTables are the columns of all that Create makes, by table.
func AllTables() map[string][]string {
	all := map[string][]string{"load_state": {"warehouse", "state"}}
	for _, t := range append([]Table{ItemTable}, WarehouseTables...) {
		all[t.Name] = t.Columns
	}
	return all
}
