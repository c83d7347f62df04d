package cli

import "github.com/spf13/cobra"

// labCommands hold what is done with the lab, a miniature cluster on this machine.
func (a *app) labCommands() []*cobra.Command {
	return []*cobra.Command{a.group("lab", "A miniature cluster on this machine", a.labImageCommand())}
}
