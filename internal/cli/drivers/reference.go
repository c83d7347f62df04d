package drivers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/contract/workload"
	"plimsoll/scenario"
)

// Reference returns what the program prints into the reference page: the scenario language's tables, and the keys of
// every engine's config that has a table of them.
func (r Registry) Reference() map[string]string {
	out := scenario.Reference()
	engines := r.ByName()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		engine, ok := engines[name].(workload.Configured)
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n", name)
		for _, o := range engine.Options() {
			shown := o.Shown()
			value := ""
			if shown.Default != "" {
				value = " (default `" + shown.Default + "`)"
			}
			if shown.Help != "" {
				value += ": " + shown.Help
			}
			fmt.Fprintf(&b, "- `%s`%s\n", o.Name, value)
		}
		b.WriteString("\n")
	}
	out["configs"] = strings.TrimSuffix(b.String(), "\n")
	return out
}
