//go:build !linux

package cli

import (
	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
)

// labCommands are none: a lab is made of what Linux has.
func labCommands(*console.Console) []*cobra.Command { return nil }

// labPlaces are none either.
func labPlaces() []string { return nil }
