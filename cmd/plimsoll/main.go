// Plimsoll tests storage, databases and clusters: scenarios in, believable reports out. Run "plimsoll help".
package main

import (
	"os"

	"plimsoll/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
