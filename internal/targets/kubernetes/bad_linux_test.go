package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

// with writes a fleet's file again, with its kubeconfig changed.
func with(t testing.TB, file string, change func(config string) string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`kubeconfig: (\S+)`).FindStringSubmatch(string(text))[1]
	config, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other := filepath.Join(dir, "kubeconfig")
	if err := errors.Join(os.WriteFile(other, []byte(change(string(config))), 0o600),
		os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(strings.Replace(string(text), name, other, 1)),
			0o600)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "fleet.yaml")
}

// TestRefused looks at a cluster that does not let anybody in, or nothing be made: what is wrong is said.
func TestRefused(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	other := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(other, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`token: "[^"]*"`)
	ca := regexp.MustCompile(`certificate-authority: "[^"]*"`)
	check := func(what, file string, words ...string) {
		t.Helper()
		_, err := opened(t, file, "").Check(t.Context())
		if err == nil || !holds(err.Error(), words...) {
			t.Errorf("%s: %v: want %q", what, err, words)
		}
		t.Log(what, ": ", err)
	}
	check("another authority", with(t, file, func(s string) string {
		return ca.ReplaceAllLiteralString(s, fmt.Sprintf("certificate-authority: %q", other))
	}), "not signed by the authority in the kubeconfig")
	check("a token of nobody", with(t, file, func(s string) string {
		return token.ReplaceAllLiteralString(s, `token: "old"`)
	}), "is not accepted, or has expired")

	space := "/api/v1/namespaces/" + namespace
	call := func(method, path string, body any) {
		t.Helper()
		if _, err := c.Call(method, path, body); err != nil {
			t.Fatal(err)
		}
	}
	call(http.MethodPatch, space, map[string]any{"metadata": map[string]any{"labels": map[string]any{
		"pod-security.kubernetes.io/enforce": "restricted"}}})
	check("pods of root refused", file, namespace, `a pod is refused`, `violates PodSecurity "restricted:latest"`)
	call(http.MethodPatch, space, map[string]any{"metadata": map[string]any{"labels": map[string]any{
		"pod-security.kubernetes.io/enforce": nil}}})
	call(http.MethodPost, space+"/resourcequotas", map[string]any{"metadata": map[string]any{"name": "none"},
		"spec": map[string]any{"hard": map[string]any{"persistentvolumeclaims": "0"}}})
	until(t, "the quota counts", func() error {
		_, err := opened(t, file, "").Check(t.Context())
		if err == nil || !holds(err.Error(), "a disk is refused", "exceeded quota: none") {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	call(http.MethodDelete, space+"/resourcequotas/none", nil)
	call(http.MethodPost, space+"/configmaps", map[string]any{"metadata": map[string]any{"name": "stays",
		"finalizers": []any{"plimsoll.test/stays"}}})
	call(http.MethodDelete, space, nil)
	check("a namespace that goes", file, namespace, "it is being removed")
	call(http.MethodPatch, space+"/configmaps/stays", map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

// TestStorm reaches the API through a proxy that refuses two of three requests, by 429, 500 and 503 in turn and by
// hanging up: machines are made, work and are removed.
func TestStorm(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	authority, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	to, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, Protocols: new(http.Protocols)}}
	proxy.Transport.(*http.Transport).Protocols.SetHTTP1(true)
	var count, refused atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := count.Add(1)
		if n%3 == 0 || strings.HasSuffix(r.URL.Path, "/exec") {
			proxy.ServeHTTP(w, r)
			return
		}
		refused.Add(1)
		codes := []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}
		w.Header().Set("Content-Type", "application/json")
		code := codes[n%7%3]
		if n%7 == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`,
			map[int]string{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}[code], code)
	}))
	t.Cleanup(server.Close) // after what goes on over it
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	stormy := with(t, file, func(s string) string {
		return strings.NewReplacer(c.URL, server.URL, c.CA, ca).Replace(s)
	})
	p := opened(t, stormy, agents(t)).(*place)
	var o *ours
	until(t, "it is let in", func() error { // before a run begins nobody is patient
		state := filepath.Join(t.TempDir(), "state")
		cluster, err := p.Provision(t.Context(), target.Request{RunID: t.Name(), StateDir: state, Log: t.Logf})
		if err == nil {
			o = &ours{Cluster: cluster, t: t, c: c, memory: 64 << 20}
			t.Cleanup(func() {
				err := cluster.Close()
				left, e := opened(t, file, "").Destroy(context.Background(), state)
				if err = errors.Join(err, e); err != nil || len(left) > 0 {
					t.Errorf("%q remain: %v", left, err)
				}
			})
		}
		return err
	})
	if err := o.make("a"); err != nil {
		t.Fatal(err)
	}
	if err := o.host("a").Accessible(t.Context()); err != nil {
		t.Error(err)
	}
	if err := o.Cluster.(target.VMMaker).Delete(t.Context(), []string{"a"}); err != nil {
		t.Error(err)
	}
	t.Logf("%d of %d requests were refused", refused.Load(), count.Load())
	if left := remains(t, c, namespace); strings.Contains(fmt.Sprint(left), "pods") {
		t.Errorf("there is %q", left)
	}
}

// TestHeld removes a run of which a finalizer of somebody else holds an object: it is named with its holder.
func TestHeld(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	p := opened(t, file, agents(t)).(*place)
	p.goneLimit = 3 * time.Second
	state := filepath.Join(t.TempDir(), "state")
	cluster, err := p.Provision(t.Context(), target.Request{RunID: "held", StateDir: state, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	maker := cluster.(target.VMMaker)
	if err := errors.Join(maker.CreateTemplate(t.Context(), target.Template{Name: "gold", Image: "any"}),
		maker.Clone(t.Context(), target.Clone{Source: "gold",
			Members: []target.Placement{{Name: strings.Repeat("ü", 126)}}}),
		cluster.Close()); err != nil {
		t.Fatal(err)
	}
	left := remains(t, c, namespace)
	claim := strings.TrimPrefix(left[len(left)-1], "persistentvolumeclaims ")
	path := "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims/" + claim
	hold := func(names ...any) {
		t.Helper()
		if _, err := c.Call(http.MethodPatch, path, map[string]any{"metadata": map[string]any{
			"finalizers": names}}); err != nil {
			t.Fatal(err)
		}
	}
	hold("kubernetes.io/pvc-protection", "plimsoll.test/holds")
	said, err := p.Destroy(context.Background(), state)
	want := claim + " (held by plimsoll.test/holds)"
	if err == nil || !strings.Contains(strings.Join(said, ", "), want) {
		t.Errorf("%q remain: %v: want %q", said, err, want)
	}
	hold()
	p.goneLimit = patient
	if said, err := p.Destroy(context.Background(), state); err != nil || len(said) > 0 {
		t.Errorf("%q remain: %v", said, err)
	}
}

// TestTwoRuns has two runs at once in one namespace, whose machines have the same names of 253 bytes, in groups whose
// names differ in what no label may hold: removing the one takes nothing from the other. A second pod is kept off
// a disk.
func TestTwoRuns(t *testing.T) {
	needs.Long(t, why)
	c, namespace, file := started(t, "")
	name := strings.Repeat("n", 251) + "ü"
	state := t.TempDir()
	begin := func(run, group string) *ours {
		t.Helper()
		p := opened(t, file, agents(t))
		cluster, err := p.Provision(t.Context(), target.Request{RunID: run, StateDir: filepath.Join(state, group),
			Log: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		maker := cluster.(target.VMMaker)
		if err := errors.Join(maker.CreateTemplate(t.Context(), target.Template{Name: "gold", Image: "any",
			DiskBytes: []int64{64 << 20}}), maker.Clone(t.Context(), target.Clone{Source: "gold", Group: group,
			Members: []target.Placement{{Name: name}}}),
			cluster.(target.VMPower).PowerOn(t.Context(), []string{name}, 1)); err != nil {
			t.Fatal(err)
		}
		return &ours{Cluster: cluster, t: t, c: c, space: "/api/v1/namespaces/" + namespace}
	}
	one, two := begin("Größe", "Größe"), begin("größe", "größe")
	end := func(o *ours, group string) {
		t.Helper()
		err := o.Close()
		left, e := opened(t, file, "").Destroy(context.Background(), filepath.Join(state, group))
		if err = errors.Join(err, e); err != nil || len(left) > 0 {
			t.Errorf("%q remain: %v", left, err)
		}
	}
	v, err := two.Cluster.(*cluster).get(name)
	if err != nil {
		t.Fatal(err)
	}
	two.call(http.MethodPost, two.space+"/pods", map[string]any{"metadata": map[string]any{"name": "second"},
		"spec": map[string]any{"volumes": []any{map[string]any{"name": "d", "persistentVolumeClaim": map[string]any{
			"claimName": v.disk(0)}}}, "containers": []any{map[string]any{"name": "c", "image": "any",
			"volumeDevices": []any{map[string]any{"name": "d", "devicePath": "/dev/sdb"}}}}}})
	until(t, "a second pod is kept off the disk", func() error {
		data, err := c.Call(http.MethodGet, two.space+"/pods/second", nil)
		if err == nil && !strings.Contains(string(data), "ReadWriteOncePod access mode already in-use") {
			err = fmt.Errorf("%s", data)
		}
		return err
	})
	two.call(http.MethodDelete, two.space+"/pods/second", nil)
	end(one, "Größe")
	if err := two.host(name).Accessible(t.Context()); err != nil {
		t.Error(err)
	}
	left := remains(t, c, namespace)
	want := []string{"leases " + two.Cluster.(*cluster).state.Run, "persistentvolumeclaims " + v.disk(0),
		"persistentvolumeclaims " + workClaim(v.Short), "pods " + v.Short}
	if fmt.Sprint(left) != fmt.Sprint(want) {
		t.Errorf("of the other run there is %q: want %q", left, want)
	}
	end(two, "größe")
	if left := remains(t, c, namespace); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}

// alone is a run whose folder and file of users are the test's to change, with a machine that is on.
func alone(t *testing.T, run string) (o *ours, namespace, file string, destroy func() ([]string, error)) {
	t.Helper()
	c, namespace, file := started(t, "")
	state := filepath.Join(t.TempDir(), "state")
	o = &ours{t: t, c: c, space: "/api/v1/namespaces/" + namespace, memory: 64 << 20}
	var err error
	if o.Cluster, err = opened(t, file, agents(t)).Provision(t.Context(), target.Request{RunID: run, StateDir: state,
		Log: o.log, Fault: o.fault}); err != nil {
		t.Fatal(err)
	}
	if err := o.make("a"); err != nil {
		t.Fatal(err)
	}
	return o, namespace, file, func() ([]string, error) { return opened(t, file, "").Destroy(t.Context(), state) }
}

// renew puts a token into the kubeconfig that a fleet's file names.
func renew(t *testing.T, file, token string) {
	t.Helper()
	name := filepath.Join(filepath.Dir(file), "kubeconfig")
	text, err := os.ReadFile(name)
	renewed := regexp.MustCompile(`token: "[^"]*"`).ReplaceAllLiteral(text, fmt.Appendf(nil, "token: %q", token))
	if err = errors.Join(err, os.WriteFile(name, renewed, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestExpired takes the rights of a run away while it goes on: what runs in its pods goes on, what the API is asked for
// fails with the reason, and once there is a new token in the kubeconfig all of it is removed.
func TestExpired(t *testing.T) {
	needs.Long(t, why)
	o, _, file, destroy := alone(t, "expired")
	command, err := o.host("a").Start(t.Context(), target.Command{Argv: []string{"/bin/sleep", "20"}})
	if err != nil {
		t.Fatal(err)
	}
	account := o.space + "/serviceaccounts/runs"
	o.call(http.MethodDelete, account, nil)
	until(t, "the token is not taken any more", func() error {
		_, err := opened(t, file, "").Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "is not accepted, or has expired") {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	if err = o.Cluster.(target.VMPower).PowerOff(t.Context(), []string{"a"}); err == nil || !holds(err.Error(),
		`vm "a"`, "is not accepted, or has expired") {
		t.Errorf("power off: %v", err)
	}
	left, err := destroy()
	if err == nil || len(left) == 0 || !strings.Contains(err.Error(), "is not accepted, or has expired") {
		t.Errorf("%q remain: %v", left, err)
	}
	exit, err := command.Wait(t.Context())
	t.Logf("the command: %+v, %v", exit, err)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	o.call(http.MethodPost, o.space+"/serviceaccounts", map[string]any{"metadata": map[string]any{"name": "runs"}})
	data, err := o.c.Call(http.MethodPost, account+"/token", map[string]any{})
	var got struct{ Status struct{ Token string } }
	if err = errors.Join(err, json.Unmarshal(data, &got)); err != nil {
		t.Fatal(err)
	}
	renew(t, file, got.Status.Token)
	if left, err = destroy(); err != nil || len(left) > 0 {
		t.Errorf("%q remain: %v", left, err)
	}
}

// TestSpaceGoes has somebody remove the namespace of a run, and the rights in it: the journal has what ended, and who
// may look finds nothing left.
func TestSpaceGoes(t *testing.T) {
	needs.Long(t, why)
	o, namespace, file, destroy := alone(t, "space")
	o.call(http.MethodDelete, o.space, nil)
	o.said("0 ", result.FaultBegins, "the platform ended a: ")
	until(t, "nothing can be made", func() error {
		err := o.Cluster.(target.VMPower).PowerOn(t.Context(), []string{"a"}, 1)
		if err == nil || !holds(err.Error(), `vm "a"`, namespace) {
			return fmt.Errorf("not so: %w", err)
		}
		return nil
	})
	until(t, "its rights are gone", func() error {
		_, err := destroy()
		if err == nil || !holds(err.Error(), "where it was removed, nothing of the run is left", namespace) {
			return fmt.Errorf("not so: %w", err)
		}
		return nil
	})
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	renew(t, file, o.c.Token)
	if left, err := destroy(); err != nil || len(left) > 0 {
		t.Errorf("%q remain: %v", left, err)
	}
}
