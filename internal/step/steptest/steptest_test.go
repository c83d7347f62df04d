package steptest_test

import (
	"path/filepath"
	"testing"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/step/steptest"
	"plimsoll/internal/target"
	"plimsoll/internal/target/local"
	"plimsoll/internal/target/sim"
	"plimsoll/internal/workload"
	workloadfake "plimsoll/internal/workload/fake"
)

var engines = map[string]workload.Engine{"fio": workloadfake.Engine{Samples: 10}}

// The fake cluster in virtual time, which belongs to the goroutine that makes it: each subtest has a clock of its own.
func TestFake(t *testing.T) {
	for name, without := range map[string][]target.Capability{
		"everything": nil,
		"nothing": {target.NodePowerControl, target.NodeShutdown, target.Snapshots, target.LiveMigration,
			target.AvailabilityRules, target.GuestCommands},
	} {
		t.Run(name, func(t *testing.T) {
			steptest.Run(t, func(t testing.TB) steptest.Place {
				v := clock.NewVirtual(time.Unix(1700000000, 0))
				w := sim.New(sim.Options{Clock: v, Seed: 1, RunTools: true, Boot: time.Second, NodeBoot: 20 * time.Second, Without: without})
				w.Command("sh", func(*sim.Call) target.Exit { return target.Exit{} })
				return steptest.Place{Target: w.Target(), StateDir: "state", Clock: v, Engines: engines}
			})
		})
	}
}

func TestLocal(t *testing.T) {
	steptest.Run(t, func(t testing.TB) steptest.Place {
		dir := t.TempDir()
		place, err := local.Provider{}.New(target.Config{Nodes: 3, Clock: clock.Real{}, Options: target.Options{"dir": dir}})
		if err != nil {
			t.Fatal(err)
		}
		return steptest.Place{Target: place, StateDir: filepath.Join(dir, "state"), Clock: clock.Real{}, Engines: engines}
	})
}
