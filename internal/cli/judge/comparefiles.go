package judge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/formats/table"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
)

// repeats are files of repeats of one side.
type repeats struct {
	Sources []string          `json:"sources"`
	Columns []repeatedMeasure `json:"columns"`
	// StepSeconds is how far apart in time the rows are when they are moments of one run, not repeats.
	StepSeconds float64 `json:"step_seconds,omitempty"`
}

// repeatedMeasure is one measure of a side.
type repeatedMeasure struct {
	Name   string           `json:"name"`
	Better effect.Direction `json:"better"`
	Values []float64        `json:"values"`
	// Missing are repeats without a value of it.
	Missing int `json:"missing,omitempty"`
}

// isTable reports whether a side is of files: a file, or a baseline of files.
func (sd *Sides) isTable(phase, given string) (bool, error) {
	name, named := strings.CutPrefix(given, "@")
	if !named {
		return recognise.IsTable(given), nil
	}
	b, err := sd.readBaseline(phase, name)
	return err == nil && b.Files != nil, err
}

// ofTables reports whether all sides are of files. Files are not compared with runs.
func (sd *Sides) ofTables(phase string, given []string, f compareFlags) (bool, error) {
	is := make([]bool, len(given))
	for i, g := range given {
		var err error
		if is[i], err = sd.isTable(phase, g); err != nil {
			return false, err
		}
	}
	first := slices.Index(is, true)
	if first < 0 {
		if len(f.columns) > 0 {
			return false, exit.Usagef("", "%s: --column is for files", phase)
		}
		if f.paired {
			return false, exit.Usagef("", "%s: --paired is for files: of runs it is known when they were made", phase)
		}
		return false, nil
	}
	if other := slices.Index(is, false); other >= 0 {
		return false, exit.Usagef("compare files with files, or runs with runs", "%s: %q is of files, and %q is not",
			phase,
			given[first], given[other])
	}
	for i, g := range given {
		if slices.Contains(given[:i], g) {
			return false, exit.Usagef("", "%s: %q is given twice", phase, g)
		}
	}
	if len(f.vary) > 0 || f.anyway {
		return false, exit.Usagef("", "%s: --vary and --anyway are for runs; of files no facts are known", phase)
	}
	return true, nil
}

// compareTables compares files column by column.
func (sd *Sides) compareTables(phase string, given []string, f compareFlags) (*compare.Document, error) {
	better, err := betterOf(phase, f.better)
	if err != nil {
		return nil, err
	}
	var kept *repeats // of the baseline that is the first side
	var sides []compare.Samples
	for i, g := range given {
		side := compare.Samples{Name: g}
		name, named := strings.CutPrefix(g, "@")
		switch {
		case named:
			b, err := sd.readBaseline(phase, name)
			if err != nil {
				return nil, err
			}
			if side.Columns, err = b.Files.columns(phase, f.columns); err != nil {
				return nil, err
			}
			if side.StepSeconds = b.Files.StepSeconds; i == 0 {
				kept = b.Files
			}
		case kept != nil:
			side, err = sd.asIn(phase, g, sides[0])
		default:
			side, err = sd.fileColumns(phase, g, f.columns)
		}
		side.Name = g
		if err != nil {
			return nil, err
		}
		if g == "-" {
			side.Name = "standard input"
		}
		sides = append(sides, side)
	}
	if err := better.assign(phase, sides[0].Columns); err != nil {
		return nil, err
	}
	d, err := compare.OfSamples(sides, f.options())
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "--column NAME, repeatable, compares some columns only", "%w", err)
	}
	return d, nil
}

// fileColumns reads the columns of a file.
func (sd *Sides) fileColumns(phase, given string, asked []string) (compare.Samples, error) {
	s, err := sd.openTable(phase, given)
	if err != nil {
		return compare.Samples{}, err
	}
	if err := ofOneTest(sd.Console, phase, s); err != nil {
		return compare.Samples{}, err
	}
	return samples(sd.Console, phase, s, asked, setAside(sd.Console, phase, s))
}

// columns are those of a baseline, or the ones asked for.
func (r *repeats) columns(phase string, asked []string) ([]compare.Column, error) {
	var out []compare.Column
	for _, c := range r.Columns {
		if len(asked) == 0 || slices.ContainsFunc(asked, func(n string) bool { return strings.EqualFold(n, c.Name) }) {
			out = append(out, compare.Column{Name: c.Name, Better: c.Better, Values: c.Values, Missing: c.Missing})
		}
	}
	if len(out) < len(asked) || len(out) == 0 {
		return nil, exit.Usagef("", "%s: --column: the baseline has the columns %s", phase, table.QuoteAll(r.names()))
	}
	return out, nil
}

func (r *repeats) names() []string {
	var out []string
	for _, c := range r.Columns {
		out = append(out, c.Name)
	}
	return out
}

// asIn reads the columns of a file that a baseline has. A file that lacks one, or has it in another unit, is refused.
func (sd *Sides) asIn(phase, given string, base compare.Samples) (compare.Samples, error) {
	s, err := sd.openTable(phase, given)
	if err != nil {
		return compare.Samples{}, err
	}
	if err := ofOneTest(sd.Console, phase, s); err != nil {
		return compare.Samples{}, err
	}
	aside := setAside(sd.Console, phase, s)
	var asked []string
	var errs []error
	left := slices.Clone(s.Names)
	for _, c := range base.Columns {
		at := slices.IndexFunc(s.Names, func(n string) bool { return strings.EqualFold(n, c.Name) })
		if at >= 0 {
			asked = append(asked, s.Names[at])
			left = slices.DeleteFunc(left, func(n string) bool { return n == s.Names[at] })
			continue
		}
		stem, unit := table.SplitUnit(c.Name)
		if like := slices.IndexFunc(s.Names, func(n string) bool {
			other, _ := table.SplitUnit(n)
			return other == stem
		}); like >= 0 {
			_, other := table.SplitUnit(s.Names[like])
			errs = append(errs, fmt.Errorf("%s: %s: %q of the baseline is in %s, and %q in %s: convert it", phase,
				s.Source, c.Name, cmp.Or(unit, "no unit it names"), s.Names[like], cmp.Or(other, "no unit it names")))
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %s: no column %q, which the baseline has, among %s", phase, s.Source,
			c.Name, table.QuoteAll(s.Names)))
	}
	if len(errs) > 0 {
		return compare.Samples{}, exit.Errorf(exit.Refused, "make the file like the baseline, or set the baseline anew",
			"%w", errors.Join(errs...))
	}
	left = slices.DeleteFunc(left, func(n string) bool { return slices.Contains(aside.names, n) })
	if len(left) > 0 {
		visible.Fprintf(sd.Err, "warning: %s: %s: not in the baseline and left out: %s\n", phase, s.Source,
			table.QuoteAll(left))
	}
	side, err := samples(sd.Console, phase, s, asked, aside)
	for i := range side.Columns {
		side.Columns[i].Name = base.Columns[i].Name // as the baseline writes it
	}
	return side, err
}

// readRepeats reads files for a baseline. All must have the same columns.
func (sd *Sides) readRepeats(phase string, given []string, f compareFlags) (*repeats, error) {
	better, err := betterOf(phase, f.better)
	if err != nil {
		return nil, err
	}
	var all compare.Samples
	out := &repeats{}
	for i, g := range given {
		if strings.HasPrefix(g, "@") {
			return nil, exit.Usagef("", "%s: %q is a baseline already", phase, g)
		}
		if g == "-" {
			out.Sources = append(out.Sources, "standard input")
		} else {
			out.Sources = append(out.Sources, filepath.Base(g))
		}
		if i == 0 {
			if all, err = sd.fileColumns(phase, g, f.columns); err != nil {
				return nil, err
			}
			continue
		}
		more, err := sd.asIn(phase, g, all)
		if err != nil {
			return nil, err
		}
		if all.StepSeconds > 0 || more.StepSeconds > 0 {
			return nil, exit.Usagef("a baseline of several files is of repeats: give the mean of each run",
				"%s: %s: its rows are moments of one run", phase, g)
		}
		for j := range all.Columns {
			all.Columns[j].Values = append(all.Columns[j].Values, more.Columns[j].Values...)
			all.Columns[j].Missing += more.Columns[j].Missing
		}
	}
	if err := better.assign(phase, all.Columns); err != nil {
		return nil, err
	}
	out.StepSeconds = all.StepSeconds
	for _, c := range all.Columns {
		if c.Better == "" {
			visible.Fprintf(sd.Err,
				"warning: %s: which way of %s is good is not known; a check fails when it moves. Say it: --better %q, or higher\n",
				phase, table.Quote(c.Name), c.Name+"=lower")
		}
		out.Columns = append(out.Columns, repeatedMeasure{c.Name, c.Better, c.Values, c.Missing})
	}
	return out, nil
}

// aside are the columns of a table that are no measures: the time of a row, and its number.
type aside struct {
	names []string
	step  float64 // seconds between rows that are moments of one run; 0 otherwise
}

const mostStep = 60 // seconds between rows, above which they are repeats that were made then

// numberNames are the columns that number repeats.
var numberNames = []string{
	"run",
	"repeat",
	"iteration",
	"iter",
	"round",
	"index",
	"id",
	"no",
	"nr",
	"#",
	"row",
	"sample",
	"trial",
}

// setAside finds the columns that say when or which, and says that they are left out.
func setAside(con *console.Console, phase string, s *table.Table) aside {
	var out aside
	leave := func(i int, why string) {
		out.names = append(out.names, s.Names[i])
		visible.Fprintf(con.Err, "warning: %s: %s: %s is left out: it %s\n", phase, s.Source, table.Quote(s.Names[i]),
			why)
	}
	times, err := s.Times()
	if err != nil {
		visible.Fprintf(con.Err, "warning: %s: %s: %v\n", phase, s.Source, err)
	}
	if times != nil {
		leave(times.Column, "says when each row was measured")
		if times.Step > 0 && times.Step <= mostStep {
			out.step = times.Step
		}
	}
	for i, name := range s.Names {
		if stem, _ := table.SplitUnit(name); slices.Contains(numberNames, stem) && s.CountsRows(i) {
			leave(i, "numbers the rows")
		}
	}
	return out
}

// samples are the columns of numbers that are measures, or those asked for. Missing values are left out, and said to
// be.
func samples(con *console.Console, phase string, s *table.Table, asked []string, besides aside) (compare.Samples,
	error) {
	at, err := picked(con, phase, s, asked)
	if err != nil {
		return compare.Samples{}, err
	}
	out := compare.Samples{StepSeconds: besides.step}
	for _, i := range at {
		if len(asked) == 0 && slices.Contains(besides.names, s.Names[i]) {
			continue
		}
		values, err := columnValues(con, phase, s, i)
		if err != nil {
			return compare.Samples{}, err
		}
		have := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
		out.Columns = append(out.Columns, compare.Column{Name: s.Names[i], Values: have,
			Missing: len(values) - len(have)})
	}
	return out, nil
}

// directions say which way is good: of columns by name, and of all others; empty for as the baseline has it, or as
// the name says.
type directions struct {
	named  map[string]effect.Direction
	others effect.Direction
}

func betterOf(phase string, given []string) (directions, error) {
	d := directions{named: map[string]effect.Direction{}}
	for _, g := range given {
		way := g
		cut := strings.LastIndex(g, "=")
		if cut >= 0 {
			way = g[cut+1:]
		}
		direction := effect.Direction(way)
		if direction != effect.HigherIsBetter && direction != effect.LowerIsBetter {
			return d, exit.Usagef("as in lower, or p99=lower", "%s: --better: %q is neither higher nor lower", phase, g)
		}
		if cut < 0 {
			d.others = direction
		} else {
			d.named[g[:cut]] = direction
		}
	}
	return d, nil
}

// ofRuns are the directions as those of measures, which must be named.
func (d directions) ofRuns(phase string) (map[string]effect.Direction, error) {
	if d.others != "" {
		return nil, exit.Usagef("as in --better retries=lower", "%s: --better %s: of runs name the measure", phase,
			d.others)
	}
	return d.named, nil
}

// assign gives every column its direction. A name that no column has is an objection.
func (d directions) assign(phase string, columns []compare.Column) error {
	unknown := map[string]bool{}
	for name := range d.named {
		unknown[name] = true
	}
	var names []string
	for i := range columns {
		c := &columns[i]
		names = append(names, c.Name)
		c.Better = cmp.Or(d.others, c.Better, compare.DirectionOf(c.Name, ""))
		for name, way := range d.named {
			if strings.EqualFold(name, c.Name) {
				c.Better = way
				delete(unknown, name)
			}
		}
	}
	var errs []error
	for name := range unknown {
		errs = append(errs, fmt.Errorf("%s: --better: no column %q among %q", phase, name, names))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(errs) > 0 {
		return exit.Usagef("", "%w", errors.Join(errs...))
	}
	return nil
}
