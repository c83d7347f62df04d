package table

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Decimals are the names of the signs that may stand before the fractions of a table's numbers.
var Decimals = []string{"comma", "point"}

// numeral is a number as people write it for people: with groups of thousands, either sign before its fraction, a unit.
var numeral = regexp.MustCompile(`^([-+]?)(\d{1,3}(?:[.,'’_ \x{a0}\x{2009}\x{202f}]\d{3})+|\d+)(?:([.,])(\d+))?` +
	`([eE][-+]?\d+)?[ \x{a0}\x{202f}]?([A-Za-zµμ%/]{0,8})$`)

// number holds the parts of a cell that is written as a numeral.
type number struct {
	sign, exponent, unit string
	groups               []string // of digits before the fraction
	between              string   // the groups; empty when there is one
	mark, fraction       string   // the sign before the fraction, and its digits
	either               bool     // one sign with three digits after it: of a fraction or between thousands
}

// numberOf takes a cell apart; ok is false when it is no number, or its groups are not of one kind.
func numberOf(cell string) (n number, ok bool) {
	if strings.Trim(cell, "0123456789") == "" && cell != "" {
		return number{groups: []string{cell}}, true
	}
	m := numeral.FindStringSubmatch(cell)
	if m == nil {
		return n, false
	}
	n = number{sign: m[1], mark: m[3], fraction: m[4], exponent: m[5], unit: strings.ReplaceAll(m[6], "μ", "µ")}
	for _, r := range m[2] {
		if r >= '0' && r <= '9' {
			continue
		}
		if n.between != "" && n.between != string(r) {
			return n, false
		}
		n.between = string(r)
	}
	n.groups = []string{m[2]}
	if n.between != "" {
		n.groups = strings.Split(m[2], n.between)
	}
	switch {
	case n.mark != "" && n.mark == n.between && len(n.fraction) == 3: // 1.234.567
		n.groups, n.mark, n.fraction = append(n.groups, n.fraction), "", ""
	case n.mark != "" && n.mark == n.between:
		return n, false
	case n.mark == "" && len(n.groups) == 2 && (n.between == "." || n.between == ","): // 1.234
		n.mark, n.fraction, n.groups, n.between = n.between, n.groups[1], n.groups[:1], ""
	}
	n.either = n.mark != "" && len(n.groups) == 1 && len(n.fraction) == 3 && len(n.groups[0]) <= 3 &&
		n.groups[0][0] != '0' && n.exponent == ""
	return n, true
}

// decimal is the sign before fractions that a number proves; empty when it proves none.
func (n number) decimal() string {
	switch {
	case n.either:
		return ""
	case n.mark != "":
		return n.mark
	case n.between == ".":
		return ","
	case n.between == ",":
		return "."
	}
	return ""
}

// text writes the number with a decimal point. Where decimal is the sign before fractions, the other is between
// thousands.
func (n number) text(decimal string) string {
	whole := strings.Join(n.groups, "")
	switch {
	case n.mark == "":
		return n.sign + whole + n.exponent
	case n.either && n.mark != decimal:
		return n.sign + whole + n.fraction
	}
	return n.sign + whole + "." + n.fraction + n.exponent
}

// column holds what the cells of one prove together.
type column struct {
	numbers, gaps int
	odd           bool            // some cell is no number as programs write it
	proven        map[string]bool // signs before fractions
	thousands     map[string]bool // signs between groups
	either        int             // cells that can be read in two ways
	plain         int             // numbers without any sign
	round         bool            // a zero ends a number that can be read in two ways
}

func (t *Table) proves(i int) (c column) {
	c.proven, c.thousands = map[string]bool{}, map[string]bool{}
	for _, row := range t.Rows {
		n, ok := numberOf(row[i])
		if !ok {
			if missing(row[i]) {
				c.gaps++
			}
			continue
		}
		c.numbers++
		c.proven[n.decimal()], c.thousands[n.between] = true, true
		c.odd = c.odd || n.between != "" || n.mark == "," || n.unit != ""
		switch {
		case n.either:
			c.either++
			c.round = c.round || strings.HasSuffix(n.fraction, "0")
		case n.mark == "" && n.groups[0] != "0":
			c.plain++
		}
	}
	return c
}

// numerals writes the numbers of a table as programs do: with a decimal point, nothing between thousands, and their
// unit in the name of the column. The sign before fractions is the one that is said, or that the table proves: some
// number can be read in no other way, and none in this. Where a column can be read both ways, it is in doubt.
func (t *Table) numerals(said string) {
	of := make([]column, len(t.Names))
	comma, point := false, false
	for i := range of {
		of[i] = t.proves(i)
		if c := of[i]; 2*c.numbers+c.gaps >= len(t.Rows) {
			comma, point = comma || c.proven[","], point || c.proven["."]
		} else {
			of[i].numbers = 0
		}
	}
	decimal := map[string]string{"comma": ",", "point": "."}[said]
	if decimal == "" && comma != point {
		decimal = map[bool]string{true: ",", false: "."}[comma]
	}
	t.doubts = map[int]error{}
	for i, c := range of {
		if c.numbers == 0 || !c.odd && c.either == 0 && decimal != "," {
			continue
		}
		asCSV := decimal == "" && !comma && t.comma != ';' && (c.plain == 0 || !c.round || c.either == 1)
		thousands := func(sign string) bool { return said != "" || c.thousands[sign] }
		err := t.doubt(i, decimal, asCSV || t.Unit == "element", thousands)
		if err == nil && c.odd && (decimal != "" || !comma) {
			err = t.rewrite(i, cmp.Or(decimal, "."))
		}
		if err != nil {
			t.doubts[i] = err
		}
	}
}

// doubt says of a column whose numbers can be read in two ways what to do.
func (t *Table) doubt(i int, decimal string, asCSV bool, thousands func(sign string) bool) error {
	for j, row := range t.Rows {
		n, ok := numberOf(row[i])
		if !ok {
			continue
		}
		if n.either && n.mark != decimal && !(decimal != "" && thousands(n.mark)) && !(asCSV && n.mark == ".") {
			return fmt.Errorf("%s %d: %s: %s is not a number beyond doubt: %s or %s? Say --decimal comma or --decimal point",
				t.Unit, t.Lines[j], t.Names[i], Quote(row[i]), n.text(n.mark), n.text(""))
		}
		if proves := n.decimal(); proves != "" && decimal != "" && proves != decimal {
			return fmt.Errorf("%s %d: %s: %s is not a number with a decimal %s", t.Unit, t.Lines[j], t.Names[i],
				Quote(row[i]), map[string]string{",": "comma", ".": "point"}[decimal])
		}
	}
	return nil
}

// rewrite writes the numbers of a column as programs do.
func (t *Table) rewrite(i int, decimal string) error {
	of := make([]number, len(t.Rows))
	for j, row := range t.Rows {
		n, ok := numberOf(row[i])
		if ok && n.unit == "" {
			row[i] = n.text(decimal)
		}
		of[j] = n
	}
	return t.inOneUnit(i, of, decimal)
}

// scale are the units of cells by what they measure, and how much of the first of its kind each is.
var scale = func() map[string]struct {
	of     string
	factor float64
} {
	out := map[string]struct {
		of     string
		factor float64
	}{}
	add := func(of string, factor float64, names ...string) {
		for _, n := range names {
			out[n] = struct {
				of     string
				factor float64
			}{of, factor}
		}
	}
	for _, u := range []string{"ns", "us", "µs", "ms", "s", "usec", "msec", "sec"} {
		add("time", SecondsIn(u), u)
	}
	add("time", 60, "min")
	for power, p := range []string{"", "k", "m", "g", "t"} {
		decimal, binary := 1.0, 1.0
		for range power {
			decimal, binary = decimal*1000, binary*1024
		}
		add("bytes", decimal, p+"b")
		add("bytes/s", decimal, p+"b/s")
		add("count", decimal, strings.ToUpper(p))
		if power > 0 {
			add("bytes", binary, p+"ib")
			add("bytes/s", binary, p+"ib/s")
		}
	}
	add("count", 1000, "k")
	for _, u := range []string{"%", "iops", "ops", "ops/s", "tps", "qps", "rps", "req/s", "tx/s", "mbit/s", "gbit/s",
		"mbps", "gbps"} {
		add(u, 1, u)
	}
	return out
}()

// sized are columns of sizes, in which k is no thousand beyond doubt.
var sized = regexp.MustCompile(`size|block|chunk|record|length|^bs$|bytes|band|^bw`)

// inOneUnit takes the unit of a column's cells into its name, and counts what stands in another unit of the same kind
// in that of the first. A column that has a setting, or a unit that is not known, stays as it is.
func (t *Table) inOneUnit(i int, of []number, decimal string) error {
	stem, head := SplitUnit(t.Names[i])
	first, kind, bare := "", "", 0
	for j, n := range of {
		if n.groups == nil {
			continue
		}
		unit := n.unit
		if scale[unit].of == "" {
			unit = strings.ToLower(unit)
		}
		u, known := scale[unit]
		switch {
		case n.unit == "":
			bare++
			continue
		case !known || kind != "" && u.of != kind || slices.Contains(settingNames, stem) ||
			u.of == "count" && sized.MatchString(stem):
			return nil
		}
		of[j].unit = unit
		if kind == "" {
			first, kind = n.unit, u.of
		}
	}
	if kind == "" {
		return nil
	}
	to := scale[of[slices.IndexFunc(of, func(n number) bool { return n.unit != "" })].unit].factor
	if kind == "count" {
		to, first = 1, ""
	} else if bare > 0 {
		return nil // a number without a unit beside those with one
	}
	if head != "" && first != "" && !strings.EqualFold(head, first) {
		return fmt.Errorf("%s: its cells are in %s, and its name says %s", t.Names[i], first, head)
	}
	for j, n := range of {
		if n.groups == nil {
			continue
		}
		cell := n.text(decimal)
		if factor := scale[n.unit].factor; n.unit != "" && factor != to {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				return nil
			}
			cell = strconv.FormatFloat(v*factor/to, 'g', 12, 64)
		}
		t.Rows[j][i] = cell
	}
	if kind == "count" {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: k is read as a thousand, M as a million", t.Names[i]))
	}
	if first != "" && head == "" {
		t.given[i] = t.Names[i]
		t.Names[i] += " (" + first + ")"
	}
	return nil
}
