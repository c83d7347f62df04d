//go:build !linux

package machines

import (
	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
)

// LabCommands are none: a lab is made of what Linux has.
func LabCommands(*console.Console) []*cobra.Command { return nil }

// LabPlaces are none either.
func LabPlaces() []string { return nil }
