package tproch

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Table is one of the eight.
type Table int

// The tables, each after those that its rows refer to.
const (
	Region Table = iota
	Nation
	Supplier
	Customer
	Part
	PartSupplier
	Order
	Line
	tables
)

var tableNames = [tables]string{"region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"}

// String is the table's name in the database.
func (t Table) String() string { return tableNames[t] }

// Scale is how large a data set is: 1 has 1,500,000 orders and about a gigabyte.
type Scale float64

// MaxScale is the largest one. Beyond it keys would be drawn differently.
const MaxScale = 10_000

// Check objects to scales that do not exist.
func (s Scale) Check() error {
	switch f := float64(s); {
	case !(f >= 0.01 && f <= MaxScale): // NaN, too
		return fmt.Errorf("scale: %v is not from 0.01 to %d", f, MaxScale)
	case f > 1 && f != math.Trunc(f):
		return fmt.Errorf("scale: %v is not a whole number, as scales beyond 1 are; take %v", f, math.Round(f))
	case f < 1 && math.Abs(f*100-math.Round(f*100)) > 1e-6: // at others a part has a supplier twice
		return fmt.Errorf("scale: %v is not in hundredths, as scales below 1 are; take %v", f, math.Round(f*100)/100)
	}
	return nil
}

// of is the number of rows at this scale of what has n of them at scale 1.
func (s Scale) of(n int64) int64 {
	if s < 1 {
		return int64(math.Round(float64(s)*100)) * n / 100
	}
	return int64(s) * n
}

// Rows is the number of rows of a table; of the lines, whose number comes with the orders, about how many.
func (s Scale) Rows(t Table) int64 {
	return [tables]int64{5, 25, s.of(10_000), s.of(150_000), s.of(200_000), 4 * s.of(200_000), s.of(1_500_000),
		s.of(1_500_000)*4 + s.of(1215)}[t]
}

// refreshRows is the number of orders that a refresh adds, and removes.
func (s Scale) refreshRows() int64 { return s.Rows(Order) / 1000 }

// Generator makes the rows of a data set. It may be used from several goroutines at once, and keeps 300 MiB of text.
type Generator struct {
	scale Scale
	text  []byte
}

// NewGenerator objects to scales that do not exist. It takes about half a second.
func NewGenerator(scale Scale) (*Generator, error) {
	if err := scale.Check(); err != nil {
		return nil, err
	}
	return &Generator{scale: scale, text: textPool()}, nil
}

// Append makes n rows of a table, from the one of an index on, which counts from 0, and appends them in COPY's text
// form. Parts bring their rows of partsupp along and orders their lines, both into more.
func (g *Generator) Append(t Table, rows, more []byte, first, n int64) (made, brought []byte, err error) {
	if t == PartSupplier || t == Line {
		return rows, more, fmt.Errorf("generate: rows of %s come with those of %s", t, t-1)
	}
	if most := g.scale.Rows(t); first < 0 || n < 0 || first > most || n > most-first {
		return rows, more, fmt.Errorf("generate: rows %d to %d of %s: it has %d", first, first+n-1, t, most)
	}
	w := &writer{g: g, rows: rows, more: more}
	switch t {
	case Order:
		w.orders(first, n, func(i int64) int64 { return orderKey(i+1, 0) })
	case Part:
		w.parts(first, n)
	case Customer:
		w.customers(first, n)
	case Supplier:
		w.suppliers(first, n)
	case Nation:
		w.named(nationComment, first, n, nationNames, nationRegions[:])
	case Region:
		w.named(regionComment, first, n, regionNames, nil)
	}
	return w.rows, w.more, nil
}

// Refreshes is how many times a data set can be refreshed.
const Refreshes = 1000

// AppendRefresh makes the orders, with their lines, that the refresh of an ordinal from 1 to Refreshes adds.
func (g *Generator) AppendRefresh(ordinal int64, rows, more []byte) (made, brought []byte, err error) {
	if ordinal < 1 || ordinal > Refreshes {
		return rows, more, fmt.Errorf("generate: a refresh of number %d: there are those from 1 to %d", ordinal, Refreshes)
	}
	n := g.scale.refreshRows()
	w := &writer{g: g, rows: rows, more: more}
	begin := g.scale.Rows(Order)
	w.orders(begin+(ordinal-1)*n, n, func(i int64) int64 { return orderKey(i-begin+1, 1) })
	return w.rows, w.more, nil
}

// Refreshed are the least and the greatest key of the orders that the refresh of an ordinal removes. Between them lie
// keys that refreshes have added as well, which stay: those whose bits 3 and 4 are not both 0.
func (s Scale) Refreshed(ordinal int64) (least, greatest int64) {
	n := s.refreshRows()
	return orderKey((ordinal-1)*n+1, 0), orderKey(ordinal*n, 0)
}

// orderKey is the key of the i-th order, which counts from 1. Keys are sparse: of 32 only the first 8 are used, and
// those 8 times set further are for what refreshes add.
func orderKey(i, set int64) int64 { return (i>>3<<2|set)<<3 | i&7 }

// days are the dates of the data set.
var days = func() (d [2557]string) {
	for i := range d {
		d[i] = time.Date(1992, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	return d
}()

// today is the day of the data set up to which parcels have come: 1995-06-17.
const today = 1263

// writer appends rows in COPY's text form: nothing in them needs an escape.
type writer struct {
	g    *Generator
	rows []byte
	more []byte
}

func number(to []byte, n int64) []byte { return append(strconv.AppendInt(to, n, 10), '\t') }

func word(to []byte, s string) []byte { return append(append(to, s...), '\t') }

// padded appends a name and a number of nine digits.
func padded(to []byte, name string, n int64) []byte {
	return append(digits(append(to, name...), n, 9), '\t')
}

func digits(to []byte, n int64, width int) []byte {
	for range width {
		to = append(to, '0')
	}
	for i := len(to) - 1; n > 0 && i >= 0; i, n = i-1, n/10 {
		to[i] = byte('0' + n%10)
	}
	return to
}

func money(to []byte, cents int64) []byte {
	if cents < 0 {
		to = append(to, '-')
		cents = -cents
	}
	return append(digits(append(strconv.AppendInt(to, cents/100, 10), '.'), cents%100, 2), '\t')
}

// cut is a piece of the text, of about so many bytes.
func (g *Generator) cut(s *stream, about int) []byte {
	low, high := int(float64(about)*0.4), int(float64(about)*1.6)
	at := s.between(0, poolBytes-high)
	return g.text[at : at+s.between(low, high)]
}

func (g *Generator) comment(to []byte, s *stream, about int) []byte {
	return append(append(to, g.cut(s, about)...), '\n')
}

const letters = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,"

func address(to []byte, s *stream) []byte {
	bits := 0
	for i := range s.between(10, 40) {
		if i%5 == 0 {
			bits = -s.upTo(1 << 31) // below 0, as the published answers have it
		}
		to = append(to, letters[bits&63])
		bits >>= 6
	}
	return append(to, '\t')
}

func phone(to []byte, nation int, s *stream) []byte {
	to = append(digits(to, int64(10+nation), 2), '-')
	to = append(digits(to, int64(s.between(100, 999)), 3), '-')
	to = append(digits(to, int64(s.between(100, 999)), 3), '-')
	return append(digits(to, int64(s.between(1000, 9999)), 4), '\t')
}

func (w *writer) named(comment int, first, n int64, names []string, regions []byte) {
	d := newDice(first, comment)
	for i := first; i < first+n; i++ {
		w.rows = word(number(w.rows, i), names[i])
		if regions != nil {
			w.rows = number(w.rows, int64(regions[i]))
		}
		w.rows = w.g.comment(w.rows, &d.all[comment], 72)
		d.next()
	}
}

func (w *writer) customers(first, n int64) {
	d := newDice(first, customerAddress, customerNation, customerPhone, customerBalance, customerSegment,
		customerComment)
	for i := first + 1; i <= first+n; i++ {
		r := padded(number(w.rows, i), "Customer#", i)
		r = address(r, &d.all[customerAddress])
		nation := d.all[customerNation].upTo(25)
		r = phone(number(r, int64(nation)), nation, &d.all[customerPhone])
		r = money(r, int64(d.all[customerBalance].between(-99999, 999999)))
		r = word(r, segments[d.all[customerSegment].upTo(5)])
		w.rows = w.g.comment(r, &d.all[customerComment], 73)
		d.next()
	}
}

func (w *writer) suppliers(first, n int64) {
	d := newDice(first, supplierAddress, supplierNation, supplierPhone, supplierBalance, supplierComment, supplierNoise,
		supplierKind, supplierPress, supplierOffset)
	for i := first + 1; i <= first+n; i++ {
		r := padded(number(w.rows, i), "Supplier#", i)
		r = address(r, &d.all[supplierAddress])
		nation := d.all[supplierNation].upTo(25)
		r = phone(number(r, int64(nation)), nation, &d.all[supplierPhone])
		r = money(r, int64(d.all[supplierBalance].between(-99999, 999999)))
		comment := len(r)
		r = append(r, w.g.cut(&d.all[supplierComment], 63)...)
		// One in a thousand is spoken of in its comment, well or ill.
		const customer, ill, well = "Customer ", "Complaints", "Recommends"
		press, kind := d.all[supplierPress].between(1, 10000), d.all[supplierKind].upTo(101)
		spare := len(r) - comment - len(customer) - len(ill)
		noise := d.all[supplierNoise].upTo(spare + 1)
		offset := comment + d.all[supplierOffset].upTo(spare-noise+1)
		if press <= 10 {
			said := ill
			if kind >= 50 {
				said = well
			}
			copy(r[offset:], customer)
			copy(r[offset+len(customer)+noise:], said)
		}
		w.rows = append(r, '\n')
		d.next()
	}
}

// supplierOf is the k-th of the four suppliers of a part.
func supplierOf(part, k, suppliers int64) int64 {
	return (part+k*(suppliers/4+(part-1)/suppliers))%suppliers + 1
}

// price is that of a part, in cents.
func price(part int64) int64 { return 90000 + part/10%20001 + part%1000*100 }

func (w *writer) parts(first, n int64) {
	d := newDice(first, partMaker, partBrand, partType, partSize, partContainer, partComment, partName, supplyQuantity,
		supplyCost, supplyComment)
	suppliers := w.g.scale.Rows(Supplier)
	var order [92]byte
	for i := range order {
		order[i] = byte(i)
	}
	for i := first + 1; i <= first+n; i++ {
		r := number(w.rows, i)
		shuffled := order
		for k := range 5 { // the first five of a shuffle
			at := d.all[partName].between(k, len(shuffled)-1)
			shuffled[at], shuffled[k] = shuffled[k], shuffled[at]
			r = append(append(r, colors[shuffled[k]]...), ' ')
		}
		r[len(r)-1] = '\t'
		maker := byte('0' + d.all[partMaker].between(1, 5))
		r = append(append(r, "Manufacturer#"...), maker, '\t')
		r = append(append(r, "Brand#"...), maker, byte('0'+d.all[partBrand].between(1, 5)), '\t')
		r = word(r, partTypes[d.all[partType].upTo(150)])
		r = number(r, int64(d.all[partSize].between(1, 50)))
		r = word(r, containers[d.all[partContainer].upTo(40)])
		w.rows = w.g.comment(money(r, price(i)), &d.all[partComment], 14)
		for k := range int64(4) {
			m := number(number(w.more, i), supplierOf(i, k, suppliers))
			m = number(m, int64(d.all[supplyQuantity].between(1, 9999)))
			m = money(m, int64(d.all[supplyCost].between(100, 100000)))
			w.more = w.g.comment(m, &d.all[supplyComment], 124)
		}
		d.next()
	}
}

func (w *writer) orders(first, n int64, key func(int64) int64) {
	d := newDice(first, orderClerk, orderComment, orderDate, orderPriority, orderCustomer, orderLines, lineQuantity,
		lineDiscount, lineTax, lineInstruction, lineMode, linePart, lineSupplier, lineShipped, lineCommitted,
		lineReceived, lineReturned, lineComment)
	a, s := &d.all, w.g.scale
	customers, parts, suppliers := s.Rows(Customer), int(s.Rows(Part)), s.Rows(Supplier)
	clerks := int(max(1000, s.of(1000)))
	for i := first; i < first+n; i++ {
		k := key(i)
		customer := int64(a[orderCustomer].between(1, int(customers)))
		for by := int64(1); customer%3 == 0; by = -by { // a third of the customers orders nothing
			customer = min(customer+by, customers)
		}
		ordered := a[orderDate].upTo(len(days) - 151)
		priority := priorities[a[orderPriority].upTo(5)]
		clerk := a[orderClerk].between(1, clerks)
		total, shipped, lines := int64(0), 0, a[orderLines].between(1, 7)
		m := w.more
		for l := range lines {
			quantity := int64(a[lineQuantity].between(1, 50))
			discount, tax := a[lineDiscount].upTo(11), a[lineTax].upTo(9)
			instruction, mode := instructions[a[lineInstruction].upTo(4)], modes[a[lineMode].upTo(7)]
			part := int64(a[linePart].between(1, parts))
			m = number(number(m, k), part)
			m = number(m, supplierOf(part, int64(a[lineSupplier].upTo(4)), suppliers))
			m = append(m, byte('1'+l), '\t')
			m = number(m, quantity)
			cost := price(part) * quantity
			m = money(m, cost)
			total += cost * int64(100-discount) / 100 * int64(100+tax) / 100
			m = money(money(m, int64(discount)), int64(tax))
			ship := ordered + a[lineShipped].between(1, 121)
			commit := ordered + a[lineCommitted].between(30, 90)
			receive := ship + a[lineReceived].between(1, 30)
			returned, status := byte('N'), byte('O')
			if receive <= today {
				returned = "RA"[a[lineReturned].upTo(2)]
			}
			if ship <= today {
				status = 'F'
				shipped++
			}
			m = append(m, returned, '\t', status, '\t')
			m = word(word(word(m, days[ship]), days[commit]), days[receive])
			m = w.g.comment(word(word(m, instruction), mode), &a[lineComment], 27)
		}
		w.more = m
		status := byte('P')
		switch shipped {
		case 0:
			status = 'O'
		case lines:
			status = 'F'
		}
		r := append(number(number(w.rows, k), customer), status, '\t')
		r = word(word(money(r, total), days[ordered]), priority)
		r = append(padded(r, "Clerk#", int64(clerk)), '0', '\t')
		w.rows = w.g.comment(r, &a[orderComment], 49)
		d.next()
	}
}
