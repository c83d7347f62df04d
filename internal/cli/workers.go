package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/regular"
	failover "plimsoll/internal/workloads/failover/driver"
	hammerdb "plimsoll/internal/workloads/hammerdb/tool"
	integrity "plimsoll/internal/workloads/integrity/driver"
	"plimsoll/internal/workloads/pg/pgload"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
	tprocc "plimsoll/internal/workloads/tprocc/driver"
	"plimsoll/internal/workloads/tprocc/driver/dialects"
	tproch "plimsoll/internal/workloads/tproch/driver"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
)

// workerCommands are what load generators run on a machine where they are this program. They are for no person.
func workerCommands(con *console.Console) (commands []*cobra.Command) {
	for _, w := range []struct {
		word string
		work func(ctx context.Context, job io.Reader, out io.Writer) error
	}{
		{failover.WorkCommand, failover.Work},
		{hammerdb.WorkCommand, hammerdb.Work},
		{integrity.WorkCommand, integrity.Work},
		{pgbench.WorkCommand, pgbench.Work},
		{pgload.WorkCommand, func(ctx context.Context, job io.Reader, out io.Writer) error {
			return pgload.Work(ctx, job, out, con.Err)
		}},
		{tprocc.WorkCommand, func(ctx context.Context, job io.Reader, out io.Writer) error {
			return tprocc.Work(ctx, job, out, dialects.Of)
		}},
		{tproch.WorkCommand, tproch.Work},
		{vioperf.WorkCommand, vioperf.Work},
	} {
		commands = append(commands, &cobra.Command{
			Use: w.word + " FILE", Hidden: true, Args: console.Args(1, 1, "file of a job"),
			Short: "Do a job that a load generator has written",
			RunE: func(cmd *cobra.Command, given []string) error {
				if err := worker.Pin(); err != nil {
					return exit.Errorf(exit.Failed, "", "%s: %w", w.word, err)
				}
				job, err := regular.Open(given[0], os.O_RDONLY)
				if err != nil {
					return err
				}
				defer job.Close()
				if err := w.work(cmd.Context(), job, con.Out); err != nil {
					return exit.Errorf(exit.Failed, "", "%s: %w", w.word, err)
				}
				return nil
			},
		})
	}
	return commands
}
