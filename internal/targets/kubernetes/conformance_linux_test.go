package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/targets/power/ipmi"
	"plimsoll/internal/testkit/k8s"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
	"plimsoll/internal/testkit/targettest"
)

var kinds = []target.PowerKind{ipmi.Kind{}}

const why = "building Kubernetes takes a quarter of an hour, and nothing shorter is a Kubernetes"

// started is a real Kubernetes with a namespace and the file of a fleet on it.
func started(t testing.TB, more string) (c *k8s.Cluster, namespace, file string) {
	t.Helper()
	c = k8s.Start(t)
	namespace = fmt.Sprintf("perf-%x", t.Name()[:min(4, len(t.Name()))])
	if _, err := c.Call(http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace}}); err != nil {
		t.Log(err) // it is there
	}
	file = filepath.Join(t.TempDir(), "fleet.yaml")
	text := fmt.Sprintf("platform: kubernetes\nkubeconfig: %s\nnamespace: %s\nstorage_class: %s\nwork_class: %s\n"+
		"images: {\"*\": %q}\n%s", c.Kubeconfig, namespace, k8s.Shared, k8s.FilesOnly, k8s.WorkImage, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c, namespace, file
}

// TestConformance holds pods to the contract.
func TestConformance(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	agents := agents(t)
	targettest.Run(t, func(t testing.TB) targettest.Place {
		dir := t.TempDir()
		return targettest.Place{
			New:           func() target.Target { return opened(t, file, agents) },
			Request:       target.Request{RunID: "one", StateDir: filepath.Join(dir, "state"), Log: t.Logf},
			OtherStateDir: filepath.Join(dir, "other"),
			Clock:         clock.Real{},
			Commands:      targettest.Shell,
			Alive:         sshtest.Alive,
			Rounds:        1,
			Slow:          true,
			Remains:       func() []string { return remains(t, c, namespace) },
		}
	})
}

// remains are the objects of runs in a namespace.
func remains(t testing.TB, c *k8s.Cluster, namespace string) (left []string) {
	for kind, group := range map[string]string{"pods": "/api/v1", "persistentvolumeclaims": "/api/v1",
		"leases": "/apis/coordination.k8s.io/v1", "volumesnapshots": "/apis/snapshot.storage.k8s.io/v1"} {
		data, err := c.Call(http.MethodGet, group+"/namespaces/"+namespace+"/"+kind, nil)
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err != nil {
			t.Error(err)
		}
		for _, o := range list.Items {
			left = append(left, kind+" "+o.Metadata.Name)
		}
	}
	slices.Sort(left)
	return left
}
