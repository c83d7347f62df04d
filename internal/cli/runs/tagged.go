package runs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/machines"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/unit"
)

// tagged is how cleanup goes by the tags of what is there.
type tagged struct {
	target   machines.Flags
	all, yes bool
}

func (f *tagged) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.target.Name, "target", "", "go by the tags of what is at this `target`, not by run folders")
	flags.StringArrayVar(&f.target.Options, "target-opt", nil, "set an option of the target, `NAME=VALUE`; repeatable")
	flags.BoolVar(&f.all, "all", false, "with --target and --yes: remove also what runs keep whose lease goes on")
	flags.BoolVar(&f.yes, "yes", false, "consent to --all")
}

func (f *tagged) asked() bool {
	return f.target.Name != "" || len(f.target.Options) > 0 || f.all || f.yes
}

// taggedRun is a line of cleanup --target --json.
type taggedRun struct {
	Run     string         `json:"run"`
	Owner   string         `json:"owner,omitempty"`
	Age     float64        `json:"age_s"`
	Lease   float64        `json:"lease_s"` // for how long it goes on; 0 when it is over
	Objects map[string]int `json:"objects"`
	Bytes   int64          `json:"bytes"`
	State   string         `json:"state"` // "cleaned", "kept", "failed"
	Remains []string       `json:"remains,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// cleanTagged lists the runs of which something is at a target, and removes what nobody keeps.
func (st *Store) cleanTagged(f tagged, runs []string) error {
	switch {
	case f.target.Name == "":
		return exit.Usagef("", "cleanup: --target-opt, --all and --yes go with --target")
	case len(runs) > 0:
		return exit.Usagef("", "cleanup: --target goes by tags, and takes no run")
	case f.all != f.yes:
		return exit.Usagef("", "cleanup: --all and --yes go together: what runs that go on are using is removed, too")
	}
	t, err := st.Target(f.target, 0)
	if err != nil {
		return err
	}
	finder, is := t.Target.(target.RunFinder)
	if !is {
		return exit.Usagef("plimsoll cleanup goes by the folders of runs",
			"cleanup: target %s does not find runs by their tags", f.target.Name)
	}
	ctx, stop := st.Interruptible()
	defer stop()
	found, err := finder.FindRuns(ctx)
	if err != nil {
		return exit.Errorf(exit.Refused, "", "cleanup: %w", err)
	}
	list := []taggedRun{}
	var errs []error
	for _, r := range found {
		line := taggedRun{Run: r.Run, Owner: r.Owner, Age: r.Made.Seconds(), Lease: max(0, r.Lease.Seconds()),
			Objects: r.Objects, Bytes: r.Bytes, State: "kept"}
		if r.Lease <= 0 || f.all {
			line.State = "cleaned"
			if line.Remains, err = finder.RemoveRun(ctx, r.Run); err != nil {
				line.State, line.Error = "failed", err.Error()
				errs = append(errs, exit.Errorf(exit.Uncleaned, "", "cleanup: %s: %w", r.Run, err))
			}
		}
		list = append(list, line)
	}
	if st.JSON {
		return errors.Join(append(errs, st.PrintJSON(list))...)
	}
	if len(list) == 0 {
		visible.Fprintf(st.Out, "nothing of runs at target %s\n", f.target.Name)
		return nil
	}
	table := terminal.Table{Head: []string{"RUN", "OWNER", "AGE", "LEASE", "SIZE", "OBJECTS", ""}}
	for _, r := range list {
		lease := "over"
		if r.Lease > 0 {
			lease = "for " + seconds(r.Lease)
		}
		var objects []string
		for _, kind := range slices.Sorted(maps.Keys(r.Objects)) {
			objects = append(objects, fmt.Sprintf("%s %d", kind, r.Objects[kind]))
		}
		table.Add(r.Run, r.Owner, seconds(r.Age), lease, unit.Bytes(r.Bytes).String(), strings.Join(objects, ", "),
			r.State)
	}
	errs = append(errs, table.Write(st.Out))
	for _, r := range list {
		for _, name := range r.Remains {
			visible.Fprintf(st.Out, "%s remains: %s\n", r.Run, name)
		}
	}
	return errors.Join(errs...)
}

func seconds(s float64) string { return (time.Duration(s) * time.Second).String() }
