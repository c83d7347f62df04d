package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/untyped"
)

// dbFactor is what a sweep of db run varies.
type dbFactor struct {
	variable string // of the scenario
	key      string // of the load's config; "" for a setting of the server
	setting  string
	values   []string // of YAML, in one line each
}

var (
	factorName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	settingName = regexp.MustCompile(`^server\.([a-z][a-z0-9_.]{0,60})$`)
)

// mostRepeats bounds an experiment of db run.
const mostRepeats = 1000

// factors reads --sweep: clients and scale are what the flags of that name are, server.NAME is a setting of the run's
// own server, and all else is a key of the load's config.
func (f *dbRunFlags) factors(name string, load dbLoad) (out []dbFactor, err error) {
	var bad []error
	object := func(format string, args ...any) { bad = append(bad, fmt.Errorf("db run: "+format, args...)) }
	if f.repeats < 0 || f.repeats > mostRepeats {
		object("--repeat %d: want 1 to %d runs of every combination", f.repeats, mostRepeats)
	}
	for _, text := range f.sweeps {
		key, list, ok := strings.Cut(text, "=")
		one := dbFactor{variable: key, key: key}
		setting := settingName.FindStringSubmatch(key)
		switch {
		case !ok || list == "":
			object("--sweep %q: want NAME=VALUE,VALUE,..., like clients=1,2,4", text)
			continue
		case setting != nil:
			one.key, one.setting = "", setting[1]
			one.variable = strings.ReplaceAll(setting[1], ".", "_")
			if f.server.url != "" || load.scale == "" {
				object("--sweep %s: it is of a server that the run makes; yours is never reconfigured", key)
			}
		case !factorName.MatchString(key):
			object("--sweep %q: %q is no name: want clients, scale, server.SETTING or a key of %s's config", text, key, name)
		case key == "clients":
			one.key = load.clients
		case key == "scale" && load.scale == "":
			object("--sweep scale: %s loads the schema that it has built before, of the size that it has", name)
		case key == "scale":
			one.key = load.scale
		case key == "rate" && !load.rate:
			object("--sweep rate: %s takes none", name)
		case slices.Contains([]string{"server", "scripts", "settings", "passwords", "variables"}, key):
			object("--sweep %s: it has no single values to go through", key)
		}
		if slices.ContainsFunc(out, func(o dbFactor) bool { return o.variable == one.variable }) {
			object("--sweep %s is given twice", key)
		}
		if f.given(key) {
			object("--sweep %s and --%[1]s: give one of them", key)
		}
		for v := range strings.SplitSeq(list, ",") {
			value, err := plainValue(v)
			switch {
			case err != nil:
				object("--sweep %s: %v", key, err)
			case slices.Contains(one.values, value):
				object("--sweep %s: %s is given twice", key, v)
			}
			one.values = append(one.values, value)
		}
		out = append(out, one)
	}
	return out, errors.Join(bad...)
}

// plainValue is a value as YAML has it, quoted where it is no number and no word of YAML's.
func plainValue(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.ContainsAny(text, "{}%#\"\\\n") {
		return "", fmt.Errorf("%q is no plain value", text)
	}
	var n yaml.Node
	if yaml.Unmarshal([]byte(text), &n) == nil && len(n.Content) == 1 && slices.Contains([]string{"!!int", "!!float"},
		n.Content[0].Tag) {
		return text, nil
	}
	quoted, err := json.Marshal(text) // is YAML, too
	return string(quoted), err
}

// vary makes an experiment of a scenario, or the start of a search.
func (f *dbRunFlags) vary(sc *dbScenario, load dbLoad, factors []dbFactor, settings map[string]string) {
	switch f.marked {
	case clientsOption:
		sc.Vars = []dbVariable{{"clients", "1", "Clients at a time."}}
		sc.Options = []dbPair{{load.clients, "clients"}}
	case rateOption:
		sc.Vars = []dbVariable{{"rate", "0", "Transactions per second that are offered; 0 as many as it takes."}}
		sc.OfferedRate = true
	default:
		sc.Factors, sc.Repeats = factors, f.repeats
	}
	if f.marked != "" {
		return
	}
	var server []string
	for _, x := range factors {
		what := "Key " + x.key + " of the load."
		if x.setting != "" {
			what = "The server's " + x.setting + "."
			server = append(server, fmt.Sprintf("%s: '{{ %s }}'", x.setting, x.variable))
		} else {
			sc.Options = append(sc.Options, dbPair{x.key, x.variable})
		}
		sc.Vars = append(sc.Vars, dbVariable{x.variable, x.values[0], what})
	}
	if len(server) > 0 {
		for name, value := range settings {
			server = append(server, fmt.Sprintf("%s: '%s'", name, strings.ReplaceAll(value, "'", "''")))
		}
		slices.Sort(server)
		sc.Server = strings.Join(server, ", ")
	}
}

// left reports whether the load makes no tables: it uses those that are there.
func (pl *planner) left(load dbLoad, config []byte) bool {
	e, ok := pl.Drivers.ByName()[load.engine].(workload.Filling)
	return ok && !e.Fills(workload.Spec{Name: load.engine, ConfigFile: "load.yml", Config: config})
}

// ownScripts puts the files of --file and the variables of --define into a load's config.
func (f *dbRunFlags) ownScripts(name string, load dbLoad, config untyped.Object) error {
	if len(f.files)+len(f.define) == 0 {
		return nil
	}
	if load.selectOnly == "" {
		return fmt.Errorf("db run: --file and --define are of pgbench and pg; %s has no scripts", name)
	}
	var bad []error
	if f.selectOnly && len(f.files) > 0 {
		bad = append(bad, errors.New("db run: --select-only and --file: give one of them; with --option scripts=... a list "+
			"can have {builtin: select-only, weight: 9}"))
	}
	var scripts []any
	used := map[string]int{}
	for _, given := range f.files {
		path, weight := given, 1
		if at := strings.LastIndexByte(given, '@'); at > 0 {
			n, err := strconv.Atoi(given[at+1:])
			if err != nil || n < 0 {
				bad = append(bad, fmt.Errorf("db run: --file %q: %q is no weight: want a whole number", given,
					given[at+1:]))
				continue
			}
			path, weight = given[:at], n
		}
		text, err := readScript(path)
		if err != nil {
			bad = append(bad, fmt.Errorf("db run: --file %q: %w", given, err))
			continue
		}
		if weight == 0 { // as pgbench has it: it never runs
			continue
		}
		script := scriptWord(path)
		if used[script]++; used[script] > 1 {
			script += "-" + strconv.Itoa(used[script])
		}
		node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
		if strings.TrimLeft(text, " \t\n") != text { // a block that begins with a blank is not read back
			node.Style = yaml.DoubleQuotedStyle
		}
		scripts = append(scripts, untyped.Object{"name": script, "weight": weight, "text": node})
	}
	if len(scripts) > 0 {
		config["scripts"] = scripts
	} else if len(f.files) > 0 && len(bad) == 0 {
		bad = append(bad, errors.New("db run: --file: all weights are 0, and nothing would run"))
	}
	variables := map[string]string{}
	for _, text := range f.define {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			bad = append(bad, fmt.Errorf("db run: --define %q: want NAME=VALUE", text))
		}
		variables[name] = value
	}
	if len(variables) > 0 {
		config["variables"] = variables
	}
	return errors.Join(bad...)
}

// readScript reads a file of transactions.
func readScript(path string) (string, error) {
	in, err := regular.Open(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer in.Close()
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && len(data) > most {
		err = regular.TooLarge(most)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	if err == nil && !utf8.ValidString(text) {
		err = errors.New("it is no text of UTF-8")
	}
	return text, err
}

// scriptWord is a file's name as that of an operation.
func scriptWord(path string) string {
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name), "-")
	return cmp.Or(name[:min(len(name), 36)], "script")
}
