package analysis

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll/result"
)

// quantity is something that a workload does over time: all its operations together, or a measure that adds up.
type quantity struct {
	measure string // its name; "" for all operations together
	name    string // in titles and names of figures: "rate", "NOPM"
	unit    string // of its values over time: "ops/s", "new orders/s", "NOPM"
	per     string // after a number in a sentence: "operations per second", "new orders/s", "NOPM"
	kind    result.Kind
	better  result.Direction
}

// operationsRate is the rate of operations: of blocks, of one kind, or of unlike ones, which have no other name in
// common.
func operationsRate(operations []result.Operation) quantity {
	q := quantity{name: "rate", unit: result.RateUnit(operations), kind: result.Count, better: result.Higher}
	if q.per = q.unit; q.unit == result.OperationsUnit {
		q.per = "operations per second"
	}
	return q
}

func onlyBlocks(operations []result.Operation) bool {
	return !slices.ContainsFunc(operations, func(o result.Operation) bool { return o.Block == "" })
}

// noun is several of an operation in a sentence.
func noun(o result.Operation) string { return cmp.Or(o.Noun, o.Name, "operations") }

// measureOf is a measure as a quantity; its series holds a Count per second.
func measureOf(m result.Measure) quantity {
	q := quantity{measure: m.Name, name: m.Name, unit: m.SeriesUnit(), kind: m.Kind, better: m.Better}
	if q.per = q.unit; m.Unit != m.Name && m.Unit != "" {
		q.per += " (" + m.Name + ")"
	}
	return q
}

// say is a value in a sentence.
func (q quantity) say(v float64) string { return strings.TrimSpace(sayCount(v) + " " + q.per) }

// brief is a value where it is clear what is meant.
func (q quantity) brief(v float64) string {
	switch {
	case q.unit == result.OperationsUnit:
		return sayCount(v) + " per second"
	case q.measure != "":
		return sayCount(v) + " " + q.unit
	}
	return q.say(v)
}

// judged says which way a movement went, of a measure whose better direction was declared: of operations it is known.
func (q quantity) judged(change float64) string {
	switch {
	case q.measure == "" || q.better == "" || change == 0:
		return ""
	case (change > 0) == (q.better == result.Higher):
		return ", which is better"
	}
	return ", which is worse"
}

// operations are those that occurred in a workload, or all declared ones when none did.
func (l *load) operations() []result.Operation { return occurred([]*load{l}) }

// occurred are the kinds of operation that workloads did, or those they declared when none was done.
func occurred(loads []*load) []result.Operation {
	var done, declared []result.Operation
	add := func(list []result.Operation, o result.Operation) []result.Operation {
		if slices.Contains(list, o) {
			return list
		}
		return append(list, o)
	}
	for _, l := range loads {
		for _, p := range l.parts {
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

// operation is what a workload declared by a name, or that name alone.
func (l *load) operation(name string) result.Operation {
	for _, o := range l.operations() {
		if o.Name == name {
			return o
		}
	}
	return result.Operation{Name: name}
}

// movesBlocks reports whether a workload does block I/O, so that what is known of storage applies to it.
func (l *load) movesBlocks() bool {
	return slices.ContainsFunc(l.parts, func(p *result.Workload) bool { return p.MovesBlocks() })
}

// blocksOnly reports whether it does nothing but block I/O.
func (l *load) blocksOnly() bool { return l.movesBlocks() && onlyBlocks(l.operations()) }

// alike reports whether all that a workload does is of one kind, so that its depth and its offered rate are of what
// is counted.
func (l *load) alike() bool { return l.blocksOnly() || len(l.operations()) == 1 }

// movesBlocks reports whether any workload of the run does block I/O.
func (v *view) movesBlocks() bool {
	return slices.ContainsFunc(v.loads, func(l *load) bool { return l.movesBlocks() })
}

// rate is the quantity of all its operations together.
func (l *load) rate() quantity { return operationsRate(l.operations()) }

// counted is what a workload's operations are called together: of one kind that is no block I/O by its noun.
func (l *load) counted() string {
	if all := l.operations(); len(all) == 1 && all[0].Block == "" {
		return noun(all[0])
	}
	return "operations"
}

// declared are the measures of a workload.
func (l *load) declared() []result.Measure {
	var out []result.Measure
	for _, p := range l.parts {
		for _, m := range p.Measures {
			if !slices.ContainsFunc(out, func(o result.Measure) bool { return o.Name == m.Name }) {
				out = append(out, m)
			}
		}
	}
	return out
}

// measures are those that add up over time and machines, as quantities.
func (l *load) measures() []quantity {
	var out []quantity
	for _, m := range l.declared() {
		if m.Kind == result.Level || m.Kind == result.Count {
			out = append(out, measureOf(m))
		}
	}
	return out
}

// main is what stands for all that a workload does: its operations, or, where it counts none, the first measure of
// which more is better.
func (l *load) main() quantity {
	all := l.measures()
	if l.count() > 0 || len(all) == 0 {
		return l.rate()
	}
	for _, want := range []result.Direction{result.Higher, ""} {
		if i := slices.IndexFunc(all, func(q quantity) bool { return q.better == want }); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// quantities are the main one and all measures besides.
func (l *load) quantities() []quantity {
	main := l.main()
	return append([]quantity{main}, slices.DeleteFunc(l.measures(),
		func(q quantity) bool { return q.measure == main.measure })...)
}

// reported reports whether there is anything of a workload to speak of: an operation or a value.
func (l *load) reported() bool {
	return l.count() > 0 || slices.ContainsFunc(l.parts, func(p *result.Workload) bool { return len(p.Values) > 0 })
}

// source is where an engine reads what to do from.
func (l *load) source() string {
	if l.movesBlocks() {
		return "the job file"
	}
	return "its declaration"
}

// timed reports whether the tool gave times of its operations.
func (l *load) timed() bool {
	return slices.ContainsFunc(l.parts, func(p *result.Workload) bool {
		_, seconds := totals(p.Ops)
		return seconds > 0
	})
}

// opKey is an operation in a part of the run: a workload of a group, a group, or all of it.
type opKey struct{ workload, group, op string }

// blockTable says what operations do with blocks, wherever they are counted together. Where workloads that are counted
// together mean different things by one name, it is known of none.
func blockTable(loads []*load) map[opKey]result.Block {
	out := map[opKey]result.Block{}
	for _, l := range loads {
		for _, p := range l.parts {
			for _, o := range p.Operations {
				for _, key := range []opKey{{l.name, l.group, o.Name}, {"", l.group, o.Name}, {"", "", o.Name}} {
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

// block is what the operations of a series do with blocks.
func (v *view) block(s *result.Series) result.Block {
	return v.blocks[opKey{s.Workload, s.Group, s.Op}]
}

// blockTotals are the totals of the operations of a workload that do one thing with blocks.
func blockTotals(w *result.Workload, of result.Block) []result.OpTotals {
	var out []result.OpTotals
	for _, o := range w.Ops {
		if w.Block(o.Op) == of {
			out = append(out, o)
		}
	}
	return out
}
