package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"plimsoll/internal/exit"
	"plimsoll/internal/pgload"
	"plimsoll/internal/regular"
)

// pgWorkCommand is what the load generator of that name runs on a machine. It is for no person.
func (a *app) pgWorkCommand() *cobra.Command {
	return &cobra.Command{Use: pgload.WorkCommand + " FILE", Hidden: true, Args: args(1, 1, "file of a job"),
		Short: "Do a job that the load generator pg has written",
		RunE: func(_ *cobra.Command, given []string) error {
			config, err := regular.Open(given[0], os.O_RDONLY)
			if err != nil {
				return err
			}
			defer config.Close() //nolint:errcheck // read only
			if err := pgload.Work(context.Background(), config, a.out, a.err); err != nil {
				return exit.Errorf(exit.Failed, "", "%s: %w", pgload.WorkCommand, err)
			}
			return nil
		}}
}
