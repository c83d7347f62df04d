// Package dashboards are the Grafana dashboards that come with the program: Nutanix clusters, hosts, storage containers
// and VMs, runs, PostgreSQL and SQL Server, each as a short description in Go that is written out as Grafana's JSON.
//
// It sits beside the commands, which list and write them; the files of this folder are what they write, for those who
// have the repository only. A dashboard asks any data source that speaks PromQL: `plimsoll serve`, where a variable
// chooses the run, or a Prometheus that scrapes the exporters, where that variable is empty and matches everything. It
// refuses nothing, knows no Grafana, and asks nobody.
package dashboards

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schemaVersion is that of Grafana 11; later ones bring it up to theirs when they import it.
const schemaVersion = 39

// Dashboard is one of them.
type Dashboard struct {
	Name  string // of the file, without .json; plimsoll-Name is the uid in Grafana
	Title string
	Help  string // what it answers, in a sentence

	refresh   string // how often Grafana asks anew; "" for never
	variables []variable
	marks     []annotation
	rows      []row
}

// variable is a choice on top of a dashboard, of the values that a label has.
type variable struct {
	name, label, help string
	query             string // label_values(...)
	one               bool   // exactly one is chosen; else any number, and all of them to begin with
	newest            bool   // the last of the alphabet first
}

type row struct {
	title  string
	panels []panel
}

// panel is a chart. Those of one row are laid out from left to right.
type panel struct {
	kind       string // timeseries, stat or bargauge
	title      string
	help       string
	unit       string // as Grafana calls it
	top        float64
	stacked    bool
	warn, fail float64 // thresholds from which on a value is yellow and red; 0 for none
	below      bool    // thresholds are undercut, not exceeded
	queries    []query
}

type query struct{ expr, legend string }

// annotation marks all charts wherever its query has a point.
type annotation struct{ name, colour, expr string }

// object is one of JSON's; its keys are written in the order of the alphabet.
type object = map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

// All are all dashboards, by name.
func All() []Dashboard {
	all := slices.Concat(nutanix(), []Dashboard{run(), postgres(), sqlServer()})
	slices.SortFunc(all, func(a, b Dashboard) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// JSON is the dashboard as Grafana imports it. Equal dashboards give equal bytes.
func (d Dashboard) JSON() ([]byte, error) {
	variables := []object{{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus",
		"refresh": 1, "hide": 0, "regex": "", "multi": false, "includeAll": false, "options": []any{},
		"current":     object{},
		"description": "plimsoll serve, or a Prometheus that scrapes the exporters."}}
	for _, v := range d.variables {
		variables = append(variables, v.object())
	}
	out := object{
		"uid": "plimsoll-" + d.Name, "title": d.Title, "description": d.Help, "tags": []string{"plimsoll"},
		"schemaVersion": schemaVersion, "version": 1, "editable": true, "graphTooltip": 1, "refresh": d.refresh,
		"timezone": "browser", "time": object{"from": "now-1h", "to": "now"},
		"annotations": object{"list": d.annotations()},
		"links": []object{{"type": "dashboards", "title": "Plimsoll", "tags": []string{"plimsoll"}, "asDropdown": true,
			"includeVars": false, "keepTime": true, "targetBlank": false, "icon": "external link",
			"tooltip": "", "url": ""}},
		"templating": object{"list": variables}, "panels": d.panels(),
	}
	// A line for each key and each panel: what changes is seen, and a page is not a thousand lines.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	put := func(before string, v any) error {
		b.WriteString(before)
		err := e.Encode(v)
		b.Truncate(b.Len() - len("\n"))
		return err
	}
	var err error
	between := "{\n"
	for _, key := range slices.Sorted(maps.Keys(out)) {
		b.WriteString(between)
		between = ",\n"
		if panels, ok := out[key].([]object); ok && key == "panels" {
			before := `"panels": [` + "\n"
			for _, p := range panels {
				err = errors.Join(err, put(before, p))
				before = ",\n"
			}
			b.WriteString("\n]")
			continue
		}
		err = errors.Join(err, put(`"`+key+`": `, out[key]))
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard %q: %w", d.Name, err)
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// annotations mark the charts at faults and at the beginnings of stretches, where the data have them.
func (d Dashboard) annotations() []object {
	out := []object{}
	for _, m := range d.marks {
		out = append(out, object{"name": m.name, "datasource": source, "enable": true, "iconColor": m.colour,
			"expr": m.expr, "titleFormat": m.name, "textFormat": "{{text}}", "step": "15s"})
	}
	return out
}

func (v variable) object() object {
	sort := 1
	if v.newest {
		sort = 2
	}
	out := object{
		"type": "query", "name": v.name, "label": v.label, "description": v.help, "datasource": source,
		"definition": v.query, "query": object{"qryType": 1, "query": v.query, "refId": "variable-" + v.name},
		"refresh": 2, "sort": sort, "hide": 0, "regex": "", "options": []any{}, "multi": !v.one, "includeAll": !v.one,
		"current": object{},
	}
	if !v.one {
		out["allValue"], out["current"] = ".*", object{"text": []string{"All"}, "value": []string{"$__all"}}
	}
	return out
}

// Sizes of panels in Grafana's grid, which is 24 wide.
const (
	gridWidth              = 24
	chartWidth, chartTall  = 12, 8
	numberWidth, numberTal = 6, 4
)

func (d Dashboard) panels() []object {
	var out []object
	y := 0
	for _, r := range d.rows {
		out = append(
			out,
			object{"id": len(out) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []any{},
				"gridPos": object{"x": 0, "y": y, "w": gridWidth, "h": 1}},
		)
		y++
		x, tall := 0, 0
		for _, p := range r.panels {
			w, h := chartWidth, chartTall
			if p.kind == "stat" {
				w, h = numberWidth, numberTal
			}
			if x+w > gridWidth {
				x, y, tall = 0, y+tall, 0
			}
			o := p.object()
			o["id"], o["gridPos"] = len(out)+1, object{"x": x, "y": y, "w": w, "h": h}
			out = append(out, o)
			x, tall = x+w, max(tall, h)
		}
		y += tall
	}
	return out
}

func (p panel) object() object {
	steps := []object{{"color": "green", "value": nil}}
	switch {
	case p.below:
		steps = []object{{"color": "red", "value": nil}, {"color": "yellow", "value": p.fail},
			{"color": "green", "value": p.warn}}
	case p.warn > 0:
		steps = append(steps, object{"color": "yellow", "value": p.warn}, object{"color": "red", "value": p.fail})
	}
	defaults := object{"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": steps},
		"color": object{"mode": "thresholds"}, "mappings": []any{}}
	if p.top > 0 {
		defaults["max"] = p.top
	}
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "editorMode": "code",
			"expr": q.expr, "legendFormat": q.legend, "range": p.kind != "bargauge", "instant": p.kind == "bargauge"})
	}
	reduced := object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}
	options := object{"reduceOptions": reduced, "colorMode": "value", "graphMode": "area", "justifyMode": "auto",
		"orientation": "auto", "textMode": "auto", "wideLayout": true}
	switch p.kind {
	case "bargauge":
		options = object{"reduceOptions": reduced, "displayMode": "basic", "orientation": "horizontal",
			"showUnfilled": true, "valueMode": "color", "namePlacement": "auto", "sizing": "auto", "minVizHeight": 12,
			"minVizWidth": 8, "maxVizHeight": 300}
	case "timeseries":
		defaults["color"] = object{"mode": "palette-classic"}
		options = object{"legend": object{"displayMode": "table", "placement": "bottom", "showLegend": true,
			"calcs": []string{"mean", "max", "lastNotNull"}}, "tooltip": object{"mode": "multi", "sort": "desc"}}
		defaults["custom"] = p.drawn()
	}
	return object{"type": p.kind, "title": p.title, "description": p.help, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}}, "options": options}
}

// drawn is how lines are drawn.
func (p panel) drawn() object {
	fill, stacking, line := 8, "none", "off"
	if p.stacked {
		fill, stacking = 40, "normal"
	}
	if p.warn > 0 {
		line = "dashed"
	}
	return object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill, "showPoints": "auto", "pointSize": 4,
		"spanNulls": false, "stacking": object{"mode": stacking, "group": "A"},
		"thresholdsStyle": object{"mode": line}, "axisPlacement": "auto", "scaleDistribution": object{"type": "linear"}}
}

// Makers of panels.

func chart(title, unit, help string, queries ...query) panel {
	return panel{kind: "timeseries", title: title, unit: unit, help: help, queries: queries}
}

func number(title, unit, help, expr string) panel {
	return panel{kind: "stat", title: title, unit: unit, help: help, queries: []query{{expr, ""}}}
}

func bars(title, unit, help, expr, legend string) panel {
	return panel{kind: "bargauge", title: title, unit: unit, help: help, queries: []query{{expr, legend}}}
}

func (p panel) stack() panel { p.stacked = true; return p }

// to sets the end of the axis, and from which values on it is yellow and red; 0 for none.
func (p panel) to(top, warn, fail float64) panel {
	p.top, p.warn, p.fail = top, warn, fail
	return p
}

// under is to with values that are yellow and red below a threshold.
func (p panel) under(warn, fail float64) panel {
	p.warn, p.fail, p.below = warn, fail, true
	return p
}

// anyRun chooses runs of plimsoll serve, by a metric of what the dashboard is about.
func anyRun(metric string) variable {
	return variable{name: "run", label: "Run", query: "label_values(" + metric + ", run)", newest: true,
		help: "A run of plimsoll serve. A Prometheus that scrapes exporters has none: leave it at All."}
}

// choice chooses values of a label.
func choice(name, label, metric string) variable {
	return variable{name: name, label: label, query: "label_values(" + metric + ", " + name + ")"}
}
