package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/kit/untyped"
	"plimsoll/scenario/jinja"
)

// Reference prints the option tables for the reference page, by the names that its markers have: a table, a step, the
// words of templates, the metrics of clusters.
func Reference() map[string]string {
	out := map[string]string{"words": words(), "metrics": metrics()}
	for name, rows := range Tables() {
		if _, step := LookupStep(name); !step {
			out["table "+name] = table(rows)
		}
	}
	for _, s := range Steps() {
		text := s.Doc
		if s.Extension {
			text = "*Extension.* " + text
		}
		if s.Meta {
			text += " It is replaced by other steps when the plan is made."
		}
		if len(s.Needs) > 0 {
			text += " Needs: " + strings.Join(s.Needs, ", ") + "."
		}
		if s.OnlyThere != "" {
			text += " Only on " + s.OnlyThere + "."
		}
		out["step "+s.Name] = text + "\n\n" + table(s.Args)
	}
	return out
}

// table lists names with their type, default and bounds, and what they mean unless the name says it.
func table(rows []ArgSpec) string {
	if len(rows) == 0 {
		return "No arguments.\n"
	}
	said := []string{"the VM group", "the workload", "the nodes, as a selector", "write annotations to the results"}
	var b strings.Builder
	for _, r := range rows {
		if r.Name == "annotate" && r.Default == false {
			continue // the page says it once, of all steps
		}
		about := slices.DeleteFunc([]string{string(r.Type), defaults(r), bounds(r)},
			func(fact string) bool { return fact == "" })
		meaning := ": " + r.Doc
		if slices.Contains(said, r.Doc) {
			meaning = ""
		}
		if r.Extension {
			meaning = ": *Extension.* " + r.Doc
		}
		fmt.Fprintf(&b, "- `%s` (%s)%s\n", r.Name, strings.Join(about, ", "), meaning)
	}
	if b.Len() == 0 {
		return "No further arguments.\n"
	}
	return b.String()
}

func defaults(r ArgSpec) string {
	text := ""
	switch v := r.Default.(type) {
	case nil:
		if r.Required {
			return "required"
		}
		return ""
	case Selector:
		text = "`" + v.Text + "`"
	case untyped.Object:
		text = "{}"
	case float64:
		text = strings.TrimSuffix(jinja.Text(v), ".0")
	case bool:
		text = jinja.Text(v)
	default:
		text = fmt.Sprint(v)
	}
	return "default " + text
}

func bounds(r ArgSpec) string {
	number := func(v float64) string { return strings.TrimSuffix(jinja.Text(v), ".0") }
	var parts []string
	switch most := r.Max != nil && *r.Max < 1e9; {
	case r.Min != nil && most:
		parts = append(parts, number(*r.Min)+" to "+number(*r.Max))
	case r.Min != nil:
		parts = append(parts, "at least "+number(*r.Min))
	case r.Above != nil:
		parts = append(parts, "above "+number(*r.Above))
		fallthrough
	case most:
		if most {
			parts = append(parts, "at most "+number(*r.Max))
		}
	}
	if len(r.Enum) > 0 {
		parts = append(parts, strings.Join(r.Enum, " or "))
	}
	return strings.Join(parts, ", ")
}

func words() string {
	var b bytes.Buffer
	filters, tests, functions := jinja.Words()
	for _, words := range []struct {
		kind string
		list []string
	}{{"Filters", filters}, {"Tests", tests}, {"Functions", functions}} {
		line := "- " + words.kind + ":"
		for i, w := range words.list {
			w = " `" + w + "`" + map[bool]string{true: ","}[i+1 < len(words.list)]
			if len(line)+len(w) > 118 {
				fmt.Fprintln(&b, line)
				line = " "
			}
			line += w
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

func metrics() string {
	var b bytes.Buffer
	for _, m := range ClusterMetrics() {
		mark := ""
		if m.Experimental {
			mark = " (experimental)"
		}
		fmt.Fprintf(&b, "- `%s`%s\n", m.Name, mark)
	}
	return b.String()
}
