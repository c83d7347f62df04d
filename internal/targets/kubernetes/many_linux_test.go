package kubernetes

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
)

var many = flag.Int("machines", 200, "of TestMany: -args -machines 2000 is a fleet")

// TestMany makes ten machines on each of many nodes that kwok plays, and removes them: what the API is asked
// for, and what that takes of this process. Nothing runs in the pods, so that no agent is put there.
func TestMany(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	names := c.Play(t, *many/10)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	more := strings.NewReplacer(k8s.Shared, k8s.Played, k8s.FilesOnly, k8s.Played).Replace(string(text)) +
		"nodes: [" + strings.Join(names, ", ") + "]\n"
	if err := os.WriteFile(file, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	// What is asked for at once is of the whole fleet: the plan of a run.
	facts, err := opened(t, file, agents(t)).Check(t.Context())
	if err != nil || len(facts.Nodes) != len(names) {
		t.Fatalf("%d nodes: %v", len(facts.Nodes), err)
	}
	audit, err := os.Open(c.Audit)
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	if _, err := audit.Seek(0, 2); err != nil { // what was asked for before is not of the machines
		t.Fatal(err)
	}
	var before unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	made, err := opened(t, file, agents(t)).Provision(t.Context(), target.Request{RunID: "many", StateDir: state,
		Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	k := made.(*cluster)
	begun := time.Now()
	said := func(what string) {
		t.Logf("%5.1f s  %s", time.Since(begun).Seconds(), what)
	}
	members := target.Clone{Source: "gold", Group: "g"}
	var machines []string
	for i := range *many {
		machines = append(machines, fmt.Sprint("m", i))
		members.Members = append(members.Members, target.Placement{Name: machines[i], Node: i % len(names)})
	}
	if err := errors.Join(k.CreateTemplate(t.Context(), target.Template{Name: "gold", Image: "any",
		DiskBytes: []int64{16 << 20}}), k.Clone(t.Context(), members)); err != nil {
		t.Fatal(err)
	}
	said("made")
	err = clock.Parallel(clock.Real{}, len(machines), 50, func(i int) error { // as life does, before the agent
		v, err := k.get(machines[i])
		if err != nil {
			return err
		}
		uid, err := k.makePod(t.Context(), v)
		if err == nil {
			err = k.waitOn(t.Context(), v, uid)
		}
		return errors.Join(err, k.change(func() { v.On, v.Wanted = true, true }))
	})
	if err != nil {
		t.Fatal(err)
	}
	said("on")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if err := errors.Join(k.PowerOff(t.Context(), machines), k.Close()); err != nil {
		t.Error(err)
	}
	said("off")
	left, err := opened(t, file, "").Destroy(t.Context(), state)
	if err != nil || len(left) > 0 {
		t.Errorf("%d remain: %v", len(left), err)
	}
	said("removed")
	var after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	total, seen := 0, map[string]int{}
	lines := bufio.NewReaderSize(audit, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var e struct {
			Stage, Verb string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Subresource string }
		}
		if json.Unmarshal(line, &e) == nil && e.Stage == "ResponseComplete" &&
			e.User.Username == "system:serviceaccount:"+namespace+":runs" {
			seen[e.Verb+" "+e.ObjectRef.Resource]++
			total++
		}
	}
	each := float64(total) / float64(*many)
	cpu := func(u unix.Rusage) float64 { return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9 }
	used, held := cpu(after)-cpu(before), float64(m.HeapInuse+m.StackInuse)/1e6
	t.Logf("%d machines: %.1f requests each, %.0f s of processor time, %.0f MB: %v", *many, each, used, held, seen)
	if each > 15 || held > 150 {
		t.Errorf("%.1f requests for each machine, %.0f MB: want 15 and 150 at most", each, held)
	}
	if left := remains(t, c, namespace); len(left) > 0 {
		t.Errorf("there are %d objects", len(left))
	}
}
