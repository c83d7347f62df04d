package command

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// dimension tells what a number is of. Numbers of one dimension can be converted.
type dimension string

const (
	plain dimension = "a plain number"
	times dimension = "a time"
	sizes dimension = "an amount of data"
)

type unitOf struct {
	dimension dimension
	factor    float64 // to 1, nanoseconds, bytes
}

// units are all that are converted. "%" is not: 95 % is 95 of a measure in %.
var units = map[string]unitOf{
	"ns": {times, 1}, "us": {times, 1e3}, "µs": {times, 1e3}, "ms": {times, 1e6}, "s": {times, 1e9},
	"min": {times, 60e9},
	"h":   {times, 3600e9},
	"B":   {sizes, 1}, "KiB": {sizes, 1 << 10}, "MiB": {sizes, 1 << 20}, "GiB": {sizes, 1 << 30},
	"TiB": {sizes, 1 << 40},
	"kB":  {sizes, 1e3}, "KB": {sizes, 1e3}, "MB": {sizes, 1e6}, "GB": {sizes, 1e9}, "TB": {sizes, 1e12},
	"": {plain, 1}, "k": {plain, 1e3}, "M": {plain, 1e6}, "G": {plain, 1e9},
}

func unitNames(d dimension) (names []string) {
	for name, u := range units {
		if u.dimension == d && name != "" {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(units[a].factor, units[b].factor), cmp.Compare(a, b))
	})
	return names
}

// unitCalled finds a unit, also one per second.
func unitCalled(name string) (unitOf, bool) {
	u, ok := units[strings.TrimSuffix(name, "/s")]
	return u, ok && name != ""
}

// number says where a number of the output stands and what it is worth.
type number struct {
	Field string  `json:"field,omitempty"`
	Value float64 `json:"value,omitempty"` // where there is no field
	// Units are those that the text may end with, and what a number in them is multiplied by. With a single one, the
	// text need not end with it.
	Units     []scaled `json:"units"`
	Thousands string   `json:"thousands,omitempty"`
	at        *yaml.Node
}

type scaled struct {
	Unit   string  `json:"unit"`
	Factor float64 `json:"factor"`
}

// maxNumber bounds what is counted: beyond it float64 is not exact.
const maxNumber = 1 << 53

// parse reads the text of a field. An empty one is no number and no error.
func (x *number) parse(text string) (v float64, ok bool, err error) {
	if x.Field == "" {
		return x.Value, true, nil
	}
	t := strings.TrimSpace(text)
	if t == "" {
		return 0, false, nil
	}
	digits, factor := t, 0.0
	for _, u := range x.Units {
		if head, found := strings.CutSuffix(t, u.Unit); found && (factor == 0 || len(head) < len(digits)) {
			digits, factor = strings.TrimRight(head, " "), u.Factor
		}
	}
	if factor == 0 && len(x.Units) == 1 {
		factor = x.Units[0].Factor
	}
	if x.Thousands != "" {
		digits = strings.ReplaceAll(digits, x.Thousands, "")
	}
	v, parseErr := strconv.ParseFloat(digits, 64)
	if factor == 0 || parseErr != nil || strings.Trim(digits, "0123456789+-.eE") != "" {
		return 0, false, fmt.Errorf("%q in field %s is no %s", clip(text), x.Field, x.form())
	}
	if v *= factor; math.Abs(v) > maxNumber {
		return 0, false, fmt.Errorf("%q in field %s is out of range", clip(text), x.Field)
	}
	return v, true, nil
}

// form says what text the number may be.
func (x *number) form() string {
	text := "number"
	switch {
	case len(x.Units) > 1:
		var names []string
		for _, u := range x.Units {
			names = append(names, u.Unit)
		}
		text += " that ends with " + strings.Join(names, " or ")
	case x.Units[0].Unit != "":
		text += " of " + x.Units[0].Unit
	}
	if x.Thousands == "" {
		text += "; declare unit: or thousands: for what stands in it besides"
	}
	return text
}

func clip(text string) string { return text[:min(len(text), 40)] }

// number reads where a number is: a field's name, or a mapping. Its values come out in the given unit; to is "" where a
// plain number or one in a unit of the tool's own is wanted.
func (c *config) number(n *yaml.Node, what string, d dimension, to string) *number {
	x := &number{at: n}
	scale, named := 1.0, []string(nil)
	var unitNode *yaml.Node
	if n.Kind != yaml.MappingNode {
		x.Field, _ = c.text(n, what)
	} else {
		hasValue := false
		c.mapping(n, what,
			member{"field", false, func(v *yaml.Node) { x.Field, _ = c.text(v, what+": field"); x.at = v }},
			member{"value", false, func(v *yaml.Node) { x.Value, hasValue = c.float(v, what+": value") }},
			member{"scale", false, func(v *yaml.Node) {
				if f, ok := c.float(v, what+": scale"); ok {
					scale = f
				}
			}},
			member{"thousands", false, func(v *yaml.Node) {
				x.Thousands = c.choice(v, what+": thousands", ",", ".", "'", "_", " ")
			}},
			member{"unit", false, func(v *yaml.Node) {
				unitNode = v
				take := func(e *yaml.Node) {
					if text, ok := c.text(e, what+": unit"); ok {
						named = append(named, text)
					}
				}
				if v.Kind == yaml.SequenceNode {
					c.list(v, what+": unit", 16, take)
				} else {
					take(v)
				}
			}})
		if (x.Field == "") != hasValue {
			c.object(n, "%s needs either field: or value:", what)
		}
		if hasValue && (len(named) > 1 || x.Thousands != "") {
			c.object(n, "%s: a value: has one unit: at most, and no thousands:", what)
		}
		if !(math.Abs(scale) > 0 && math.Abs(scale) <= maxNumber) {
			c.object(n, "%s: scale must not be 0, nor beyond 2^53", what)
		}
	}
	if len(named) == 0 {
		named = []string{""}
		if d == times {
			c.object(n, "%s: in which unit is it? write {field: %s, unit: s}, or another unit", what,
				cmp.Or(x.Field, "NAME"))
		}
		if d != plain { // bytes where nothing is said
			named = nil
			x.Units = []scaled{{"", scale}}
		}
	}
	for _, name := range named {
		x.Units = append(x.Units, scaled{name, scale * c.factor(unitNode, what, name, d, to)})
	}
	if x.Field == "" {
		x.Value *= x.Units[0].Factor
	}
	return x
}

// factor returns what a number in a unit is multiplied by to come out in another, or in that of its dimension.
func (c *config) factor(n *yaml.Node, what, name string, d dimension, to string) float64 {
	if name == "" || name == to || name == "%" && d == plain && to == "" {
		return 1
	}
	from, known := unitCalled(name)
	target, convertible := unitCalled(to)
	switch {
	case to == "" && known && from.dimension == d && !strings.HasSuffix(name, "/s"):
		if d == times {
			return from.factor / units["s"].factor
		}
		return from.factor
	case to != "" && known && convertible && from.dimension == target.dimension && from.dimension != plain &&
		strings.HasSuffix(name, "/s") == strings.HasSuffix(to, "/s"):
		return from.factor / target.factor
	case to != "" && known && from.dimension == plain: // 12.3k of whatever the measure is in
		return from.factor
	case to != "":
		c.object(n,
			"%s: unit %q cannot be converted to %s, in which the measure is; use scale: for what the number is "+
				"to be multiplied by", what, name, to)
	default:
		c.object(n, "%s: unit %q is none of %s (it is %s); leave it out of the field and use scale:", what, name,
			strings.Join(unitNames(d), ", "), d)
	}
	return 1
}

func (c *config) float(n *yaml.Node, what string) (float64, bool) {
	text, ok := c.text(n, what)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || n.Tag != "!!int" && n.Tag != "!!float" {
		c.object(n, "%s must be a number, not %q", what, text)
		return 0, false
	}
	return v, true
}
