package view

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll/result"
)

// Quantity is something that a workload does over time: all its operations together, or a measure that adds up.
type Quantity struct {
	Measure string // its name; "" for all operations together
	Name    string // in titles and names of figures: "rate", "NOPM"
	Unit    string // of its values over time: "ops/s", "new orders/s", "NOPM"
	Per     string // after a number in a sentence: "IOPS", "new orders/s", "NOPM"
	Kind    result.Kind
	Better  result.Direction
}

// OperationsRate is the rate of operations: of blocks, of one kind, or of unlike ones, which have no other name in
// common.
func OperationsRate(operations []result.Operation) Quantity {
	q := Quantity{Name: "rate", Unit: result.RateUnit(operations), Kind: result.Count, Better: result.Higher}
	if q.Per = q.Unit; q.Unit == result.OperationsUnit {
		q.Per = "IOPS"
	}
	return q
}

func onlyBlocks(operations []result.Operation) bool {
	return !slices.ContainsFunc(operations, func(o result.Operation) bool { return o.Block == "" })
}

// Noun is several of an operation in a sentence.
func Noun(o result.Operation) string { return cmp.Or(o.Noun, o.Name, "operations") }

// MeasureOf is a measure as a quantity; its series holds a Count per second.
func MeasureOf(m result.Measure) Quantity {
	q := Quantity{Measure: m.Name, Name: m.Name, Unit: m.SeriesUnit(), Kind: m.Kind, Better: m.Better}
	if q.Per = q.Unit; m.Unit != m.Name && m.Unit != "" {
		q.Per += " (" + m.Name + ")"
	}
	return q
}

// Say is a value in a sentence.
func (q Quantity) Say(v float64) string { return strings.TrimSpace(SayCount(v) + " " + q.Per) }

// Brief is a value where it is clear what is meant.
func (q Quantity) Brief(v float64) string {
	switch {
	case q.Measure != "":
		return SayCount(v) + " " + q.Unit
	}
	return q.Say(v)
}

// Judged says which way a movement went, of a measure whose better direction was declared: of operations it is known.
func (q Quantity) Judged(change float64) string {
	switch {
	case q.Measure == "" || q.Better == "" || change == 0:
		return ""
	case (change > 0) == (q.Better == result.Higher):
		return ", which is better"
	}
	return ", which is worse"
}

// Operations are those that occurred in a workload, or all declared ones when none did.
func (l *Load) Operations() []result.Operation { return Occurred([]*Load{l}) }

// Occurred are the kinds of operation that workloads did, or those they declared when none was done.
func Occurred(loads []*Load) []result.Operation {
	var done, declared []result.Operation
	add := func(list []result.Operation, o result.Operation) []result.Operation {
		if slices.Contains(list, o) {
			return list
		}
		return append(list, o)
	}
	for _, l := range loads {
		for _, p := range l.Parts {
			for _, o := range p.Operations {
				declared = add(declared, o)
			}
			for _, t := range p.Ops {
				if o, ok := p.Operation(t.Op); ok && t.Count > 0 {
					done = add(done, o)
				} else if t.Count > 0 {
					done = add(done, result.Operation{Name: t.Op})
				}
			}
		}
	}
	if done == nil {
		return declared
	}
	return done
}

// Operation returns what a workload declared by a name, or that name alone.
func (l *Load) Operation(name string) result.Operation {
	for _, o := range l.Operations() {
		if o.Name == name {
			return o
		}
	}
	return result.Operation{Name: name}
}

// MovesBlocks reports whether a workload does block I/O, so that what is known of storage applies to it.
func (l *Load) MovesBlocks() bool {
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return p.MovesBlocks() })
}

// BlocksOnly reports whether it does nothing but block I/O.
func (l *Load) BlocksOnly() bool { return l.MovesBlocks() && onlyBlocks(l.Operations()) }

// Alike reports whether all that a workload does is of one kind, so that its depth and its offered rate are of what
// is counted.
func (l *Load) Alike() bool { return l.BlocksOnly() || len(l.Operations()) == 1 }

// MovesBlocks reports whether any workload of the run does block I/O.
func (v *Run) MovesBlocks() bool {
	return slices.ContainsFunc(v.Loads, func(l *Load) bool { return l.MovesBlocks() })
}

// Rate is the quantity of all its operations together.
func (l *Load) Rate() Quantity { return OperationsRate(l.Operations()) }

// Counted returns what a workload's operations are called together: of one kind that is no block I/O by its noun.
func (l *Load) Counted() string {
	if all := l.Operations(); len(all) == 1 && all[0].Block == "" {
		return Noun(all[0])
	}
	return "operations"
}

// Declared are the measures of a workload.
func (l *Load) Declared() []result.Measure {
	var out []result.Measure
	for _, p := range l.Parts {
		for _, m := range p.Measures {
			if !slices.ContainsFunc(out, func(o result.Measure) bool { return o.Name == m.Name }) {
				out = append(out, m)
			}
		}
	}
	return out
}

// Measures are those that add up over time and machines, as quantities.
func (l *Load) Measures() []Quantity {
	var out []Quantity
	for _, m := range l.Declared() {
		if m.Kind == result.Level || m.Kind == result.Count {
			out = append(out, MeasureOf(m))
		}
	}
	return out
}

// Main returns what stands for all that a workload does: its operations, or, where it counts none, the first measure of
// which more is better.
func (l *Load) Main() Quantity {
	all := l.Measures()
	if l.Count() > 0 || len(all) == 0 {
		return l.Rate()
	}
	for _, want := range []result.Direction{result.Higher, ""} {
		if i := slices.IndexFunc(all, func(q Quantity) bool { return q.Better == want }); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// Quantities are the main one and all measures besides.
func (l *Load) Quantities() []Quantity {
	main := l.Main()
	return append([]Quantity{main}, slices.DeleteFunc(l.Measures(),
		func(q Quantity) bool { return q.Measure == main.Measure })...)
}

// Section returns what the tool of a workload calls one of its parts.
func (l *Load) Section() string {
	for _, p := range l.Parts {
		if len(p.Streams) > 0 && p.Streams[0].Noun != "" {
			return p.Streams[0].Noun
		}
	}
	return "section"
}

// Reported reports whether there is anything of a workload to speak of: an operation or a value.
func (l *Load) Reported() bool {
	return l.Count() > 0 || slices.ContainsFunc(l.Parts, func(p *result.Workload) bool { return len(p.Values) > 0 })
}

// Source is where an engine reads what to do from.
func (l *Load) Source() string {
	if l.MovesBlocks() {
		return "the job file"
	}
	return "its declaration"
}

// Timed reports whether the tool gave times of its operations.
func (l *Load) Timed() bool {
	return slices.ContainsFunc(l.Parts, func(p *result.Workload) bool {
		_, seconds := Totals(p.Ops)
		return seconds > 0
	})
}

// opKey is an operation in a part of the run: a workload of a group, a group, or all of it.
type opKey struct{ workload, group, op string }

// blockTable says what operations do with blocks, wherever they are counted together. Where workloads that are counted
// together mean different things by one name, it is known of none.
func blockTable(loads []*Load) map[opKey]result.Block {
	out := map[opKey]result.Block{}
	for _, l := range loads {
		for _, p := range l.Parts {
			for _, o := range p.Operations {
				for _, key := range []opKey{{l.Name, l.Group, o.Name}, {"", l.Group, o.Name}, {"", "", o.Name}} {
					if known, ok := out[key]; ok && known != o.Block {
						out[key] = ""
					} else {
						out[key] = o.Block
					}
				}
			}
		}
	}
	return out
}

// Block returns what the operations of a series do with blocks.
func (v *Run) Block(s *result.Series) result.Block {
	return v.blocks[opKey{s.Workload, s.Group, s.Op}]
}

// BlockTotals are the totals of the operations of a workload that do one thing with blocks.
func BlockTotals(w *result.Workload, of result.Block) []result.OpTotals {
	var out []result.OpTotals
	for _, o := range w.Ops {
		if w.Block(o.Op) == of {
			out = append(out, o)
		}
	}
	return out
}
