package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/judge"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/report/terminal"
	"plimsoll/unit"
)

const configHelp = `Flags that are the same every day can be set once. A flag goes before its variable in the environment,
that before the configuration file, and that before what is built in:

  dir          the folder of run folders           PLIMSOLL_DIR (also PLIMSOLL_RUNS)
  quiet        true: no progress and no notes      PLIMSOLL_QUIET
  target       of run, plan and check              PLIMSOLL_TARGET
  target-opt   options by target, as below         PLIMSOLL_TARGET_OPT (NAME=VALUE, blanks between them)
  nodes        of run, plan and check              PLIMSOLL_NODES
  time-limit   of run and resume                   PLIMSOLL_TIME_LIMIT
  format       of report                           PLIMSOLL_FORMAT

The file is YAML, $XDG_CONFIG_HOME/plimsoll/config.yaml or ~/.config/plimsoll/config.yaml; --config or PLIMSOLL_CONFIG
names another:

  dir: ~/runs
  target: sim
  target-opt:
    local: {dir: /mnt/under-test}
    sim: {seed: 7}

Scales, variables and whatever else changes what a number means are no part of it. A password is not either: an
option that is a secret says where that is kept, like env:NAME or file:PATH.`

// setting is a flag that has a variable in the environment and a key in the configuration file.
type setting struct {
	name     string
	commands []string                             // whose flag it is; nil: of all
	check    func(drivers.Registry, string) error // of a value in the file
}

func settings() []setting {
	making := []string{"check", "plan", "run"}
	return []setting{
		{"dir", nil, func(_ drivers.Registry, text string) error {
			if text == "" {
				return errors.New("it names no folder")
			}
			return nil
		}},
		{"quiet", nil, func(_ drivers.Registry, text string) error {
			_, err := strconv.ParseBool(text)
			if err != nil {
				err = fmt.Errorf("%q is neither true nor false", text)
			}
			return err
		}},
		{"target", making, func(known drivers.Registry, text string) error {
			if _, ok := known.Target(text); !ok {
				return fmt.Errorf("no target called %q%s", text, didYouMean(text, known.TargetNames()))
			}
			return nil
		}},
		{targetOptions, making, nil},
		{"nodes", making, func(_ drivers.Registry, text string) error {
			if n, err := strconv.Atoi(text); err != nil || n < 1 {
				return fmt.Errorf("%q is not a number of nodes", text)
			}
			return nil
		}},
		{"time-limit", []string{"run", "resume"}, func(_ drivers.Registry, text string) error {
			_, err := unit.ParseDuration(text)
			return err
		}},
		{"format", []string{"report"}, func(_ drivers.Registry, text string) error {
			if judge.Formats[text] == nil {
				known := slices.Sorted(maps.Keys(judge.Formats))
				return fmt.Errorf("no format %q; there are: %s", text, strings.Join(known, ", "))
			}
			return nil
		}},
	}
}

// targetOptions is the setting that is a mapping in the file.
const targetOptions = "target-opt"

// variable is the name of a setting in the environment.
func (s setting) variable() string {
	return "PLIMSOLL_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// inEnvironment is a setting's value there; an empty one is none.
func (s setting) inEnvironment() (value, variable string) {
	if value = os.Getenv(s.variable()); value != "" {
		return value, s.variable()
	}
	if s.name == "dir" {
		return os.Getenv("PLIMSOLL_RUNS"), "PLIMSOLL_RUNS"
	}
	return "", ""
}

// of reports whether a command has the setting as a flag.
func (s setting) of(cmd *cobra.Command) bool {
	return s.commands == nil || cmd.Parent() == cmd.Root() && slices.Contains(s.commands, cmd.Name())
}

// configuration is a configuration file.
type configuration struct {
	path    string
	values  map[string]placed
	options map[string]map[string]placed // by target and name
}

// placed is a value with the place where it stands.
type placed struct{ text, at string }

func didYouMean(word string, known []string) string {
	if near := nearest.Of(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; there are: " + strings.Join(known, ", ")
}

// configFile is the file that holds the configuration, and whether somebody named it.
func (cf *configs) configFile() (path string, named bool) {
	if path := cmp.Or(cf.config, os.Getenv("PLIMSOLL_CONFIG")); path != "" {
		return path, true
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "plimsoll", "config.yaml"), false
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(home, ".config", "plimsoll", "config.yaml"), false
}

// configured reads the configuration file; empty when there is none.
func (cf *configs) configured() (*configuration, error) {
	c := &configuration{values: map[string]placed{}, options: map[string]map[string]placed{}}
	path, named := cf.configFile()
	if path == "" {
		return c, nil
	}
	const most = 1 << 20
	data, err := regular.Read(path, os.O_RDONLY, most)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return c, nil
	case err != nil:
		return nil, exit.Usagef("", "config: %w", err)
	}
	c.path = path
	if err := c.parse(cf.drivers, data); err != nil {
		return nil, exit.Usagef(`run "plimsoll config --help" for what may stand there`, "config: %w", err)
	}
	return c, nil
}

// parse reads the text of a file. Errors are all of them, each with its place.
func (c *configuration) parse(registry drivers.Registry, data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // nothing but comments
	case err != nil:
		return fmt.Errorf("%s: %w", c.path, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: there is more after its end (---)", c.path)
	}
	all := settings()
	var known []string
	for _, s := range all {
		known = append(known, s.name)
	}
	return c.members(doc.Content[0], known, "key", func(key string, value *yaml.Node) error {
		s := all[slices.Index(known, key)]
		if key == targetOptions {
			return c.members(value, registry.TargetNames(), "target", func(name string, options *yaml.Node) error {
				return c.targetOptions(registry, name, options)
			})
		}
		text, err := c.text(value)
		if err == nil {
			if err = s.check(registry, text.text); err != nil {
				err = fmt.Errorf("%s: %s: %w", text.at, key, err)
			}
		}
		if rest, ok := strings.CutPrefix(text.text, "~/"); ok && key == "dir" { // no shell has seen it
			home, homeErr := os.UserHomeDir()
			err = errors.Join(err, homeErr)
			text.text = filepath.Join(home, rest)
		}
		c.values[key] = text
		return err
	})
}

// members goes through a mapping, of which every key must be known and stand once.
func (c *configuration) members(
	n *yaml.Node, known []string, what string, each func(string, *yaml.Node) error,
) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil // a key without anything, or a file of comments
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: want a mapping, NAME: VALUE", c.place(n))
	}
	var errs []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			errs = append(errs, fmt.Errorf("%s: unknown %s %q%s", c.place(key), what, key.Value,
				didYouMean(key.Value, known)))
		case seen[key.Value]:
			errs = append(errs, fmt.Errorf("%s: %q stands here twice", c.place(key), key.Value))
		default:
			errs = append(errs, each(key.Value, value))
		}
		seen[key.Value] = true
	}
	return errors.Join(errs...)
}

func (c *configuration) targetOptions(registry drivers.Registry, name string, n *yaml.Node) error {
	provider, _ := registry.Target(name)
	var known []string
	types := map[string]target.OptionType{}
	for _, o := range provider.Options() {
		known = append(known, o.Name)
		types[o.Name] = o.Type
	}
	c.options[name] = map[string]placed{}
	return c.members(n, known, "option of target "+name, func(option string, value *yaml.Node) error {
		text, err := c.text(value)
		if err == nil && types[option] == target.Secret {
			if _, err = secret.ParseSource(text.text); err != nil { // which does not quote it
				err = fmt.Errorf("%s: %s: %w", text.at, option, err)
				text.text = ""
			}
		}
		c.options[name][option] = text
		return err
	})
}

// text is the value of a key that takes one.
func (c *configuration) text(n *yaml.Node) (placed, error) {
	if n.Kind != yaml.ScalarNode {
		return placed{}, fmt.Errorf("%s: want one value, no list and no mapping", c.place(n))
	}
	return placed{n.Value, c.place(n)}, nil
}

func (c *configuration) place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", c.path, n.Line, n.Column)
}

// configure gives flags that were not given the values of the environment or of the configuration file.
func (cf *configs) configure(cmd *cobra.Command) error {
	c, err := cf.configured()
	if err != nil {
		return err
	}
	for _, s := range settings() {
		flag := cmd.Flag(s.name)
		if flag == nil || flag.Changed || !s.of(cmd) {
			continue
		}
		var texts []string
		value, from := s.inEnvironment()
		switch {
		case value != "" && s.name == targetOptions:
			texts = strings.Fields(value)
		case value != "":
			texts = []string{value}
		default:
			if v, ok := c.values[s.name]; ok {
				texts, from = []string{v.text}, v.at
			}
		}
		for _, text := range texts {
			if err := flag.Value.Set(text); err != nil {
				return exit.Usagef("", "%s: %s: %q: %w", from, s.name, text, err)
			}
		}
	}
	return configureOptions(cmd, c)
}

// configureOptions adds the options that the file has for the command's target, but for those that were given.
func configureOptions(cmd *cobra.Command, c *configuration) error {
	chosen, options := cmd.Flag("target"), cmd.Flag(targetOptions)
	if chosen == nil || options == nil {
		return nil
	}
	list, err := cmd.Flags().GetStringArray(targetOptions)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for _, o := range list {
		name, _, _ := strings.Cut(o, "=")
		given[name] = true
	}
	if disk := cmd.Flag("disk"); disk != nil && disk.Changed {
		given[machines.DirOption] = true
	}
	of := c.options[chosen.Value.String()]
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if given[name] {
			continue
		}
		if err := options.Value.Set(name + "=" + of[name].text); err != nil {
			return exit.Usagef("", "%s: %w", of[name].at, err)
		}
	}
	return nil
}

func (cf *configs) configCommand() *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print the settings in force, and where each is from", Args: console.Args(0, 0,
			"argument"),
		Long: "Config prints the settings in force.\n\n" + configHelp,
		Example: `  plimsoll config
  PLIMSOLL_TARGET=sim plimsoll config --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cf.printConfig(cmd) },
	}
}

// inForce is a setting as config prints it.
type inForce struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    string `json:"from"`
}

func (cf *configs) printConfig(cmd *cobra.Command) error {
	c, err := cf.configured()
	if err != nil {
		return err
	}
	rows := []inForce{}
	for _, s := range settings() {
		row := inForce{Setting: s.name, From: "default"}
		if flag := cmd.Flag(s.name); flag != nil {
			row.Value = flag.Value.String()
		} else if s.name == "target" {
			row.Value = cf.drivers.Targets[0].Name()
		}
		value, variable := s.inEnvironment()
		switch v, ok := c.values[s.name]; {
		case cmd.Flag(s.name) != nil && cmd.Flag(s.name).Changed:
			row.From = "flag"
		case value != "":
			row.Value, row.From = value, variable
		case ok:
			row.Value, row.From = v.text, v.at
		}
		if s.name != targetOptions || row.From != "default" {
			rows = append(rows, row)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.options)) {
		for _, option := range slices.Sorted(maps.Keys(c.options[name])) {
			v := c.options[name][option]
			rows = append(rows, inForce{targetOptions + " of " + name + ", " + option, v.text, v.at})
		}
	}
	if cf.JSON {
		return cf.PrintJSON(rows)
	}
	t := terminal.Table{Head: []string{"SETTING", "VALUE", "FROM"}}
	for _, r := range rows {
		t.Add(r.Setting, cmp.Or(r.Value, "-"), r.From)
	}
	return t.Write(cf.Out)
}
