package sim_test

import (
	"context"
	"errors"
	"fmt"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/targets/sim"
)

// A world can be told to fail: here the first power-on of one VM.
func ExampleWorld_Fail() {
	ctx := context.Background()
	world := sim.New(sim.Options{})
	world.Fail(sim.Rule{Method: "PowerOn", Object: "a", Count: 1, Err: errors.New("no memory left on node-0")})
	cluster, err := world.Target().Provision(ctx, target.Request{RunID: "1", StateDir: "state"})
	if err != nil {
		fmt.Println(err)
		return
	}
	maker, _ := cluster.(target.VMMaker)
	power, _ := cluster.(target.VMPower)
	fmt.Println(maker.CreateTemplate(ctx, target.Template{Name: "a"}))
	for range 2 {
		fmt.Println(power.PowerOn(ctx, []string{"a"}, 1))
	}
	// Output:
	// <nil>
	// PowerOn: vm "a": no memory left on node-0
	// <nil>
}
