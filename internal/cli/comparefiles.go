package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/compare"
)

// isFile reports whether a side is a table rather than runs: standard input, or the path of something that is no folder.
func isFile(side string) bool {
	if side == "-" {
		return true
	}
	info, err := os.Stat(side)
	return err == nil && !info.IsDir() && !strings.HasPrefix(side, "@")
}

// ofFiles reports whether the sides are files. Files cannot be held against runs.
func ofFiles(phase string, given []string, f compareFlags) (bool, error) {
	first := slices.IndexFunc(given, isFile)
	if first < 0 {
		if len(f.better)+len(f.columns) > 0 {
			return false, usage("", "%s: --better and --column are for files; of runs it is known which way is good", phase)
		}
		return false, nil
	}
	if other := slices.IndexFunc(given, func(g string) bool { return !isFile(g) }); other >= 0 {
		return false, usage("hold files against files, or runs against runs", "%s: %q is a file, and %q is none", phase, given[first], given[other])
	}
	for i, g := range given {
		if slices.Contains(given[:i], g) {
			return false, usage("", "%s: %q is given twice", phase, g)
		}
	}
	if len(f.vary) > 0 || f.anyway {
		return false, usage("", "%s: --vary and --anyway are for runs; of files no facts are known", phase)
	}
	return true, nil
}

// compareTables compares files column by column.
func (a *app) compareTables(given []string, f compareFlags) (*compare.Document, error) {
	better, err := betterOf(f.better)
	if err != nil {
		return nil, err
	}
	var sides []compare.Samples
	for _, g := range given {
		s, err := a.openSheet("compare", g)
		if err != nil {
			return nil, err
		}
		columns, err := s.samples(f.columns)
		if err != nil {
			return nil, err
		}
		if g == "-" {
			g = s.source
		}
		sides = append(sides, compare.Samples{Name: g, Columns: columns})
	}
	if err := better.assign(sides[0].Columns); err != nil {
		return nil, err
	}
	d, err := compare.OfSamples(sides, f.options())
	if err != nil {
		return nil, fail(exitFailed, "--column NAME, repeatable, compares some columns only", "%w", err)
	}
	return d, nil
}

// samples are the columns of numbers, or those asked for. Empty cells are left out.
func (s *sheet) samples(asked []string) ([]compare.Column, error) {
	at := s.numeric()
	if len(asked) > 0 {
		at = nil
		for _, name := range asked {
			i := s.column(name)
			if i < 0 {
				return nil, fail(exitFailed, "", "compare: %s: --column: no column %q among %q", s.source, name, s.names)
			}
			at = append(at, i)
		}
	}
	var out []compare.Column
	for _, i := range at {
		values, err := s.numbers(i, true)
		if err != nil {
			return nil, fail(exitFailed, "", "compare: %s: %w", s.source, err)
		}
		out = append(out, compare.Column{Name: s.names[i], Values: slices.DeleteFunc(values, math.IsNaN)})
	}
	if len(out) == 0 {
		return nil, fail(exitFailed, "", "compare: %s: no column of numbers among %q", s.source, s.names)
	}
	return out, nil
}

// directions say which way is good: of columns by name, and of all others.
type directions struct {
	named  map[string]effect.Direction
	others effect.Direction
}

func betterOf(given []string) (directions, error) {
	d := directions{map[string]effect.Direction{}, effect.HigherIsBetter}
	for _, g := range given {
		way := g
		cut := strings.LastIndex(g, "=")
		if cut >= 0 {
			way = g[cut+1:]
		}
		direction := effect.Direction(way)
		if direction != effect.HigherIsBetter && direction != effect.LowerIsBetter {
			return d, usage("as in lower, or p99=lower", "compare: --better: %q is neither higher nor lower", g)
		}
		if cut < 0 {
			d.others = direction
		} else {
			d.named[g[:cut]] = direction
		}
	}
	return d, nil
}

// assign gives every column its direction. A name that no column has is an objection.
func (d directions) assign(columns []compare.Column) error {
	unknown := map[string]bool{}
	for name := range d.named {
		unknown[name] = true
	}
	var names []string
	for i := range columns {
		c := &columns[i]
		names = append(names, c.Name)
		c.Better = d.others
		for name, way := range d.named {
			if strings.EqualFold(name, c.Name) {
				c.Better = way
				delete(unknown, name)
			}
		}
	}
	var errs []error
	for name := range unknown {
		errs = append(errs, fmt.Errorf("compare: --better: no column %q among %q", name, names))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(errs) > 0 {
		return usage("", "%w", errors.Join(errs...))
	}
	return nil
}
