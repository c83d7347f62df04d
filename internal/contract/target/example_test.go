package target_test

import (
	"context"
	"errors"
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/sim"
)

// The life of a place: check, provision, make machines, run something in them, destroy.
func Example() {
	ctx := context.Background()
	place := sim.New(sim.Options{Nodes: 2}).Target()
	facts, err := place.Check(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(facts.Nodes), "nodes; snapshots:", facts.Can(target.Snapshots))

	cluster, err := place.Provision(ctx, target.Request{RunID: "1", StateDir: "run/state"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	maker, _ := cluster.(target.VMMaker) // claimed, as every capability is found
	power, _ := cluster.(target.VMPower)
	err = errors.Join(
		maker.CreateTemplate(ctx, target.Template{Name: "gold", Group: "db", DiskBytes: []int64{1 << 30}}),
		maker.Clone(ctx, target.Clone{Source: "gold", Group: "db",
			Members: []target.Placement{{Name: "db-0", Node: 1}}}),
		power.PowerOn(ctx, []string{"db-0"}, 100))
	if err != nil {
		fmt.Println(err)
		return
	}
	host, err := cluster.Host("db-0")
	if err != nil {
		fmt.Println(err)
		return
	}
	process, err := host.Start(ctx, target.Command{Argv: []string{"print", "hello"}, Stdout: "out"})
	if err != nil {
		fmt.Println(err)
		return
	}
	exit, err := process.Wait(ctx)
	fmt.Println("exit", exit.Code, err)
	out, err := target.ReadFile(ctx, host, "out", 0, 100)
	fmt.Println(string(out), err)

	nodes, _ := cluster.(target.NodePower)
	bmc, err := nodes.PowerController(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bmc.PowerOff(ctx))
	fmt.Println(host.Accessible(ctx))
	remains, err := place.Destroy(ctx, "run/state")
	fmt.Println("remains:", len(remains), err)
	// Output:
	// 2 nodes; snapshots: true
	// exit 0 <nil>
	// hello <nil>
	// <nil>
	// Accessible: vm "db-0": node 1: not accessible: it is powered off
	// remains: 0 <nil>
}
