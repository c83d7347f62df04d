package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/report"
	"plimsoll/internal/run"
	"plimsoll/result"
	"plimsoll/unit"
)

// DataOf reads what was collected of a run, or collects it now without keeping it.
func (st *Store) DataOf(folder *result.Folder, again bool) (*result.Data, error) {
	if data, err := folder.Data(); err == nil && !again {
		return data, nil
	}
	ctx, stop := st.Interruptible()
	defer stop()
	data, err := st.collected(ctx, folder)
	var gone *goneError
	switch {
	case errors.As(err, &gone):
		return nil, exit.Errorf(exit.Failed, "leave out --again", "analyze: %w", err)
	case ctx.Err() != nil:
		return nil, exit.Errorf(exit.Interrupted, "", "analyze: %w", console.ErrInterrupted)
	case data == nil:
		return nil, exit.Errorf(exit.Failed, "", "analyze: %w", err)
	case err != nil:
		visible.Fprintf(st.Err, "warning: analyze: %v\n", err)
	case len(data.Problems) > 0:
		visible.Fprintf(st.Err, "warning: analyze: %s\n", console.FirstOf(data.Problems))
	}
	return data, nil
}

// HistoryRuns opens runs, the oldest first. Of damaged ones it warns where they are trusted, else it refuses them.
func (st *Store) HistoryRuns(phase string, given []string, trust bool) ([]*result.Folder, error) {
	if len(given) == 1 && given[0] == "all" {
		listed, err := st.listed()
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
		}
		given = nil
		for _, e := range listed {
			if e.Manifest.Measured.State == "yes" {
				given = append(given, e.Dir)
			}
		}
	}
	var folders []*result.Folder
	for _, run := range given {
		f, err := st.OpenRun(phase, run)
		if err != nil {
			return nil, err
		}
		if err := Intact(st.Console, phase, f, trust); err != nil {
			return nil, err
		}
		folders = append(folders, f)
	}
	slices.SortFunc(folders, func(x, y *result.Folder) int {
		return result.Made(x.Dir(), x.Manifest()).Compare(result.Made(y.Dir(), y.Manifest()))
	})
	return folders, nil
}

const TrustHelp = "go on where files of a run are not as their sums say, with a warning for each"

// Intact refuses a run with documents that are not as their sums say, unless they are trusted: then it warns of them.
func Intact(con *console.Console, phase string, folder interface {
	Dir() string
	VerifySums() []string
}, trust bool) error {
	bad := folder.VerifySums()
	if len(bad) == 0 {
		return nil
	}
	id := filepath.Base(folder.Dir())
	if !trust {
		return exit.Errorf(exit.Failed, "put back a copy that is whole, or go on all the same with --trust",
			"%s: %s is damaged: %s", phase, id, console.FirstOf(bad))
	}
	for _, b := range bad {
		visible.Fprintf(con.Err, "warning: %s: %s is damaged: %s\n", phase, id, b)
	}
	return nil
}

// DocumentOf is the report of a run, made of what was read of it already (nil: nothing); of one that goes on, of what
// there is so far, which leaves its folder as it is.
func DocumentOf(con *console.Console, phase string, folder *result.Folder, read *report.Collected) (*report.Document,
	error) {
	if folder.Manifest().Status != result.StatusExecuting {
		doc, err := report.BuildOf(folder, read)
		if err != nil {
			return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
		}
		return doc, nil
	}
	ctx, stop := con.Interruptible()
	defer stop()
	store, problem := collect.OpenMetricsSoFar(ctx, folder)
	data, err := collect.SoFar(ctx, folder, store)
	if store != nil {
		err = errors.Join(err, store.Close())
	}
	if ctx.Err() != nil {
		return nil, exit.Errorf(exit.Interrupted, "", "%s: %w", phase, context.Cause(ctx))
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	if problem != nil { // before its first point there may be no database that can be opened
		data.Problems = append(data.Problems, problem.Error())
	}
	doc, err := report.BuildSoFar(folder, data)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	doc.Problems = append(doc.Problems, data.Problems...)
	return doc, nil
}

// Complete collects and analyses a run of which that is missing, or all over again. A run that is going on is left as
// it is. What cannot be collected is said and does not prevent a report of the rest. Of a run that lacks nothing it
// returns what it has read.
func (st *Store) Complete(folder *result.Folder, again bool) (*report.Collected, error) {
	data, dataErr := folder.Data()
	findings, findingsErr := folder.Findings()
	m := folder.Manifest()
	if m.Status == result.StatusExecuting {
		visible.Fprintf(st.Err, "warning: report: %s is going on: the report shows what there is so far\n", m.RunID)
		return nil, nil
	}
	settled := m.Collected.State != "pending" && m.Status != result.StatusInterrupted
	if dataErr == nil && findingsErr == nil && settled && !again {
		return &report.Collected{Data: data, Findings: findings}, nil
	}
	switch err := folder.TryLock(); {
	case errors.Is(err, result.ErrBusy):
		visible.Fprintf(st.Err, "warning: report: another process is collecting %s: the report shows what there is "+
			"so far\n", m.RunID)
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		visible.Fprintf(st.Err, "warning: report: %s cannot be written, so nothing is collected: %v\n", folder.Dir(),
			err)
		return nil, nil
	case err != nil:
		return nil, exit.Errorf(exit.Failed, "", "report: %w", err)
	}
	ctx, stop := st.Interruptible()
	defer stop()
	if err := st.recollect(ctx, folder); err != nil {
		var gone *goneError
		switch {
		case ctx.Err() != nil:
			return nil, exit.Errorf(exit.Interrupted, "", "report: %w", context.Cause(ctx))
		case errors.As(err, &gone):
			return nil, exit.Errorf(exit.Failed, "leave out --again: the report is made from what was collected before",
				"report: %w", err)
		}
		visible.Fprintf(st.Err, "warning: report: %v\n", err)
	}
	return nil, nil
}

// goneError says that a folder no longer holds the raw output from which its data were made.
type goneError struct{ what []string }

func (e *goneError) Error() string {
	return "the folder's raw output or metrics no longer hold what was collected of them before, which is kept: " +
		console.FirstOf(e.what)
}

// lost compares what was collected before and now; nil when nothing is missing now.
func lost(before, now *result.Data) *goneError {
	var what []string
	compared := func(name string, count func(*result.Data) uint64) {
		if b, n := count(before), count(now); n < b {
			what = append(what, fmt.Sprintf("%s %s then, %s now", unit.Thousands(int64(b)), name,
				unit.Thousands(int64(n))))
		}
	}
	compared("operations", func(d *result.Data) (sum uint64) {
		for _, w := range d.Workloads {
			for _, o := range w.Ops {
				if w.Merged() {
					sum += o.Count
				}
			}
		}
		return sum
	})
	compared("series", func(d *result.Data) uint64 { return uint64(len(d.Series)) })
	compared("results with data", func(d *result.Data) (n uint64) {
		for _, p := range d.Panels {
			if len(p.Series) > 0 {
				n++
			}
		}
		return n
	})
	compared("phases, annotations and faults", func(d *result.Data) uint64 {
		return uint64(len(d.Phases) + len(d.Events))
	})
	// The time that has values, whatever their step: a few at the edges may be placed otherwise by another version.
	if b, n := covered(before), covered(now); n < b*49/50 {
		what = append(what, fmt.Sprintf("results over %v then, %v now", b, n))
	}
	if what == nil {
		return nil
	}
	return &goneError{what}
}

// covered is for how long the results have values, all series together.
func covered(d *result.Data) (sum time.Duration) {
	for _, p := range d.Panels {
		for _, s := range p.Series {
			for _, v := range s.Values {
				if v != nil {
					sum += time.Duration(s.Step * float64(time.Second))
				}
			}
		}
	}
	return sum.Round(time.Second)
}

// collected makes data from what a run folder holds. It refuses, with a goneError, to make less than what was made of
// it before, or other than that, because the files of then are damaged; where there is nothing from before, what is
// damaged is among the data's problems.
func (st *Store) collected(ctx context.Context, folder *result.Folder) (*result.Data, error) {
	damaged := folder.VerifyHashes(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	before, unread := folder.Data()
	if unread == nil && damaged != nil {
		return nil, &goneError{damaged}
	}
	data, err := collect.Collect(ctx, folder, st.Drivers.Replays(folder.Manifest().Target))
	if data == nil {
		return nil, err
	}
	data.Problems = append(damaged, data.Problems...)
	if unread == nil {
		if gone := lost(before, data); gone != nil {
			return nil, gone
		}
	}
	return data, err
}

// recollect makes data and findings from what a run folder holds. Data that were collected before are not replaced by
// less.
func (st *Store) recollect(ctx context.Context, folder *result.Folder) error {
	data, err := st.collected(ctx, folder)
	if data == nil {
		return err
	}
	errs := []error{err, folder.WriteData(data)}
	errs = append(errs, Judge(ctx, folder, data))
	errs = append(errs, folder.Update(func(m *result.Manifest) {
		switch verdict := run.Collected(data); {
		case err != nil:
			m.Collected = result.Verdict{State: "partly", Reason: err.Error()}
		case m.Collected.State == "pending" || m.Collected.State == "" || verdict.State != "yes":
			m.Collected = verdict
		}
	}))
	if len(folder.Manifest().Hashes) == 0 { // of a run that was killed
		errs = append(errs, folder.Hash(ctx))
	}
	return errors.Join(errs...)
}

// Judge analyses what was collected.
func Judge(ctx context.Context, folder *result.Folder, data *result.Data) error {
	found := Findings(ctx, folder, data)
	return errors.Join(folder.WriteFindings(found), keepHeadline(folder, data, found))
}

// keepHeadline keeps the answer and the first figure of a run, and which of its conditions failed, with what lists of
// runs read.
func keepHeadline(folder *result.Folder, data *result.Data, found []result.Finding) error {
	headline := report.HeadlineWithAnswer(folder.Manifest(), data, found)
	return folder.Update(func(m *result.Manifest) {
		m.Headline, m.FailedAsserts = headline, nil
		for _, f := range found {
			if f.Check == assert.Check && assert.Failed(f) {
				m.FailedAsserts = append(m.FailedAsserts, f.Subject)
			}
		}
	})
}

// AllFolders are the folders of all runs, those of experiments included.
func (st *Store) AllFolders() ([]string, error) { return NewFolderIndex(st.RunsDir).Folders() }

// Mind says of runs what changes the meaning of all their numbers, each sentence once.
func Mind(con *console.Console, phase string, runs ...result.Manifest) {
	var said []string
	about := map[string][]string{}
	for _, m := range runs {
		for _, sentence := range report.Mind(m) {
			if about[sentence] == nil {
				said = append(said, sentence)
			}
			about[sentence] = append(about[sentence], m.RunID)
		}
	}
	for _, sentence := range said {
		who := unit.Plural(len(about[sentence]), "run")
		if len(about[sentence]) == 1 {
			who = "run " + about[sentence][0]
		}
		visible.Fprintf(con.Err, "warning: %s: %s: %s\n", phase, who, sentence)
	}
}

// RunData opens a run and reads what was collected of it.
func (st *Store) RunData(phase, given string) (*result.Folder, *result.Data, error) {
	folder, err := st.OpenRun(phase, given)
	if err != nil {
		return nil, nil, err
	}
	data, err := folder.Data()
	if err != nil {
		return nil, nil, exit.Errorf(exit.Failed, "plimsoll report "+folder.Manifest().RunID+" collects it",
			"%s: run %q: %w", phase, given, err)
	}
	return folder, data, nil
}
