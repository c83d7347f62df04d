package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/scenario"
)

func schemaCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of scenario files, for editors", Args: console.Args(0, 0,
			"argument"),
		Long: `Schema prints the JSON schema (draft 2020-12) of a scenario file after templating, made from the same
option tables that check the file. Point your editor's YAML mode to it.`,
		Example: "  plimsoll schema > plimsoll.schema.json",
		RunE: func(*cobra.Command, []string) error {
			schema, err := scenario.Schema()
			if err != nil {
				return exit.Errorf(exit.Failed, "", "schema: %w", err)
			}
			_, err = con.Out.Write(append(bytes.TrimSpace(schema), '\n'))
			return err
		},
	}
}

func versionCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the program and of its run folders", Args: console.Args(0, 0,
			"argument"),
		Example: "  plimsoll version --json",
		RunE: func(*cobra.Command, []string) error {
			v := console.BuildVersion()
			if con.JSON {
				return con.PrintJSON(v)
			}
			_, err := visible.Fprintf(con.Out, "%s\nrun folders: version %d\n%s\n", v, v.RunFolder, v.Go)
			return err
		},
	}
}
