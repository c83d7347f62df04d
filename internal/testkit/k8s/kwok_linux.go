package k8s

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll/internal/testkit/needs"
)

// Played is the class of volumes that are played: they hold nothing.
const Played = "plimsoll-played"

// Play gives the cluster nodes that are not there: kwok says of them and of the pods that the scheduler puts there what
// kubelets would, by the stages that it comes with. Volumes of the class Played, which its own stages make too slowly
// for thousands, are made here. Nothing runs in such a pod, so that no command is answered. They go with the test.
func (c *Cluster) Play(t testing.TB, nodes int) (names []string) {
	t.Helper()
	source := filepath.Join(needs.Root(), "internal", "testkit", "k8s", "kwok")
	dir, err := built(t.Context(), source, "kwok", "sigs.k8s.io/kwok", "kustomize/stage/*/fast/*.yaml", nil,
		func() { t.Log("kwok is compiled: some 300 seconds of one processor, once") })
	if err != nil {
		t.Fatal(err)
	}
	stages := filepath.Join(t.TempDir(), "stages.yaml")
	var text []byte
	for _, name := range []string{"node-initialize", "pod-ready", "pod-delete"} {
		one, err := os.ReadFile(filepath.Join(dir, "crd", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "pod-ready" { // also of one whose node was late: the cluster takes its pods for not ready then
			one = bytes.Replace(one, []byte("      - 'Pending'\n"), []byte("      - 'Pending'\n      - 'Running'\n"), 1)
		}
		text = append(append(text, "---\n"...), one...)
	}
	log, err := os.Create(filepath.Join(c.Dir, "log", "kwok.log"))
	if err != nil {
		t.Fatal(err)
	}
	// In a node's process namespace, so that it goes with the cluster, however the tests end.
	node := c.Nodes[0].Name
	pid, err := c.pid(node)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "kwok")
	kwok := exec.Command("nsenter", "-t", pid, "-p", "-n", "--", program, "--kubeconfig="+c.Kubeconfig,
		"--config="+stages, "--node-lease-duration-seconds=20",
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")
	kwok.Stdout, kwok.Stderr = log, log
	if err := errors.Join(os.WriteFile(stages, text, 0o600), kwok.Start(), log.Close()); err != nil {
		t.Fatal(err)
	}
	const class, all = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/nodes"
	ended, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- c.provision(ended) }()
	t.Cleanup(func() {
		close(ended)
		err := <-over
		for _, name := range names {
			_, e := c.Call(http.MethodDelete, all+"/"+name, nil)
			err = errors.Join(err, e)
		}
		_, e := c.Call(http.MethodDelete, class+"/"+Played, nil)
		_, killed := c.On(node, "pkill", "-KILL", "-f", program)
		if err = errors.Join(err, e, killed); err != nil {
			t.Error(err)
		}
		_ = kwok.Wait() // it was killed
	})
	call := func(at string, body map[string]any) {
		t.Helper()
		if _, err := c.Call(http.MethodPost, at, body); err != nil {
			t.Fatal(err)
		}
	}
	call(class, map[string]any{"metadata": map[string]any{"name": Played}, "provisioner": Played})
	room := map[string]any{"cpu": "64", "memory": "256Gi", "pods": "110"}
	for i := range nodes {
		name := fmt.Sprintf("played%d", i+1)
		call(all, map[string]any{"metadata": map[string]any{"name": name,
			"annotations": map[string]any{"kwok.x-k8s.io/node": "fake"},
			"labels":      map[string]any{"kubernetes.io/hostname": name}},
			"status": map[string]any{"allocatable": room, "capacity": room}})
		names = append(names, name)
	}
	for _, name := range names {
		if err := c.WaitReady(name, true, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// provision plays the provisioner of the class Played: its claims are bound to volumes that are nowhere, which go when
// their claims are gone.
func (c *Cluster) provision(ended <-chan struct{}) error {
	type object = map[string]any
	type one struct {
		Metadata struct{ Name, Namespace, UID string }
		Spec     struct {
			StorageClassName, VolumeName, VolumeMode string
			AccessModes                              []string
			Resources                                struct{ Requests map[string]string }
		}
		Status struct{ Phase string }
	}
	const volumes = "/api/v1/persistentvolumes"
	list := func(path string) (of []one, err error) {
		data, err := c.Call(http.MethodGet, path, nil)
		var page struct{ Items []one }
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		return slices.DeleteFunc(page.Items, func(o one) bool { return o.Spec.StorageClassName != Played }), err
	}
	bind := func(p one) error {
		name, claim := "played-"+p.Metadata.UID, "/api/v1/namespaces/"+p.Metadata.Namespace+"/persistentvolumeclaims/"+
			p.Metadata.Name
		_, made := c.Call(http.MethodPost, volumes, object{"metadata": object{"name": name}, "spec": object{
			"storageClassName": Played, "volumeMode": p.Spec.VolumeMode, "accessModes": p.Spec.AccessModes,
			"capacity": p.Spec.Resources.Requests, "persistentVolumeReclaimPolicy": "Delete",
			"csi": object{"driver": Played, "volumeHandle": name},
			"claimRef": object{"kind": "PersistentVolumeClaim", "name": p.Metadata.Name,
				"namespace": p.Metadata.Namespace, "uid": p.Metadata.UID}}})
		_, bound := c.Call(http.MethodPatch, volumes+"/"+name+"/status", object{"status": object{"phase": "Bound"}})
		_, taken := c.Call(http.MethodPatch, claim, object{"metadata": object{"annotations": object{
			"pv.kubernetes.io/bind-completed": "yes"}}, "spec": object{"volumeName": name}})
		_, said := c.Call(http.MethodPatch, claim+"/status", object{"status": object{"phase": "Bound",
			"accessModes": p.Spec.AccessModes, "capacity": p.Spec.Resources.Requests}})
		return errors.Join(made, bound, taken, said)
	}
	done := map[string]bool{}
	for {
		select {
		case <-ended:
			return nil
		case <-time.After(500 * time.Millisecond):
		}
		claims, err := list("/api/v1/persistentvolumeclaims")
		there, e := list(volumes)
		if errors.Join(err, e) != nil {
			continue // it is asked again
		}
		var g errgroup.Group
		g.SetLimit(8)
		for _, p := range claims {
			if !done[p.Metadata.UID] {
				done[p.Metadata.UID] = true
				g.Go(func() error {
					_ = bind(p) // of a claim that is gone meanwhile; what is not bound no pod gets
					return nil
				})
			}
		}
		for _, v := range there {
			if v.Status.Phase == "Released" {
				g.Go(func() error {
					_, err := c.Call(http.MethodDelete, volumes+"/"+v.Metadata.Name, nil)
					return err
				})
			}
		}
		_ = g.Wait() // what is still there is asked for again
	}
}
