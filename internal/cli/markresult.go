package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"plimsoll/internal/analysis/mark"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/run/experiment"
)

// markDocument is what mark --json prints.
type markDocument struct {
	ID       string   `json:"experiment_id"`
	Mind     []string `json:"mind,omitempty"`
	Workload string   `json:"workload"`
	Limits   []string `json:"limits"`
	Over     bool     `json:"over"` // no probe is left to be made
	At       float64  `json:"at_ops,omitempty"`
	AtShare  *float64 `json:"at_share,omitempty"` // of the mark
	mark.Answer
	Report string `json:"report"`
}

// markAnswer is what a search has found so far.
func (a *app) markAnswer(folder *experiment.Folder) (markDocument, error) {
	r := folder.Record()
	s, err := a.searched(folder)
	if err != nil {
		return markDocument{}, err
	}
	doc := markDocument{ID: r.ID, Workload: r.Mark.Workload, Limits: r.Mark.Limits, Report: folder.ReportPath(),
		At: r.Mark.At, Answer: mark.Conclude(s.settings, s.probes)}
	value, _ := s.next(r.Mark)
	doc.Over = value < 0
	if doc.At > 0 && doc.Verdict == mark.Found {
		part := doc.At / *doc.Rate
		doc.AtShare = &part
		doc.Sentence += fmt.Sprintf(" Your %s are %.0f %% of it.", mark.InUnit(doc.At, doc.Unit), 100*part)
	}
	return doc, nil
}

// markResult writes the report of a search and prints its answer.
func (a *app) markResult(folder *experiment.Folder, over bool) error {
	doc, err := a.markAnswer(folder)
	if err != nil || len(doc.Probes) == 0 {
		return err
	}
	page, err := a.experimentDocument(folder, 0)
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%w", err)
	}
	page.Beside = true
	doc.Mind = page.Mind
	err = outfile.Replace(folder.ReportPath(), func(w io.Writer) error { return report.ExperimentHTML(w, page) })
	if err != nil {
		err = exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	if a.json {
		err = errors.Join(err, a.printJSON(doc))
	} else {
		a.printMark(a.out, doc)
		visible.Fprintf(a.out, "report: %s\n", folder.ReportPath())
	}
	if over {
		err = errors.Join(err, asserted(doc, folder.Record().Mark.Least))
	}
	if doc.Verdict == mark.Below && over {
		err = errors.Join(err, exit.Errorf(exit.Threshold, "", "mark: %s", strings.TrimSuffix(doc.Sentence, ".")))
	}
	return err
}

// asserted is the error of a mark that is not as high as asked, by its whole interval.
func asserted(doc markDocument, least float64) error {
	said := strings.TrimSuffix(doc.Sentence, ".")
	switch {
	case least == 0, doc.Verdict == mark.Found && *doc.Low >= least,
		(doc.Verdict == mark.AtLeast || doc.Verdict == mark.Generator) && *doc.Rate >= least:
		return nil
	case doc.Verdict == mark.Found && *doc.High < least, doc.Verdict == mark.Below && *doc.Rate <= least:
		return exit.Errorf(exit.Threshold, "", "threshold: the mark must be at least %s: %s",
			mark.InUnit(least, doc.Unit), said)
	}
	return exit.Errorf(exit.Threshold, "", "threshold: whether the mark is at least %s is inconclusive: %s",
		mark.InUnit(least, doc.Unit), said)
}

// printMark prints the answer, what to mind, the probes and a drawing of them.
func (a *app) printMark(w io.Writer, doc markDocument) {
	for _, text := range doc.Mind {
		visible.Fprintf(w, "%s\n\n", text)
	}
	visible.Fprintf(w, "%s\n", doc.Sentence)
	for _, text := range doc.Warnings {
		visible.Fprintf(w, "warning: %s\n", text)
	}
	say := func(rate float64) string { return mark.InUnit(rate, doc.Unit) }
	wide := 12
	for _, p := range doc.Probes {
		wide = max(wide, len(say(p.Offered)), len(say(p.Achieved)))
	}
	visible.Fprintf(w, "\n%*s  %*s\n", wide, "offered", wide, "achieved")
	for _, p := range doc.Probes {
		visible.Fprintf(w, "%*s  %*s  %s\n", wide, say(p.Offered), wide, say(p.Achieved), outcome(p, doc.Unit))
	}
	drawMark(w, doc.Answer)
}

// drawMark draws value over limit of each probe against the offered rate: o held, x broke, the limit a line, the mark
// below.
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
	column := func(rate float64) int {
		return min(max(int(math.Log(rate/least)/math.Log(most/least)*(width-1)+0.5), 0), width-1)
	}
	for _, p := range answer.Probes {
		y := top
		if p.Margin > 0 {
			y = min(1/p.Margin, top)
		}
		c := byte('o')
		if !p.Held {
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
	visible.Fprintf(w, "%12s  offered, logarithmic; o held  x broke  ^ mark  = its interval\n", "")
}
