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
	"plimsoll/scenario"
)

// dbFactor says what a sweep of db run varies.
type dbFactor struct {
	Variable string // of the scenario
	Key      string // of the load's config; "" for a setting of the server
	Setting  string
	Values   []string // of YAML, in one line each
	about    string
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
		one := dbFactor{Variable: key, Key: key}
		setting := settingName.FindStringSubmatch(key)
		switch {
		case !ok || list == "":
			object("--sweep %q: want NAME=VALUE,VALUE,..., like clients=1,2,4", text)
			continue
		case setting != nil:
			one.Key, one.Setting = "", setting[1]
			one.Variable = strings.ReplaceAll(setting[1], ".", "_")
			if f.server.url != "" || load.scale == "" {
				object("--sweep %s: it is of a server that the run makes; yours is never reconfigured", key)
			}
		case !factorName.MatchString(key):
			object("--sweep %q: %q is no name: want clients, scale, server.SETTING or a key of %s's config", text, key, name)
		case key == "clients":
			one.Key = load.clients
		case key == "scale" && load.scale == "":
			object("--sweep scale: %s loads the schema that it has built before, of the size that it has", name)
		case key == "scale":
			one.Key = load.scale
		case key == "rate" && !load.rate:
			object("--sweep rate: %s takes none", name)
		case slices.Contains([]string{"server", "scripts", "settings", "passwords", "variables"}, key):
			object("--sweep %s: it has no single values to go through", key)
		}
		if slices.ContainsFunc(out, func(o dbFactor) bool { return o.Variable == one.Variable }) {
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
			case slices.Contains(one.Values, value):
				object("--sweep %s: %s is given twice", key, v)
			}
			one.Values = append(one.Values, value)
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

// What says it in a sentence.
func (x dbFactor) What() string {
	switch {
	case x.about != "":
		return x.about
	case x.Setting != "":
		return "The server's " + x.Setting + "."
	}
	return "Key " + x.Key + " of the load."
}

// vary makes an experiment of a scenario, or the start of a search.
func (f *dbRunFlags) vary(sc *dbScenario, load dbLoad, factors []dbFactor, settings map[string]string) {
	switch f.marked {
	case clientsOption:
		sc.Factors = []dbFactor{{Variable: "clients", Key: load.clients, Values: []string{"1"},
			about: "Clients at a time."}}
		return
	case rateOption:
		sc.Factors = []dbFactor{{Variable: "rate", Values: []string{"0"},
			about: "Transactions per second that are offered; 0 as many as it takes."}}
		sc.OfferedRate = true
		return
	}
	sc.Factors, sc.Repeats, sc.Varies = factors, max(f.repeats, 1), len(factors) > 0 || f.repeats > 1
	var server []string
	for _, x := range factors {
		if x.Setting != "" {
			server = append(server, fmt.Sprintf("%s: '{{ %s }}'", x.Setting, x.Variable))
		}
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

// flagOf names the flag that a key of a load's config is from: "" for one that is from none.
func (f *dbRunFlags) flagOf(load dbLoad, key string) string {
	switch {
	case key == "server" && f.server.url != "":
		return "--server"
	case key == "variables":
		return "--define"
	}
	flag := map[string]string{load.scale: "scale", load.clients: "clients", load.selectOnly: "select-only",
		"rate": "rate", "database": "database", "server": "server-setting"}[key]
	if flag == "" || !f.given(flag) {
		return ""
	}
	return "--" + flag
}

// judge has the engine check what flags give, and says its objections of these: nobody wrote the file that they
// stand in.
func (pl *planner) judge(f dbRunFlags, load dbLoad, config []byte, paths, options map[string]string) error {
	const file = "load.yml"
	var placed *workload.ConfigError
	if !errors.As(pl.Drivers.ByName()[load.engine].Validate(
		workload.Spec{Name: load.engine, ConfigFile: file, Config: config}), &placed) {
		return nil
	}
	var bad []error
	theirs := false
	for _, o := range placed.Objections {
		script, rest, _ := strings.Cut(o.What, ":")
		key := keyAt(config, o.Line)
		switch {
		case o.Line == 0 && paths[script] != "":
			o.What = paths[script] + ":" + rest
		case o.Line == 0 && len(f.define) > 0 && strings.HasPrefix(o.What, "variable "):
			o.What = "db run: --define: " + o.What
		case o.Line > 0 && options[key] != "":
			o.What = "--option " + key + ": " + strings.TrimPrefix(o.What, key+": ")
		case o.Line > 0 && f.flagOf(load, key) != "":
			o.What = "db run: " + f.flagOf(load, key) + ": " + strings.TrimPrefix(o.What, key+": ")
		default:
			bad = append(bad, &workload.ConfigError{File: file, Objections: []scenario.Objection{o}})
			continue
		}
		theirs = true
		bad = append(bad, errors.New(o.What))
	}
	if !theirs {
		return nil // the plan says it
	}
	return errors.Join(bad...)
}

// keyAt is the key of a config's whole that a line belongs to.
func keyAt(config []byte, line int) (key string) {
	var root yaml.Node
	if yaml.Unmarshal(config, &root) != nil || len(root.Content) == 0 {
		return ""
	}
	for i, n := range root.Content[0].Content {
		if i%2 == 0 && n.Line <= line {
			key = n.Value
		}
	}
	return key
}

// ownScripts puts the files of --file and the variables of --define into a load's config.
// paths gets their files by the names that they have there.
func (f *dbRunFlags) ownScripts(name string, load dbLoad, config untyped.Object, paths map[string]string) error {
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
		if strings.TrimSpace(text) == "" {
			bad = append(bad, fmt.Errorf("db run: --file %q: it is empty", given))
			continue
		}
		script := scriptWord(path)
		if used[script]++; used[script] > 1 {
			script += "-" + strconv.Itoa(used[script])
		}
		paths[script] = path
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
