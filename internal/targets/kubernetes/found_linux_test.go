package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
)

const childFile = "PLIMSOLL_TEST_FLEET"

// TestMain is also the process of a run that is killed.
func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		if err := child(file, os.Getenv(childFile+"_STATE"), os.Getenv(childFile+"_AGENTS"),
			os.Getenv(childFile+"_LAST")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// childSteps are what the process of a run does, in their order.
var childSteps = []string{"lease", "template", "clone", "on", "snapshot", "copy", "off", "restore", "delete", "close"}

// child does its steps up to the last, naming each before it begins, and then waits to be killed.
func child(file, state, agents, last string) error {
	p, err := Provider{}.New(target.Config{Options: target.Options{"file": file, "agents": agents},
		Clock: clock.Real{}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	var c target.Cluster
	clone := func(of string, names ...string) error {
		k := target.Clone{Source: of}
		for i, name := range names {
			k.Members = append(k.Members, target.Placement{Name: name, Node: i})
		}
		return c.(target.VMMaker).Clone(ctx, k)
	}
	do := map[string]func() error{
		"lease": func() (err error) {
			c, err = p.Provision(ctx, target.Request{RunID: "killed", StateDir: state})
			return err
		},
		"template": func() error {
			return c.(target.VMMaker).CreateTemplate(ctx, target.Template{Name: "gold", Image: "any",
				DiskBytes: []int64{64 << 20}})
		},
		"clone":    func() error { return clone("gold", "a", "b") },
		"on":       func() error { return c.(target.VMPower).PowerOn(ctx, []string{"a"}, 1) },
		"snapshot": func() error { return c.(target.Snapshotter).Snapshot(ctx, "one", []string{"a", "b"}) },
		"copy":     func() error { return clone("a", "c") },
		"off":      func() error { return c.(target.VMPower).PowerOff(ctx, []string{"a"}) },
		"restore":  func() error { return c.(target.Snapshotter).Restore(ctx, "one", "a") },
		"delete":   func() error { return c.(target.VMMaker).Delete(ctx, []string{"a", "b", "c"}) },
		"close":    func() error { return c.Close() },
	}
	for _, step := range childSteps {
		fmt.Println(step)
		if err := do[step](); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if step == last {
			break
		}
	}
	fmt.Println("made")
	time.Sleep(time.Hour) // it is killed
	return nil
}

// killed starts a run's process and kills it some time after it has begun the step.
func killed(t *testing.T, file, state, agents, last, step string, after time.Duration) {
	t.Helper()
	run := exec.Command(os.Args[0])
	run.Env = append(os.Environ(), childFile+"="+file, childFile+"_STATE="+state, childFile+"_AGENTS="+agents,
		childFile+"_LAST="+last)
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	lines := bufio.NewReader(out)
	for line := ""; line != step+"\n"; said += line {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%s%s, %v", said, line, err)
		}
	}
	time.Sleep(after) // that is the moment
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it was killed
}

// TestKilledAtEveryStep kills a run's process at a random moment of each of its steps; then its folder, or where that
// is lost its tags, lead to all that is left of it.
func TestKilledAtEveryStep(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	agents := agents(t)
	held := func() string {
		t.Helper()
		h, err := c.Holds()
		all := slices.Concat(h.Volumes, h.Loops, h.Shims)
		for _, path := range []string{"/api/v1/persistentvolumes",
			"/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"} {
			data, e := c.Call(http.MethodGet, path, nil)
			var list struct {
				Items []struct{ Metadata struct{ Name string } }
			}
			err = errors.Join(err, e)
			if err == nil {
				err = json.Unmarshal(data, &list)
			}
			for _, o := range list.Items {
				all = append(all, path+"/"+o.Metadata.Name)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	before := held()
	for i, step := range append(childSteps, "made") {
		for _, by := range []string{"folder", "tags"} {
			t.Run(step+", by "+by, func(t *testing.T) {
				after := rand.N(1500 * time.Millisecond)
				state := filepath.Join(t.TempDir(), "state")
				killed(t, file, state, agents, childSteps[min(i, len(childSteps)-1)], step, after)
				p := opened(t, file, "")
				var left []string
				var err error
				if by == "folder" {
					left, err = p.Destroy(t.Context(), state)
				} else {
					left, err = p.(target.RunFinder).RemoveRun(t.Context(), "plimsoll-killed")
				}
				if err != nil || len(left) > 0 {
					t.Errorf("after %v: %q remain: %v", after, left, err)
				}
				if left := remains(t, c, namespace); len(left) > 0 {
					t.Errorf("after %v: there is %q", after, left)
				}
				until(t, "nothing more is held", func() error {
					if now := held(); now != before {
						return fmt.Errorf("after %v: %s\nand before\n%s", after, now, before)
					}
					return nil
				})
			})
		}
	}
}

// agents is a folder with the agent's program.
func agents(t testing.TB) string {
	named := filepath.Join(t.TempDir(), "plimsoll-agent-linux-amd64")
	needs.Copy(t, needs.Program(t, "./cmd/plimsoll-agent"), named)
	return filepath.Dir(named)
}

// opened is the place of a fleet's file.
func opened(t testing.TB, file, agents string) target.Target {
	t.Helper()
	p, err := Provider{}.New(target.Config{Options: target.Options{"file": file, "agents": agents}, Clock: clock.Real{},
		PowerKinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFound kills a run's process and loses its folder: its tags lead to all that it made, and to nothing else.
func TestFound(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	before, err := c.Holds()
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims"
	claim := func(name string, labels map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "labels": labels},
			"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none-of-that-name",
				"resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}}}}
	}
	for name, labels := range map[string]map[string]any{"others": {"app": "web"}, "strange": {runLabel: "web"}} {
		if _, err := c.Call(http.MethodPost, path, claim(name, labels)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = c.Call(http.MethodDelete, path+"/"+name, nil) })
	}

	state := filepath.Join(t.TempDir(), "state")
	killed(t, file, state, agents(t), "on", "made", 0)
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}

	finder := opened(t, file, "").(target.RunFinder)
	ctx := context.Background()
	found, err := finder.FindRuns(ctx)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	f := found[0]
	if f.Lease <= leaseTime-2*time.Minute || f.Lease > leaseTime+time.Second || f.Made < 0 || f.Made > 10*time.Minute {
		t.Errorf("lease for %v, made %v ago", f.Lease, f.Made)
	}
	f.Lease, f.Made = 0, 0
	want := target.FoundRun{Run: "plimsoll-killed", Owner: owner(), Bytes: 2 * (256<<20 + 64<<20),
		Objects: map[string]int{"pods": 1, "persistentvolumeclaims": 4, "leases": 1}}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("found %+v: want %+v", f, want)
	}
	if _, err := c.Call(http.MethodPatch,
		"/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases/plimsoll-killed",
		map[string]any{"spec": map[string]any{"leaseDurationSeconds": 1}}); err != nil {
		t.Fatal(err)
	}
	until(t, "the lease is over", func() error {
		if found, err = finder.FindRuns(ctx); err == nil && (len(found) != 1 || found[0].Lease > 0) {
			err = fmt.Errorf("%+v", found)
		}
		return err
	})
	for range 2 {
		if left, err := finder.RemoveRun(ctx, "plimsoll-killed"); err != nil || len(left) > 0 {
			t.Fatalf("%q remain: %v", left, err)
		}
	}
	if _, err := finder.RemoveRun(ctx, "web"); err == nil {
		t.Error("what is of no run was removed")
	}
	if left := remains(t, c, namespace); !slices.Equal(left, []string{"persistentvolumeclaims others",
		"persistentvolumeclaims strange"}) {
		t.Errorf("remains %q", left)
	}
	until(t, "volumes, loop devices and processes are gone", func() error {
		after, err := c.Holds()
		for _, now := range slices.Concat(after.Volumes, after.Loops, after.Shims) {
			if !slices.Contains(slices.Concat(before.Volumes, before.Loops, before.Shims), now) {
				err = errors.Join(err, errors.New(now+" was not there before"))
			}
		}
		return err
	})
}

// TestOffByTags loses the record of a run that has switched a node off: its tags bring the node back, and then nothing
// is left, also of volumes that only this node reaches.
func TestOffByTags(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	withPower(t, c, file)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(text, []byte("storage_class: "+k8s.Shared), []byte("storage_class: "+
			k8s.Local), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	node := c.Nodes[1].Name
	o := having(t, c, namespace, file, "a", "b")
	t.Cleanup(func() { _ = c.SetPower(node, true) }) // it is on, unless something went wrong
	p, err := o.Cluster.(target.NodePower).PowerController(1)
	if err == nil {
		err = p.PowerOff(t.Context())
	}
	if err = errors.Join(err, o.Close()); err != nil {
		t.Fatal(err)
	}
	if on, err := c.Power(node); err != nil || on {
		t.Fatalf("%s is on: %v, %v", node, on, err)
	}
	left, err := opened(t, file, "").(target.RunFinder).RemoveRun(t.Context(), o.Cluster.(*cluster).state.Run)
	if err != nil || len(left) > 0 {
		t.Errorf("%q remain: %v", left, err)
	}
	if on, err := c.Power(node); err != nil || !on {
		t.Errorf("%s is on: %v, %v", node, on, err)
	}
	if left := remains(t, c, namespace); len(left) > 0 {
		t.Errorf("remains %q", left)
	}
}

// patient is for how long a cluster has to do what it will do, on a machine with much other work.
const patient = 4 * time.Minute

// until waits for a condition of the cluster.
func until(t testing.TB, what string, is func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patient); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not so after %v: %v", what, patient, err)
}

// TestOthers meets objects of others where a run's would be: they stay.
func TestOthers(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	p := opened(t, file, "").(*place)
	state := filepath.Join(t.TempDir(), "state")
	ctx := context.Background()
	got, err := p.Provision(ctx, target.Request{RunID: "others", StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close() // nothing is on
	name := workClaim(short("plimsoll-others", "a\x001"))
	path := "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims"
	if _, err := c.Call(http.MethodPost, path, map[string]any{"metadata": map[string]any{"name": name},
		"spec": map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none-of-that-name",
			"resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}}}}); err != nil {
		t.Fatal(err)
	}
	defer c.Call(http.MethodDelete, path+"/"+name, nil) // the cluster goes
	maker := got.(target.VMMaker)
	err = errors.Join(maker.CreateTemplate(ctx, target.Template{Name: "gold", Image: "any"}),
		maker.Clone(ctx, target.Clone{Source: "gold", Members: []target.Placement{{Name: "a"}}}))
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "not of this run") {
		t.Errorf("cloning onto a claim of others: %v", err)
	}
	if left, err := p.Destroy(ctx, state); err != nil || len(left) > 0 {
		t.Errorf("%q remain: %v", left, err)
	}
	if left := remains(t, c, namespace); !slices.Contains(left, "persistentvolumeclaims "+name) {
		t.Errorf("the claim of others is gone: there is %q", left)
	}
}
