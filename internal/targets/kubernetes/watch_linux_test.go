package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// TestEvicted has the platform evict a pod, and the kernel kill a process of another that runs on: each is a fault, in
// the platform's words.
func TestEvicted(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	o := having(t, c, namespace, file, "a", "b")
	pod := o.pod("a")
	o.call(http.MethodPost, pod+"/eviction", map[string]any{"apiVersion": "policy/v1", "kind": "Eviction",
		"metadata": map[string]any{"name": pod[strings.LastIndex(pod, "/")+1:], "namespace": namespace}})
	o.said("0 ", result.FaultBegins, "the platform ended a: EvictionByEvictionAPI: Eviction API: evicting")
	if err := o.host("a").Accessible(t.Context()); !errors.Is(err, target.ErrNotAccessible) {
		t.Errorf("a: %v", err)
	}

	p, err := o.host("b").Start(t.Context(), target.Command{Argv: []string{"/bin/sh", "-c",
		"dd if=/dev/zero of=/dev/null bs=200M count=1; exit $?"}}) // 64 MiB are the limit
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil || exit != (target.Exit{Code: 137, Starved: 1}) {
		t.Errorf("%+v, %v", exit, err)
	}
	o.said("1 ", result.FaultBegins, "the kernel killed 1 process of b for want of memory", "a limit of 64 MiB")
	if err := o.host("b").Accessible(t.Context()); err != nil {
		t.Errorf("b: %v", err)
	}
	page, _, err := o.host("b").(interface {
		Page(ctx context.Context) (io.ReadCloser, string, error)
	}).Page(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(page)
	if err = errors.Join(err, page.Close()); err != nil ||
		!bytes.Contains(text, []byte("\nplimsoll_memory_limit_bytes 67108864\n")) ||
		bytes.Contains(text, []byte("\nplimsoll_memory_limit_hits_total 0\n")) { // it was reached: none is not said
		t.Errorf("its limit of memory was reached: %v\n%s", err, text)
	}
}

// TestOperations measures what the platform does for machines, each thing once.
func TestOperations(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	o := having(t, c, namespace, file, "a", "b")
	pod := o.pod("a")
	short := pod[strings.LastIndex(pod, "/")+1:]
	for i, e := range [][2]string{{"Pulling", "Pulling image"}, {"Pulled", "Successfully pulled image in 1s"}} {
		// The cluster has nowhere to pull from: these are what a kubelet says of it.
		o.call(http.MethodPost, o.space+"/events", map[string]any{"metadata": map[string]any{
			"name": fmt.Sprint("pull-", i)}, "reason": e[0], "message": e[1], "type": "Normal",
			"source": map[string]any{"component": "kubelet"}, "involvedObject": map[string]any{"kind": "Pod",
				"name": short, "namespace": namespace}})
	}
	ctx := t.Context()
	if err := errors.Join(
		o.Cluster.(target.Snapshotter).Snapshot(ctx, "one", []string{"a"}),
		o.Cluster.(target.VMMaker).Clone(ctx, target.Clone{Source: "a", Members: []target.Placement{{Name: "c"}}}),
		o.Cluster.(target.VMPower).PowerOn(ctx, []string{"c"}, 1),
		o.Cluster.(target.VMMaker).Delete(ctx, []string{"c"})); err != nil {
		t.Fatal(err)
	}
	// Of a and b a work volume and a disk each are made, of c a work volume; its disk is a copy. All of c is deleted.
	want := map[string]int{result.Bound: 5, result.Scheduled: 3, result.Started: 3, result.Addressed: 3,
		result.Pulled: 1, result.Snapshotted: 1, result.Cloned: 1, result.Deleted: 2}
	got := map[string]int{}
	until(t, "all is measured", func() error {
		clear(got)
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, d := range o.done {
			if got[d.Name]++; d.Seconds <= 0 || d.Seconds > patient.Seconds() ||
				!slices.Contains([]string{"a", "b", "c"}, d.VM) {
				t.Fatalf("%+v", d)
			}
		}
		delete(got, result.Attached) // seen where the kubelet tells of it before all else is done
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("%v: want %v", got, want)
		}
		return nil
	})
}

// TestRequests counts the requests that machines take from their making until they are gone, by the server's record.
func TestRequests(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	begun, err := os.ReadFile(c.Audit) // what was asked for before is not of the machines
	if err != nil {
		t.Fatal(err)
	}
	o := provisioned(t, c, namespace, file, patient)
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("m", i))
	}
	members := target.Clone{Source: "gold"}
	for i, name := range names {
		members.Members = append(members.Members, target.Placement{Name: name, Node: i % 2})
	}
	ctx := t.Context()
	maker, power := o.Cluster.(target.VMMaker), o.Cluster.(target.VMPower)
	if err := errors.Join(maker.CreateTemplate(ctx, target.Template{Name: "gold", Image: "any",
		DiskBytes: []int64{16 << 20}}), maker.Clone(ctx, members), power.PowerOn(ctx, names, 5),
		power.PowerOff(ctx, names), maker.Delete(ctx, names)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(c.Audit)
	if err != nil {
		t.Fatal(err)
	}
	seen, total := map[string]int{}, 0
	for line := range bytes.Lines(data[len(begun):]) {
		var e struct {
			Stage, Verb string
			User        struct{ Username string }
			ObjectRef   struct{ Resource, Subresource, Namespace string }
		}
		// A watch and a session in a pod are there once when they begin, and once when they end.
		if json.Unmarshal(line, &e) == nil && e.User.Username == "system:serviceaccount:"+namespace+":runs" &&
			e.Stage == "ResponseComplete" {
			seen[strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
			total++
		}
	}
	t.Logf("%d requests for %d machines: %v", total, len(names), seen)
	if total > 15*len(names) || total < 5*len(names) {
		t.Errorf("%d requests for %d machines, 15 each at most: %v", total, len(names), seen)
	}
}

// TestFailover cuts the power of a node: its machines run elsewhere, with what they had written, but for those that are
// exempt, that somebody had switched off, and whose volumes are kept to the node.
func TestFailover(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	withPower(t, c, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kept := file + ".kept"
	if err := os.WriteFile(kept, bytes.Replace(text, []byte("storage_class: "+k8s.Shared),
		[]byte("storage_class: "+k8s.Local), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	o := provisioned(t, c, namespace, file, patient)
	ctx := context.Background()
	if err := o.make("x", "a"); err != nil {
		t.Fatal(err)
	}
	err = o.Cluster.(target.VMMaker).Clone(ctx, target.Clone{Source: "gold",
		Members: []target.Placement{{Name: "exempt", Node: 1}, {Name: "off", Node: 1}}})
	power := o.Cluster.(target.VMPower)
	if err := errors.Join(err, power.PowerOn(ctx, []string{"exempt", "off"}, 2), power.PowerOff(ctx, []string{"off"}),
		o.Cluster.(target.Availability).SetHA(ctx, []string{"exempt"}, false)); err != nil {
		t.Fatal(err)
	}
	l := provisionedAs(t, "kept", c, namespace, kept, patient)
	if err := l.make("y", "local"); err != nil {
		t.Fatal(err)
	}
	write, err := o.host("a").Start(ctx, target.Command{Argv: []string{"/bin/sh", "-c",
		"printf written | dd of=/dev/sdb conv=fsync"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := write.Wait(ctx); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	if err := c.SetPower(c.Nodes[1].Name, false); err != nil {
		t.Fatal(err)
	}
	o.said("1 ", result.FaultBegins, "node "+c.Nodes[1].Name+" is off")
	o.said("0 ", result.Restarted, "vm a is restarted on "+c.Nodes[0].Name)
	l.said("vm local is not restarted", "is kept to "+c.Nodes[1].Name)
	read, err := o.host("a").Start(ctx, target.Command{Argv: []string{"/bin/sh", "-c",
		`[ "$(dd if=/dev/sdb bs=7 count=1)" = written ]`}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := read.Wait(ctx); err != nil || exit.Code != 0 {
		t.Errorf("what it had written is not there: %+v, %v", exit, err)
	}
	got := ""
	list, err := o.VMs(ctx)
	for _, v := range list {
		got += fmt.Sprintf("%s %s on %d; ", v.Name, v.Power, v.Node)
	}
	if want := "a on on 0; exempt off on 1; gold off on 0; off off on 1; x on on 0; "; got != want || err != nil {
		t.Errorf("machines: %s, %v; want %s", got, err, want)
	}
	if err := c.SetPower(c.Nodes[1].Name, true); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(c.Nodes[1].Name, true, patient); err != nil {
		t.Error(err)
	}
}
