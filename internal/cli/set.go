package cli

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/untyped"
)

// largestSetFile is as much as a scenario file may hold, in bytes.
const largestSetFile = 4 << 20

// variables reads the values given with --set-file and --set; the latter win. A value is typed as YAML types it: 4 is a
// number, true a boolean, '"4"' a text.
func variables(con *console.Console, files, pairs []string) (untyped.Object, error) {
	set := untyped.Object{}
	for _, name := range files {
		data, err := con.ReadGiven(name, largestSetFile)
		if err != nil {
			return nil, exit.Usagef("", "--set-file: %w", err)
		}
		var m untyped.Object
		if err := yaml.Unmarshal(data, &m); err != nil {
			return nil, exit.Usagef("the file holds one line per variable, like  iops: 4000", "--set-file: %q: %w",
				name, err)
		}
		maps.Copy(set, m)
	}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, exit.Usagef("", "--set: %q: want NAME=VALUE", pair)
		}
		v, err := scalar(text)
		if err != nil {
			return nil, exit.Usagef("quote the value to make it a text", "--set: %s: %w", name, err)
		}
		set[name] = v
	}
	return set, nil
}

// scalar reads a YAML value on one line. What YAML does not take for a value of its own is a text.
func scalar(text string) (any, error) {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("%q is no value: %w", text, err)
	}
	if v == nil && strings.TrimSpace(text) == "" {
		return "", nil
	}
	if reflect.ValueOf(v).Kind() == reflect.Map && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text, nil // "a: b" and the selector "1:" are meant as they stand
	}
	return untyped.Each(v, func(plain any) any { return plain }), nil
}
