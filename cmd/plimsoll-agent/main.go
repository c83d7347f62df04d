// Plimsoll-agent looks after the commands of a run on one machine. It is put there and called by plimsoll, through SSH.
package main

import (
	"os"

	"plimsoll/internal/targets/ssh/agent"
)

func main() { os.Exit(agent.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
