package k8s

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// Played is the class of volumes that kwok plays: they hold nothing.
const Played = "kwok-volume"

// Play gives the cluster nodes that are not there: kwok says of them, of the pods that the scheduler puts there and of
// volumes of the class Played what kubelets and a provisioner would, by the stages that it comes with. Nothing runs in
// such a pod, so that no command is answered. They go with the test.
func (c *Cluster) Play(t testing.TB, nodes int) (names []string) {
	t.Helper()
	source := filepath.Join(needs.Root(), "internal", "testkit", "k8s", "kwok")
	dir, err := built(t.Context(), source, "kwok", "sigs.k8s.io/kwok", "kustomize/stage/*/*/*.yaml", nil,
		func() { t.Log("kwok is compiled: some 300 seconds of one processor, once") })
	if err != nil {
		t.Fatal(err)
	}
	stages := filepath.Join(t.TempDir(), "stages.yaml")
	var text []byte
	for _, name := range []string{"node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-delete",
		"pvc-provision", "pvc-delete", "pv-bind", "pv-delete"} {
		one, err := os.ReadFile(filepath.Join(dir, "crd", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), one...)
	}
	log, err := os.Create(filepath.Join(c.Dir, "log", "kwok.log"))
	if err != nil {
		t.Fatal(err)
	}
	kwok := exec.Command(filepath.Join(dir, "kwok"), "--kubeconfig="+c.Kubeconfig, "--config="+stages,
		"--node-lease-duration-seconds=40", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake")
	kwok.Stdout, kwok.Stderr = log, log
	kwok.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := errors.Join(os.WriteFile(stages, text, 0o600), kwok.Start(), log.Close()); err != nil {
		t.Fatal(err)
	}
	const class, all = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/nodes"
	t.Cleanup(func() {
		for _, name := range names {
			_, e := c.Call(http.MethodDelete, all+"/"+name, nil)
			err = errors.Join(err, e)
		}
		_, e := c.Call(http.MethodDelete, class+"/"+Played, nil)
		if err = errors.Join(err, e, kwok.Process.Kill()); err != nil {
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
	call(class, map[string]any{"metadata": map[string]any{"name": Played}, "provisioner": "kwok.x-k8s.io/volume"})
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
