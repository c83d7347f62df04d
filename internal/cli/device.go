package cli

import "github.com/spf13/cobra"

// deviceCommand holds what is asked of devices and the paths to them.
func (a *app) deviceCommand() *cobra.Command {
		a.deviceInspectCommand(), a.deviceCheckCommand(), a.sweepCommand(), a.specCommand())
}
