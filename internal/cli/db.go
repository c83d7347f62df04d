package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/workloads/postgres"
	"plimsoll/unit"
)

func (rn *runner) dbCommand() *cobra.Command {
	return console.Group("db", "Load databases, say how large they are and what a load has left in them",
		rn.dbRunCommand(), dbSizeCommand(rn.Console), dbStateCommand(rn.Console))
}

func dbSizeCommand(con *console.Console) *cobra.Command {
	var scale int64
	var bytes, ram console.SizeFlag
	var share string
	c := &cobra.Command{
		Use: "size", Short: "Say how large pgbench's database is at a scale, or which scale has a size", Args: console.Args(0, 0, ""),
		Long: `Size says what pgbench's tables take at a scale factor, or which scale a size or a share of the memory takes.

Tables and indexes are counted in pages, as pgbench -i leaves them: they are exact. The empty database that they lie in
has 7.7 MB, which differs by 0.4 MB at most between releases. All of that is a fresh database. Use makes it grow:
every transaction that writes adds a row to pgbench_history, and versions of rows that vacuum has not removed take
space: scale 10 was seen to have 164.7 MB fresh and 217 MB after a few minutes of writing.`,
		Example: `  plimsoll db size --sf 100
  plimsoll db size --bytes 10GB
  plimsoll db size --ram-share 50%
  plimsoll db size --ram-share 200% --ram 64GiB --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := slices.DeleteFunc([]string{"sf", "bytes", "ram-share"},
				func(n string) bool { return !cmd.Flags().Changed(n) })
			if len(given) != 1 {
				return exit.Usagef("", "db size: want one of --sf, --bytes and --ram-share")
			}
			memory := int64(ram)
			if memory == 0 {
				var err error
				if memory, err = memoryBytes(); err != nil && given[0] == "ram-share" {
					return exit.Errorf(exit.Failed, "give --ram", "db size: the memory of this machine: %w", err)
				}
			}
			wanted := int64(bytes)
			if given[0] == "ram-share" {
				part, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
				if err != nil || !(part > 0 && part <= 1e6) {
					return exit.Usagef("", "db size: --ram-share %q: want a share above 0%%, like 50%%", share)
				}
				wanted = int64(float64(memory) * part / 100)
			}
			s, err := postgres.ScaleFor(wanted)
			if given[0] == "sf" {
				s, err = postgres.SizeOfPgbench(scale)
			}
			if err != nil {
				return exit.Usagef("", "db size: %w", err)
			}
			return saySize(con, s, memory)
		},
	}
	flags := c.Flags()
	flags.Int64Var(&scale, "sf", 0, "scale `factor`, pgbench's -s: 100,000 accounts each")
	flags.Var(&bytes, "bytes", "`size` that the fresh database may have at most, like 10GB")
	flags.StringVar(&share, "ram-share", "", "`percent` of the memory that the fresh database may have at most, like 50%")
	flags.Var(&ram, "ram", "`size` of the server's memory (default: that of this machine)")
	return c
}

func saySize(con *console.Console, s postgres.PgbenchSize, memory int64) error {
	if con.JSON {
		return con.PrintJSON(struct {
			postgres.PgbenchSize
			MemoryBytes int64   `json:"memory_bytes,omitempty"`
			MemoryShare float64 `json:"memory_share,omitempty"`
		}{s, memory, shareOf(s.FreshBytes, memory)})
	}
	t := terminal.Table{Head: []string{"PGBENCH", "SIZE", ""}, Right: []bool{false, true}}
	t.Add("scale", fmt.Sprint(s.Scale), unit.Thousands(s.Rows)+" accounts")
	t.Add("tables", unit.Bytes(s.TableBytes).String(), "exact, fresh")
	t.Add("indexes", unit.Bytes(s.IndexBytes).String(), "exact, fresh")
	t.Add("database, fresh", unit.Bytes(s.FreshBytes).String(),
		fmt.Sprintf("%d bytes, of which 7.7 MB are PostgreSQL's own", s.FreshBytes))
	t.Add("database, used", "more", fmt.Sprintf("at least %s for every million of writing transactions, and what vacuum "+
		"has still to remove", unit.Bytes(s.HistoryPerMega)))
	if memory > 0 {
		t.Add("share of memory", fmt.Sprintf("%.1f %%", 100*shareOf(s.FreshBytes, memory)),
			"of "+unit.Bytes(memory).String())
	}
	return t.Write(con.Out)
}

func shareOf(part, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// serverFlags name a server of the user's.
type serverFlags struct{ url, password string }

func (f *serverFlags) register(c *cobra.Command, without string) {
	c.Flags().StringVar(&f.url, "server", "", "`address` of a server, postgresql://USER@HOST:PORT/DATABASE, without its "+
		"password"+without)
	c.Flags().StringVar(&f.password, "password", "", "where its password is: `env:NAME`, file:PATH or command:PROGRAM; "+
		"else PGPASSWORD or ~/.pgpass")
}

// check objects to a server that cannot be meant.
func (f *serverFlags) check(phase string) error {
	var bad []error
	if f.url != "" {
		for _, what := range postgres.CheckURL(f.url) {
			what = strings.Replace(what, "give password: env:NAME", "give --password env:NAME", 1)
			bad = append(bad, fmt.Errorf("%s: --server: %s", phase, what))
		}
	}
	if f.password != "" {
		if _, err := secret.ParseSource(f.password); err != nil {
			bad = append(bad, fmt.Errorf("%s: --password: %w", phase, err))
		}
		if f.url == "" {
			bad = append(bad, fmt.Errorf("%s: --password goes with --server", phase))
		}
	}
	if len(bad) > 0 {
		return exit.Usagef("", "%w", errors.Join(bad...))
	}
	return nil
}

// state asks the server.
func (f *serverFlags) state(ctx context.Context) (postgres.State, error) {
	var source secret.Source
	if f.password != "" {
		var err error
		if source, err = secret.ParseSource(f.password); err != nil {
			return postgres.State{}, err
		}
	}
	return postgres.Ask(ctx, f.url, source)
}

func dbStateCommand(con *console.Console) *cobra.Command {
	var server serverFlags
	var save string
	var diff bool
	c := &cobra.Command{
		Use: "state [BEFORE AFTER]", Short: "Say how a PostgreSQL is set and used, or what has changed between two moments",
		Args: console.Args(0, 2, "file"),
		Long: `State asks a PostgreSQL for its settings that are not the program's own, sizes, dead rows (bloat in the making),
the hit ratio of its cache, and its counters. Nothing is written there. With --save it goes to a file.

With --diff two such files are compared: settings that were changed, what has grown, what was counted in between and
the hit ratio of that time alone.`,
		Example: `  plimsoll db state --server postgresql://app@192.0.2.1/bench
  plimsoll db state --server postgresql://app@192.0.2.1/bench --save before.json
  plimsoll db state --diff before.json after.json`,
		RunE: func(_ *cobra.Command, given []string) error {
			const phase = "db state"
			switch {
			case diff && len(given) == 2 && server.url == "" && save == "":
				return dbDiff(con, given[0], given[1])
			case diff || len(given) > 0:
				return exit.Usagef("", "%s: want --diff BEFORE AFTER, or --server URL without files", phase)
			case server.url == "":
				return exit.Usagef("", "%s: no --server given", phase)
			}
			if err := server.check(phase); err != nil {
				return err
			}
			ctx, stop := con.Interruptible()
			defer stop()
			s, err := server.state(ctx)
			if err != nil {
				return exit.Errorf(console.StoppedOrFailed(ctx), "", "%s: %s", phase, console.OneLine(err))
			}
			if save != "" {
				return con.Print(phase, phase, console.Output{File: save},
					func(w io.Writer) error { return console.Indented(w, s) })
			}
			return sayState(con, s)
		},
	}
	server.register(c, "")
	c.Flags().StringVar(&save, "save", "", "write it to this `file`, for --diff")
	c.Flags().BoolVar(&diff, "diff", false, "compare two files of --save")
	return c
}

func sayState(con *console.Console, s postgres.State) error {
	if con.JSON {
		return con.PrintJSON(s)
	}
	t := terminal.Table{Head: []string{"SERVER", "VALUE", ""}}
	t.Add("database", s.Database, fmt.Sprintf("PostgreSQL %s, %s", s.Version, s.Time.Format(time.RFC3339)))
	t.Add("size", unit.Bytes(s.Bytes).String(), "")
	if r, ok := s.HitRatio(); ok {
		t.Add("cache hits", fmt.Sprintf("%.2f %%", 100*r), "of blocks asked for since the statistics began")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Levels)) {
		t.Add(name, fmt.Sprint(s.Levels[name]), "")
	}
	for _, r := range s.Relations[:min(len(s.Relations), 15)] {
		t.Add("table "+r.Name, unit.Bytes(r.Bytes).String(), fmt.Sprintf("%s in indexes, %.1f %% of its rows are dead",
			unit.Bytes(r.Indexes), 100*r.DeadShare()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		t.Add("set "+name, s.Settings[name], "")
	}
	return t.Write(con.Out)
}

func dbDiff(con *console.Console, before, after string) error {
	const phase = "db state"
	var states [2]postgres.State
	for i, name := range []string{before, after} {
		data, err := con.ReadGiven(name, 16<<20)
		if err == nil {
			if states[i], err = postgres.ReadState(data); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
		if err != nil {
			return exit.Errorf(exit.Failed, "plimsoll db state --server URL --save FILE makes such files", "%s: %w", phase, err)
		}
	}
	d := postgres.Diff(states[0], states[1])
	if con.JSON {
		return con.PrintJSON(d)
	}
	return sayDifference(con.Out, d)
}

// sayDifference prints what happened between two states.
func sayDifference(w io.Writer, d postgres.Difference) error {
	for _, n := range d.Notes {
		visible.Fprintf(w, "note: %s\n", n)
	}
	t := terminal.Table{Head: []string{"BETWEEN", "BEFORE", "AFTER", "CHANGE"}, Right: []bool{false, true, true, true}}
	t.Add("time", "", "", unit.Duration(d.Elapsed.Round(time.Millisecond)).String())
	bytes := func(word string, g postgres.Growth) {
		t.Add(word, unit.Bytes(int64(g.Before)).String(), unit.Bytes(int64(g.After)).String(),
			signedBytes(g.After-g.Before))
	}
	bytes("size of "+d.Bytes.Name, d.Bytes)
	if d.HitRatio >= 0 {
		t.Add("cache hits in that time", "", "", fmt.Sprintf("%.2f %%", 100*d.HitRatio))
	}
	for _, c := range d.Settings {
		t.Add("set "+c.Name, orDash(c.Before), orDash(c.After), "")
	}
	for _, g := range d.Relations {
		bytes("size of "+g.Name, g)
	}
	for _, g := range d.DeadRows {
		t.Add("dead rows of "+g.Name, fmt.Sprintf("%g rows", g.Before), fmt.Sprintf("%g rows", g.After),
			fmt.Sprintf("%+g rows", g.After-g.Before))
	}
	for _, g := range d.Counters {
		moved := g.After - g.Before
		said := func(n float64) string { return fmt.Sprintf("%+.4g", n) }
		change := fmt.Sprintf("%+.10g", moved)
		switch counted := postgres.CounterUnit(g.Name); counted {
		case "bytes":
			change, said = signedBytes(moved), signedBytes
		case "":
		default:
			change += " " + counted
			said = func(n float64) string { return fmt.Sprintf("%.3g %s", n, counted) }
		}
		rate := ""
		if d.Elapsed > 0 {
			rate = strings.TrimPrefix(said(moved/d.Elapsed.Seconds()), "+") + "/s"
		}
		t.Add(g.Name, "", change, rate)
	}
	return t.Write(w)
}

func signedBytes(n float64) string {
	if n < 0 {
		return "-" + unit.Bytes(int64(-n)).String()
	}
	return "+" + unit.Bytes(int64(n)).String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// memoryBytes is the memory of this machine, or of the container that it is.
func memoryBytes() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo does not say")
}
