package cli

import (
	"bytes"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/scenario"
)

func schemaCommand(con *console.Console, registry drivers.Registry) *cobra.Command {
	return &cobra.Command{
		Use: "schema [GENERATOR]", Short: "Print the JSON schema of scenario files, for editors",
		Args: console.Args(0, 1, "generator"),
		Long: `Schema prints the JSON schema (draft 2020-12) of a scenario file after templating, or of the config files of a
generator, made from the same option tables that check the file. Point your editor's YAML mode to it.`,
		Example: "  plimsoll schema > plimsoll.schema.json\n  plimsoll schema pg > pg.schema.json",
		RunE: func(_ *cobra.Command, given []string) error {
			if len(given) > 0 {
				name := given[0]
				engines := registry.ByName()
				c, ok := engines[name].(workload.Configured)
				if !ok {
					known := slices.DeleteFunc(slices.Sorted(maps.Keys(engines)), func(name string) bool {
						_, ok := engines[name].(workload.Configured)
						return !ok
					})
					return exit.Usagef("", "schema: no generator %q whose configs have one%s", name,
						didYouMean(name, known))
				}
				return con.PrintJSON(workload.SchemaOf(name, c))
			}
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
