// Package experiment turns a scenario's experiment into runs in an order, and keeps on disk how far they have come.
//
// Design gives the combinations of all factors' levels (cells) and the order of their repeats: every cell once before
// any twice, each time in a random order of its own or in that of the levels, so that a system that drifts does not
// favour a cell. Folder is an experiment on disk, beside the runs:
//
//	experiment.json  Record: the design and how it is run; written once
//	cells.jsonl      Event per line, synced before and after every run; a torn last line is ignored
//	scenario/        the scenario directory as given, from which every run is made, also after a resume
//	runs/            one run folder per run
//	report.html      the result
//	lock.experiment  held while the experiment goes on
//
// Conduct makes the runs that are left with a Runner that others give, and decides when to leave off. The package
// itself measures nothing. It refuses a folder of a newer version by name of both.
package experiment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	"plimsoll/scenario"
	"plimsoll/unit"
)

// Level is a factor with one of its values.
type Level struct {
	Factor string `json:"factor"`
	Value  any    `json:"value"`
}

// Cell is one combination of levels.
type Cell struct {
	Number int     `json:"number"` // from 1, the last factor turning fastest; 1 is what others are held against
	Levels []Level `json:"levels"`
}

// Label names a cell: "block size 4k, queue depth 1".
func (c Cell) Label() string {
	parts := make([]string, len(c.Levels))
	for i, l := range c.Levels {
		parts[i] = unit.Setting(l.Factor, fmt.Sprint(l.Value))
	}
	return strings.Join(parts, ", ")
}

// Title is the label for people: of an experiment without factors, whose only cell has none, words.
func (c Cell) Title() string { return cmp.Or(c.Label(), "as it is") }

// Without leaves out the factors whose level is given and labels what is left; fits is false when the cell has another
// level of one.
func (c Cell) Without(given map[string]string) (label string, fits bool) {
	rest := Cell{}
	for _, l := range c.Levels {
		level, picked := given[l.Factor]
		if !picked {
			rest.Levels = append(rest.Levels, l)
		} else if level != fmt.Sprint(l.Value) {
			return "", false
		}
	}
	return rest.Label(), true
}

// Planned is one run to be made.
type Planned struct {
	Sequence int `json:"sequence"` // from 1
	Cell     int `json:"cell"`     // its number
	Repeat   int `json:"repeat"`   // from 1
}

// Cells lists the combinations of an experiment.
func Cells(x *scenario.Experiment) []Cell {
	cells := []Cell{{}}
	for _, f := range x.Factors {
		var next []Cell
		for _, c := range cells {
			for _, v := range f.Levels {
				next = append(next, Cell{Levels: append(append([]Level(nil), c.Levels...), Level{f.Name, v})})
			}
		}
		cells = next
	}
	for i := range cells {
		cells[i].Number = i + 1
	}
	return cells
}

// Sequence orders all runs of an experiment.
func Sequence(x *scenario.Experiment) []Planned {
	n := len(Cells(x))
	order := make([]int, n)
	for i := range order {
		order[i] = i + 1
	}
	r := rand.New(rand.NewPCG(uint64(x.Seed), 0))
	var out []Planned
	for repeat := 1; repeat <= max(x.Repeats, 1); repeat++ {
		if x.Order != scenario.OrderInterleaved {
			r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, cell := range order {
			out = append(out, Planned{Sequence: len(out) + 1, Cell: cell, Repeat: repeat})
		}
	}
	return out
}
