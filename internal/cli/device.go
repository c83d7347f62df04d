package cli

import (
	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/storage"
)

// deviceCommand holds what is asked of devices and the paths to them.
func deviceCommand(dv *storage.Devices, rn *runner) *cobra.Command {
	return console.Group("device", "Ask a device, a file system or the path to it what it is and what it can do",
		dv.DeviceInspectCommand(), dv.DeviceCheckCommand(), rn.sweepCommand(), rn.specCommand())
}
