package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func (d *document) results() {
	for _, e := range d.named("results") {
		at := d.nodePos(e.key)
		of := fmt.Sprintf("result %q", e.name)
		f, _ := d.decode(e.value, at, of, resultFields, "unknown-key")
		r := Result{
			Name: e.name, Title: e.name, Description: f.String("description"), Hint: f.String("result_hint"),
			ReportGroup: f.String("report_group"), Metrics: f.Strings("report_metrics"),
			XLabel: f.String("x_label"), YLabel: f.String("y_label"), Pos: at,
		}
		if f.Has("title") {
			r.Title = f.String("title")
		}
		if d.resultKind(&r, f, of) {
			d.aggregate(&r, f, of)
			d.resultQuery(&r, f, of)
		}
		d.resultMarks(&r, f, of)
		d.sc.Results = append(d.sc.Results, r)
	}
}

// resultKind decides where the numbers come from: a VM group if its types include the one given, else a workload,
// else the cluster.
func (d *document) resultKind(r *Result, f fields, of string) bool {
	given := strings.ToLower(strings.TrimSpace(f.String("result_type")))
	switch {
	case f.Has("vm_group"):
		r.Kind, r.Type, r.Group = GroupResult, given, f.String("vm_group")
		return d.knownGroup(f.where("vm_group"), of, r.Group) && d.resultType(f, of, given, "a VM group", groupTypes)
	case f.Has("workload_name"):
		r.Kind, r.Type, r.Workload = WorkloadResult, given, f.String("workload_name")
		if !d.knownWorkload(f.where("workload_name"), of, r.Workload) {
			return false
		}
		w, _ := d.workload(r.Workload)
		r.Group = w.Group
		return d.resultType(f, of, given, "a workload", workloadTypes)
	case f.Has("metric"):
		r.Kind, r.Metric = ClusterResult, f.String("metric")
		experimental, ok := clusterMetrics[r.Metric]
		switch known := metricNames(); {
		case !ok:
			d.say("metric", f.where("metric"), fmt.Sprintf("%s: unknown metric %q", of, r.Metric),
				didYouMean(r.Metric, known))
		case experimental:
			d.say("metric-experimental", f.where("metric"), fmt.Sprintf("%s: metric %s is experimental", of, r.Metric),
				"published engines leave it out unless told to show it")
		}
		return ok
	}
	d.say("result-kind", r.Pos, of+" says not what it is a result of", "add vm_group, workload_name or metric")
	return false
}

// ClusterMetric is a counter that results of the cluster can be of.
type ClusterMetric struct {
	Name         string
	Experimental bool // published engines show it only when told to
}

// ClusterMetrics are all there are, sorted by name.
func ClusterMetrics() []ClusterMetric {
	var list []ClusterMetric
	for _, name := range metricNames() {
		list = append(list, ClusterMetric{name, clusterMetrics[name]})
	}
	return list
}

func metricNames() []string { return slices.Sorted(maps.Keys(clusterMetrics)) }

func (d *document) resultType(f fields, of, given, kind string, types []string) bool {
	if slices.Contains(types, given) {
		return true
	}
	what := fmt.Sprintf("%s: %s has no result_type %q", of, kind, given)
	if given == "" {
		what = of + " lacks result_type"
	}
	d.say("result-type", f.where("result_type"), what, didYouMean(given, types))
	return false
}

func (d *document) aggregate(r *Result, f fields, of string) {
	if !f.Has("aggregate") {
		return
	}
	at := f.where("aggregate")
	r.Aggregate = strings.ToLower(strings.TrimSpace(f.String("aggregate")))
	if !slices.Contains(aggregates, r.Aggregate) {
		hint := didYouMean(r.Aggregate, aggregates)
		if r.Aggregate == "avg" {
			hint = "write mean"
		}
		d.say("aggregate", at, fmt.Sprintf("%s: unknown aggregate %q", of, r.Aggregate), hint)
		return
	}
	latency := r.Type == "latency"
	if r.Kind == GroupResult && (r.Aggregate == "median" || latency && (r.Aggregate == "min" || r.Aggregate == "max")) {
		hint := "use sum, min, mean or max"
		if latency {
			hint = "use mean"
		}
		d.say("aggregate-fails", at, fmt.Sprintf("%s: the %s of a VM group's %s cannot be computed", of, r.Aggregate,
			r.Type), hint)
	}
}

// longestQuery is the number of points Prometheus gives per series.
const longestQuery = 11_000

func (d *document) resultQuery(r *Result, f fields, of string) {
	if r.Kind != GroupResult {
		for _, name := range []string{"workload_mask", "step", "query"} {
			if f.Has(name) {
				d.say("ignored-field", f.where(name), fmt.Sprintf("%s: %s has no effect here", of, name),
					"it belongs to results of a VM group")
			}
		}
		return
	}
	r.Mask, r.Query, r.Step = f.String("workload_mask"), f.String("query"), 5*time.Second
	if f.Has("workload_mask") {
		d.knownWorkload(f.where("workload_mask"), of, r.Mask)
	}
	if f.Has("step") {
		step, ok := parsePromDuration(f.String("step"))
		if !ok {
			d.say("bounds", f.where("step"), fmt.Sprintf("%s: step %q is not a duration", of, f.String("step")),
				"write 5s or 1m")
			step = r.Step
		}
		r.Step = step
	}
	switch generic := r.Type == "generic"; {
	case generic && strings.TrimSpace(r.Query) == "":
		d.say("no-query", r.Pos, of+" is generic and has no query", "add query:")
	case generic:
		if !strings.Contains(r.Query, "__curie_filter_") {
			d.say("query-unfiltered", f.where("query"), of+": the query has no filter and sees other runs as well",
				"add __curie_filter_scenario__ to its selectors")
		}
		if d.opts.CheckQuery != nil {
			if err := d.opts.CheckQuery(r.Query); err != nil {
				d.say("promql", f.where("query"), fmt.Sprintf("%s: query: %v", of, err), "")
			}
		}
	case r.Query != "":
		d.say("ignored-field", f.where("query"), fmt.Sprintf("%s: a query has no effect with result_type %s", of,
			r.Type), "use generic")
	}
}

// resultMarks reads what is drawn beside the numbers: expected value, bands, report metrics.
func (d *document) resultMarks(r *Result, f fields, of string) {
	if v, ok := numberOf(f.Args["result_expected_value"]); ok {
		if v == 0 {
			d.say("expected-zero", f.where("result_expected_value"), of+": an expected value of 0 counts as absent",
				"use a band")
		} else {
			r.Expected = &v
		}
	}
	if bands, ok := f.Args["result_value_bands"].(*yaml.Node); ok {
		for _, n := range bands.Content {
			b, ok := d.decode(n, d.nodePos(n), of+": a value band", bandFields, "unknown-key")
			if !ok {
				continue
			}
			lower, _ := numberOf(b.Args["lower"])
			upper, _ := numberOf(b.Args["upper"])
			if lower > upper {
				d.say("band-order", b.at, fmt.Sprintf("%s: band %q goes from %s down to %s", of, b.String("name"),
					plainNumber(lower), plainNumber(upper)), "exchange upper and lower")
			}
			r.Bands = append(r.Bands, Band{Name: b.String("name"), Lower: lower, Upper: upper})
		}
	}
	for _, m := range r.Metrics {
		if !slices.Contains(reportMetrics, m) {
			d.say("report-metric", f.where("report_metrics"), fmt.Sprintf("%s: unknown report metric %q", of, m),
				didYouMean(m, reportMetrics))
		}
	}
	if len(r.Metrics) == 0 {
		r.Metrics = []string{"NoScore"}
	}
}

// numberOf is the number in a decoded NumberText.
func numberOf(v any) (float64, bool) {
	f, ok := v.(float64)
	return f, ok
}

var promDuration = regexp.MustCompile(`^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$`)

// parsePromDuration reads a duration as Prometheus writes it, or a number of seconds.
func parsePromDuration(text string) (time.Duration, bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		d := time.Duration(v * float64(time.Second))
		return d, v > 0 && v < maxSeconds && d > 0
	}
	m := promDuration.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	units := []time.Duration{365 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute,
		time.Second, time.Millisecond}
	total := 0.0
	for i, unit := range units {
		if m[i+1] != "" {
			n, _ := strconv.ParseFloat(m[i+1], 64)
			total += n * float64(unit)
		}
	}
	return time.Duration(total), total > 0 && total < maxSeconds*float64(time.Second)
}
