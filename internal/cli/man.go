package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
)

// manCommand writes the manual; make man calls it, and packagers do.
func manCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages, one for each command", Args: console.Args(1, 1, "folder"),
		Hidden:  true,
		Example: "  plimsoll man man/man1",
		RunE: func(cmd *cobra.Command, given []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // the date of the build is no part of a manual
			err := os.MkdirAll(given[0], 0o777)
			if err == nil {
				err = manual(root, given[0])
			}
			if err != nil {
				return exit.Errorf(exit.Failed, "", "man: %w", err)
			}
			visible.Fprintf(con.Notes(), "manual: %s\n", given[0])
			return nil
		},
	}
}

// manual writes the pages of a command and of those below it.
func manual(c *cobra.Command, folder string) error {
	for _, below := range c.Commands() {
		if !below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := manual(below, folder); err != nil {
			return err
		}
	}
	page := filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
	return outfile.Write(page, func(w io.Writer) error {
		return doc.GenMan(c, &doc.GenManHeader{Title: "PLIMSOLL", Section: "1", Source: "Plimsoll",
			Manual: "Plimsoll manual"}, w)
	})
}
