package steptest_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/local"
	"plimsoll/internal/targets/sim"
	workloadfake "plimsoll/internal/testkit/fake"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/steptest"
	"plimsoll/internal/workloads/fio"
)

var engines = map[string]workload.Engine{"fio": workloadfake.Engine{Samples: 10}}

// The simulated cluster in virtual time, which belongs to the goroutine that makes it: each subtest has a clock of its
// own. Its loads are modelled, or those of the fake generator, as commands in VMs.
func TestSim(t *testing.T) {
	for name, o := range map[string]sim.Options{
		"everything": {},
		"tools":      {RunTools: true},
		"nothing": {Without: []target.Capability{target.NodePowerControl, target.NodeShutdown, target.Snapshots,
			target.LiveMigration,
			target.AvailabilityRules, target.GuestCommands, target.PlaybookHosts, target.StorageMigration,
			target.PlatformChecks, target.WriteLogDrain}},
	} {
		t.Run(name, func(t *testing.T) {
			steptest.Run(t, func(t testing.TB) steptest.Place {
				o := o
				v := clock.NewVirtual(time.Unix(1700000000, 0))
				o.Clock, o.Seed, o.Boot, o.NodeBoot = v, 1, time.Second, 20*time.Second
				w := sim.New(o)
				w.Command("sh", shell)
				engines := engines
				if !o.RunTools {
					engines = map[string]workload.Engine{"fio": fio.Engine{}}
				}
				return steptest.Place{Target: w.Target(), StateDir: "state", Clock: v, Engines: engines}
			})
		})
	}
}

// shell does what the suite needs of a shell: exit codes.
func shell(c *sim.Call) target.Exit {
	code, err := strconv.Atoi(strings.TrimPrefix(c.Argv[len(c.Argv)-1], "exit "))
	if err != nil {
		return target.Exit{}
	}
	return target.Exit{Code: code}
}

// simulated is a place in virtual time of its own.
func simulated(testing.TB) steptest.Place {
	v := clock.NewVirtual(time.Unix(1700000000, 0))
	w := sim.New(sim.Options{Clock: v, Seed: 1, Boot: time.Second, NodeBoot: 20 * time.Second})
	w.Command("sh", shell)
	return steptest.Place{Target: w.Target(), StateDir: "state", Clock: v,
		Engines: map[string]workload.Engine{"fio": fio.Engine{}}}
}

// What every step promises besides its effect, as it is seen to do it: limit, background, annotations.
func TestPromises(t *testing.T) {
	golden.Compare(t, filepath.Join("testdata", "promises.txt"), steptest.Promises(t, simulated))
}

func TestLocal(t *testing.T) {
	needs.Time(t)
	steptest.Run(t, func(t testing.TB) steptest.Place {
		dir := needs.Folder(t)
		place, err := local.Provider{}.New(target.Config{Nodes: 3, Clock: clock.Real{},
			Options: target.Options{"dir": dir}})
		if err != nil {
			t.Fatal(err)
		}
		return steptest.Place{Target: place, StateDir: filepath.Join(dir, "state"), Clock: clock.Real{},
			Engines: engines}
	})
}
