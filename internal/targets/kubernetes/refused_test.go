package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// A server that refuses, hangs, is another or shows a certificate that is none: Check says so, with what to do, and is
// done in time.
func TestAnswers(t *testing.T) {
	expired := fmt.Sprintf(`{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status":
		{"token": %q}}`, "t")
	program := func(t *testing.T, lines string) string {
		name := filepath.Join(t.TempDir(), "login")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}",
			name)
	}
	status := func(code int, reason, message string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, code, reason, message); return true }
	}
	creates := func(kind string, code int, message string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/"+kind) {
				return false
			}
			refuse(w, code, "Forbidden", message)
			return true
		}
	}
	for _, test := range []struct {
		name  string
		edit  func(*testing.T) func(string) string
		more  string
		first func(http.ResponseWriter, *http.Request) bool
		want  []string // none: it is fine
	}{
		{name: "nothing wrong"},
		{name: "a token that is over", first: status(401, "Unauthorized", "token has expired"),
			want: []string{"nodes: ", "token has expired", "is not accepted, or has expired: log in anew",
				"kubectl create token plimsoll --namespace perf"}},
		{name: "rights that were taken", first: status(403, "Forbidden", `nodes is forbidden: User "u" cannot list`),
			want: []string{"nodes: ", "cannot list: give it the Role that plimsoll targets role kubernetes --namespace perf"}},
		{name: "another authority", edit: func(t *testing.T) func(string) string {
			return replaced(t, "certificate-authority: ", "certificate-authority-data: "+another(t)+", x: ")
		}, want: []string{"not signed by the authority in the kubeconfig: give the cluster's own as certificate-authority"}},
		{name: "no check of certificates is switched off",
			edit: func(t *testing.T) func(string) string {
				return replaced(t, "certificate-authority: ", "tls-server-name: ")
			}, want: []string{"x509"}},
		{name: "an address that is not in the certificate",
			edit: func(t *testing.T) func(string) string {
				return replaced(t, "https://127.0.0.1:", "https://localhost:")
			},
			want: []string{"an address that is not in its certificate: give one that is"}},
		{name: "a page of somebody in between", first: func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>log in</html>")
			return true
		}, want: []string{"nodes: ", "something else than an API server answers"}},
		{name: "it hangs up", first: func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
			want: []string{"the API server https://127.0.0.1:", `of context "a" does not answer`, "see that it runs"}},
		{name: "it hangs", first: func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, want: []string{"does not answer"}},
		{name: "a login by a program that may not run",
			edit: func(t *testing.T) func(string) string { return replaced(t, "{token: t}", program(t, "exit 1")) },
			want: []string{"logs in by the program", "give exec: true"}},
		{name: "a login by a program", more: "exec: true\n",
			edit: func(t *testing.T) func(string) string {
				return replaced(t, "{token: t}", program(t, "echo '"+expired+"'"))
			},
			first: onlyBearer},
		{name: "a login by a program that fails", more: "exec: true\n",
			edit: func(t *testing.T) func(string) string {
				return replaced(t, "{token: t}", program(t, "echo no ticket >&2; exit 3"))
			}, want: []string{"getting credentials: exec:", "exit code 3: see that the program of context \"a\""}},
		{name: "a login by a program that is not there", more: "exec: true\n",
			edit: func(t *testing.T) func(string) string {
				return replaced(t, "{token: t}", "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-login, "+
					"interactiveMode: Never, installHint: read the manual}}")
			}, want: []string{"executable no-login not found: see that the program of context \"a\" is installed"}},
		{name: "a login by a program that hangs", more: "exec: true\n",
			edit: func(t *testing.T) func(string) string {
				return replaced(t, "{token: t}", program(t, "exec sleep 10 2>/dev/null"))
			},
			want: []string{"does not answer"}},
		{name: "a namespace that goes",
			first: creates("persistentvolumeclaims", 403, "unable to create new content in namespace perf because it is "+
				"being terminated"), want: []string{`namespace "perf": it is being removed: wait until it is gone`}},
		{name: "no namespace", first: creates("persistentvolumeclaims", 404, `namespaces "perf" not found`),
			want: []string{`namespace "perf": there is none of that name: kubectl create namespace perf`}},
		{name: "a quota that is full", first: creates("pods", 403, "exceeded quota: small"),
			want: []string{`namespace "perf": a pod is refused: exceeded quota: small: have the quota raised`}},
		{name: "pods of root refused", first: creates("pods", 403, `violates PodSecurity "restricted:latest": runAsNonRoot`),
			want: []string{"kubectl label --overwrite namespace perf pod-security.kubernetes.io/enforce=baseline"}},
		{name: "a class that is gone",
			first: func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/storageclasses") {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "items": [{"metadata": {"name": "slow"}}]}`)
					return true
				}
				return false
			}, want: []string{`storage_class: "fast": the cluster has no class of that name: there are slow`}},
		{name: "nodes that are of no use", more: "nodes: [n1, n3, n2]\n",
			first: func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/nodes") {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "items": [{"metadata": {"name": "n1"}, "spec":
					{"unschedulable": true}}, {"metadata": {"name": "n2"}, "status": {"conditions": [{"type": "Ready", "status":
					"True"}, {"type": "DiskPressure", "status": "True"}]}}, {"metadata": {"name": "n3"}}]}`)
				return true
			}, want: []string{`node "n1": it is cordoned: name others in nodes:`, `node "n2": it is under DiskPressure: name`,
				`nodes "n1", "n3": they are not ready: name others`}},
		{name: "a node that is not there", more: "nodes: [n7]\n",
			want: []string{`node "n7": the cluster has none of that name: kubectl get nodes`}},
		{name: "a storm of some seconds", first: storm(2)},
		{name: "a storm that does not end", first: storm(1 << 30), want: []string{"nodes: ",
			"is overloaded or has failed, also when it was asked again for 10 s: ",
			"kubectl get --raw '/readyz?verbose'"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var edit func(string) string
			if test.edit != nil {
				edit = test.edit(t)
			}
			f, file := faked(t, edit, test.more)
			f.first = test.first
			limit := 3 * time.Second
			if test.want == nil { // nothing is waited for until it is over
				limit = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := reached(t, file, clock.Real{}).Check(ctx)
			if test.want == nil && err != nil || test.want != nil && err == nil {
				t.Fatalf("%v: want %q", err, test.want)
			}
			for _, word := range test.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v: want %q", err, word)
				}
			}
		})
	}
}

// another is an authority that signed nothing here.
func another(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// waiting is the status of a pod whose container does not run, and why.
func waiting(reason, message string) map[string]any {
	type object = map[string]any
	return object{"phase": "Pending", "containerStatuses": []any{object{"state": object{"waiting": object{
		"reason": reason, "message": message}}}}}
}

// TestWhyNotYet has machines wait for what does not come: the error names claim or pod, and node, and says what to do.
func TestWhyNotYet(t *testing.T) {
	type object = map[string]any
	event := func(message string) object { return object{"type": "Warning", "reason": "Failed", "message": message} }
	for _, test := range []struct {
		name  string
		claim string // phase of the machine's claims
		event object
		pod   object // its status
		want  []string
	}{
		{"a class that is gone", "Pending", event(`storageclass.storage.k8s.io "fast" not found`), nil,
			[]string{`of class "fast" is Pending: Failed: storageclass`, ": name a class that there is"}},
		{"nobody makes a volume", "Pending", nil, nil, []string{`of class "fast" is Pending: nobody says why: see that the ` +
			"class's provisioner runs, and makes volumes of mode Block"}},
		{"a volume that is refused", "Pending", event("no Block"), nil, []string{"Failed: no Block: see that the " +
			"class's provisioner runs"}},
		{"an image that is not there", "Bound", nil, waiting("ErrImagePull", `"worker:1": not found`),
			[]string{`ErrImagePull: "worker:1": not found: push the image to where n1 gets it from`}},
		{"an image that is not there still", "Bound", nil, waiting("ImagePullBackOff", `"worker:1"`),
			[]string{`ImagePullBackOff: "worker:1": push the image to where n1 gets it from`}},
		{"a registry that does not answer for now", "Bound", nil, waiting("ImagePullBackOff", `Back-off pulling image "w:1": `+
			`ErrImagePull: dial tcp: i/o timeout`), []string{"not accessible: ErrImagePull: dial tcp: i/o timeout: push the"}},
		{"a node that is cordoned", "Bound", event("0/1 nodes are available: 1 node(s) were unschedulable."),
			object{"phase": "Pending"}, []string{"unschedulable: kubectl uncordon n1"}},
		{"too little memory", "Bound", event("0/1 nodes are available: 1 Insufficient memory."),
			object{"phase": "Pending"}, []string{"Insufficient memory: have fewer or smaller machines on n1"}},
		{"a class that makes no copy", "Pending", event("code = InvalidArgument desc = no sources"), nil,
			[]string{"no copy of m0-d1 is made: Failed: code = InvalidArgument desc = no sources: give clones: snapshots"}},
		{"nobody says why", "Bound", nil, object{"phase": "Pending"},
			[]string{"Pending: see kubectl describe pod m1 --namespace perf"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, file := faked(t, nil, "")
			f.first = func(w http.ResponseWriter, r *http.Request) bool {
				var answer object
				switch {
				case strings.Contains(r.URL.Path, "/persistentvolumeclaims/"):
					answer = object{"kind": "PersistentVolumeClaim", "apiVersion": "v1",
						"metadata": object{"name": path.Base(r.URL.Path)}, "status": object{"phase": test.claim},
						"spec": object{"storageClassName": "fast", "volumeMode": "Block"}}
					if strings.Contains(test.name, "copy") {
						answer["spec"].(object)["dataSource"] = object{"kind": "PersistentVolumeClaim", "name": "m0-d1"}
					}
				case strings.HasSuffix(r.URL.Path, "/events"):
					answer = object{"kind": "List", "apiVersion": "v1", "items": []any{}}
					if test.event != nil {
						answer["items"] = []any{test.event}
					}
				default:
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(answer)
				return true
			}
			p := reached(t, file, clock.Real{}).(*place)
			fleet, a, err := p.connect()
			if err != nil {
				t.Fatal(err)
			}
			c := &cluster{place: p, fleet: fleet, api: a, nodes: []target.Node{{Name: "n1"}}}
			nothing := func(*unstructured.Unstructured, bool) {}
			c.pods, c.claims = newSeen(pods, nothing), newSeen(claims, nothing)
			if test.pod != nil {
				c.pods.list([]unstructured.Unstructured{{Object: object{"metadata": object{"name": "m1", "uid": "1"},
					"status": test.pod}}})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // as of a user who waits no longer
			defer cancel()
			err = c.waitOn(ctx, &vm{Name: "a", Short: "m1"}, "1")
			if err == nil || !holds(err.Error(), append(test.want, `on node "n1" after `)...) {
				t.Errorf("%v: want %q", err, test.want)
			}
		})
	}
}

// TestNotForEver waits for a pod only for as long as what it waits for may come, and says meanwhile what that is.
func TestNotForEver(t *testing.T) {
	type object = map[string]any
	const say, stuck, limit = 100 * time.Millisecond, time.Second, 3 * time.Second
	for _, test := range []struct {
		name, reason, message string
		ends                  time.Duration
	}{
		{"an image that is not there", "ErrImagePull", `"worker:1": not found`, 0},
		{"one that is not given", "ImagePullBackOff", "Back-off: ErrImagePull: pull access denied", 0},
		{"no registry", "ErrImagePull", "dial tcp 127.0.0.1:80: connect: connection refused", 0},
		{"no name of an image", "InvalidImageName", "couldn't parse", 0},
		{"one that is never fetched", "ErrImageNeverPull", "policy of Never", 0},
		{"a registry that is busy", "ErrImagePull", "429 Too Many Requests", stuck},
		{"a kubelet that is busy", "ErrImagePull", "pull QPS exceeded", stuck},
		{"what may come", "ContainerCreating", "", limit},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, file := faked(t, nil, "")
			p := reached(t, file, clock.Real{}).(*place)
			p.sayAfter, p.stuckLimit = say, stuck
			fleet, a, err := p.connect()
			if err != nil {
				t.Fatal(err)
			}
			said := 0
			c := &cluster{place: p, fleet: fleet, api: a, nodes: []target.Node{{Name: "n1"}},
				log: func(string, ...any) { said++ }}
			nothing := func(*unstructured.Unstructured, bool) {}
			c.pods, c.claims = newSeen(pods, nothing), newSeen(claims, nothing)
			v := &vm{Name: "a", Short: "m1"}
			c.claims.list([]unstructured.Unstructured{{Object: object{"metadata": object{"name": v.claims()[0]},
				"status": object{"phase": "Bound"}}}})
			c.pods.list([]unstructured.Unstructured{{Object: object{"metadata": object{"name": "m1", "uid": "1"},
				"status": waiting(test.reason, test.message)}}})
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begun := time.Now()
			err = c.waitOn(ctx, v, "1")
			if took := time.Since(begun); err == nil || took < test.ends || took > test.ends+stuck {
				t.Errorf("%v after %v: want %v", err, took, test.ends)
			}
			if want := int(min(1, test.ends)); said != want { // it is the same all the time
				t.Errorf("what it waits for was said %d times: want %d", said, want)
			}
		})
	}
}

// TestOfNode takes from the scheduler's words of all nodes what is so of the one that a pod is for.
func TestOfNode(t *testing.T) {
	type object = map[string]any
	const all = "0/4 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, " +
		"1 node(s) had untolerated taint(s), 1 node(s) didn't match Pod's node affinity/selector. " +
		"no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
	for _, test := range []struct {
		name, said, want string
		spec             object
	}{
		{"neither", all, "0/4 nodes are available: 1 Insufficient memory", nil},
		{"cordoned", all, "0/4 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable",
			object{"unschedulable": true}},
		{"tainted", all, "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s)",
			object{"taints": []any{object{"key": "gpu", "effect": "NoSchedule"}}}},
		{"as it was told before", "0/2 nodes are available: 1 node(s) had untolerated taint {a/b: }, 1 Too many pods.",
			"0/2 nodes are available: 1 Too many pods", nil},
		{"nothing of it", "0/1 nodes are available: 1 node(s) were unschedulable.",
			"0/1 nodes are available: 1 node(s) were unschedulable.", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := &unstructured.Unstructured{Object: object{"spec": test.spec}}
			if got := ofNode(test.said, node); got != test.want {
				t.Errorf("%q: want %q", got, test.want)
			}
		})
	}
}

// TestRestoresEndFirst removes a run of which a claim is being made of a snapshot: the claim goes before it.
func TestRestoresEndFirst(t *testing.T) {
	f, file := faked(t, nil, "")
	var mu sync.Mutex
	there := map[string]string{"persistentvolumeclaims": `{"metadata": {"name": "new", "uid": "1", "labels":
		{"plimsoll.dev/run": "plimsoll-a"}}, "spec": {"dataSource": {"kind": "VolumeSnapshot"}}, "status": {"phase":
		"Pending"}}`, "volumesnapshots": `{"metadata": {"name": "shot", "uid": "2", "labels": {"plimsoll.dev/run":
		"plimsoll-a"}}}`}
	var removed []string
	f.first = func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		kind := path.Base(r.URL.Path)
		if r.Method == http.MethodDelete {
			removed = append(removed, kind)
			delete(there, path.Base(path.Dir(r.URL.Path)))
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
			return true
		}
		if there[kind] != "" {
			fmt.Fprintf(w, `{"kind": "List", "apiVersion": "v1", "items": [%s]}`, there[kind])
		}
		return there[kind] != ""
	}
	_, a, err := reached(t, file, clock.Real{}).(*place).connect()
	if err != nil {
		t.Fatal(err)
	}
	a.gone = 10 * time.Second
	left, err := a.clear(t.Context(), "plimsoll-a", switches{})
	if err != nil || len(left) > 0 || !slices.Equal(removed, []string{"new", "shot"}) {
		t.Errorf("removed %q, %q remain: %v", removed, left, err)
	}
}

// onlyBearer refuses whoever does not show the token.
func onlyBearer(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("Authorization") == "Bearer t" {
		return false
	}
	refuse(w, http.StatusUnauthorized, "Unauthorized", "no token")
	return true
}

// storm refuses the first requests for each thing, in the ways of servers that have too much to do.
func storm(most int) func(http.ResponseWriter, *http.Request) bool {
	seen := make(chan map[string]int, 1)
	seen <- map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) bool {
		m := <-seen
		n := m[r.URL.Path]
		m[r.URL.Path]++
		seen <- m
		if n >= most {
			return false
		}
		reasons := []string{"TooManyRequests", "InternalError", "ServiceUnavailable"}
		refuse(w, []int{429, 500, 503}[n%3], reasons[n%3], "busy")
		return true
	}
}

// ahead is a clock of an hour later.
type ahead struct{ clock.Real }

func (ahead) Now() time.Time { return clock.Real{}.Now().Add(time.Hour) }

// Check tells of clocks that are apart and of a certificate that nobody looks at; a run's lease goes by the server's
// clock alone.
func TestNotes(t *testing.T) {
	f, file := faked(t, func(s string) string {
		from := strings.Index(s, ", certificate-authority")
		return s[:from] + ", insecure-skip-tls-verify: true" + s[from+strings.Index(s[from:], "}"):]
	}, "")
	facts, err := reached(t, file, ahead{}).Check(t.Context())
	notes := strings.Join(facts.Notes, "\n")
	if err != nil || facts.Pace.Clone != 40*time.Millisecond || !holds(notes,
		"The API server's clock is 1 h behind this machine's", "insecure-skip-tls-verify: whoever answers as "+f.URL) {
		t.Errorf("%s, %v", notes, err)
	}
	if facts, err = reached(t, file, clock.Real{}).Check(t.Context()); err != nil || strings.Contains(
		strings.Join(facts.Notes, "\n"), "clock is") {
		t.Errorf("%q, %v", facts.Notes, err)
	}
	for _, c := range []target.Capability{target.NodePowerControl, target.NodeFailover} {
		if why := facts.Missing[c]; why != "the fleet's file gives no power for n1" {
			t.Errorf("%s: %q", c, why)
		}
	}
	now := time.Now().UTC()
	f.first = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/leases") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "List", "apiVersion": "v1", "items": [{"metadata": {"name": "plimsoll-a", "labels":
			{"plimsoll.dev/run": "plimsoll-a"}, "creationTimestamp": %q, "managedFields": [{"time": %[1]q}]}, "spec":
			{"leaseDurationSeconds": 300, "renewTime": %q}}]}`, now.Add(-time.Minute).Format(time.RFC3339),
			now.Add(time.Hour).Format(leaseTimed))
		return true
	}
	found, err := reached(t, file, ahead{}).(target.RunFinder).FindRuns(t.Context())
	if err != nil || len(found) != 1 || found[0].Lease < 235*time.Second || found[0].Lease > 241*time.Second {
		t.Errorf("%+v, %v: want a lease for 4 minutes", found, err)
	}
}

// stepping is a clock that the test moves.
type stepping struct {
	clock.Real
	at *time.Time
}

func (s stepping) Now() time.Time { return *s.at }

// TestStarts has two pods start in the same time, of which one tells of its disks in between: both took as long. A
// deletion that goes on when the run ends is waited for and counted.
func TestStarts(t *testing.T) {
	type object = map[string]any
	now := time.Unix(1e9, 0)
	var mu sync.Mutex
	got := map[string]string{}
	c := &cluster{state: state{VMs: map[string]*vm{}}, stop: func() {}, group: clock.Real{}.Group(),
		log: func(format string, args ...any) { t.Errorf(format, args...) }}
	c.meter = meter{clock: stepping{at: &now}, begun: map[string]begun{}, operated: func(o result.PlatformOperation) {
		mu.Lock()
		defer mu.Unlock()
		got[o.Name] += fmt.Sprintf(" %s %v", o.Object, o.Seconds)
	}}
	told := func(name, phase string, conditions ...string) {
		now = now.Add(time.Second)
		status := object{"phase": phase}
		var all []any
		for _, is := range conditions {
			all = append(all, object{"type": is, "status": "True"})
		}
		status["conditions"] = all
		c.podTold(&unstructured.Unstructured{Object: object{"metadata": object{"name": name}, "status": status}}, false)
	}
	for _, name := range []string{"a", "b"} {
		c.asked(&vm{Name: name, Short: name, Plain: true})
		told(name, "Pending", "PodScheduled")
		if name == "a" {
			told(name, "Pending", "PodScheduled", "PodReadyToStartContainers")
		} else {
			now = now.Add(time.Second)
		}
		told(name, "Running", "PodScheduled", "PodReadyToStartContainers")
	}
	if got["start"] != " a 2 b 2" || got["attach"] != " a 1" || got["schedule"] != " a 1 b 1" {
		t.Errorf("%q", got)
	}
	c.meter.begin(result.Deleted, "b-d1", &vm{Name: "b"})
	time.AfterFunc(200*time.Millisecond, func() {
		c.claimTold(&unstructured.Unstructured{Object: object{"metadata": object{"name": "b-d1"}}}, true)
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got["delete"] != " b-d1 0" {
		t.Errorf("%q", got)
	}
}
