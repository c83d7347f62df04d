// Command tier runs the tests of this repository by tier, as the Makefile and CI call it, and tells where their time
// goes.
//
//	go run ./internal/testkit/tier run [-short|-long] [-race] [-again] [-record FILE] [PACKAGE...]
//	go run ./internal/testkit/tier draw -minutes 15 [-seed N] [-record FILE]
//	go run ./internal/testkit/tier times [FILE]
//	go run ./internal/testkit/tier list
//
// Run prints a line a package, what failed with its output, why tests were skipped, and a closing line of counts; the
// events of `go test -json` go to a file that times reads. Packages that start goroutines are run under the race
// detector where there is a C compiler, but for those that only drive whole programs. With -again, as CI has it, up
// to five tests that fail are run once more, each alone: failing twice fails the run, and passing then is printed as
// a flake.
//
// Draw runs a slice of what `make test` leaves to `make test-all`: long tests, fuzz targets, packages under the race
// detector, mutants and measured rates. The slice begins at a tenth of the list that the seed says and goes on until
// the minutes are over, so that ten seeds in a row reach all of it as long as a tenth fits into the minutes. What
// fails there is run once more, too.
//
// It lives among the helpers of tests, imports nothing of the product, and is never shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "tier:", err)
		}
		os.Exit(1)
	}
}

// errFailed says that tests failed, which is printed already.
var errFailed = errors.New("tests failed")

func command(args []string) error {
	if len(args) == 0 {
		return errors.New("say run, draw, times or list: the comment of internal/testkit/tier has their flags")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	flags := flag.NewFlagSet("tier "+args[0], flag.ExitOnError)
	record := flags.String("record", "bin/tests.json", "the `FILE` that events go to")
	switch args[0] {
	case "run":
		short := flags.Bool("short", false, "pure and quick tests only")
		long := flags.Bool("long", false, "long tests too")
		race := flags.Bool("race", false, "everything under the race detector that may be")
		again := flags.Bool("again", false, "run what failed once more, alone")
		_ = flags.Parse(args[1:])
		return run(ctx, plan{short: *short, long: *long, raceAll: *race, again: *again, record: *record,
			patterns: flags.Args()})
	case "draw":
		minutes := flags.Float64("minutes", 15, "start nothing after so many `MINUTES`")
		seed := flags.Int("seed", -1, "where the slice begins: its remainder by ten (default: the number of commits)")
		_ = flags.Parse(args[1:])
		return draw(ctx, *minutes, *seed, *record)
	case "times":
		_ = flags.Parse(args[1:])
		if flags.NArg() > 0 {
			*record = flags.Arg(0)
		}
		return times(os.Stdout, *record)
	case "list":
		return list(ctx, os.Stdout)
	}
	return fmt.Errorf("%q is none of run, draw, times and list", args[0])
}
