package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/scenario"
	"plimsoll/unit"
)

func checkSteps() Registry {
	checks := map[string]func(scenario.Args, View) (*action, error){
		"check.OobConfigured": func(_ scenario.Args, v View) (*action, error) {
			return oobConfigured(allNodes(v)), nil
		},
		"check.ClusterReady":                    clusterReady,
		"check.ClustersMatch":                   clustersMatch,
		"check.HypervisorConnectivity":          nodeAnswers,
		"check.NodePowerManagementConnectivity": controllerAnswers,
	}
	for _, name := range []string{
		"check.VCenterConnectivity", "check.VSphereDatastoreVisible", "check.PrismConnectivity",
		"check.PrismHostInSameCluster", "check.PrismDatastoreVisible",
	} {
		checks[name] = func(a scenario.Args, v View) (*action, error) { return platformCheck(name, a, v), nil }
	}
	r := Registry{}
	for name, build := range checks {
		r[name] = single(func(a scenario.Args, v View) (*action, error) {
			c, err := build(a, v)
			if err == nil {
				c.do = noted(c.do, a, name)
			}
			return c, err
		})
	}
	return r
}

// noted annotates a check that has passed.
func noted(do func(context.Context, *Env) error, a scenario.Args, name string) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		if err := do(ctx, e); err != nil {
			return err
		}
		e.annotate(a.Bool("annotate"), "%s: passed", name)
		return nil
	}
}

func allNodes(v View) []int {
	nodes := make([]int, len(v.Facts.Nodes))
	for i := range nodes {
		nodes[i] = i
	}
	return nodes
}

// ControllersConfigured is the check that the plan puts before everything else when steps drive the power of nodes:
// each of the nodes that they touch has a controller.
func ControllersConfigured(nodes []int) Step {
	a := oobConfigured(nodes)
	a.name = "check.OobConfigured"
	return a
}

func oobConfigured(nodes []int) *action {
	s := selection{nodes: nodes}
	return &action{
		text: fmt.Sprintf("see that %s to be switched %s a power controller", unit.Plural(len(nodes), "node"),
			map[bool]string{true: "has", false: "have"}[len(nodes) == 1]),
		requires: []target.Capability{target.NodePowerControl},
		check:    s.check,
		do:       func(_ context.Context, e *Env) error { return s.check(e.View) },
	}
}

func clusterReady(_ scenario.Args, v View) (*action, error) {
	const limit = 1200 * time.Second
	return &action{
		text:     "see that all nodes are ready, and power on those that are not",
		estimate: func(f *Forecast) time.Duration { return f.nodesOn(allNodes(f.View)) },
		do: func(ctx context.Context, e *Env) error {
			power, can := e.Cluster.(target.NodePower)
			for _, n := range allNodes(e.View) {
				state, ready, err := e.Cluster.NodeState(ctx, n)
				if err == nil && state == target.On && ready {
					continue
				}
				if state == target.Off && can && e.Facts.Can(target.NodePowerControl) {
					controller, err := power.PowerController(n)
					if err == nil {
						err = controller.PowerOn(ctx)
					}
					if err != nil {
						return fmt.Errorf("%s: %w", e.NodeName(n), err)
					}
					e.Power.markOn(n, e.Clock.Now())
				}
				if err := waitForNodes(ctx, e, []int{n}, target.On, limit, false); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

func clustersMatch(_ scenario.Args, v View) (*action, error) {
	return &action{
		text: "see that the cluster knows every configured node",
		do: func(ctx context.Context, e *Env) error {
			var errs []error
			for _, n := range allNodes(e.View) {
				if _, _, err := e.Cluster.NodeState(ctx, n); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", e.NodeName(n), err))
				}
			}
			return errors.Join(errs...)
		},
	}, nil
}

const answerLimit = 10 * time.Second

func nodeAnswers(a scenario.Args, v View) (*action, error) {
	n, bad := nodeIndex(a, "node_index", v)
	return &action{
		text:  fmt.Sprintf("see that node %v answers", a["node_index"]),
		check: func(View) error { return bad },
		do: func(ctx context.Context, e *Env) error {
			return e.within(ctx, e.NodeName(n), answerLimit, func(ctx context.Context) error {
				state, _, err := e.Cluster.NodeState(ctx, n)
				if err == nil && state != target.On {
					err = fmt.Errorf("it is %s", state)
				}
				return err
			})
		},
	}, nil
}

func controllerAnswers(a scenario.Args, v View) (*action, error) {
	n, bad := nodeIndex(a, "node_index", v)
	s := selection{nodes: []int{n}, err: bad}
	return &action{
		text:     fmt.Sprintf("see that the power controller of node %v answers", a["node_index"]),
		requires: []target.Capability{target.NodePowerControl},
		check:    s.check,
		do: func(ctx context.Context, e *Env) error {
			return e.within(ctx, e.NodeName(n)+": power controller", answerLimit, func(ctx context.Context) error {
				_, _, err := e.Cluster.NodeState(ctx, n)
				return err
			})
		},
	}, nil
}

// platformCheck is a diagnostic that only one platform has.
func platformCheck(name string, a scenario.Args, v View) *action {
	node, store := -1, a.String("datastore_name")
	var bad error
	if a.Has("node_index") {
		node, bad = nodeIndex(a, "node_index", v)
	}
	return &action{
		text:     "platform check " + name,
		requires: []target.Capability{target.PlatformChecks},
		check:    func(View) error { return bad },
		do: func(ctx context.Context, e *Env) error {
			c, err := able[target.PlatformChecker](e, target.PlatformChecks)
			if err != nil {
				return err
			}
			return c.PlatformCheck(ctx, name, node, store)
		},
	}
}
