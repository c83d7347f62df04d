package cli

import (
	"bytes"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/result"
	"plimsoll/scenario"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema [GENERATOR]", Short: "Print the JSON schema of scenario files, for editors",
		Args: args(0, 1, "generator"),
		Long: `Schema prints the JSON schema (draft 2020-12) of a scenario file after templating, or of the config files of a
generator, made from the same option tables that check the file. Point your editor's YAML mode to it.`,
		Example: "  plimsoll schema > plimsoll.schema.json\n  plimsoll schema pg > pg.schema.json",
		RunE: func(_ *cobra.Command, given []string) error {
			for _, name := range given {
				engines := a.drivers.ByName()
				c, ok := engines[name].(workload.Configured)
				if !ok {
					known := slices.DeleteFunc(slices.Sorted(maps.Keys(engines)), func(name string) bool {
						_, ok := engines[name].(workload.Configured)
						return !ok
					})
					return exit.Usagef("", "schema: no generator %q whose configs have one%s", name,
						didYouMean(name, known))
				}
				return a.printJSON(workload.SchemaOf(name, c))
			}
			schema, err := scenario.Schema()
			if err != nil {
				return exit.Errorf(exit.Failed, "", "schema: %w", err)
			}
			_, err = a.out.Write(append(bytes.TrimSpace(schema), '\n'))
			return err
		},
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the program and of its run folders", Args: args(0, 0, "argument"),
		Example: "  plimsoll version --json",
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if a.json {
				return a.printJSON(v)
			}
			_, err := visible.Fprintf(a.out, "%s\nrun folders: version %d\n%s\n", v, v.RunFolder, v.Go)
			return err
		},
	}
}

// versions is what version --json prints.
type versions struct {
	Program   string `json:"program"`
	Revision  string `json:"revision,omitempty"`
	Modified  bool   `json:"modified,omitempty"`
	RunFolder int    `json:"run_folder_version"`
	Go        string `json:"go"`
}

// revision is set by make: what git calls the source.
var revision string

// buildVersion reads what make and the Go toolchain have stamped into the binary.
func buildVersion() versions {
	v := versions{Program: "plimsoll (unknown build)", RunFolder: result.FormatVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	v.Program = "plimsoll " + info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if revision != "" {
		clean, dirty := strings.CutSuffix(revision, "-dirty")
		v.Revision, v.Modified = clean, dirty
	}
	return v
}
