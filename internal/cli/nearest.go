package cli

import (
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/nearest"
)

var unknownFlag = regexp.MustCompile(`unknown flag: --([^\s=]+)`)

// nearestFlag is the flag the user may have meant, "" when none is near.
func nearestFlag(cmd *cobra.Command, err error) string {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return nearest.Of(m[1], names)
}
