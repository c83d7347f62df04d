package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
)

var podsOfPace = flag.Int("pods", 20, "pods of TestPace: -args -pods 50")

// TestPace compares what makes pods with two claims each ready with the same objects made one after the other and
// waited for, as kubectl apply and wait do, twice by turns; and measures how long a command takes to begin, and how far
// apart commands begin in all pods that were staged. Wanted are 1.1 times as long, 150 ms and 50 ms, on a machine with
// nothing else to do; twice that is let pass. The image has the agent, so that nothing is sent to the pods.
func TestPace(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	c.LoadAgent(t, filepath.Join(agents(t), "plimsoll-agent-linux-amd64"))
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.ReplaceAll(text, []byte(k8s.WorkImage), []byte(k8s.AgentImage)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := provisioned(t, c, namespace, file, patient)
	k, ctx := o.Cluster.(*cluster), t.Context()
	node := func(i int) int { return i % len(k.nodes) }
	if err := k.CreateTemplate(ctx, target.Template{Name: "gold", Image: "any", DiskBytes: []int64{16 << 20},
		MemoryBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	ours := func(round int) (names []string, took time.Duration) {
		begun, members := time.Now(), []target.Placement(nil)
		for i := range *podsOfPace {
			names = append(names, fmt.Sprintf("r%d-%d", round, i))
			members = append(members, target.Placement{Name: names[i], Node: node(i)})
		}
		if err := errors.Join(k.Clone(ctx, target.Clone{Source: "gold", Members: members}),
			k.PowerOn(ctx, names, len(names))); err != nil {
			t.Fatal(err)
		}
		return names, time.Since(begun)
	}
	byHand := func(round int) time.Duration {
		begun := time.Now()
		for i := range *podsOfPace {
			name := fmt.Sprintf("h%d-%d", round, i)
			v := &vm{Name: name, Short: name, Node: node(i), DiskBytes: []int64{16 << 20},
				MemoryBytes: 64 << 20}
			v.Image, _ = k.fleet.image("any")
			for _, x := range []struct {
				kind string
				what object
			}{{"persistentvolumeclaims", k.claim(workClaim(name), v, k.fleet.workSize, false, nil)},
				{"persistentvolumeclaims", k.claim(v.disk(0), v, 16<<20, true, nil)}, {"pods", k.pod(v)}} {
				x.what.Meta.Labels = map[string]string{"by": "hand"}
				o.call(http.MethodPost, o.space+"/"+x.kind, x.what)
			}
		}
		until(t, "all are ready", func() error {
			data, err := c.Call(http.MethodGet, o.space+"/pods?labelSelector=by%3Dhand", nil)
			var list struct {
				Items []struct {
					Status struct {
						Conditions []struct{ Type, Status string }
					}
				}
			}
			ready := 0
			if err = errors.Join(err, json.Unmarshal(data, &list)); err == nil {
				for _, p := range list.Items {
					for _, is := range p.Status.Conditions {
						if is.Type == "Ready" && is.Status == "True" {
							ready++
						}
					}
				}
				if ready < *podsOfPace {
					err = fmt.Errorf("%d are", ready)
				}
			}
			return err
		})
		took := time.Since(begun)
		for _, kind := range []string{"pods?gracePeriodSeconds=1&", "persistentvolumeclaims?"} {
			o.call(http.MethodDelete, o.space+"/"+kind+"labelSelector=by%3Dhand", nil)
		}
		until(t, "they are gone", func() error {
			data, err := c.Call(http.MethodGet, o.space+"/persistentvolumeclaims?labelSelector=by%3Dhand", nil)
			var list struct{ Items []any }
			if err = errors.Join(err, json.Unmarshal(data, &list)); err == nil && len(list.Items) > 0 {
				err = fmt.Errorf("%d are there", len(list.Items))
			}
			return err
		})
		return took
	}
	// The storage still removes volumes when their claims are gone, and the provisioner, which asks the API five times
	// a second and ten times at once, their objects: neither has to wait for those of the other.
	rest := func(volumes int) {
		until(t, "the storage rests", func() error {
			h, err := c.Holds()
			if err == nil && len(h.Volumes) > volumes {
				err = fmt.Errorf("%d volumes are there", len(h.Volumes))
			}
			var list struct{ Items []any }
			data, calls := c.Call(http.MethodGet, "/api/v1/persistentvolumes", nil)
			if err = errors.Join(err, calls, json.Unmarshal(data, &list)); err == nil && len(list.Items) > volumes {
				err = fmt.Errorf("%d objects of volumes are there", len(list.Items))
			}
			return err
		})
		time.Sleep(3 * time.Second) // what it may ask at once is ten again
	}
	before, err := c.Holds()
	if err != nil {
		t.Fatal(err)
	}
	var mine, hand time.Duration
	var names []string
	for round := range 2 {
		if len(names) > 0 {
			if err := k.Delete(ctx, names); err != nil {
				t.Fatal(err)
			}
		}
		rest(len(before.Volumes))
		byHands := byHand(round)
		hand += byHands
		rest(len(before.Volumes))
		var took time.Duration
		names, took = ours(round)
		mine += took
		t.Logf("round %d: %.1f s, by hand %.1f s", round, took.Seconds(), byHands.Seconds())
	}
	ratio := mine.Seconds() / hand.Seconds()
	began := make([]time.Time, len(names))
	var within time.Duration
	var starts []time.Duration
	for range 30 {
		begun := time.Now()
		p, err := o.host(names[0]).Start(ctx, target.Command{Argv: []string{"true"}, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, time.Since(begun))
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(starts)
	staged := make([]target.Staged, len(names))
	err = clock.Parallel(clock.Real{}, len(names), len(names), func(i int) (err error) {
		staged[i], err = o.host(names[i]).(target.Stager).Stage(ctx, target.Command{Argv: []string{"true"},
			ReadOnly: true})
		return err
	})
	at := time.Now().Add(time.Second)
	err = errors.Join(err, clock.Parallel(clock.Real{}, len(names), len(names), func(i int) error {
		p, b, err := staged[i].Release(ctx, at)
		if err == nil {
			began[i], within = b.At, max(within, b.Within)
			_, err = p.Wait(ctx)
		}
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(began, time.Time.Compare)
	median, apart := starts[len(starts)/2], began[len(began)-1].Sub(began[0])
	t.Logf("%d pods: %.1f s, by hand %.1f s: %.2f times as long; a command begins after %v at the median, %v at most; "+
		"staged they begin within %v of each other, known to %v", len(names), mine.Seconds()/2, hand.Seconds()/2, ratio,
		median, starts[len(starts)-1], apart, within)
	if ratio > 2.2 || median > 300*time.Millisecond || apart > 100*time.Millisecond {
		t.Error("it is more than twice what is wanted")
	}
}
