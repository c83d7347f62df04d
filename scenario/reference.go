package scenario

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"plimsoll/scenario/jinja"
)

// Reference writes the reference page of the language, in Markdown, from the option tables and what generators object
// to.
func Reference(w io.Writer, generators map[string]Generator) error {
	var b strings.Builder
	b.WriteString("# The scenario language\n\nMade from the option tables of the program.\n")
	b.WriteString("\n## The file\n\nBesides these: `vars` (variables) and `presets` (named sets of their values).\n\n")
	writeRows(&b, fileFields)
	b.WriteString("\n### A variable\n\n")
	writeRows(&b, varFields)
	b.WriteString("\n### A VM group\n\n")
	writeRows(&b, groupFields)
	b.WriteString("\n### A workload\n\n")
	writeRows(&b, workloadFields)
	b.WriteString("\nIn `iogen_params`:\n\n")
	writeRows(&b, iogenFields)
	b.WriteString("\n### A result\n\n")
	writeRows(&b, resultFields)
	b.WriteString("\nA value band:\n\n")
	writeRows(&b, bandFields)
	b.WriteString("\nCluster metrics: ")
	b.WriteString(strings.Join(metricNames(), ", ") + ".\n")
	b.WriteString("\n## Extensions\n\nKeys marked as extensions are Plimsoll's own: published engines refuse or " +
		"ignore them, and `check --strict` says where they stand.\n\n### An assert\n\n")
	writeRows(&b, assertFields)
	b.WriteString("\nIt names exactly one of `query`, `result`, `workload` and `finding`. A run whose assert fails, " +
		"or cannot be judged, exits with 5.\n\n### The experiment\n\n")
	writeRows(&b, experimentFields)
	filters, tests, functions := jinja.Words()
	b.WriteString("\n## Templates\n\n" +
		"Jinja's expressions, `for`, `if`, `set`, `raw`, comments and white-space control.\n\n")
	for _, words := range []struct {
		kind string
		list []string
	}{{"Filters", filters}, {"Tests", tests}, {"Functions", functions}} {
		fmt.Fprintf(&b, "- %s: `%s`\n", words.kind, strings.Join(words.list, "`, `"))
	}
	b.WriteString("\n## Steps\n")
	for _, s := range steps {
		fmt.Fprintf(&b, "\n### %s\n\n%s", s.Name, s.Doc)
		if s.Meta {
			b.WriteString(" It is replaced by other steps when the plan is made.")
		}
		if len(s.Needs) > 0 {
			fmt.Fprintf(&b, " Needs: %s.", strings.Join(s.Needs, ", "))
		}
		if s.OnlyThere != "" {
			fmt.Fprintf(&b, " Only on %s.", s.OnlyThere)
		}
		b.WriteString("\n\n")
		writeRows(&b, s.Args)
	}
	b.WriteString("\n## Objections\n\n")
	writeCodes(&b, Codes())
	for _, name := range slices.Sorted(maps.Keys(generators)) {
		fmt.Fprintf(&b, "\nTo config files of generator `%s`:\n\n", name)
		writeCodes(&b, generators[name].Codes())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCodes(b *strings.Builder, codes []Code) {
	b.WriteString("| code | tolerant | strict | meaning |\n|---|---|---|---|\n")
	for _, c := range codes {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", c.Name, weight(c.Tolerant), weight(c.Strict), c.Doc)
	}
}

func weight(s Severity) string {
	if s == 0 {
		return "–"
	}
	return s.String()
}

func writeRows(b *strings.Builder, rows []ArgSpec) {
	if len(rows) == 0 {
		b.WriteString("No arguments.\n")
		return
	}
	b.WriteString("| name | type | default | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", r.Name, r.Type, defaultText(r), extension(r)+r.Doc+limits(r))
	}
}

func extension(r ArgSpec) string {
	if r.Extension {
		return "*Extension.* "
	}
	return ""
}

func defaultText(r ArgSpec) string {
	switch v := r.Default.(type) {
	case nil:
		if r.Required {
			return "required"
		}
		return "–"
	case Selector:
		return "`" + v.Text + "`"
	case float64:
		return plainNumber(v)
	case bool:
		return jinja.Text(v)
	default:
		return strings.TrimPrefix(fmt.Sprint(v), "map")
	}
}

func limits(r ArgSpec) string {
	var parts []string
	if r.Min != nil {
		parts = append(parts, "at least "+plainNumber(*r.Min))
	}
	if r.Above != nil {
		parts = append(parts, "above "+plainNumber(*r.Above))
	}
	if r.Max != nil && *r.Max < 1e9 {
		parts = append(parts, "at most "+plainNumber(*r.Max))
	}
	if len(r.Enum) > 0 {
		parts = append(parts, strings.Join(r.Enum, " or "))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
