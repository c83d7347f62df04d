package runs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/cli/machines"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/kit/exit"
)

// cloud is a place where two runs have left something.
type cloud struct {
	target.Target
	removed []string
}

func (*cloud) Name() string                               { return "cloud" }
func (*cloud) Summary() string                            { return "" }
func (*cloud) Options() []target.Option                   { return nil }
func (c *cloud) New(target.Config) (target.Target, error) { return c, nil }

func (*cloud) FindRuns(context.Context) ([]target.FoundRun, error) {
	return []target.FoundRun{
		{Run: "r-old", Owner: "eve@ci", Made: 2 * time.Hour, Lease: -time.Hour, Bytes: 3 << 30,
			Objects: map[string]int{"pods": 2, "claims": 3}},
		{
			Run:     "r-new",
			Made:    90 * time.Second,
			Lease:   4*time.Minute + 900*time.Millisecond,
			Objects: map[string]int{"pods": 1},
		},
	}, nil
}

func (c *cloud) RemoveRun(_ context.Context, run string) ([]string, error) {
	if c.removed = append(c.removed, run); run == "r-new" {
		return []string{"pod a"}, errors.New("it is held")
	}
	return nil, nil
}

// plain finds nothing by tags.
type plain struct{ cloud }

func (*plain) Name() string                             { return "plain" }
func (*plain) New(target.Config) (target.Target, error) { return struct{ target.Target }{}, nil }

// dark lets nobody look.
type dark struct{ cloud }

func (*dark) Name() string                               { return "dark" }
func (d *dark) New(target.Config) (target.Target, error) { return d, nil }
func (*dark) FindRuns(context.Context) ([]target.FoundRun, error) {
	return nil, errors.New("the token has expired")
}

func TestCleanTagged(t *testing.T) {
	for _, test := range []struct {
		args, removed, out, err string
		code                    int
	}{
		{args: "--target cloud", removed: "r-old", out: "" +
			"RUN    OWNER   AGE     LEASE       SIZE     OBJECTS\n" +
			"r-old  eve@ci  2h0m0s  over        3 GiB  claims 3, pods 2  cleaned\n" +
			"r-new          1m30s   for 4m0s    0 B      pods 1            kept\n"},
		{args: "--target cloud --all --yes", removed: "r-old r-new", err: "cleanup: r-new: it is held",
			code: exit.Uncleaned, out: "" +
				"RUN    OWNER   AGE     LEASE       SIZE     OBJECTS\n" +
				"r-old  eve@ci  2h0m0s  over        3 GiB  claims 3, pods 2  cleaned\n" +
				"r-new          1m30s   for 4m0s    0 B      pods 1            failed\n" +
				"r-new remains: pod a\n"},
		{args: "--target cloud --all", err: "--all and --yes go together", code: exit.Usage},
		{args: "--all --yes", err: "go with --target", code: exit.Usage},
		{args: "--target cloud r-old", err: "takes no run", code: exit.Usage},
		{args: "--target plain", err: "target plain does not find runs by their tags", code: exit.Usage},
		{args: "--target dark", err: "cleanup: the token has expired", code: exit.Refused},
		{args: "--target fog", err: `no target called "fog"`, code: exit.Usage},
	} {
		place := &cloud{}
		var out bytes.Buffer
		st := &Store{Targets: &machines.Targets{Console: &console.Console{Out: &out, Err: &out, Clock: clock.Real{}},
			Drivers: drivers.Registry{Targets: []target.Provider{place, &plain{}, &dark{}}}}}
		c := st.CleanupCommand()
		c.SetArgs(strings.Fields(test.args))
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		if got := strings.Join(place.removed, " "); got != test.removed {
			t.Errorf("%s: removed %q: want %q", test.args, got, test.removed)
		}
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v: want %q", test.args, err, test.err)
		}
		if code := exit.Code(err); code != test.code {
			t.Errorf("%s: exit code %d: want %d", test.args, code, test.code)
		}
		if got, want := words(out.String()), words(test.out); !slices.Equal(got, want) {
			t.Errorf("%s: printed\n%s\nwant\n%s", test.args, out.String(), test.out)
		}
	}
}

// words are those of each line, however wide its columns are.
func words(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}
