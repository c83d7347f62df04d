package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"plimsoll/hist"
	"plimsoll/result"
)

// TestFiguresOfPages walks the figures of the pages of a run, a comparison, an experiment and a search: each is what
// the data.json of its runs says, computed here from counts, sums and histograms alone.
func TestFiguresOfPages(t *testing.T) {
	root := t.TempDir()
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[job]\nrw=randrw\nbs=4k\nsize=64m\nioengine=libaio\ndirect=1\ntime_based\nruntime=20\niodepth=4\n")
	main := func(args ...string) string {
		t.Helper()
		a, out, errs := quiet(t)
		if code := a.main(append(args, "--dir", root, "-q")); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, errs)
		}
		return out.String()
	}
	main("run", job, "--target", "sim", "--name", "first")
	main("run", job, "--target", "sim", "--name", "second", "--target-opt", "seed=2")
	main("run", job, "--target", "sim", "--name", "swept", "--sweep", "iodepth=1,8", "--repeat", "2")
	main("mark", job, "--target", "sim", "--name", "searched", "--limit", "read p99 < 2ms")
	dir := func(name string) string {
		t.Helper()
		dirs, _ := filepath.Glob(filepath.Join(root, "*"))
		for _, dir := range dirs {
			if l, err := result.ReadLabels(dir); err == nil && l.Name == name {
				return dir
			}
		}
		t.Fatalf("nothing is called %s", name)
		return ""
	}
	checked := 0
	same := func(where, shown string, want float64) {
		t.Helper()
		checked++
		got, half := read(t, shown)
		if math.Abs(got-want) > 1.001*half {
			t.Errorf("%s: the page says %s, data.json %g", where, shown, want)
		}
	}

	first, second := ofRuns(t, dir("first")), ofRuns(t, dir("second"))
	for _, row := range rowsOf(t, main("report", "first", "-o", "html"), "Workload", "Operation", "p99.9") {
		op := row["Operation"]
		f := first[op]
		for name, want := range map[string]float64{"Rate": f.rate, "Bandwidth": f.bandwidth, "Mean": f.mean,
			"p50": f.at(0.5), "p99": f.at(0.99), "p99.9": f.at(0.999)} {
			same("report, "+op+" "+name, row[name], want)
		}
	}

	for _, row := range rowsOf(t, main("compare", "first", "second", "-o", "html"), "Measure", "Baseline") {
		for side, of := range map[string]map[string]figures{"Baseline": first, "Candidate": second} {
			if want, ok := spoken(of, row["Measure"]); ok {
				same("comparison, "+row["Measure"], row[side], want)
			}
		}
	}

	byDepth := map[string][]string{}
	for _, run := range runsOf(t, dir("swept")) {
		depth := fmt.Sprint("iodepth ", jobs(t, run)[0].Streams[0].Depth)
		byDepth[depth] = append(byDepth[depth], run)
	}
	combination := ""
	for _, row := range rowsOf(t, main("report", "swept", "-o", "html"), "Combination", "Mean") {
		if row["Combination"] != "" {
			combination = row["Combination"]
		}
		if want, ok := spoken(ofRuns(t, byDepth[combination]...), strings.TrimPrefix(row["Measure"], "job ")); ok {
			same("experiment, "+combination+", "+row["Measure"], row["Mean"], want)
		}
	}

	var rates []float64
	for _, run := range runsOf(t, dir("searched")) {
		of := ofRuns(t, run)
		rates = append(rates, of["read"].rate+of["write"].rate, of["read"].rate, of["write"].rate)
	}
	for _, row := range rowsOf(t, main("report", "searched", "-o", "html"), "Offered", "Achieved") {
		got, half := read(t, row["Achieved"])
		checked++
		if !slices.ContainsFunc(rates, func(r float64) bool { return math.Abs(got-r) <= 1.001*half }) {
			t.Errorf("search: no run achieved %s: %v", row["Achieved"], rates)
		}
	}
	if checked < 50 {
		t.Errorf("%d figures were checked", checked)
	}
}

// figures are what one operation did, over one or several runs.
type figures struct {
	rate, bandwidth, mean float64 // bandwidth in bytes, mean in seconds
	times                 *hist.Histogram
}

func (f figures) at(q float64) float64 {
	v, _ := f.times.Percentile(q)
	return float64(v) / 1e9
}

// jobs are the measured workloads of a run, of all their VMs.
func jobs(t *testing.T, dir string) (out []result.Workload) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data.json"))
	if err != nil {
		t.Fatal(err)
	}
	var data result.Data
	if err := json.Unmarshal(text, &data); err != nil {
		t.Fatal(err)
	}
	for _, w := range data.Workloads {
		if w.VM == "" && !w.Prefill {
			out = append(out, w)
		}
	}
	return out
}

// ofRuns are the figures by operation: rates are means of runs, times are of all operations.
func ofRuns(t *testing.T, dirs ...string) map[string]figures {
	t.Helper()
	out, counts := map[string]figures{}, map[string]float64{}
	for _, dir := range dirs {
		for _, w := range jobs(t, dir) {
			seconds := w.End.Sub(w.Start).Seconds()
			for _, o := range w.Ops {
				f := out[o.Op]
				if f.times == nil {
					f.times = &hist.Histogram{}
				}
				f.rate += float64(o.Count) / seconds / float64(len(dirs))
				f.bandwidth += float64(o.Bytes) / seconds / float64(len(dirs))
				f.mean += o.Seconds
				counts[o.Op] += float64(o.Count)
				f.times.Merge(o.Hist)
				out[o.Op] = f
			}
		}
	}
	for op, f := range out {
		f.mean /= counts[op]
		out[op] = f
	}
	return out
}

// spoken is the figure of which a measure's name speaks.
func spoken(of map[string]figures, measure string) (float64, bool) {
	op, what, _ := strings.Cut(measure, " ")
	f, ok := of[op]
	if !ok {
		return 0, false
	}
	switch what {
	case "IOPS":
		return f.rate, true
	case "mean service time":
		return f.mean, true
	case "p50 service time":
		return f.at(0.5), true
	case "p90 service time":
		return f.at(0.9), true
	case "p99 service time":
		return f.at(0.99), true
	}
	return 0, false
}

// runsOf are the folders of an experiment's runs.
func runsOf(t *testing.T, dir string) []string {
	t.Helper()
	dirs, err := result.Folders(filepath.Join(dir, "runs"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	return dirs
}

var quantityShown = regexp.MustCompile(`^([0-9,]+(?:\.([0-9]+))?) (\S+)$`)

// read is a quantity as a page shows it, and half of its last digit.
func read(t *testing.T, shown string) (value, half float64) {
	t.Helper()
	m := quantityShown.FindStringSubmatch(strings.ReplaceAll(shown, "\u00a0", " "))
	if m == nil {
		t.Fatalf("%q is no quantity", shown)
	}
	unit, known := map[string]float64{"IOPS": 1, "B/s": 1, "KiB/s": 1 << 10, "MiB/s": 1 << 20, "GiB/s": 1 << 30,
		"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[m[3]]
	value, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil || !known {
		t.Fatalf("%q: %v", shown, err)
	}
	return value * unit, unit * math.Pow(10, -float64(len(m[2]))) / 2
}

// rowsOf are the rows of all tables of a page that have some columns, by the heads of their columns. A cell that spans
// rows stands in the first of them.
func rowsOf(t *testing.T, page string, columns ...string) (out []map[string]string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Data != "table" {
			continue
		}
		var rows [][]string
		spans := map[int]int{} // how many rows each column's cell goes on for
		for tr := range n.Descendants() {
			if tr.Data != "tr" {
				continue
			}
			var row []string
			goesOn := func() {
				for spans[len(row)] > 0 {
					spans[len(row)]--
					row = append(row, "")
				}
			}
			for c := range tr.ChildNodes() {
				if c.Type != html.ElementNode {
					continue
				}
				goesOn()
				wide := 1
				for _, a := range c.Attr {
					n, _ := strconv.Atoi(a.Val)
					switch a.Key {
					case "rowspan":
						spans[len(row)] = n - 1
					case "colspan":
						wide = n
					}
				}
				row = append(append(row, textOf(c)), make([]string, wide-1)...)
			}
			goesOn()
			rows = append(rows, row)
		}
		if len(rows) == 0 || slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(rows[0], c) }) {
			continue
		}
		for _, row := range rows[1:] {
			of := map[string]string{}
			for i, cell := range row {
				of[rows[0][min(i, len(rows[0])-1)]] = cell
			}
			out = append(out, of)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no table with %q", columns)
	}
	return out
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		of := d.Parent.Attr
		if d.Type == html.TextNode && !slices.Contains(of, html.Attribute{Key: "class", Val: "phone"}) {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}
