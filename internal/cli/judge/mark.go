package judge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/web"
	"plimsoll/internal/run/experiment"
)

// markDocument holds what mark --json prints.
type markDocument struct {
	ID       string   `json:"experiment_id"`
	Mind     []string `json:"mind,omitempty"`
	Workload string   `json:"workload"`
	Limits   []string `json:"limits"`
	Over     bool     `json:"over"` // no probe is left to be made
	At       float64  `json:"at_ops,omitempty"`
	AtShare  *float64 `json:"at_share,omitempty"` // of the mark
	mark.Answer
	// Lines are the answers under each condition, where there are any: the first is the one above. Costs hold the
	// others against it.
	Lines []mark.Line `json:"lines,omitempty"`
	Costs []mark.Cost `json:"costs,omitempty"`
	// Recorded say where the marks stand among those of recorded systems.
	Recorded []string `json:"recorded,omitempty"`
	// Said holds what the probes' runs were warned of, as in the report.
	Said   []compare.Said `json:"said,omitempty"`
	Report string         `json:"report"`

	unread unread // of a run that is left out, where it could not be read
}

// markAnswer returns what a search has found so far.
func (sd *Sides) markAnswer(folder *experiment.Folder) (markDocument, error) {
	r := folder.Record()
	lines, unjudged := sd.Searched(folder)
	if lines == nil {
		return markDocument{}, unjudged
	}
	doc := markDocument{ID: r.ID, Workload: r.Mark.Workload, Limits: r.Mark.Limits, Report: folder.ReportPath(),
		At: r.Mark.At, Answer: mark.Conclude(lines[0].Settings, lines[0].Probes)}
	if unjudged != nil {
		doc.Mind = append(doc.Mind, "What cannot be judged is left out: "+
			strings.ReplaceAll(unjudged.Error(), "\n", "; "))
	}
	errors.As(unjudged, &doc.unread)
	at, _, _ := NextOf(lines, r, nil)
	doc.Over = at < 0
	progress, err := folder.Progress()
	if err != nil {
		return doc, err
	}
	for _, s := range lines {
		if len(s.Probes) == 0 && len(lines) > 1 {
			why := "was offered yet"
			for sequence, reason := range progress.Failed {
				if s.Condition == ConditionOf(r.Cell(r.Sequence[sequence-1].Cell)) {
					why = "was measured: " + reason
				}
			}
			doc.Mind = append(doc.Mind, fmt.Sprintf("Under %q no rate %s.", string(s.Condition), why))
		} else if len(r.Mark.Conditions) > 0 && len(s.Probes) > 0 {
			value, _ := s.next(r.Mark)
			line := mark.Line{Condition: string(s.Condition), Over: value < 0,
				Answer: mark.Conclude(s.Settings, s.Probes)}
			_ = line.At(doc.At)
			doc.Lines = append(doc.Lines, line)
		}
	}
	doc.Costs = mark.Costs(doc.Lines)
	doc.AtShare = doc.Answer.At(doc.At)
	return doc, nil
}

// MarkResult writes the report of a search and prints its answer.
func (sd *Sides) MarkResult(folder *experiment.Folder, over bool) error {
	doc, err := sd.markAnswer(folder)
	if err != nil || len(doc.Probes) == 0 {
		return err
	}
	page, err := sd.ExperimentDocument(folder, 0)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%w", err)
	}
	page.Beside = true
	doc.Mind, doc.Recorded, doc.Said = append(doc.Mind, page.Mind...), page.Recorded, page.Said
	err = outfile.Replace(folder.ReportPath(), func(w io.Writer) error { return report.ExperimentHTML(w, page) })
	if err != nil {
		err = exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	if sd.JSON {
		err = errors.Join(err, sd.PrintJSON(doc))
	} else {
		for _, text := range report.InvalidLines(page) {
			visible.Fprintf(sd.Out, "%s\n\n", text)
		}
		printMark(sd.Out, doc)
		visible.Fprintf(sd.Out, "%s\n", report.SayLimits(doc.Limits, &doc.Answer, doc.Lines))
		for _, text := range doc.Recorded {
			visible.Fprintf(sd.Out, "%s\n", text)
		}
		visible.Fprintf(sd.Out, "report: %s\n", folder.ReportPath())
	}
	if over {
		err = errors.Join(err, asserted(doc.Answer, "", folder.Record().Mark.Least))
		for _, l := range doc.Lines[min(1, len(doc.Lines)):] {
			under := fmt.Sprintf(" under %q", l.Condition)
			err = errors.Join(err, asserted(l.Answer, under, folder.Record().Mark.Least))
		}
	}
	if doc.Verdict == mark.Below && over {
		err = errors.Join(err, exit.Errorf(exit.Threshold, "", "mark: %s", strings.TrimSuffix(doc.Sentence, ".")))
	}
	return err
}

// asserted is the error of a mark that is not as high as asked, by its whole interval; under names its condition.
func asserted(doc mark.Answer, under string, least float64) error {
	said := strings.TrimSuffix(doc.Sentence, ".")
	switch {
	case least == 0, doc.Verdict == mark.Found && *doc.Low >= least,
		(doc.Verdict == mark.AtLeast || doc.Verdict == mark.Generator) && *doc.Rate >= least:
		return nil
	case doc.Verdict == mark.Found && *doc.High < least, doc.Verdict == mark.Below && *doc.Rate <= least:
		return exit.Errorf(exit.Threshold, "", "threshold: the mark%s must be at least %s: %s", under,
			mark.InUnit(least, doc.Unit), said)
	}
	return exit.Errorf(exit.Threshold, "", "threshold: whether the mark%s is at least %s is inconclusive: %s", under,
		mark.InUnit(least, doc.Unit), said)
}

// printMark prints the answer, what to mind, the probes and a drawing of them.
func printMark(w io.Writer, doc markDocument) {
	for _, text := range doc.Mind {
		visible.Fprintf(w, "%s\n\n", text)
	}
	if len(doc.Lines) == 0 {
		printAnswer(w, doc.Answer)
		drawMark(w, doc.Answer)
		return
	}
	for _, l := range doc.Lines {
		visible.Fprintf(w, "%s: %s\n", l.Condition, l.Sentence)
	}
	for _, c := range doc.Costs {
		visible.Fprintf(w, "%s\n", c.Sentence)
	}
	drawLines(w, doc.Lines)
	for _, l := range doc.Lines {
		visible.Fprintf(w, "\nUnder %q:\n", l.Condition)
		printAnswer(w, l.Answer)
	}
}

// printAnswer prints what was found, under one condition or at all.
func printAnswer(w io.Writer, answer mark.Answer) {
	visible.Fprintf(w, "%s\n", answer.Sentence)
	for _, text := range answer.Warnings {
		visible.Fprintf(w, "warning: %s\n", text)
	}
	say := func(rate float64) string { return mark.InUnit(rate, answer.Unit) }
	wide := 12
	for _, p := range answer.Probes {
		wide = max(wide, len(say(p.Offered)), len(say(p.Achieved)))
	}
	visible.Fprintf(w, "\n%*s  %*s\n", wide, "offered", wide, "achieved")
	for _, p := range answer.Probes {
		visible.Fprintf(w, "%*s  %*s  %s\n", wide, say(p.Offered), wide, say(p.Achieved), p.Outcome(answer.Unit))
	}
}

// drawLines draws the marks of all conditions on one axis from 0, each with its interval; a bound is an arrow.
func drawLines(w io.Writer, lines []mark.Line) {
	const width = 50
	most, name := 0.0, 0
	for _, l := range lines {
		if name = max(name, len(l.Condition)); l.Rate != nil {
			most = max(most, *l.Rate)
		}
		if l.Verdict == mark.Found {
			most = max(most, *l.High)
		}
		if _, high, ok := l.Between(); ok {
			most = max(most, high)
		}
	}
	if most == 0 {
		return
	}
	column := func(rate float64) int { return min(int(rate/most*(width-1)+0.5), width-1) }
	visible.Fprintf(w, "\n")
	for _, l := range lines {
		row, said := []byte(strings.Repeat(" ", width)), "no mark"
		low, high, between := l.Between()
		switch {
		case between:
			copy(row, strings.Repeat("-", column(low)))
			copy(row[column(low):], strings.Repeat("?", column(high)-column(low)+1))
			said = fmt.Sprintf("between %s and %s", l.Say(low), l.Say(high))
		case l.Verdict == mark.Found:
			for i := range column(*l.Low) {
				row[i] = '-'
			}
			for i := column(*l.Low); i <= column(*l.High); i++ {
				row[i] = '='
			}
			row[column(*l.Rate)], said = '^', l.Say(*l.Rate)
		case l.Rate != nil && (l.Verdict == mark.AtLeast || l.Verdict == mark.Generator):
			row[column(*l.Rate)], said = '>', "at least "+l.Say(*l.Rate)
		case l.Rate != nil && l.Verdict == mark.Below:
			row[column(*l.Rate)], said = '<', "below "+l.Say(*l.Rate)
		}
		visible.Fprintf(w, "%*s |%s| %s\n", name, l.Condition, row, said)
	}
	visible.Fprintf(w, "%*s  0%*s\n", name, "", width-1, lines[0].Say(most))
}

// drawMark draws value over limit of each probe against the offered rate: o held, x broke, g where the generator gave
// way, the limit a line, the mark below.
func drawMark(w io.Writer, answer mark.Answer) {
	const width, height, top = 60, 12, 2.0
	least, most := math.Inf(1), 0.0
	for _, p := range answer.Probes {
		least, most = min(least, p.Offered), max(most, p.Offered)
	}
	if !(most > least) {
		return
	}
	cells := make([][]byte, height)
	limit := height - 1 - int(1/top*(height-1)+0.5)
	for i := range cells {
		cells[i] = []byte(strings.Repeat(map[bool]string{true: "-", false: " "}[i == limit], width))
	}
	legend := "o held  x broke  ^ mark  = its interval"
	column := func(rate float64) int {
		return min(max(int(math.Log(rate/least)/math.Log(most/least)*(width-1)+0.5), 0), width-1)
	}
	for _, p := range answer.Probes {
		y := top
		if p.Margin > 0 {
			y = min(1/p.Margin, top)
		}
		c := byte('o')
		switch {
		case p.Held:
		case p.Generator != "":
			c, legend = 'g', "o held  x broke  g generator gave way  ^ mark  = its interval"
		default:
			c = 'x'
		}
		cells[height-1-int(y/top*(height-1)+0.5)][column(p.Offered)] = c
	}
	visible.Fprintf(w, "\n")
	for i, row := range cells {
		label := ""
		switch i {
		case 0:
			label = "2 x or more"
		case limit:
			label = "limit"
		case height - 1:
			label = "0"
		}
		visible.Fprintf(w, "%12s |%s\n", label, strings.TrimRight(string(row), " "))
	}
	axis := []byte(strings.Repeat("-", width))
	if answer.Verdict == mark.Found {
		for i := column(*answer.Low); i <= column(*answer.High); i++ {
			axis[i] = '='
		}
		axis[column(*answer.Rate)] = '^'
	}
	right := mark.InUnit(most, answer.Unit)
	visible.Fprintf(w, "%12s +%s\n%12s  %-*s%s\n", "", axis, "", width-len(right), mark.InUnit(least, answer.Unit),
		right)
	visible.Fprintf(w, "%12s  offered, logarithmic; %s\n", "", legend)
}

// searchSide reads a search for a mark as the side of a comparison; false for anything else.
func (sd *Sides) searchSide(phase, given string) (s compare.Search, found bool, err error) {
	name := given
	if base, ok := strings.CutPrefix(given, "@"); ok {
		b, err := sd.readBaseline(phase, base)
		if err != nil || len(b.Runs) != 1 {
			return s, false, err
		}
		name = b.Runs[0]
	}
	dir, ok := sd.FindExperiment(name)
	if !ok {
		return s, false, nil
	}
	folder, err := experiment.Open(dir)
	if err != nil {
		return s, false, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	r := folder.Record()
	if r.Mark == nil {
		return s, false, nil
	}
	if err := runs.Intact(sd.Console, phase, folder, sd.trust); err != nil {
		return s, true, err
	}
	doc, err := sd.markAnswer(folder)
	if err != nil {
		return s, true, err
	}
	if doc.unread.error != nil { // a comparison leaves nothing out in silence
		return s, true, doc.unread
	}
	progress, err := folder.Progress()
	if err != nil || len(doc.Probes) == 0 {
		return s, true, exit.Errorf(exit.Failed, "plimsoll resume "+r.ID+" goes on", "%s: %s has no probe: %w", phase,
			given, cmp.Or(err, errors.New("it was ended before one was made")))
	}
	s = searchOf(folder, doc)
	s.Name = given
	for _, planned := range r.Sequence {
		if id, done := progress.Done[planned.Sequence]; done {
			s.Run, err = sd.comparedRun(phase, filepath.Join(folder.RunsDir(), id))
			break
		}
	}
	return s, true, err
}

// searchOf reads what a search has found, without opening its runs.
func searchOf(folder *experiment.Folder, doc markDocument) compare.Search {
	r := folder.Record()
	s := compare.Search{ID: r.ID, Workload: r.Mark.Workload, Variable: r.Mark.Variable, Limits: r.Mark.Limits,
		Lines: doc.Lines, Scenario: folder.ScenarioDir()}
	if len(s.Lines) == 0 {
		s.Lines = []mark.Line{{Over: doc.Over, Answer: doc.Answer}}
	}
	return s
}

// searchesAmong are the sides as searches for a mark, when they are; an error when some are and others are not.
func (sd *Sides) searchesAmong(phase string, sides []web.Side) (list []compare.Search, err error) {
	for _, side := range sides {
		s, found, err := sd.searchSide(phase, side.Dir)
		if err != nil {
			return nil, err
		}
		if s.Name = side.Name; found {
			list = append(list, s)
		}
	}
	if len(list) > 0 && len(list) < len(sides) {
		return nil, exit.Usagef("compare searches with searches, or single runs of them with runs",
			"%s: %s is a search for a mark, and not all sides are", phase, list[0].Name)
	}
	return list, nil
}

// compareSearches compares marks, when all sides are searches for one.
func (sd *Sides) compareSearches(phase string, given []string, f compareFlags) (*compare.Document, bool, error) {
	var sides []web.Side
	for i, g := range given {
		sides = append(sides, web.Side{Name: g, Dir: g})
		if f.redact {
			sides[i].Name = web.PartOf(i)
		}
	}
	list, err := sd.searchesAmong(phase, sides)
	if err != nil || len(list) == 0 {
		return nil, false, err
	}
	d, err := compare.OfSearches(list, f.options())
	if err != nil {
		return nil, true, unlikeSides(err)
	}
	return d, true, nil
}
