package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"plimsoll/internal/exit"
	"plimsoll/internal/visible"
)

// manCommand writes the manual; make man calls it, and packagers do.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages, one for each command", Args: args(1, 1, "folder"),
		Hidden:  true,
		Example: "  plimsoll man man/man1",
		RunE: func(cmd *cobra.Command, given []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // the date of the build is no part of a manual
			err := os.MkdirAll(given[0], 0o755)
			if err == nil {
				err = doc.GenManTree(root, &doc.GenManHeader{Title: "PLIMSOLL", Section: "1", Source: "Plimsoll",
					Manual: "Plimsoll manual"}, given[0])
			}
			if err != nil {
				return exit.Errorf(exit.Failed, "", "man: %w", err)
			}
			visible.Fprintf(a.notes(), "manual: %s\n", given[0])
			return nil
		},
	}
}
