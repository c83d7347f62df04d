package cli

import "github.com/spf13/cobra"

// deviceCommand holds what is asked of devices and the paths to them.
func (a *app) deviceCommand() *cobra.Command {
	return a.group("device", "Ask a device, a file system or the path to it what it is and what it can do",
		a.deviceInspectCommand(), a.deviceCheckCommand(), a.sweepCommand(), a.specCommand())
}
