package kubernetes

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

// fake is an API server of one node that lets everything be done and does nothing: for what a server may answer, in
// tests that take no cluster.
type fake struct {
	*httptest.Server
	// first answers before it, where it returns true.
	first func(w http.ResponseWriter, r *http.Request) bool
	// objects are those there are; "" stands for fakeObjects.
	objects string

	mu    sync.Mutex
	asked []string
}

const fakeObjects = `{
"nodes": [{"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"},
  "conditions": [{"type": "Ready", "status": "True"}]}}],
"storageclasses": [{"metadata": {"name": "fast"}, "provisioner": "disks.example"}],
"csistoragecapacities": [{"storageClassName": "fast", "capacity": "5Gi", "nodeTopology": {"matchLabels": {"h": "a"}}},
  {"storageClassName": "fast", "capacity": "2Gi", "nodeTopology": {"matchLabels": {"h": "b", "i": "z"}}},
  {"storageClassName": "slow", "capacity": "9Gi"}, {"storageClassName": "fast"}],
"csidrivers": [{"metadata": {"name": "disks.example"}}],
"pods": [], "persistentvolumeclaims": [], "volumesnapshots": [], "leases": [],
"volumesnapshotclasses": [{"metadata": {"name": "shots"}, "driver": "disks.example"}]}`

// refuse answers as the API does.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	data, _ := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
		"reason": reason, "message": message})
	_, _ = w.Write(data)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	f.mu.Unlock()
	if f.first != nil && f.first(w, r) {
		return
	}
	var objects map[string][]any
	if err := json.Unmarshal([]byte(cmp.Or(f.objects, fakeObjects)), &objects); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	var body map[string]any
	kind := path.Base(r.URL.Path)
	switch {
	case kind == "version":
		fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
	case r.URL.Path == "/apis/kubevirt.io/v1":
		refuse(w, http.StatusNotFound, "NotFound", "none")
	case r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&body) == nil:
		if kind == "selfsubjectaccessreviews" {
			body["status"] = map[string]any{"allowed": true}
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(body)
	case r.Method == http.MethodGet && objects[kind] != nil:
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "items": objects[kind]})
	default:
		refuse(w, http.StatusNotFound, "NotFound", r.URL.Path+" not found")
	}
}

// count is how often something was asked for.
func (f *fake) count(asked string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(f.asked), func(s string) bool { return s != asked }))
}

// faked is a fake with the file of a fleet on it. Edit changes the kubeconfig, more is added to the file.
func faked(t testing.TB, edit func(string) string, more string) (f *fake, file string) {
	t.Helper()
	f = &fake{}
	f.Server = httptest.NewTLSServer(f)
	t.Cleanup(f.Close)
	dir := t.TempDir()
	ca, config, file := filepath.Join(dir, "ca"), filepath.Join(dir, "config"), filepath.Join(dir, "fleet.yaml")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], users: [{name: u, user: {token: t}}],
contexts: [{name: a, context: {cluster: c, user: u}}]}`, f.URL, ca)
	if edit != nil {
		text = edit(text)
	}
	if err := errors.Join(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: f.Certificate().Raw}), 0o600), os.WriteFile(config, []byte(text), 0o600),
		os.WriteFile(file, fmt.Appendf(nil, "platform: kubernetes\nkubeconfig: %s\nnamespace: perf\n"+
			"storage_class: fast\nimages: {\"*\": worker}\n%s", config, more), 0o600)); err != nil {
		t.Fatal(err)
	}
	return f, file
}

// reached is the place of a fake's file, as of a clock.
func reached(t testing.TB, file string, c clock.Clock) target.Target {
	t.Helper()
	p, err := Provider{}.New(target.Config{Options: target.Options{"file": file, "agents": t.TempDir()}, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// replaced replaces one text by another that is there.
func replaced(t testing.TB, old, now string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, old) {
			t.Fatalf("there is no %q in %s", old, s)
		}
		return strings.Replace(s, old, now, 1)
	}
}

func holds(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
