package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/analysis/effect"
	"plimsoll/internal/analysis/history"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/result"
)

// historyFlags say how a history is judged and told.
type historyFlags struct {
	console.Output
	significance float64
	webhook      string
	better       []string
}

func (sd *Sides) HistoryCommand() *cobra.Command {
	var f, s historyFlags
	add := &cobra.Command{
		Use: "add NAME RUN|FILE|-...", Short: "Add results to a history; exit with 5 when a change is new",
		Args: console.Args(2, 1000, "name and run or file"),
		Long: `Add keeps results in the history of that name and looks for changes of level in each of its measures, as
"plimsoll changes" does. A change is told once: the first time it is new, and unless it is for the better the exit code
is 5; after that it is known. A run, or a row of a file, that is there already takes its own place again, so that a
file that grows can be added again and again. The first time, a history takes the results of the baseline of its name,
if there is one.

A FILE (CSV, columns separated by blanks, JSON; "-" is standard input) has one result a row, the oldest first, labelled
by a column of text if it has one. Of a RUN, throughput and percentiles of every workload are kept. A measure that a
result lacks is a gap.

--webhook posts what is new as JSON. When that fails nothing counts as told, and the next call tells it again.`,
		Example: `  plimsoll history add nightly latest
  plimsoll history add nightly results.csv --better p99=lower --webhook https://chat.example/hook
  plimsoll history add nightly latest -o md --output comment.md`,
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.addHistory(given[0], given[1:], f)
		},
	}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show the changes in a history, new and known", Args: console.Args(1, 1, "name"),
		Example: "  plimsoll history show nightly\n  plimsoll history show nightly -o md",
		RunE: func(_ *cobra.Command, given []string) error {
			h, err := sd.readHistory("history show", given[0])
			if err != nil {
				return err
			}
			_, err = tellHistory(sd.Console, "history show", h, s)
			return err
		},
	}
	for c, of := range map[*cobra.Command]*historyFlags{add: &f, show: &s} {
		of.Register(c, "text", "json", "md")
		c.Flags().Float64Var(&of.significance, "significance", history.Significance,
			"`chance` of finding a change in a measure without one")
	}
	sd.trusting(add)
	add.Flags().StringVar(&f.webhook, "webhook", "", "post what is new to this `URL`, as JSON")
	add.Flags().StringArrayVar(&f.better, "better", nil, "which way of a measure is good: `NAME=lower` or higher; repeatable")
	var note, at string
	ack := &cobra.Command{
		Use: "ack NAME MEASURE", Short: "Acknowledge a change with a note", Args: console.Args(2, 2,
			"name and measure"),
		Example: `  plimsoll history ack nightly p99 --note "new kernel" --at 2026-03-01`,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.changeHistory("history ack", given[0], func(h *history.History) (string, error) {
				if note == "" {
					return "", exit.Usagef("", "history ack: --note says why; give one")
				}
				k, err := h.Acknowledge(given[1], at, note, console.Operator(false))
				return fmt.Sprintf("%s at %s: %s", k.Measure, k.At, k.Note), err
			})
		},
	}
	ack.Flags().StringVar(&note, "note", "", "`text` that says why it changed")
	ack.Flags().StringVar(&at, "at", "", "the change at this `label`; without it the last one")
	rename := &cobra.Command{
		Use: "rename NAME OLD NEW", Short: "Go on with a measure under another name",
		Args:    console.Args(3, 3, "name, old and new measure"),
		Example: "  plimsoll history rename nightly p99 p99_ms",
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.changeHistory("history rename", given[0], func(h *history.History) (string, error) {
				return fmt.Sprintf("%s is %s from now on", given[1], given[2]), h.Rename(given[1], given[2])
			})
		},
	}
	return console.Group("history", "Keep results over time and tell of changes once", add, show, ack, rename)
}

func (sd *Sides) historyPath(phase, name string) (string, error) {
	if !baselineName.MatchString(name) {
		return "", exit.Usagef("letters, digits, dots, dashes and underscores; at most 64",
			"%s: %q cannot be the name of a history", phase, name)
	}
	return filepath.Join(sd.RunsDir, result.HistoryDir, name+".json"), nil
}

func (sd *Sides) readHistory(phase, name string) (*history.History, error) {
	path, err := sd.historyPath(phase, name)
	if err != nil {
		return nil, err
	}
	data, err := regular.Read(path, regular.NoLinks, regular.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Errorf(exit.Failed, fmt.Sprintf("plimsoll history add %s RUN makes it", name),
			"%s: no history %q in %q: %w", phase, name, sd.RunsDir, fs.ErrNotExist)
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	var h history.History
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: history %q is damaged: %w", phase, name, err)
	}
	if h.Version != history.Version {
		return nil, exit.Errorf(exit.Failed, "", "%s: history %q is damaged or of another version (%d)", phase, name,
			h.Version)
	}
	return &h, nil
}

// Histories are the names of those there are.
func (sd *Sides) Histories() (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(sd.RunsDir, result.HistoryDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && baselineName.MatchString(name) {
			names = append(names, name)
		}
	}
	return names, err
}

// History reads one of them.
func (sd *Sides) History(name string) (*history.History, error) {
	return sd.readHistory("history", name)
}

func (sd *Sides) writeHistory(phase string, h *history.History) error {
	path, err := sd.historyPath(phase, h.Name)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = outfile.Replace(path, func(w io.Writer) error { return console.Indented(w, h) })
	}
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return nil
}

// alone changes a file of a folder beside the runs, while no other process does.
func (sd *Sides) alone(phase, dir string, change func() error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute,
		errors.New("another process has been changing what is there for a minute: end it, or try again"))
	defer cancel()
	changed := false
	err := outfile.Alone(ctx, filepath.Join(sd.RunsDir, dir), func() {}, func() error {
		changed = true
		return change()
	})
	if !changed {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	return err
}

// changeHistory changes what is known of a history, and prints what was done.
func (sd *Sides) changeHistory(phase, name string, change func(*history.History) (string, error)) error {
	if _, err := sd.readHistory(phase, name); err != nil {
		return err
	}
	return sd.alone(phase, result.HistoryDir, func() error { return sd.changeAlone(phase, name, change) })
}

func (sd *Sides) changeAlone(phase, name string, change func(*history.History) (string, error)) error {
	h, err := sd.readHistory(phase, name)
	if err != nil {
		return err
	}
	done, err := change(h)
	if err != nil {
		var known *exit.Error
		if errors.As(err, &known) {
			return err
		}
		return exit.Errorf(exit.Failed, fmt.Sprintf("plimsoll history show %s lists them", name), "%s: %w", phase, err)
	}
	if err := sd.writeHistory(phase, h); err != nil {
		return err
	}
	_, err = visible.Fprintf(sd.Out, "%s\n", done)
	return err
}

func (sd *Sides) addHistory(name string, given []string, f historyFlags) error {
	const phase = "history add"
	if u, err := url.Parse(f.webhook); f.webhook != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return exit.Usagef("like https://chat.example/hook", "%s: --webhook %q is no address", phase, f.webhook)
	}
	if _, err := sd.historyPath(phase, name); err != nil {
		return err
	}
	return sd.alone(phase, result.HistoryDir, func() error { return sd.addAlone(phase, name, given, f) })
}

func (sd *Sides) addAlone(phase, name string, given []string, f historyFlags) error {
	better, err := betterOf(phase, f.better)
	if err != nil {
		return err
	}
	h, err := sd.readHistory(phase, name)
	if errors.Is(err, fs.ErrNotExist) {
		h = &history.History{Version: history.Version, Name: name, Known: []history.Known{},
			Better: map[string]effect.Direction{}}
		err = sd.beginHistory(phase, h)
	}
	if err != nil {
		return err
	}
	if h.Better == nil {
		h.Better = map[string]effect.Direction{}
	}
	var runs []string
	for _, g := range given {
		if g != "-" && !recognise.IsTable(g) {
			runs = append(runs, g)
		} else if err := sd.rowsOf(phase, g, h); err != nil {
			return err
		}
	}
	if err := sd.runsOf(phase, runs, h); err != nil {
		return err
	}
	for _, measure := range h.Measures() {
		if better.others != "" {
			h.Better[measure] = better.others
		}
	}
	for measure, way := range better.named {
		if !slices.Contains(h.Measures(), measure) {
			return exit.Usagef("", "%s: --better: no measure %q in the history", phase, measure)
		}
		h.Better[measure] = way
	}
	changes, err := tellHistory(sd.Console, phase, h, f)
	if err != nil {
		return err
	}
	var bad []string
	fresh := []history.Change{}
	for _, c := range changes {
		if c.New {
			fresh = append(fresh, c)
		}
		if c.New && c.Verdict != history.Better {
			bad = append(bad, c.Measure+" at "+c.At)
		}
	}
	if f.webhook != "" && len(fresh) > 0 {
		if err := post(f.webhook, history.Document{History: name, Points: len(h.Points), Changes: fresh}); err != nil {
			return errors.Join(sd.writeHistory(phase, h), exit.Errorf(exit.Failed,
				"the results are kept; what is new is told again by the next call", "%s: --webhook: %w", phase, err))
		}
	}
	h.Tell(changes, sd.Now().UTC())
	if err := sd.writeHistory(phase, h); err != nil {
		return err
	}
	if len(bad) > 0 {
		return exit.Errorf(exit.Threshold, fmt.Sprintf("plimsoll history ack %s MEASURE --note TEXT explains it", name),
			"%s: new: %s", phase, strings.Join(bad, "; "))
	}
	return nil
}

// beginHistory gives a history what the baseline of its name holds, if there is one.
func (sd *Sides) beginHistory(phase string, h *history.History) error {
	path, err := sd.baselinePath(phase, h.Name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b, err := sd.readBaseline(phase, h.Name)
	if err != nil || b.Files == nil {
		if err == nil {
			err = sd.runsOf(phase, b.Runs, h)
		}
		return err
	}
	for _, c := range b.Files.Columns {
		if c.Better != "" {
			h.Better[c.Name] = c.Better
		}
		if c.Missing > 0 {
			continue // which repeat a value is of is not known
		}
		for i, v := range c.Values {
			label := fmt.Sprintf("baseline %d", i+1)
			at := slices.IndexFunc(h.Points, func(p history.Point) bool { return p.Label == label })
			if at < 0 {
				at = len(h.Points)
				h.Add(history.Point{Label: label, Values: map[string]float64{}})
			}
			h.Points[at].Values[c.Name] = v
		}
	}
	return nil
}

// rowsOf adds the rows of a file.
func (sd *Sides) rowsOf(phase, file string, h *history.History) error {
	list, source, err := sd.namedSeries(phase, file, "")
	if err != nil {
		return err
	}
	var points []history.Point
	seen := map[string]int{} // of a label: one that comes again is another result
	for _, s := range list {
		if h.Better[s.name] == "" {
			if way := compare.DirectionOf(s.name, s.unit); way != "" {
				h.Better[s.name] = way
			}
		}
		for i, v := range s.values {
			for len(points) <= i {
				label := fmt.Sprintf("%s %d", filepath.Base(source), len(points)+1)
				if s.labels != nil && s.labels[i] != "" {
					label = s.labels[i]
				}
				if seen[label]++; seen[label] > 1 {
					label += fmt.Sprintf(" (%d)", seen[label])
				}
				points = append(points, history.Point{Label: label, Values: map[string]float64{}})
			}
			if !math.IsNaN(v) {
				points[i].Values[s.name] = v
			}
		}
	}
	h.Add(points...)
	return nil
}

// runsOf adds the headline numbers of runs, the oldest first.
func (sd *Sides) runsOf(phase string, runs []string, h *history.History) error {
	if len(runs) == 0 {
		return nil
	}
	folders, err := sd.HistoryRuns(phase, runs, sd.trust)
	if err != nil {
		return err
	}
	for _, f := range folders {
		m := f.Manifest()
		if m.Measured.State != "yes" {
			return exit.Errorf(exit.Failed, "", "%s: run %s: run status %s", phase, m.RunID, m.Measured.Word())
		}
		doc, err := report.Build(f)
		if err != nil {
			return exit.Errorf(exit.Failed, "", "%s: %s: %w", phase, f.Dir(), err)
		}
		p := history.Point{Label: m.RunID, Values: map[string]float64{}}
		for name, n := range headline(doc) {
			name = m.Scenario.Name + ": " + name
			p.Values[name] = n.value
			if way := compare.DirectionOf(n.metric, n.unit); h.Better[name] == "" && way != "" {
				h.Better[name] = way
			}
		}
		h.Add(p)
	}
	return nil
}

// tellHistory finds the changes of a history and prints them.
func tellHistory(con *console.Console, phase string, h *history.History, f historyFlags) ([]history.Change, error) {
	d, err := h.Document(f.significance)
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	write, err := console.FormatOf(con, phase, f.Output, map[string]func(io.Writer, history.Document) error{
		"text": historyText, "md": historyMarkdown,
		"json": func(w io.Writer, d history.Document) error { return console.Indented(w, d) },
	})
	if err != nil {
		return nil, err
	}
	return d.Changes, con.Print(phase, "history", f.Output, func(w io.Writer) error { return write(w, d) })
}

func historyText(w io.Writer, d history.Document) error {
	_, err := visible.Fprintf(w, "History %s: %s\n", d.History, d.Say())
	for _, c := range d.Changes {
		relative := c.By()
		if relative != "" {
			relative = " (" + relative + ")"
		}
		_, one := visible.Fprintf(w, "  %s at %s: from %.6g to %.6g%s: %s\n", c.Measure, c.At, c.Before, c.After,
			relative, c.Standing())
		err = errors.Join(err, one)
	}
	return err
}

// cell keeps a text of others within its cell of a Markdown table.
var cell = strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "<", "&lt;",
	"&", "&amp;", "\n", " ", "\r", " ", "@", "&#64;", "!", "\\!")

func historyMarkdown(w io.Writer, d history.Document) error {
	_, err := visible.Fprintf(w, "### History %s\n", cell.Replace(d.History+": "+d.Say()))
	if len(d.Changes) > 0 {
		_, head := visible.Fprintf(w, "\n| measure | at | before | after | change | |\n|---|---|---|---|---|---|\n")
		err = errors.Join(err, head)
	}
	for _, c := range d.Changes {
		_, one := visible.Fprintf(w, "| %s | %s | %.6g | %.6g | %s | %s |\n", cell.Replace(c.Measure),
			cell.Replace(c.At), c.Before, c.After, c.By(), cell.Replace(c.Standing()))
		err = errors.Join(err, one)
	}
	return err
}

// webhookWait is how long an answer to what is posted is waited for.
const webhookWait = 10 * time.Second

// post sends a document to an address, which must answer with 2xx.
func post(to string, d history.Document) error {
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: webhookWait}
	answer, err := client.Post(to, "application/json", bytes.NewReader(body))
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // the address may hold a secret
		}
		return fmt.Errorf("post: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("post: answered %q", answer.Status)
	}
	return nil
}
