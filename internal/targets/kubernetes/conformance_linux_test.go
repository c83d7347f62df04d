package kubernetes

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// started is a real Kubernetes with a namespace and the file of a fleet on it, whose user has the Role that is printed
// and no more.
func started(t testing.TB, more string) (c *k8s.Cluster, namespace, file string) {
	t.Helper()
	c = k8s.Start(t)
	namespace = fmt.Sprintf("perf-%x", sha256.Sum256([]byte(t.Name())))[:12]
	call := func(path string, body any) []byte {
		data, err := c.Call(http.MethodPost, path, body)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	call("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace}})
	own, all := "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace, "/apis/rbac.authorization.k8s.io/v1"
	paths := []string{"/api/v1/namespaces/" + namespace + "/serviceaccounts", own + "/roles", own + "/rolebindings",
		all + "/clusterroles", all + "/clusterrolebindings"}
	for i, part := range strings.Split(Provider{}.Role(namespace, "runs", true, false), "---\n") {
		call(paths[i], []byte(part))
	}
	var got struct{ Status struct{ Token string } }
	if err := json.Unmarshal(call(paths[0]+"/runs/token", map[string]any{}), &got); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "fleet.yaml")
	err := errors.Join(os.WriteFile(config, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: runs,
  clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], users: [{name: runs, user: {token: %q}}],
  contexts: [{name: runs, context: {cluster: c, user: runs}}]}`, c.URL, c.CA, got.Status.Token), 0o600),
		os.WriteFile(file, fmt.Appendf(nil, "platform: kubernetes\nkubeconfig: %s\nnamespace: %s\nstorage_class: %s\n"+
			"work_class: %s\nimages: {\"*\": %q}\n%s", config, namespace, k8s.Shared, k8s.FilesOnly, k8s.WorkImage,
			more), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	// What was granted is known to who asks for it, and what each pod names is there, some time after it was made.
	until(t, "its user may do what it may", func() error {
		p := opened(t, file, "").(*place)
		_, a, err := p.connect()
		if err != nil {
			t.Fatal(err)
		}
		missing, err := a.denied(t.Context(), true, true, false)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("it may not %q", missing)
		}
		for _, account := range []string{"default", "runs"} {
			_, e := c.Call(http.MethodGet, paths[0]+"/"+account, nil)
			err = errors.Join(err, e)
		}
		return err
	})
	return c, namespace, file
}

// TestConformance holds pods to the contract.
func TestConformance(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	withPower(t, c, file)
	agents := agents(t)
	targettest.Run(t, func(t testing.TB) targettest.Place {
		dir := t.TempDir()
		return targettest.Place{
			New: func() target.Target { // nodes that are switched off take their machines with them
				p := opened(t, file, agents).(*place)
				p.restarts = false
				return p
			},
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

// withPower adds the nodes' controllers to a fleet's file.
func withPower(t testing.TB, c *k8s.Cluster, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	more := "power:\n"
	for _, n := range c.Nodes {
		more += fmt.Sprintf("  %s: {kind: ipmi, address: %s, user: %s, password: \"file:%s\"}\n", n.Name, n.BMC.Address,
			n.BMC.User, n.BMC.PasswordFile)
	}
	if err := os.WriteFile(file, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
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
