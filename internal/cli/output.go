package cli

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
)

// output says in what format a document is wanted, and where.
type output struct{ format, file string }

// register adds the flags. The first format is the one unless another is given.
func (o *output) register(c *cobra.Command, first string, others ...string) {
	names := slices.Sorted(slices.Values(append(others, first)))
	c.Flags().StringVarP(&o.format, "format", "o", first, "`format`: "+strings.Join(names, ", "))
	o.complete(c, names)
}

// registerByPlace adds the flags of a document that is text, and a page where it goes to a file.
func (o *output) registerByPlace(c *cobra.Command, others ...string) {
	names := slices.Sorted(slices.Values(append(others, "html", "text")))
	c.Flags().StringVarP(&o.format, "format", "o", "", "`format`: "+strings.Join(names, ", ")+" (default text, in a "+
		"file html)")
	o.complete(c, names)
}

func (o *output) complete(c *cobra.Command, names []string) {
	c.Flags().StringVar(&o.file, "output", "", "write to this `file` instead of standard output")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// parquetFormat is the one format that is no text.
const parquetFormat = "parquet"

// print writes a document to standard output, or to the file, and then says so; what is the document's name there.
func (c *console) print(phase, what string, o output, write func(io.Writer) error) error {
	binary := o.format == parquetFormat && !c.json
	if o.file == "" || o.file == "-" {
		if binary {
			return exit.Usagef("name a file: --output FILE.parquet", "%s: -o %s is no text for standard output", phase,
				parquetFormat)
		}
		b := bufio.NewWriter(c.out)
		return errors.Join(write(b), b.Flush())
	}
	if err := outfile.Write(o.file, func(w io.Writer) error {
		if binary {
			return write(w)
		}
		wall := visible.NewWriter(w) // the same bytes as on standard output
		return errors.Join(write(wall), wall.Close())
	}); err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	visible.Fprintf(c.notes(), "%s: %s\n", what, o.file)
	return nil
}

// formatOf finds the writer of a format, or says which there are. --json goes before the format asked for.
func formatOf[T any](con *console, phase string, o output, formats map[string]func(io.Writer, T) error) (func(io.Writer,
	T) error, error) {
	name := o.format
	switch {
	case con.json:
		name = "json"
	case name == "" && (o.file == "" || o.file == "-"):
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
