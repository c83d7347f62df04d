package cli

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/exit"
	"plimsoll/internal/terminal"
	"plimsoll/internal/visible"
)

// output says in what format a document is wanted, and where.
type output struct{ format, file string }

// register adds the flags. The first format is the one unless another is given.
func (o *output) register(c *cobra.Command, first string, others ...string) {
	names := slices.Sorted(slices.Values(append(others, first)))
	c.Flags().StringVarP(&o.format, "format", "o", first, "`format`: "+strings.Join(names, ", "))
	o.complete(c, names)
}

// registerByPlace adds the flags of a document that is a page, and text where it comes to a terminal.
func (o *output) registerByPlace(c *cobra.Command, others ...string) {
	names := slices.Sorted(slices.Values(append(others, "html", "text")))
	c.Flags().StringVarP(&o.format, "format", "o", "", "`format`: "+strings.Join(names, ", ")+" (default text on a "+
		"terminal, else html)")
	o.complete(c, names)
}

func (o *output) complete(c *cobra.Command, names []string) {
	c.Flags().StringVar(&o.file, "output", "", "write to this `file` instead of standard output")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// print writes a document to standard output, or to the file, and then says so; what is the document's name there.
func (a *app) print(phase, what string, o output, write func(io.Writer) error) error {
	if o.file == "" || o.file == "-" {
		b := bufio.NewWriter(a.out)
		return errors.Join(write(b), b.Flush())
	}
	if err := writeFile(o.file, func(w io.Writer) error {
		wall := visible.NewWriter(w) // the same bytes as on standard output
		return errors.Join(write(wall), wall.Close())
	}); err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	visible.Fprintf(a.notes(), "%s: %s\n", what, o.file)
	return nil
}

// formatOf finds the writer of a format, or says which there are. --json goes before the format asked for.
func formatOf[T any](a *app, phase string, o output, formats map[string]func(io.Writer, T) error) (func(io.Writer,
	T) error, error) {
	name := o.format
	switch {
	case a.json:
		name = "json"
	case name == "" && o.file == "" && terminal.Is(a.out):
		name = "text"
	case name == "":
		name = "html"
	}
	if write, ok := formats[name]; ok {
		return write, nil
	}
	return nil, exit.Usagef("there are: "+strings.Join(slices.Sorted(maps.Keys(formats)), ", "), "%s: no format %q",
		phase, name)
}
