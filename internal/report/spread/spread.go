// Package spread tells many loads as groups: those whose names differ by numbers alone, not by sizes and counts, are
// one group, of which the lowest, the middle and the highest are told, and beside the groups the worst loads of all.
// Nothing is averaged: each value is that of one load.
package spread

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Load is an operation of one load, or of one machine's part of it.
type Load struct {
	Name, Op, Unit string
	Of             string // the load that a machine does a part of: its parts are a group
	Rate           float64
	P99            *float64 // seconds; nil: not known
	Errors         uint64
}

// Range is the lowest, the middle and the highest of values; the middle of an even number is the lower one of two.
type Range struct{ Low, Middle, High float64 }

// Group are loads of which names and operations are alike.
type Group struct {
	Name, Op, Unit string
	N              int
	Rate           Range
	P99            *Range // of those of which it is known
	Errors         uint64
}

// numbers are those that number, and those of a size or a count with their unit, which tell unlike loads apart.
var numbers = regexp.MustCompile(`\d+(?: ?(?:[kKMGT]i?B|VU|(?:client|thread|user)s?)\b)?`)

// alike is a name with a * for each number that only numbers.
func alike(name string) string {
	return numbers.ReplaceAllStringFunc(name, func(n string) string {
		if strings.Trim(n, "0123456789") != "" {
			return n
		}
		return "*"
	})
}

// group holds what loads of one group have alike.
type group struct{ name, op, unit string }

func (l Load) group() group {
	if l.Of != "" {
		return group{l.Of, l.Op, l.Unit}
	}
	return group{alike(l.Name), l.Op, l.Unit}
}

// Groups are the groups of loads, in the order in which they come. A group of one keeps its name, one of several has
// a * for each number that differs.
func Groups(loads []Load) []Group {
	of := map[group][]Load{}
	var order []group
	for _, l := range loads {
		k := l.group()
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], l)
	}
	var out []Group
	for _, k := range order {
		all := of[k]
		g := Group{Name: cmp.Or(all[0].Of, common(all)), Op: k.op, Unit: k.unit, N: len(all)}
		var rates, times []float64
		for _, l := range all {
			rates = append(rates, l.Rate)
			if l.P99 != nil {
				times = append(times, *l.P99)
			}
			g.Errors += l.Errors
		}
		g.Rate = rangeOf(rates)
		if len(times) > 0 {
			r := rangeOf(times)
			g.P99 = &r
		}
		out = append(out, g)
	}
	return out
}

// common is the name of loads, with a * in the place of each number in which they differ.
func common(all []Load) string {
	first := numbers.FindAllString(all[0].Name, -1)
	differ := make([]bool, len(first))
	for _, l := range all[1:] {
		for i, n := range numbers.FindAllString(l.Name, -1) {
			differ[i] = differ[i] || n != first[i]
		}
	}
	var b strings.Builder
	at := 0
	for i, where := range numbers.FindAllStringIndex(all[0].Name, -1) {
		b.WriteString(all[0].Name[at:where[0]])
		if differ[i] {
			b.WriteString("*")
		} else {
			b.WriteString(first[i])
		}
		at = where[1]
	}
	return b.String() + all[0].Name[at:]
}

func rangeOf(values []float64) Range {
	slices.Sort(values)
	return Range{values[0], values[(len(values)-1)/2], values[len(values)-1]}
}

// Worst are the loads that are worst, at most n: those with errors first, the most of them, then those whose 99th
// percentile is most times the middle one of their group. One of which neither is known is none of them.
func Worst(loads []Load, n int) []Load {
	known := map[group][]float64{}
	for _, l := range loads {
		if l.P99 != nil {
			known[l.group()] = append(known[l.group()], *l.P99)
		}
	}
	middle := map[group]float64{}
	for g, times := range known {
		middle[g] = rangeOf(times).Middle
	}
	times := func(l Load) float64 {
		m := middle[l.group()]
		if l.P99 == nil || !(m > 0) {
			return 0
		}
		return *l.P99 / m
	}
	out := slices.SortedStableFunc(slices.Values(loads), func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Errors, a.Errors), cmp.Compare(times(b), times(a)))
	})
	seen := map[string]bool{}
	out = slices.DeleteFunc(out, func(l Load) bool {
		again := seen[l.Name]
		seen[l.Name] = true
		return again || l.Errors == 0 && times(l) == 0
	})
	return out[:min(len(out), n)]
}
