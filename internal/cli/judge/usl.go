package judge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/analysis/resample"
	"plimsoll/internal/analysis/scaling"
	"plimsoll/internal/analysis/usl"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/runs"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/formats/table"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
	"plimsoll/unit"
)

// names of the columns that a throughput curve is read from.
var (
	throughputNames = []string{"x", "throughput", "tps", "iops", "ops", "rate", "tpm", "nopm", "qps", "rps",
		"durchsatz", "débit", "debit"}
	weightNames = []string{"w", "weight", "repeats"}
)

func (sd *Sides) UslCommand() *cobra.Command {
	var columns, format, errors string
	var at []float64
	c := &cobra.Command{
		Use:   "usl FILE...|RUN|-",
		Short: "Fit the Universal Scalability Law to throughput at growing concurrency",
		Long: `Usl fits X(N) = γN / (1 + α(N−1) + βN(N−1)) to measured points and prints the three coefficients with
intervals, the peak or that there is none in range, whether simpler laws can be ruled out, efficiency and overhead of
every point, a point that strays from the others, and what stands against it all.

Whether errors are alike or grow with throughput is chosen from the data, and said; --errors alike fits as the R
package usl does.

FILE is CSV, columns separated by blanks, or JSON, with a column of concurrencies (` + strings.Join(table.ConcurrencyNames[:4], ", ") + `, ...),
one of throughputs (` + strings.Join(throughputNames[:4], ", ") + `, ...) and perhaps one of weights; or columns without names. "-" is
standard input. From a RUN the stages of its load are taken: times in which the same workloads run. The
runs of an EXPERIMENT are a point each, as in EXPERIMENT:block_size=4k. Of both, --columns names one metric,
like read_iops, new_order_rate or NOPM; unless given it is the rate of all operations. Of imported files that say how
many were at work (pgbench's clients, HammerDB's virtual users, threads) each test is a point; several may be given. Rows without a
number are left out, and said.`,
		Example: `  plimsoll usl throughput.csv
  plimsoll usl throughput.csv --columns clients,tps --at 100 --at 200
  plimsoll usl latest --columns NOPM
  plimsoll usl c1.txt c2.txt c4.txt c8.txt
  plimsoll usl latest -o svg > curve.svg`,
		Args:              console.Args(1, 100, "file or run"),
		ValidArgsFunction: sd.CompleteRun,
		RunE: func(_ *cobra.Command, given []string) error {
			return sd.usl(given, columns, format, usl.Errors(errors), at)
		},
	}
	c.Flags().StringVar(&columns, "columns", "", "the `columns` of concurrency, throughput and weight: names or "+
		"numbers from 1, like n,x,w")
	c.Flags().StringVarP(&format, "format", "o", "text", "`format`: json, svg, text")
	sd.readingTables(c)
	c.Flags().
		StringVar(&errors, "errors", "", "how `errors` grow with throughput: alike, root, proportional; else as the data have it")
	c.Flags().Float64SliceVar(&at, "at", nil, "predict the throughput at this `concurrency`; repeatable")
	return c
}

func (sd *Sides) usl(files []string, columns, format string, errors usl.Errors, at []float64) error {
	if sd.JSON {
		format = "json"
	}
	if format != "text" && format != "json" && format != "svg" {
		return exit.Usagef("there are: json, svg, text", "usl: no format %q", format)
	}
	if !slices.Contains([]usl.Errors{"", usl.Alike, usl.Root, usl.Proportional}, errors) {
		return exit.Usagef("there are: alike, root, proportional", "usl: --errors: no such %q", errors)
	}
	given := files[0]
	if i := slices.IndexFunc(files, func(f string) bool { return !recognise.IsOutput(f) }); len(files) > 1 && i >= 0 {
		return exit.Usagef("several files are outputs of a tool, a test or more each; runs of an experiment are one name",
			"usl: %q is one of %d files, and no output of a tool that is known here", files[i], len(files))
	}
	if len(files) > 1 {
		dir, err := sd.ImportedNow("usl", files...)
		if err != nil {
			return err
		}
		given = dir
	}
	points, source, err := sd.throughputCurve(given, columns)
	if err != nil {
		return err
	}
	model, err := usl.Fit(points, usl.Options{Errors: errors})
	if err != nil {
		// each objection has it
		return exit.Errorf(exit.Failed, "", "usl: %s: %s", source, strings.ReplaceAll(err.Error(), "usl: ", ""))
	}
	slices.SortStableFunc(points, func(a, b usl.Point) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	doc := scalability{Source: source, Model: model, Points: points}
	for _, n := range at {
		p, err := model.Predict(n)
		if err != nil {
			return exit.Usagef("", "usl: --at: %w", err)
		}
		doc.Predictions = append(doc.Predictions, p)
	}
	switch format {
	case "json":
		return sd.PrintJSON(doc.json())
	case "svg":
		return report.PlotSVG(sd.Out, doc.plot())
	}
	return doc.text(sd.Out)
}

// throughputCurve reads the points of a file or of a run.
func (sd *Sides) throughputCurve(given, columns string) (points []usl.Point, source string, err error) {
	if !recognise.IsTable(given) {
		var made []result.Manifest
		side, ok, err := sd.experimentSide("usl", given)
		switch {
		case err != nil:
			return nil, "", err
		case ok:
			for _, r := range side.Runs {
				made = append(made, r.Manifest)
			}
			runs.Mind(sd.Console, "usl", made...)
			metric, err := throughputMetric(side.Runs[0].Data, columns)
			if err != nil {
				return nil, "", exit.Errorf(exit.Failed, "--columns names one metric of the runs",
					"usl: experiment %s: %w", given, err)
			}
			return scaling.Runs(side.Runs, metric), fmt.Sprintf("%s of experiment %s",
				unit.Plural(len(side.Runs), "run"),
				given), nil
		}
		return sd.stagePoints(given, columns)
	}
	s, err := sd.openTable("usl", given)
	if err != nil {
		return nil, "", err
	}
	n, x, w, err := curveColumns(s, columns)
	if err != nil {
		return nil, "", exit.Usagef("name them: --columns CONCURRENCY,THROUGHPUT[,WEIGHT]", "usl: %s: %w", s.Source,
			err)
	}
	if err := oneTest("usl", s, n); err != nil {
		return nil, "", err
	}
	ns, errN := s.Numbers(n, true)
	xs, errX := s.Numbers(x, true)
	ws := make([]float64, len(ns))
	var errW error
	if w >= 0 {
		ws, errW = s.Numbers(w, true)
	}
	if err := table.Join(errN, errX, errW); err != nil {
		return nil, "", exit.Errorf(exit.Failed, "", "usl: %s: %w", s.Source, err)
	}
	var left []string
	for i := range ns {
		if math.IsNaN(ns[i] + xs[i] + ws[i]) {
			left = append(left, strconv.Itoa(s.Lines[i]))
			continue
		}
		points = append(points, usl.Point{Concurrency: ns[i], Throughput: xs[i], Weight: ws[i]})
	}
	if len(left) > 0 {
		visible.Fprintf(sd.Err, "warning: usl: %s: %s left out, a value is missing: %s %s\n", s.Source,
			unit.Plural(len(left), "row"), s.Unit, strings.Join(left, ", "))
	}
	return points, s.Source, nil
}

// curveColumns are the columns of concurrency, throughput and weight; the last is -1 when there is none.
func curveColumns(s *table.Table, asked string) (n, x, w int, err error) {
	w = -1
	if asked != "" {
		names := strings.Split(asked, ",")
		if len(names) < 2 || len(names) > 3 {
			return 0, 0, 0, fmt.Errorf("--columns %q: want two or three names", asked)
		}
		var at [3]int
		for i, name := range names {
			if at[i] = s.Column(strings.TrimSpace(name)); at[i] < 0 {
				err = table.Join(err, fmt.Errorf("no column %q among %q", name, s.Names))
			}
		}
		if len(names) == 3 {
			w = at[2]
		}
		return at[0], at[1], w, err
	}
	n, x, w = s.Concurrency(), s.Column(throughputNames...), s.Column(weightNames...)
	switch {
	case n >= 0 && x >= 0:
		return n, x, w, nil
	case n >= 0 && len(s.Names) == 2:
		return n, 1 - n, w, nil
	case !s.Named && (len(s.Names) == 2 || len(s.Names) == 3):
		if len(s.Names) == 3 {
			w = 2
		}
		return 0, 1, w, nil
	}
	return 0, 0, 0, fmt.Errorf("which of the columns %q is the concurrency, and which the throughput?", s.Names)
}

// stagePoints are the stages of a run's load as points.
func (sd *Sides) stagePoints(given, column string) ([]usl.Point, string, error) {
	folder, data, err := sd.RunData("usl", given)
	if err != nil {
		return nil, "", err
	}
	_ = runs.Intact(sd.Console, "usl", folder, true) // warns
	runs.Mind(sd.Console, "usl", folder.Manifest())
	id := folder.Manifest().RunID
	metric, err := throughputMetric(data, column)
	if err != nil {
		return nil, "", exit.Errorf(exit.Failed, "--columns names one metric of the run", "usl: run %s: %w", id, err)
	}
	points, err := scaling.Imported(folder.Manifest(), data, metric)
	if err != nil {
		return nil, "", exit.Errorf(exit.Failed, "import the tests of one load, and give that, or name the operations of "+
			"one kind, as --columns write_iops", "usl: run %s: %w", id, err)
	}
	if len(points) > 0 {
		if held := scaling.Held(folder.Manifest()); held != "" {
			visible.Fprintf(sd.Err, "warning: usl: run %s: its tests were held back, for %s: the curve is of what they asked "+
				"for, and tells no limit of the storage\n", id, held)
		}
		return points, fmt.Sprintf("%s of run %s", unit.Plural(len(points), "imported test"), id), nil
	}
	points = scaling.Stages(data, metric)
	if len(points) < 4 {
		return nil, "", exit.Errorf(exit.Failed, "a scenario like scale-out adds workers in stages; the law needs "+
			"four of them, or a table of how many were at work and the throughput",
			"usl: run %s: %s of load is too little for a curve", id, unit.Plural(len(points), "stage"))
	}
	return points, fmt.Sprintf("%s of run %s", unit.Plural(len(points), "stage"), id), nil
}

// throughputMetric is the metric to fit.
func throughputMetric(data *result.Data, asked string) (string, error) {
	metric, known, ok := scaling.Metric(data, asked)
	if !ok {
		return "", fmt.Errorf("no metric %q that adds up over its VMs; %s", asked, meant(asked, known))
	}
	return metric, nil
}

// meant says which names there are, the nearest first.
func meant(asked string, known []string) string {
	if len(known) == 0 {
		return "it has none"
	}
	if like := nearest.Of(asked, known); like != "" {
		return fmt.Sprintf("did you mean %q?", like)
	}
	return "it has " + table.QuoteAll(known)
}

// scalability holds what usl prints.
type scalability struct {
	Source      string
	Model       *usl.Model
	Points      []usl.Point
	Predictions []usl.Prediction
}

func (d scalability) text(w io.Writer) error {
	m := d.Model
	visible.Fprintf(w, "Universal Scalability Law, %s, %s\n\n", d.Source, unit.Plural(m.N, "point"))
	t := terminal.Table{
		Head:  []string{"COEFFICIENT", "VALUE", "STD. ERROR", "95 % INTERVAL", "BY BOOTSTRAP"},
		Right: []bool{false, true, true},
	}
	for _, r := range []struct {
		name string
		p    usl.Parameter
	}{{"gamma: throughput of one", m.GammaParameter}, {"alpha: contention", m.AlphaParameter}, {"beta: crosstalk",
		m.BetaParameter}} {
		stdError := fmt.Sprintf("%.4g", r.p.StdError)
		if r.p.AtBound {
			stdError = "at its bound"
		} else if r.p.StdError == 0 {
			stdError = "none"
		}
		t.Add(r.name, fmt.Sprintf("%.7g", r.p.Value), stdError, ends(r.p.T), ends(r.p.Boot))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	visible.Fprintf(w, "\n%s\n", m.Peak)
	if m.Peak.Exists && m.Peak.ConcurrencyInterval.Valid() {
		visible.Fprintf(w, "peak concurrency %s\npeak throughput %s\n", m.Peak.ConcurrencyInterval,
			m.Peak.ThroughputInterval)
	}
	for _, words := range []string{m.Cap.Words(), m.Fall.Words()} {
		if words != "" {
			visible.Fprintf(w, "%s\n", words)
		}
	}
	visible.Fprintf(w, "errors taken as %s; residual standard error %s, %d degrees of freedom, R² %.4f\n\n",
		m.Errors.Words(), residual(m), m.DegreesOfFreedom, m.RSquared)
	laws := terminal.Table{
		Head:  []string{"LAW", "P", "GAMMA", "ALPHA", "BETA"},
		Right: []bool{false, true, true, true, true},
	}
	for _, l := range m.Alternatives {
		p := fmt.Sprintf("%.2g", l.P)
		if l.Law == usl.Universal {
			p = "-"
		}
		laws.Add(string(l.Law), p, fmt.Sprintf("%.6g", l.Gamma), fmt.Sprintf("%.6g", l.Alpha),
			fmt.Sprintf("%.6g", l.Beta))
	}
	if err := laws.Write(w); err != nil {
		return err
	}
	ruledOut := "below 0.05 it is ruled out"
	if m.Few() {
		ruledOut = "below 0.05 a straight line is ruled out, of so few concurrencies no other law"
	}
	visible.Fprintf(w, "P: chance that the universal law is so much closer if this one holds; %s\n\n", ruledOut)
	if err := d.points().Write(w); err != nil {
		return err
	}
	if len(d.Predictions) > 0 {
		visible.Fprintf(w, "\n")
		p := terminal.Table{Head: []string{"AT", "THROUGHPUT", "THE LAW'S CURVE", "ONE MORE MEASUREMENT", ""},
			Right: []bool{true, true}}
		for _, r := range d.Predictions {
			note := ""
			if r.Extrapolated {
				note = "outside the data"
			}
			p.Add(fmt.Sprintf("%g", r.Concurrency), fmt.Sprintf("%.6g", r.Throughput), ends(r.Mean),
				ends(r.Measurement), note)
		}
		if err := p.Write(w); err != nil {
			return err
		}
	}
	visible.Fprintf(w, "\n")
	d.chart(w)
	for _, warning := range m.Warnings {
		visible.Fprintf(w, "warning: %s\n", warning)
	}
	return nil
}

// mostPoints is how many points the text lists.
const mostPoints = 40

// points are measured and fitted throughput, efficiency and what processing time is made of.
func (d scalability) points() *terminal.Table {
	t := &terminal.Table{
		Head:  []string{"CONCURRENCY", "THROUGHPUT", "FITTED", "EFFICIENCY", "IDEAL", "CONTENTION", "COHERENCY", ""},
		Right: []bool{true, true, true, true, true, true, true},
	}
	for i, p := range d.Points {
		if i == mostPoints {
			t.Add("...", fmt.Sprintf("%d more", len(d.Points)-mostPoints))
			break
		}
		o := d.Model.OverheadAt(p.Concurrency)
		note := ""
		if out := d.Model.Outlier; out != nil && out.Index == i {
			note = "strays from the others"
		}
		t.Add(fmt.Sprintf("%g", p.Concurrency), fmt.Sprintf("%.6g", p.Throughput),
			fmt.Sprintf("%.6g", d.Model.At(p.Concurrency)), share(d.Model.Efficiency(p.Concurrency, p.Throughput)),
			share(o.Ideal), share(o.Contention), share(o.Coherency), note)
	}
	return t
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// residual is the residual standard error in its unit.
func residual(m *usl.Model) string {
	switch m.Errors {
	case usl.Proportional:
		return fmt.Sprintf("%.3g %% of throughput", 100*m.ResidualStdError)
	case usl.Root:
		return fmt.Sprintf("%.4g times its root", m.ResidualStdError)
	}
	return fmt.Sprintf("%.4g", m.ResidualStdError)
}

// ends prints an interval shortly.
func ends(i resample.Interval) string {
	if !i.Valid() {
		return "none: " + i.Reason
	}
	return fmt.Sprintf("%.4g to %.4g", i.Low, i.High)
}

// chart draws the points (o) and the curve (.) with letters.
func (d scalability) chart(w io.Writer) {
	const width, height = 64, 14
	var maxN, maxX float64
	for _, p := range d.Points {
		maxN, maxX = max(maxN, p.Concurrency), max(maxX, p.Throughput)
	}
	if maxX == 0 {
		return
	}
	maxX *= 1.05
	var cells [height][width]byte
	for i := range cells {
		for j := range cells[i] {
			cells[i][j] = ' '
		}
	}
	put := func(n, x float64, c byte) {
		col, row := int(n/maxN*(width-1)+0.5), height-1-int(x/maxX*(height-1)+0.5)
		if col >= 0 && col < width && row >= 0 && row < height {
			cells[row][col] = c
		}
	}
	for i := range width {
		n := maxN * float64(i) / (width - 1)
		put(n, d.Model.At(n), '.')
	}
	for _, p := range d.Points {
		put(p.Concurrency, p.Throughput, 'o')
	}
	for i, row := range cells {
		label := ""
		if i == 0 || i == height-1 {
			label = fmt.Sprintf("%.4g", maxX*float64(height-1-i)/(height-1))
		}
		visible.Fprintf(w, "%10s |%s\n", label, strings.TrimRight(string(row[:]), " "))
	}
	visible.Fprintf(w, "%10s +%s\n%10s  %-*s%g\n", "", strings.Repeat("-", width), "",
		width-len(fmt.Sprintf("%g", maxN)), "0   o measured   . fitted", maxN)
}

func (d scalability) plot() report.Plot {
	p := report.Plot{Title: "Universal Scalability Law", XLabel: "concurrency", YLabel: "throughput"}
	measured := report.PlotSeries{Name: "measured", Marks: true}
	var maxN float64
	for _, q := range d.Points {
		measured.Points = append(measured.Points, report.PlotPoint{X: q.Concurrency, Y: q.Throughput})
		maxN = max(maxN, q.Concurrency)
	}
	fitted := report.PlotSeries{Name: "fitted, with the band of the curve", Line: true}
	for i := range 101 {
		n := maxN * float64(i) / 100
		point := report.PlotPoint{X: n, Y: d.Model.At(n)}
		if r, err := d.Model.Predict(max(n, maxN/1000)); err == nil && r.Mean.Valid() {
			point.Low, point.High = &r.Mean.Low, &r.Mean.High
		}
		fitted.Points = append(fitted.Points, point)
	}
	p.Series = []report.PlotSeries{fitted, measured}
	return p
}
