package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/docs"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/nearest"
	"plimsoll/scenario"
)

// languageTopic is the word that has the reference of the scenario language printed.
const languageTopic = "scenario"

func helpCommand(out io.Writer, registry drivers.Registry) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | scenario [SECTION]]",
		Short: "Help about any command, and the reference of the scenario language",
		Long: `Help prints the help of a command, and "help scenario" the reference of the scenario language: every
key, step, argument and result type with an example, and the commonest mistakes. A step or a heading
prints that part only.`,
		Example: `  plimsoll help run
  plimsoll help scenario
  plimsoll help scenario workload.Start
  plimsoll help scenario "the commonest mistakes"`,
		ValidArgsFunction: func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeHelp(cmd, registry, given)
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) > 0 && given[0] == languageTopic {
				return language(out, registry, strings.Join(given[1:], " "))
			}
			about, rest, err := cmd.Root().Find(given)
			if err != nil || len(rest) > 0 {
				return console.NeedVerb(about, []string{slices.Concat(rest, given)[0]})
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// language prints the reference, or a section of it.
func language(out io.Writer, registry drivers.Registry, section string) error {
	page := docs.ScenarioLanguage(registry.Reference()) + docs.Page(objections(registry))
	text := string(page)
	if section != "" {
		var ok bool
		if text, ok = page.Section(section); !ok {
			return exit.Usagef(nearestSection(section, page.Sections()),
				"help: the reference has no section %q", section)
		}
	}
	_, err := out.Write([]byte(text))
	return err
}

// objections lists what check may say, the end of the reference: by weight without and with --strict, by code.
func objections(registry drivers.Registry) string {
	lists := map[string]string{}
	add := func(codes []scenario.Code) {
		for _, c := range codes {
			weight := func(s scenario.Severity) string {
				if s == 0 {
					return "nothing"
				}
				return s.String()
			}
			head := "**" + weight(c.Tolerant) + ", strict " + weight(c.Strict) + "**"
			lists[head] += "- `" + c.Name + "`: " + c.Doc + "\n"
		}
	}
	add(scenario.Codes())
	generators := registry.Generators()
	for _, name := range slices.Sorted(maps.Keys(generators)) {
		add(generators[name].Codes())
	}
	var b strings.Builder
	for _, head := range slices.Sorted(maps.Keys(lists)) {
		b.WriteString("\n" + head + ":\n\n" + lists[head])
	}
	return b.String()
}

// nearestSection says which section may have been meant: of a step, the part behind the point is looked at as well.
func nearestSection(given string, all []string) string {
	lower := map[string]string{}
	var names []string
	for _, s := range all {
		for _, name := range []string{strings.ToLower(s), strings.ToLower(s[strings.IndexByte(s, '.')+1:])} {
			lower[name] = s
			names = append(names, name)
		}
	}
	if near := nearest.Of(strings.ToLower(given), names); near != "" {
		return fmt.Sprintf("did you mean %q?", "plimsoll help scenario "+lower[near])
	}
	return `"plimsoll help scenario" prints all of it, the sections first`
}

func completeHelp(cmd *cobra.Command, registry drivers.Registry, given []string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 && given[0] == languageTopic {
		return docs.ScenarioLanguage(registry.Reference()).Sections(), cobra.ShellCompDirectiveNoFileComp
	}
	about, _, err := cmd.Root().Find(given)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range about.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name()+"\t"+c.Short)
		}
	}
	if about == cmd.Root() {
		names = append(names, languageTopic+"\tThe reference of the scenario language")
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
