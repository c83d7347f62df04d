package console

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/result"
)

// Output says in what format a document is wanted, and where.
type Output struct{ format, File string }

// Register adds the flags. The first format is the one unless another is given.
func (o *Output) Register(c *cobra.Command, first string, others ...string) {
	names := slices.Sorted(slices.Values(append(others, first)))
	c.Flags().StringVarP(&o.format, "format", "o", first, "`format`: "+strings.Join(names, ", "))
	o.complete(c, names)
}

// RegisterByPlace adds the flags of a document that is text, and a page where it goes to a file.
func (o *Output) RegisterByPlace(c *cobra.Command, others ...string) {
	names := slices.Sorted(slices.Values(append(others, "html", "text")))
	c.Flags().StringVarP(&o.format, "format", "o", "", "`format`: "+strings.Join(names, ", ")+" (default text, in a "+
		"file what its name ends in, else html)")
	o.complete(c, names)
}

func (o *Output) complete(c *cobra.Command, names []string) {
	c.Flags().StringVar(&o.File, "output", "", "write to this `file` instead of standard output")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// parquetFormat is the one format that is no text.
const ParquetFormat = "parquet"

// Print writes a document to standard output, or to the file, and then says so; what is the document's name there.
func (c *Console) Print(phase, what string, o Output, write func(io.Writer) error) error {
	binary := o.chosen() == ParquetFormat && !c.JSON
	if o.File == "" || o.File == "-" {
		page, end := c.Out, func() error { return nil }
		if binary {
			if terminal.Is(c.Out) {
				return exit.Usagef("name a file: --output FILE.parquet", "%s: -o %s is no text for a terminal", phase,
					ParquetFormat)
			}
			page = terminal.Unwrapped(c.Out)
		}
		if !c.JSON && o.chosen() == "text" {
			folded := terminal.Fold(c.Out)
			page, end = folded, folded.Close
		}
		b := bufio.NewWriter(page)
		if err := write(b); err != nil {
			return err // which is also what was wrong with what went before
		}
		return cmp.Or(b.Flush(), end())
	}
	if run := result.RecordOf(o.File); run != "" {
		return exit.Errorf(exit.Refused, "give another name", "%s: %s: it is a part of what was measured in %s", phase,
			o.File, run)
	}
	if at, err := os.Stat(o.File); err == nil && at.Mode().IsRegular() {
		for _, name := range c.Named {
			if read, err := os.Stat(name); err == nil && os.SameFile(at, read) {
				return exit.Errorf(exit.Refused, "give another name", "%s: %s: it is what is read", phase, o.File)
			}
		}
	}
	if err := outfile.Write(o.File, func(w io.Writer) error {
		if binary {
			return write(w)
		}
		wall := visible.NewWriter(w) // the same bytes as on standard output
		if err := write(wall); err != nil {
			return err
		}
		return wall.Close()
	}); err != nil {
		return exit.Errorf(exit.Failed, "", "%s: %w", phase, err)
	}
	visible.Fprintf(c.Notes(), "%s: %s\n", what, o.File)
	return nil
}

// chosen is the format that was asked for: by name, or by the end of the file's.
func (o Output) chosen() string {
	end := strings.TrimPrefix(strings.ToLower(filepath.Ext(o.File)), ".")
	switch {
	case o.format != "":
		return o.format
	case o.File == "" || o.File == "-" || end == "txt":
		return "text"
	case slices.Contains([]string{"csv", "json", "md", ParquetFormat}, end):
		return end
	}
	return "html"
}

// FormatOf finds the writer of a format, or says which there are. --json goes before the format asked for.
func FormatOf[T any](con *Console, phase string, o Output, formats map[string]func(io.Writer, T) error) (func(io.Writer,
	T) error, error) {
	name := o.chosen()
	if con.JSON {
		name = "json"
	}
	if write, ok := formats[name]; ok {
		return write, nil
	}
	return nil, exit.Usagef("there are: "+strings.Join(slices.Sorted(maps.Keys(formats)), ", "), "%s: no format %q",
		phase, name)
}
