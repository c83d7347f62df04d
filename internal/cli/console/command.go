package console

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/kit/exit"
)

// NeedVerb refuses words that are no command, and offers the nearest.
func NeedVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := needVerb(cmd)
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near[0])
	}
	return exit.Usagef(hint, "%sunknown command %q", Phase(cmd), args[0])
}

// Group is a command that only holds others.
func Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: NeedVerb, RunE: Help}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(verbs...)
	return c
}

func needVerb(cmd *cobra.Command) (hint string) {
	return fmt.Sprintf("run %q for the commands there are", cmd.CommandPath()+" --help")
}

// Help is the run of a command that only holds others: it has no JSON.
func Help(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flag("json"); f != nil && f.Changed {
		return exit.Usagef(needVerb(cmd), "%sby itself it has nothing to print as JSON: one of its commands has", Phase(cmd))
	}
	return cmd.Help()
}

// Args demands between low and high arguments and names what they are.
func Args(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) >= low && len(given) <= high {
			return nil
		}
		hint := fmt.Sprintf("run %q", cmd.CommandPath()+" --help")
		switch {
		case len(given) < low:
			return exit.Usagef(hint, "%sno %s given", Phase(cmd), what)
		case high == 0:
			return exit.Usagef(hint, "%s%q is too much: no argument is wanted", Phase(cmd), given[0])
		case high > 1:
			return exit.Usagef(hint, "%s%d arguments are too many, want at most %d", Phase(cmd), len(given), high)
		}
		return exit.Usagef(hint, "%s%d arguments are too many, want one %s (quote names with blanks)", Phase(cmd),
			len(given), what)
	}
}

// Phase is a command as errors begin with it: without the program's name, which every error has in front.
func Phase(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": "
}
