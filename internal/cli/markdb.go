package cli

import (
	"io/fs"

	"github.com/spf13/cobra"

	"plimsoll/internal/kit/exit"
)

// markClients is how many clients offer the transactions of a search: so many that the schedule decides and not they.
const markClients = 32

// markDBCommand is mark for a load of db run.
func (a *app) markDBCommand() *cobra.Command {
	var f dbRunFlags
	var mf markFlags
	var asserts []string
	c := &cobra.Command{
		Use:   "db LOAD --limit LIMIT",
		Short: "Find the highest rate of transactions that a database bears under a limit",
		Args:  args(1, 1, "load"),
		Long: `Db looks for the highest rate of transactions at which every limit holds. Loads are those of "plimsoll db run" that
take a rate: pg and pgbench. The server is yours (--server), or one that is made for each run. Transactions are due by
a schedule of random arrivals, and latencies are response times, from when one was due: the wait for a free client is
in them. The mark holds for so many clients (--clients, by default 32), as for a pool of connections of that size.

The first run has no rate: the search begins below what it did, unless --from says where.`,
		Example: `  plimsoll mark db pg --limit 'p99 < 20ms' --scale 10
  plimsoll mark db pgbench --server postgresql://app@192.0.2.1/bench --limit 'p95 < 50ms' --limit 'errors = 0'
  plimsoll mark db pg -f transfer.sql --server postgresql://app@192.0.2.1/shop --limit 'p99 < 30ms' --at 400`,
	}
	c.RunE = func(cmd *cobra.Command, given []string) error {
		for _, text := range asserts {
			if err := mf.assert(text); err != nil {
				return err
			}
		}
		f.given = cmd.Flags().Changed
		return a.markDB(given[0], f, mf)
	}
	f.register(c, markClients)
	c.Flags().StringArrayVar(&asserts, "assert", nil,
		"a condition on the mark, like `'mark >= 400'`; exit code 5 when it does not hold; repeatable")
	mf.register(c, "for how `long` each rate is offered")
	return c
}

func (a *app) markDB(name string, f dbRunFlags, mf markFlags) error {
	const rated = "pg and pgbench take one"
	if load, ok := dbLoads[name]; !ok {
		return exit.Usagef(rated, "mark db: no load called %q takes a rate of transactions", name)
	} else if !load.rate {
		return exit.Usagef(rated, "mark db: %s takes no rate of transactions", name)
	}
	f.other, f.duration, f.marked = f.dialect(name), mf.probe, true
	files, err := a.dbScenario(name, f)
	if err != nil {
		return err
	}
	given := "mark db " + name
	a.made = map[string]fs.FS{given: files}
	f.tf.allowHostCommands = f.server.url != "" // who named it allows to reach it
	sf := scenarioFlags{nodes: 1}
	sf.own.runtime, mf.vary = mf.probe, rateOption
	if err := a.around(&f); err != nil {
		return err
	}
	return a.mark(given, sf, f.tf, mf)
}
