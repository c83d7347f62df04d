package runs

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/report"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
)

const timeHelp = `A TIME is seconds since 1970, a time like 2026-11-22T10:00:00Z, or +DURATION and -DURATION: after the
beginning of the run phase, as charts count it, and before the run's last point.`

// span says what time of a run is meant.
type span struct{ at, from, to, step string }

func (st *Store) MetricsCommand() *cobra.Command {
	var s span
	var to console.Output
	query := &cobra.Command{
		Use: "query RUN PROMQL", Short: "Evaluate PromQL over the metrics of a run", Args: console.Args(2, 2,
			"run and query"),
		Long: `Query evaluates a PromQL expression over the metrics of a run, also while that goes on: at one moment, the run's
last point unless --at says which; or, with --from, --to or --step, over a time. JSON is as Prometheus' query API gives it.

` + timeHelp + "\n\n" + RunHelp,
		Example: `  plimsoll metrics query latest 'sum by (workload) (rate(plimsoll_workload_ops_total[30s]))' --at +60s
  plimsoll metrics query latest 'irate(node_disk_reads_completed_total[30s])' --from +0s --to +10m --step 30s -o csv`,
		ValidArgsFunction: st.CompleteRun,
		RunE: func(cmd *cobra.Command, given []string) error {
			return st.queryMetrics(console.Phase(cmd), given[0], given[1], s, to)
		},
	}
	to.Register(query, "table", "csv", "json")
	query.Flags().StringVar(&s.at, "at", "", "the `time` of the only point")
	query.Flags().StringVar(&s.from, "from", "", "`time` of the first point")
	query.Flags().StringVar(&s.to, "to", "", "`time` of the last point")
	query.Flags().StringVar(&s.step, "step", "", "`duration` between points")
	var e span
	var file string
	var match []string
	export := &cobra.Command{
		Use: "export RUN", Short: "Print the metrics of a run as OpenMetrics text", Args: console.Args(1, 1, "run"),
		Long: `Export prints every point of the metrics of a run, with its time, as OpenMetrics text. Prometheus makes a database
of it: promtool tsdb create-blocks-from openmetrics FILE. Native histograms become classic ones, the only ones that
OpenMetrics has.

` + timeHelp + "\n\n" + RunHelp,
		Example: `  plimsoll metrics export latest --output metrics.txt
  plimsoll metrics export latest --match '{__name__=~"plimsoll_workload_.*"}' --from +0s | gzip > metrics.txt.gz`,
		ValidArgsFunction: st.CompleteRun,
		RunE: func(cmd *cobra.Command, given []string) error {
			return st.exportMetrics(console.Phase(cmd), given[0], match, e, file)
		},
	}
	export.Flags().StringVar(&file, "output", "", "write to this `file` instead of standard output")
	export.Flags().StringArrayVar(&match, "match", nil, "only series that fit this `selector`; repeatable")
	export.Flags().StringVar(&e.from, "from", "", "`time` of the first point")
	export.Flags().StringVar(&e.to, "to", "", "`time` of the last point")
	return console.Group("metrics", "Query and export what a run measured", query, export)
}

// measured is the open metrics of a run with the times that flags are about.
type measured struct {
	*series.Store
	began          time.Time // of the run phase
	oldest, newest time.Time // points
	any            bool      // there are points
}

// openMetrics opens the metrics of a run as the user names it. Close the store.
func (st *Store) openMetrics(phase, run string) (*measured, error) {
	folder, err := st.OpenRun(strings.TrimSuffix(phase, ": "), run)
	if err != nil {
		return nil, err
	}
	ctx, stop := st.Interruptible()
	defer stop()
	m := &measured{}
	events, _, err := folder.Events()
	if err == nil {
		m.began = collect.Began(folder.Manifest(), events)
		m.Store, err = collect.OpenMetricsSoFar(ctx, folder)
	}
	if err != nil {
		return nil, exit.Errorf(exit.Failed, "", "%srun %q: %w", phase, run, err)
	}
	m.oldest, m.newest, m.any = m.Bounds()
	if m.any {
		return m, nil
	}
	hint := ""
	if man := folder.Manifest(); man.Simulated && man.Status == result.StatusExecuting {
		hint = "a simulated run writes its points an hour of its time at once, and the rest at its end"
	}
	err = exit.Errorf(exit.Failed, hint, "%srun %q: it has no points", phase, run)
	return nil, errors.Join(err, m.Close())
}

// moment reads a time of a flag.
func (m *measured) moment(flag, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	if sign := text[0]; sign == '+' || sign == '-' {
		d, err := series.ParseDuration(text[1:])
		if err != nil {
			return time.Time{}, fmt.Errorf("--%s %s: %w", flag, text, err)
		}
		if sign == '-' {
			return m.newest.Add(-d), nil
		}
		return m.began.Add(d), nil
	}
	t, err := series.ParseTime(text)
	if err != nil {
		return t, fmt.Errorf("--%s: %w, or +30s for 30 seconds after the beginning", flag, err)
	}
	return t, nil
}

// usualPoints is about how many points a series gets over a time for which no step is given.
const usualPoints = 100

func (st *Store) queryMetrics(phase, run, query string, s span, to console.Output) error {
	write, err := console.FormatOf(st.Console, strings.TrimSuffix(phase, ": "), to, map[string]func(io.Writer,
		series.Answer) error{
		"table": answerTable, "csv": answerCSV, "json": answerJSON,
	})
	if err != nil {
		return err
	}
	over := s.from != "" || s.to != "" || s.step != ""
	if over && s.at != "" {
		return exit.Usagef("give --at for one moment, or --from, --to and --step for a time", "%s--at stands alone", phase)
	}
	m, err := st.openMetrics(phase, run)
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // a view for reading
	ctx, stop := st.Interruptible()
	defer stop()
	at, atErr := m.moment("at", s.at, m.newest)
	from, fromErr := m.moment("from", s.from, m.oldest)
	end, endErr := m.moment("to", s.to, m.newest)
	step := max(time.Second, end.Sub(from)/usualPoints).Truncate(time.Second)
	var stepErr error
	if s.step != "" {
		if step, stepErr = series.ParseDuration(s.step); stepErr != nil {
			stepErr = fmt.Errorf("--step: %w", stepErr)
		}
	}
	if err := errors.Join(atErr, fromErr, endErr, stepErr); err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	var answer series.Answer
	if over {
		answer, err = m.AnswerOver(ctx, query, from, end, step, 0)
	} else {
		answer, err = m.AnswerAt(ctx, query, at, 0)
	}
	switch {
	case ctx.Err() != nil:
		return exit.Errorf(exit.Interrupted, "", "%s%w", phase, console.ErrInterrupted)
	case errors.Is(err, series.ErrBadQuery):
		return exit.Usagef("", "%s%w", phase, err)
	case err != nil:
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	}
	for _, w := range slices.Concat(answer.Warnings, answer.Infos) {
		visible.Fprintf(st.Err, "warning: %s%s\n", phase, w)
	}
	return st.Print(strings.TrimSuffix(phase, ": "), "answer", to, func(w io.Writer) error { return write(w, answer) })
}

// answerJSON writes an answer as Prometheus' API does.
func answerJSON(w io.Writer, a series.Answer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Status   string        `json:"status"`
		Data     series.Answer `json:"data"`
		Warnings []string      `json:"warnings,omitempty"`
		Infos    []string      `json:"infos,omitempty"`
	}{"success", a, a.Warnings, a.Infos})
}

// answered is one point of an answer.
type answered struct {
	labels map[string]string
	at     float64 // seconds since 1970
	value  string
}

// points reads an answer. A native histogram is told by its count and sum.
func points(a series.Answer) ([]answered, error) {
	if a.Type == "scalar" || a.Type == "string" {
		p, err := pointOf(nil, a.Result)
		return []answered{p}, err
	}
	var all []struct {
		Metric     map[string]string `json:"metric"`
		Value      json.RawMessage   `json:"value"`
		Values     []json.RawMessage `json:"values"`
		Histogram  json.RawMessage   `json:"histogram"`
		Histograms []json.RawMessage `json:"histograms"`
	}
	if err := json.Unmarshal(a.Result, &all); err != nil {
		return nil, err
	}
	var out []answered
	for _, s := range all {
		raw := slices.Concat(s.Values, s.Histograms)
		for _, one := range []json.RawMessage{s.Value, s.Histogram} {
			if one != nil {
				raw = append(raw, one)
			}
		}
		from := len(out)
		for _, r := range raw {
			p, err := pointOf(s.Metric, r)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
		slices.SortStableFunc(out[from:], func(x, y answered) int { return cmp.Compare(x.at, y.at) })
	}
	return out, nil
}

func pointOf(metric map[string]string, raw json.RawMessage) (answered, error) {
	var pair [2]json.RawMessage
	p := answered{labels: metric}
	if err := errors.Join(json.Unmarshal(raw, &pair)); err != nil {
		return p, err
	}
	if err := json.Unmarshal(pair[0], &p.at); err != nil {
		return p, err
	}
	if json.Unmarshal(pair[1], &p.value) == nil {
		return p, nil
	}
	var h struct{ Count, Sum string }
	err := json.Unmarshal(pair[1], &h)
	p.value = "histogram of " + h.Count + ", sum " + h.Sum
	return p, err
}

func (p answered) time() string {
	return time.UnixMilli(int64(math.Round(p.at * 1000))).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// name is a series as PromQL writes it, without the labels that are left out.
func (p answered) name(without map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(p.labels)) {
		if _, left := without[key]; !left && key != series.MetricName {
			pairs = append(pairs, key+"="+strconv.Quote(p.labels[key]))
		}
	}
	name := p.labels[series.MetricName]
	if len(pairs) > 0 || name == "" {
		name += "{" + strings.Join(pairs, ", ") + "}"
	}
	return name
}

// common are the labels that all points have, with the same values, but the name; none when they are of one series.
func common(list []answered) map[string]string {
	out := maps.Clone(list[0].labels)
	delete(out, series.MetricName)
	several := false
	for _, p := range list[1:] {
		several = several || !maps.Equal(p.labels, list[0].labels)
		maps.DeleteFunc(out, func(key, value string) bool { return p.labels[key] != value })
	}
	if !several {
		return nil
	}
	return out
}

// answerTable writes an answer for people: a line for each point, and what all series share before them.
func answerTable(w io.Writer, a series.Answer) error {
	list, err := points(a)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		_, err := visible.Fprintf(w, "the query found nothing\n")
		return err
	}
	shared := common(list)
	if len(shared) > 0 {
		if _, err := visible.Fprintf(w, "all series: %s\n\n", answered{labels: shared}.name(nil)); err != nil {
			return err
		}
	}
	t := terminal.Table{Head: []string{"TIME", "VALUE", "SERIES"}, Right: []bool{false, true}}
	for _, p := range list {
		t.Add(p.time(), p.value, p.name(shared))
	}
	return t.Write(w)
}

// answerCSV writes an answer for programs: a column for each label that any of the series has.
func answerCSV(w io.Writer, a series.Answer) error {
	list, err := points(a)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, p := range list {
		for key := range p.labels {
			known[key] = true
		}
	}
	keys := slices.Sorted(maps.Keys(known))
	row := func(cells ...string) {
		for i, c := range cells {
			cells[i] = report.Cell(visible.Line(c))
		}
		_, _ = visible.Fprintf(w, "%s\n", visible.Lines(strings.Join(cells, ","))) // a buffer, whose end is told of
	}
	row(slices.Concat([]string{"time"}, keys, []string{"value"})...)
	for _, p := range list {
		cells := []string{p.time()}
		for _, key := range keys {
			cells = append(cells, p.labels[key])
		}
		row(append(cells, p.value)...)
	}
	return nil
}

func (st *Store) exportMetrics(phase, run string, match []string, s span, file string) error {
	if st.JSON {
		return exit.Usagef("metrics query prints JSON", "%sOpenMetrics is a text and has no JSON", phase)
	}
	m, err := st.openMetrics(phase, run)
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // a view for reading
	from, fromErr := m.moment("from", s.from, time.Time{})
	end, endErr := m.moment("to", s.to, time.Time{})
	if err := errors.Join(fromErr, endErr); err != nil {
		return exit.Usagef("", "%s%w", phase, err)
	}
	ctx, stop := st.Interruptible()
	defer stop()
	selection := series.Selection{Match: match, From: from, To: end}
	err = st.Print(strings.TrimSuffix(phase, ": "), "metrics", console.Output{File: file}, func(w io.Writer) error {
		b := bufio.NewWriter(w)
		return errors.Join(m.OpenMetrics(ctx, b, selection, record.Describe), b.Flush())
	})
	switch {
	case ctx.Err() != nil:
		return exit.Errorf(exit.Interrupted, "", "%s%w", phase, console.ErrInterrupted)
	case errors.Is(err, series.ErrBadQuery):
		return exit.Usagef("", "%s%w", phase, err)
	}
	return err
}
