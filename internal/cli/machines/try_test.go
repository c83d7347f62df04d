package machines

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/local"
)

// copiesNothing is a place whose storage copies no volumes, which shows when it is asked to.
type copiesNothing struct{ target.Target }

func (p copiesNothing) Provision(ctx context.Context, r target.Request) (target.Cluster, error) {
	c, err := p.Target.Provision(ctx, r)
	return noCopies{c, c.(target.VMMaker), c.(target.VMPower)}, err
}

type noCopies struct {
	target.Cluster
	target.VMMaker
	target.VMPower
}

func (c noCopies) Clone(ctx context.Context, k target.Clone) error {
	if k.Source == "try" {
		return errors.New("no copy of its disk is made")
	}
	return c.VMMaker.Clone(ctx, k)
}

// TestTryClones tries the clones that a place claims: where they do not come it has none.
func TestTryClones(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{true, false} {
		place, err := local.Provider{}.New(target.Config{Clock: clock.Real{}, Nodes: 1,
			AllowHostCommands: true})
		if err != nil {
			t.Fatal(err)
		}
		if !copies {
			place = copiesNothing{place}
		}
		facts, err := place.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said, err := tryTarget(t.Context(), place, &facts, time.Unix(1e9, 0), t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "a clone of it after", false: "a clone of it failed"}[copies]
		if !strings.Contains(said, want) || facts.Can(target.VMClones) != copies {
			t.Errorf("clones %t: %q, %q", facts.Can(target.VMClones), said, facts.Missing)
		}
		if _, lacks := facts.Missing[target.VMClones]; lacks == copies ||
			!copies && !strings.Contains(facts.Missing[target.VMClones], "tried: no copy of its disk") {
			t.Errorf("missing are %q", facts.Missing)
		}
		if all := target.Capabilities(); slices.IndexFunc(all, func(c target.Capability) bool {
			return c != target.VMClones && strings.HasPrefix(facts.Missing[c], "tried")
		}) >= 0 {
			t.Errorf("what was not tried is missing: %q", facts.Missing)
		}
	}
}
