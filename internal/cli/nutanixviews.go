package cli

import "github.com/spf13/cobra"

func (a *app) nutanixViewCommands() []*cobra.Command {
	return []*cobra.Command{a.nutanixSimulateCommand()}
}
