package runs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/analysis/plausibility"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/workloads/probe"
	"plimsoll/result"
)

// What help says of data sheets.
var (
	SheetUsage = "compare the figures with the vendor's rated specification: a YAML `FILE`, or single ratings " +
		"NAME=VALUE; repeatable"
	SheetHelp = `With --data-sheet the figures are compared with the vendor's rated specification: a YAML file of NAME: VALUE,
or NAME=VALUE on the command line, which wins. NAME is one of
` + strings.Join(sheetNames(), ", ") + `, and in a file also device, for its name.`
)

// largestDataSheet is far more than a data sheet needs.
const LargestDataSheet = 1 << 20

// sheetNames are what of a data sheet can be given.
func sheetNames() []string {
	var out []string
	for _, s := range plausibility.Ratings {
		out = append(out, strings.ReplaceAll(s.Name, " ", "-"))
	}
	return out
}

// DataSheet makes facts of what was given, files first, and returns all objections.
func DataSheet(con *console.Console, given []string) ([]result.Fact, error) {
	var single []string
	promises := map[string]string{}
	var facts []result.Fact
	var bad []error
	for _, g := range given {
		if strings.Contains(g, "=") {
			single = append(single, g)
			continue
		}
		device, list, err := readDataSheet(con, g)
		if err != nil {
			bad = append(bad, err)
		}
		if device != "" {
			facts = append(facts, plausibility.RatedDevice(device))
		}
		maps.Copy(promises, list)
	}
	over, err := console.Pairs("--data-sheet", single)
	if err != nil {
		bad = append(bad, err)
	}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		if err := checkPromise(name, over[name]); err != nil {
			bad = append(bad, fmt.Errorf("--data-sheet: %w", err))
		}
	}
	maps.Copy(promises, over)
	if len(bad) > 0 {
		return nil, exit.Usagef("there are: "+strings.Join(sheetNames(), ", "), "%w", errors.Join(bad...))
	}
	for i, name := range sheetNames() {
		if value, ok := promises[name]; ok {
			fact, err := plausibility.Ratings[i].Fact(value)
			if err != nil { // checked above
				return nil, fmt.Errorf("--data-sheet: %s: %w", name, err)
			}
			facts = append(facts, fact)
		}
	}
	return facts, nil
}

// checkPromise objects to a name that no data sheet has here, and to a value that does not fit it.
func checkPromise(name, value string) error {
	at := slices.Index(sheetNames(), name)
	if at < 0 {
		if like := nearest.Of(name, sheetNames()); like != "" {
			return fmt.Errorf("no rating %q; did you mean %q?", name, like)
		}
		return fmt.Errorf("no rating %q", name)
	}
	if _, err := plausibility.Ratings[at].Fact(value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readDataSheet reads a file: the device's name and the promises in it, and all objections with their lines.
func readDataSheet(con *console.Console, name string) (device string, promises map[string]string, err error) {
	data, err := con.ReadGiven(name, LargestDataSheet)
	if err != nil {
		return "", nil, fmt.Errorf("--data-sheet: %w", err)
	}
	return parseDataSheet(name, data)
}

// parseDataSheet reads the ratings that are compared with any run; of a line with several, the highest.
func parseDataSheet(name string, data []byte) (device string, promises map[string]string, err error) {
	sheet, err := probe.ParseSheet("--data-sheet: "+name, data)
	promises, highest := map[string]string{}, map[string]float64{}
	for _, l := range sheet.Lines {
		if slices.Contains(sheetNames(), l.Name) && l.Rated > highest[l.Name] {
			promises[l.Name], highest[l.Name] = l.Text, l.Rated
		}
	}
	return sheet.Device, promises, err
}

// WithSheet puts facts of a data sheet into an environment, in the place of those of the same name.
func WithSheet(environment, sheet []result.Fact) []result.Fact {
	kept := slices.DeleteFunc(slices.Clone(environment), func(f result.Fact) bool {
		return f.Kind != "" && slices.ContainsFunc(sheet, func(s result.Fact) bool { return s.Kind == f.Kind })
	})
	return append(kept, sheet...)
}
