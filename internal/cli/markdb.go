package cli

import (
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
)

// markClients is how many clients offer the transactions of a search: so many that the schedule decides and not they.
const markClients = 32

// markDBCommand is mark for a load of db run.
func (rn *runner) markDBCommand() *cobra.Command {
	var f dbRunFlags
	var mf markFlags
	var asserts []string
	c := &cobra.Command{
		Use:   "db LOAD --limit LIMIT",
		Short: "Find the highest rate of transactions that a database bears under a limit",
		Args:  console.Args(1, 1, "load"),
		Long: `Db looks for the highest rate of transactions at which every limit holds, of loads of "plimsoll db run" that take a
rate: pg and pgbench. With "--vary clients" it looks for the most clients, each of which goes on as soon as it has its
answer; so it does for tprocc (users) and hammerdb (virtual users), which take no rate. The server is yours (--server), or one that is made for each run. Transactions are due by
a schedule of random arrivals, and latencies are response times, from when one was due: the wait for a free client is
in them. The mark holds for so many clients (--clients, by default 32), as for a pool of connections of that size.

The first run has no rate: the search begins below what it did, unless --from says where.`,
		Example: `  plimsoll mark db pg --limit 'p99 < 20ms' --scale 10
  plimsoll mark db pgbench --server postgresql://app@192.0.2.1/bench --limit 'p95 < 50ms' --limit 'errors = 0'
  plimsoll mark db tprocc --limit 'new_order p90 < 50ms' --limit 'errors = 0' --scale 10
  plimsoll mark db pg -f transfer.sql --server postgresql://app@192.0.2.1/shop --limit 'p99 < 30ms' --at 400`,
	}
	c.RunE = func(cmd *cobra.Command, given []string) error {
		for _, text := range asserts {
			if err := mf.assert(text); err != nil {
				return err
			}
		}
		f.given = cmd.Flags().Changed
		return rn.markDB(given[0], f, mf)
	}
	f.register(c, markClients)
	c.Flags().StringArrayVar(&asserts, "assert", nil, markAssertUsage)
	c.Flags().StringVar(&mf.vary, "vary", "", "what is looked for: `rate` (of pg and pgbench), or clients")
	mf.register(c, "for how `long` each rate is offered")
	return c
}

func (rn *runner) markDB(name string, f dbRunFlags, mf markFlags) error {
	load, ok := dbLoads[name]
	switch {
	case !ok || load.fraction:
		return exit.Usagef("it is one of pg, pgbench, tprocc, hammerdb",
			"mark db: no load called %q has a rate or clients", name)
	case mf.vary == "" && load.rate:
		mf.vary = rateOption
	case mf.vary == "":
		mf.vary = clientsOption
	case mf.vary == rateOption && !load.rate:
		return exit.Usagef("pg and pgbench take one", "mark db: %s takes no rate of transactions", name)
	case mf.vary != rateOption && mf.vary != clientsOption:
		return exit.Usagef("", "mark db: --vary %q is neither rate nor clients", mf.vary)
	}
	if mf.vary == clientsOption {
		if f.given("clients") {
			return exit.Usagef("--from and --to bound it", "mark db: --clients is what the search varies")
		}
		f.clients, mf.unit = 1, strings.ReplaceAll(load.clients, "_", " ")
	}
	length, err := mf.length()
	if err != nil {
		return err
	}
	f.other, f.duration, f.marked = f.dialect(name), length, mf.vary
	files, err := rn.dbScenario(name, f)
	if err != nil {
		return err
	}
	given := "mark db " + name
	rn.made = map[string]fs.FS{given: files}
	f.tf.AllowHostCommands = f.server.url != "" // who named it allows to reach it
	sf := scenarioFlags{nodes: 1}
	sf.own.runtime = f.duration
	if err := rn.around(&f); err != nil {
		return err
	}
	return rn.mark(given, sf, f.tf, mf)
}
