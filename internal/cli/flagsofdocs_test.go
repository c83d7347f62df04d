package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
)

// TestFlagsOfTheDocuments looks for every flag that a page names by itself, as `--flag` or `--flag VALUE`, among those
// of the commands. Whole command lines are run by the tests of cmd/plimsoll.
func TestFlagsOfTheDocuments(t *testing.T) {
	t.Parallel()
	others := map[string]string{ // of other programs
		"--output-format": "fio", "--status-interval": "fio",
		"--write_hist_log": "fio", "--log_avg_msec": "fio",
		"--lat_percentiles": "fio",
		"--randseed":        "fio", "--randrepeat": "fio", "--rate": "pgbench",
		"--log": "pgbench", "--progress": "pgbench", "--no-vacuum": "pgbench",
		"--report-interval": "sysbench", "--csv": "redis-benchmark", "--out": "k6",
		"--show-time": "rados bench", "--latency": "wrk2",
		"--csvfile": "elbencho", "--jsonfile": "elbencho", "--livecsv": "elbencho",
	}
	flags := map[string]bool{"--help": true}
	a := newApp(&console.Console{Clock: clock.Real{}}, drivers.All())
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		note := func(f *pflag.Flag) { flags["--"+f.Name] = true }
		c.Flags().VisitAll(note)
		c.PersistentFlags().VisitAll(note)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
	span := regexp.MustCompile("`(--[a-z][a-z_-]*)[^`]*`")
	n := 0
	check := func(name string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range span.FindAllSubmatch(data, -1) {
			n++
			if f := string(m[1]); !flags[f] && others[f] == "" {
				t.Errorf("%s: %s: no command has %s", filepath.Base(name), m[0], f)
			}
		}
	}
	check(filepath.Join(needs.Root(), "README.md"))
	err := filepath.WalkDir(filepath.Join(needs.Root(), "docs"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			check(name)
		}
		return err
	})
	if err != nil || n < 40 {
		t.Errorf("%d flags found, %v", n, err)
	}
}
