package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/formats/convert"
	"plimsoll/internal/formats/recognise"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
)

// convertFlags say what is converted into what.
type convertFlags struct {
	from, to string
	set      []string
	curveMax float64
	out      console.Output
}

func ConvertCommand(con *console.Console) *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use: "convert FILE|- --to TOOL | convert --from diskspd|fio --to TOOL -- COMMAND LINE", Short: "Turn a parameter file of " +
			"vdbench, DISKSPD or fio into another's",
		Long: `Convert reads a parameter file of vdbench, command lines of DISKSPD or fio, or a job file of fio, and writes the file
that asks another of them for the same load.

What is not quite the same is listed on standard error, and as comments at the head of what is written: where it stands,
what was asked, what there is instead, and how that differs. What cannot be had is refused by name, with its line and
column, all of it at once; nothing is left out unsaid.

The tool of a file is known by the end of its name (.vdb, .fio, .job, .diskspd, .cmd, .bat) or by its content, or said
with --from. Such
files can also be run as they are: plimsoll run file.vdb.`,
		Example: `  plimsoll convert oltp.vdb --to fio
  plimsoll convert my.fio --to vdbench --output my.vdb
  plimsoll convert --from diskspd --to fio -- diskspd -b4K -t2 -o32 -r -w30 -Sh -d60 -c10G test.dat
  plimsoll convert --from fio --to vdbench -- fio --name=t --rw=randread --bs=4k --size=1g --direct=1
  plimsoll convert oltp.vdb --to diskspd --json`,
		Args: func(cmd *cobra.Command, given []string) error {
			if cmd.ArgsLenAtDash() == 0 && len(given) > 0 {
				return nil
			}
			return console.Args(1, 1, "file")(cmd, given)
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			return convertFile(con, f, given, cmd.ArgsLenAtDash() == 0)
		},
	}
	flags := c.Flags()
	flags.StringVar(
		&f.from,
		"from",
		"",
		"`tool` whose file it is: vdbench, diskspd or fio (default: by the end of its name)",
	)
	flags.StringVar(&f.to, "to", "", "`tool` that is to read what is written: vdbench, diskspd or fio")
	flags.StringArrayVar(&f.set, "set", nil, "give a variable of a vdbench file its value, `NAME=VALUE`; repeatable")
	flags.Float64Var(&f.curveMax, "curve-max", 0,
		"of a vdbench file: the `rate` in operations a second of which the points of a curve are shares")
	flags.StringVar(&f.out.File, "output", "", "write to this `file` instead of standard output")
	var names []string
	for _, t := range convert.Tools() {
		names = append(names, t.Name)
	}
	for _, flag := range []string{"from", "to"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

func convertFile(con *console.Console, f convertFlags, given []string, line bool) error {
	r := convert.Request{Name: given[0], CurveMax: f.curveMax}
	var bad []error
	var known bool
	switch {
	case f.from != "":
		var err error
		r.From, err = convert.ByName(f.from)
		known = err == nil
		bad = append(bad, err)
	case line:
		bad = append(bad, errors.New("--from: say whose command line it is, as --from diskspd"))
	default:
		if r.From, known = recognise.Tool(given[0]); !known {
			bad = append(bad, fmt.Errorf("%q does not end as the files of vdbench, diskspd or fio do, nor hold what they do: "+
				"say --from", given[0]))
		}
	}
	if line && known && r.From.Name == "vdbench" {
		bad = append(bad, fmt.Errorf("--from %s: it has no parameters in a command line; name the file", r.From.Name))
	}
	var err error
	switch r.To, err = convert.ByName(f.to); {
	case f.to == "":
		bad = append(bad, errors.New("--to: say for which tool, as --to fio"))
	default:
		bad = append(bad, err)
	}
	if !(f.curveMax >= 0 && f.curveMax <= 1e12) {
		bad = append(bad, fmt.Errorf("--curve-max: %v is not a rate above 0", f.curveMax))
	}
	r.Set, err = console.Pairs("--set", f.set)
	if err := errors.Join(append(bad, err)...); err != nil {
		return exit.Usagef("", "%w", err)
	}
	_, missing := os.Stat(given[0])
	switch call := missing != nil && recognise.IsCall(given[0]); {
	case line:
		r.Name, r.Data = "command line", convert.CommandLine(given)
	case call:
		r.Name, r.Data, r.Include = "command line", []byte(given[0]), Besides(con, ".")
	default:
		if r.Data, err = con.ReadGiven(given[0], 1<<20); err != nil {
			return exit.Errorf(exit.Scenario, "", "convert: %w", err)
		}
		if given[0] != "-" {
			r.Include = Besides(con, given[0])
		}
	}
	made, err := convert.Convert(r)
	if err != nil {
		return exit.Errorf(exit.Scenario, "", "%w", err)
	}
	for _, name := range made.Used {
		delete(r.Set, name)
	}
	for name := range r.Set {
		return exit.Usagef("", "--set %s: the file has no such variable", name)
	}
	if con.JSON {
		notes := []jsonNote{}
		for _, n := range made.Notes {
			notes = append(notes, jsonNote{n.At.File, n.At.Line, n.At.Col, n.Asked, n.Instead, n.Differs})
		}
		return con.PrintJSON(struct {
			From   string     `json:"from"`
			To     string     `json:"to"`
			Text   string     `json:"text"`
			Stages []string   `json:"stages"`
			Notes  []jsonNote `json:"notes"`
		}{r.From.Name, r.To.Name, made.Text, made.Stages, notes})
	}
	Tell(con, made.Notes)
	return con.Print("convert", "written for "+r.To.Name, f.out, func(w io.Writer) error {
		_, err := visible.Fprintf(w, "%s", visible.Lines(made.Annotated(r.To)))
		return err
	})
}

// jsonNote is an approximation in the JSON of convert.
type jsonNote struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"column"`
	Asked   string `json:"asked"`
	Instead string `json:"instead"` // "" for nothing
	Differs string `json:"differs"`
}

// Tell prints approximations for people.
func Tell(con *console.Console, notes []convert.Note) {
	for _, n := range notes {
		visible.Fprintf(con.Notes(), "note: %s\n", n)
	}
}

// Besides reads files that one names, from the folder that it lies in.
func Besides(con *console.Console, given string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if strings.TrimSpace(name) == "" {
			return nil, errors.New("no name of a file")
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(given), name)
		}
		return con.ReadGiven(name, 1<<20)
	}
}
