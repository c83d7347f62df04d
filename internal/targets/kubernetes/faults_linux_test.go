package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// ours is a run that goes on, with machines that a test makes.
type ours struct {
	target.Cluster
	t      testing.TB
	c      *k8s.Cluster
	space  string // path of its namespace
	memory int64  // of its machines
	mu     sync.Mutex
	faults []string
	done   []result.PlatformOperation
}

func (o *ours) operated(d result.PlatformOperation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = append(o.done, d)
}

// log takes what is worth telling an operator as a fault of nobody.
func (o *ours) log(format string, args ...any) { o.fault(-1, "log", fmt.Sprintf(format, args...), "") }

func (o *ours) fault(node int, state, text, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, fmt.Sprint(node, " ", state, " ", text))
}

// said waits for a fault.
func (o *ours) said(words ...string) {
	o.t.Helper()
	until(o.t, fmt.Sprintf("a fault with %q", words), func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, f := range o.faults {
			if holds(f, words...) {
				return nil
			}
		}
		return fmt.Errorf("there are %q", o.faults)
	})
}

// provisioned is a run on a fleet, whose pods are waited for no longer than limit.
func provisioned(t testing.TB, c *k8s.Cluster, namespace, file string, limit time.Duration) *ours {
	t.Helper()
	return provisionedAs(t, t.Name(), c, namespace, file, limit)
}

// having is a run with machines that are on.
func having(t testing.TB, c *k8s.Cluster, namespace, file string, names ...string) *ours {
	t.Helper()
	o := provisioned(t, c, namespace, file, patient)
	if err := o.make(names...); err != nil {
		t.Fatal(err)
	}
	return o
}

func provisionedAs(t testing.TB, run string, c *k8s.Cluster, namespace, file string, limit time.Duration) *ours {
	t.Helper()
	p := opened(t, file, agents(t)).(*place)
	p.onLimit = limit
	state := filepath.Join(t.TempDir(), "state")
	o := &ours{t: t, c: c, space: "/api/v1/namespaces/" + namespace, memory: 64 << 20}
	var err error
	o.Cluster, err = p.Provision(
		t.Context(),
		target.Request{RunID: run, StateDir: state, Log: o.log, Fault: o.fault, Operated: o.operated},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := o.Close()
		left, e := p.Destroy(context.Background(), state)
		if err = errors.Join(err, e); err != nil || len(left) > 0 {
			t.Errorf("%q remain: %v", left, err)
		}
	})
	return o
}

// make makes machines, each on the node of its number, and switches them on.
func (o *ours) make(names ...string) error {
	maker := o.Cluster.(target.VMMaker)
	k := target.Clone{Source: "gold"}
	for i, name := range names {
		k.Members = append(k.Members, target.Placement{Name: name, Node: i})
	}
	err := maker.CreateTemplate(o.t.Context(), target.Template{Name: "gold", Image: "any", DiskBytes: []int64{64 << 20},
		MemoryBytes: o.memory})
	if err == nil {
		err = maker.Clone(o.t.Context(), k)
	}
	if err == nil {
		err = o.Cluster.(target.VMPower).PowerOn(o.t.Context(), names, len(names))
	}
	return err
}

func (o *ours) host(name string) target.Host {
	o.t.Helper()
	h, err := o.Host(name)
	if err != nil {
		o.t.Fatal(err)
	}
	return h
}

// pod is the object of a machine that is on.
func (o *ours) pod(name string) string {
	v, err := o.Cluster.(*cluster).get(name)
	if err != nil {
		o.t.Fatal(err)
	}
	return o.space + "/pods/" + v.Short
}

func (o *ours) call(method, path string, body any) {
	o.t.Helper()
	if _, err := o.c.Call(method, path, body); err != nil {
		o.t.Fatal(err)
	}
}

// TestWhyNot makes machines that cannot be: the error says what the cluster says of it.
func TestWhyNot(t *testing.T) {
	needs.Long(t, why)
	for _, test := range []struct {
		name, old, now string
		before         func(o *ours)
		words          []string
	}{
		{name: "a class that is gone", old: "storage_class: " + k8s.Shared, now: "storage_class: gone",
			words: []string{`of class "gone" is Pending`, `storageclass.storage.k8s.io "gone" not found`, "name a class that there is"}},
		{name: "a class without block volumes", old: "storage_class: " + k8s.Shared,
			now: "storage_class: " + k8s.FilesOnly, words: []string{`of class "plimsoll-files" is Pending`,
				"makes volumes of mode Block", "volume_mode: Filesystem"}},
		{name: "a class whose provisioner is not there", old: "storage_class: " + k8s.Shared,
			now: "storage_class: nobodys", before: func(o *ours) {
				const path = "/apis/storage.k8s.io/v1/storageclasses"
				o.call(http.MethodPost, path, map[string]any{"metadata": map[string]any{"name": "nobodys"},
					"provisioner": "nobody.example"})
				o.t.Cleanup(func() { _, _ = o.c.Call(http.MethodDelete, path+"/nobodys", nil) })
			}, words: []string{`of class "nobodys" is Pending`, "nobody.example"}},
		{name: "an image that is not there", old: k8s.WorkImage, now: "localhost/nobody/nothing:1",
			words: []string{"ErrImagePull", "localhost/nobody/nothing:1",
				"push the image to where node1 gets it from"}},
		{name: "more memory than there is", old: "platform:", now: "requests: true\nplatform:",
			before: func(o *ours) { o.memory = 1 << 50 }, words: []string{"Insufficient memory",
				"smaller machines on node1"}},
		{name: "a node that is cordoned", before: func(o *ours) {
			node := "/api/v1/nodes/" + o.c.Nodes[0].Name
			cordon := func(is bool) map[string]any {
				return map[string]any{"spec": map[string]any{"unschedulable": is}}
			}
			o.call(http.MethodPatch, node, cordon(true))
			o.t.Cleanup(func() { o.call(http.MethodPatch, node, cordon(false)) })
		}, words: []string{"unschedulable", "kubectl uncordon node1"}},
		{name: "a quota that is full", before: func(o *ours) {
			o.call(http.MethodPost, o.space+"/resourcequotas", map[string]any{"metadata": map[string]any{
				"name": "small"}, "spec": map[string]any{"hard": map[string]any{"persistentvolumeclaims": "1"}}})
			until(t, "the quota counts", func() error {
				data, err := o.c.Call(http.MethodGet, o.space+"/resourcequotas/small", nil)
				if err == nil && !strings.Contains(string(data), `"used"`) {
					err = errors.New("not yet")
				}
				return err
			})
		}, words: []string{"exceeded quota: small", "persistentvolumeclaims", "have the quota raised"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, namespace, file := started(t, "")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), test.old, test.now, 1)),
				0o600); err != nil {
				t.Fatal(err)
			}
			o := provisioned(t, c, namespace, file, 15*time.Second)
			if test.before != nil {
				test.before(o)
			}
			err = o.make("a")
			until(t, "it says why", func() error { // the cluster may take its time to know
				if err != nil && holds(err.Error(), append(test.words, `vm "a"`)...) {
					return nil
				}
				was := err
				err = o.Cluster.(target.VMPower).PowerOn(t.Context(), []string{"a"}, 1)
				return fmt.Errorf("got %w: want %q", was, test.words)
			})
			t.Log(err)
		})
	}
}

// TestEnded ends pods as a platform does: the journal has it in the platform's words.
func TestEnded(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	o := having(t, c, namespace, file, "a", "b")
	data, err := c.Call(http.MethodGet, o.pod("a"), nil)
	id := regexp.MustCompile(`containerd://([0-9a-f]+)`).FindSubmatch(data)
	if err != nil || id == nil {
		t.Fatalf("%s, %v", data, err)
	}
	if _, err := c.On(
		c.Nodes[0].Name,
		append(k8s.Ctr(), "tasks", "kill", "-s", "SIGKILL", string(id[1]))...); err != nil {
		t.Fatal(err)
	}
	o.said("0 ", result.FaultBegins, "the platform ended a: Error (exit code 137)")
	o.call(http.MethodDelete, o.pod("b"), nil)
	o.said("1 ", "the platform ended b: ")
	for _, name := range []string{"a", "b"} {
		if err := o.host(name).Accessible(t.Context()); !errors.Is(err, target.ErrNotAccessible) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := o.Cluster.(target.VMPower).PowerOn(t.Context(), []string{"a", "b"}, 2); err != nil {
		t.Error(err)
	}
}

// TestSilence ends the API server for a minute, and a kubelet: what runs in the pods goes on and is heard of again.
func TestSilence(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	o := having(t, c, namespace, file, "a")
	p, err := o.host("a").Start(t.Context(), target.Command{Argv: []string{"/bin/sh", "-c", "sleep 75; echo over"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.On(c.Nodes[0].Name, "pkill", "-KILL", "-f", "kcp kubelet"); err != nil {
		t.Fatal(err)
	}
	until(t, "the kubelet is back", func() error { return o.host("a").Accessible(t.Context()) })
	if err := c.SetPart("kube-apiserver", false); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // that is for how long it is away
	if err := c.SetPart("kube-apiserver", true); err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Lost || exit.Code != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = slices.DeleteFunc(o.faults, func(f string) bool { // a node whose kubelet is slow to come back is silent
		return strings.HasPrefix(f, "-1 log") || strings.Contains(f, " ready")
	})
	if len(o.faults) > 0 {
		t.Errorf("faults %q: nothing ended", o.faults)
	}
}

// TestPower switches nodes off, and those that are not ours to switch off not.
func TestPower(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	withPower(t, c, file)
	node := c.Nodes[1].Name
	foreign := map[string]any{"metadata": map[string]any{"name": "foreign", "namespace": "default"},
		"spec": map[string]any{"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": []any{
			map[string]any{"name": "a", "image": k8s.WorkImage, "command": []any{"/bin/sleep", "3600"}}}}}
	const path = "/api/v1/namespaces/default/pods"
	if _, err := c.Call(http.MethodPost, path, foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Call(http.MethodDelete, path+"/foreign", nil) })
	o := having(t, c, namespace, file, "a", "b")
	off := func() error {
		p, err := o.Cluster.(target.NodePower).PowerController(1)
		if err != nil {
			t.Fatal(err)
		}
		return p.PowerOff(t.Context())
	}
	on := func(want bool) {
		t.Helper()
		if is, err := c.Power(node); err != nil || is != want {
			t.Fatalf("node is on: %v, %v", is, err)
		}
	}
	err := off()
	if err == nil || !holds(err.Error(), node, "default/foreign", "consent: ["+node+"]") {
		t.Errorf("a node with a pod of others: %v", err)
	}
	on(true)
	facts, err := opened(t, file, "").Check(t.Context())
	if err != nil || facts.Can(target.NodePowerControl) ||
		!strings.Contains(facts.Missing[target.NodePowerControl], "default/foreign") {
		t.Errorf("check: %q, %v", facts.Missing[target.NodePowerControl], err)
	}
	o.Cluster.(*cluster).fleet.Consent = []string{node}
	label := func(value any) {
		o.call(http.MethodPatch, "/api/v1/nodes/"+node, map[string]any{"metadata": map[string]any{
			"labels": map[string]any{controlPlane[0]: value}}})
	}
	label("")
	if err = off(); err == nil || !holds(err.Error(), node, controlPlane[0]) {
		t.Errorf("a node of the API, with consent: %v", err)
	}
	on(true)
	label(nil)

	p, err := o.host("b").Start(t.Context(), target.Command{Argv: []string{"/bin/sleep", "3600"}})
	if err != nil {
		t.Fatal(err)
	}
	bmc := c.Nodes[1].BMC // somebody else pulls the cord
	if out, err := exec.Command("ipmitool", "-I", "lanplus", "-C", "3", "-H", bmc.Address, "-U", bmc.User, "-f",
		bmc.PasswordFile, "chassis", "power", "off").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o.said("1 ", result.FaultBegins, "node "+node+" is off")
	if exit, err := p.Wait(t.Context()); err != nil || !exit.Lost {
		t.Errorf("%+v, %v: want it lost", exit, err)
	}
	if err := o.Cluster.(target.VMPower).PowerOff(t.Context(), []string{"b"}); err != nil {
		t.Error(err)
	}
	if err := o.Cluster.(target.VMMover).Move(t.Context(), "b", 0); err != nil {
		t.Error(err)
	}
	if err := o.Cluster.(target.VMPower).PowerOn(t.Context(), []string{"b"}, 1); err != nil {
		t.Error(err)
	}
	if err := off(); err != nil { // it is off: nothing to ask consent for
		t.Error(err)
	}
	if err := c.SetPower(node, true); err != nil {
		t.Fatal(err)
	}
	until(t, "the node is back", func() error {
		state, ready, err := o.NodeState(t.Context(), 1)
		if err == nil && (state != target.On || !ready) {
			err = fmt.Errorf("%s, ready %v", state, ready)
		}
		return err
	})
}
