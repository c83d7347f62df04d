package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/net/websocket"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// published holds what is said of fields in testdata/kubevirt.txt: of those that are used here, the types and which
// have to be there, as the API of KubeVirt v1.9 (api/openapi-spec) has them.
func published(t *testing.T) (types map[string]string, required map[string][]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/kubevirt.txt")
	if err != nil {
		t.Fatal(err)
	}
	types, required = map[string]string{}, map[string][]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 1 {
			continue // one without fields
		}
		types[words[0]] = words[1]
		if of, field, _ := strings.Cut(words[0], "."); len(words) > 2 {
			required[of] = append(required[of], field)
		}
	}
	return types, required
}

// TestPublished holds the objects that are made to what KubeVirt has published of its API.
func TestPublished(t *testing.T) {
	types, required := published(t)
	var check func(at, kind string, v any)
	check = func(at, kind string, v any) {
		if of, list := strings.CutPrefix(kind, "[]"); list {
			all, is := v.([]any)
			if !is {
				t.Errorf("%s: %v is no list", at, v)
			}
			for i, one := range all {
				check(fmt.Sprintf("%s[%d]", at, i), of, one)
			}
			return
		}
		m, is := v.(map[string]any)
		switch kind {
		case "string":
			if _, is := v.(string); !is {
				t.Errorf("%s: %v is no string", at, v)
			}
			return
		case "integer":
			if n, is := v.(float64); !is || n != float64(int64(n)) {
				t.Errorf("%s: %v is no integer", at, v)
			}
			return
		}
		if !is {
			t.Errorf("%s: %v is no %s", at, v, kind)
			return
		}
		if kind == "object" {
			return
		}
		for _, field := range required[kind] {
			if m[field] == nil {
				t.Errorf("%s: %s is missing", at, field)
			}
		}
		for field, one := range m {
			of := types[kind+"."+field]
			if of == "" {
				t.Errorf("%s: a %s has no %s", at, kind, field)
				continue
			}
			check(at+"."+field, of, one)
		}
	}
	c := guests(t, nil)
	v := &vm{Name: "a", Short: "m1", Image: "disk:1", CPUs: 2, MemoryBytes: 1 << 30,
		DiskBytes: []int64{1 << 30, 2 << 30}}
	for _, o := range []object{c.instance(v), {virtualVersion, "VirtualMachineInstanceMigration", c.meta("m1-2", v),
		moveSpec{"m1", map[string]string{hostLabel: "n2"}}}} {
		data, err := json.Marshal(o)
		var m map[string]any
		if err = errors.Join(err, json.Unmarshal(data, &m)); err != nil {
			t.Fatal(err)
		}
		check(o.Kind, o.Kind, m)
	}
	// Each disk has its volume, those of data in the order of their names after the system's; and the user data fit.
	s := c.instance(v).Spec.(instanceSpec)
	var on []string
	for i, d := range s.Domain.Devices.Disks {
		if d.Name != s.Volumes[i].Name {
			t.Errorf("disk %s has volume %s", d.Name, s.Volumes[i].Name)
		}
		if d.Disk.Bus == rootBus {
			on = append(on, d.Name)
		}
	}
	if !slices.Equal(on, []string{"system", "d1", "d2"}) {
		t.Errorf("at the bus of data disks: %q", on)
	}
	if n := len(c.login.userData()); n > 2048 {
		t.Errorf("user data of %d bytes: KubeVirt takes 2,048", n)
	}
}

// guests is a run on virtual machines of two nodes; first answers before its API.
func guests(t *testing.T, first func(http.ResponseWriter, *http.Request) bool) *cluster {
	t.Helper()
	f, file := faked(t, nil, "machines: virtual\n")
	f.first = first
	p := reached(t, file, clock.Real{}).(*place)
	fleet, a, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{place: p, fleet: fleet, api: a, nodes: []target.Node{{Name: "n1"}, {Name: "n2", Index: 1}},
		dir: t.TempDir(), state: state{Run: "plimsoll-a", Namespace: "perf", VMs: map[string]*vm{}}}
	c.pods, c.claims = newSeen(instances, c.podTold), newSeen(claims, c.claimTold)
	c.meter = meter{clock: clock.Real{}, begun: map[string]begun{}}
	if c.login, err = newLogin(c.dir); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestVirtual looks at clusters with and without KubeVirt.
func TestVirtual(t *testing.T) {
	there := func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/apis/kubevirt.io/v1" {
			fmt.Fprint(w, "{}")
			return true
		}
		return false
	}
	for _, test := range []struct {
		more         string
		first        func(http.ResponseWriter, *http.Request) bool
		wrong, lacks string
	}{
		{more: "machines: virtual\n", wrong: "machines: virtual: KubeVirt is not there (kubevirt.io/v1)"},
		{more: "machines: virtual\n", first: there},
		{first: there, lacks: "machines: virtual in the fleet's file uses it"},
		{lacks: "KubeVirt is not there (kubevirt.io/v1)"},
	} {
		f, file := faked(t, nil, test.more)
		f.first = test.first
		facts, err := reached(t, file, clock.Real{}).Check(t.Context())
		if test.wrong == "" && err != nil || test.wrong != "" && fmt.Sprint(err) != "target kubernetes: "+test.wrong {
			t.Errorf("%+v: %v", test, err)
		}
		if test.wrong == "" && facts.Can(target.LiveMigration) != (test.lacks == "") ||
			!strings.Contains(facts.Missing[target.LiveMigration], test.lacks) {
			t.Errorf("%+v: live migration: %q, %q", test, facts.Capabilities[target.LiveMigration],
				facts.Missing[target.LiveMigration])
		}
		made := f.count("POST /apis/kubevirt.io/v1/namespaces/perf/virtualmachineinstances")
		if want := strings.Count(test.more, "virtual"); made != want {
			t.Errorf("%+v: %d virtual machines were tried, want %d", test, made, want)
		}
	}
}

// TestMigrate moves a machine, as KubeVirt tells of it.
func TestMigrate(t *testing.T) {
	var mu sync.Mutex
	phases, deleted := []string{"Running", "Succeeded", "Pending", "Failed"}, 0
	c := guests(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/virtualmachineinstancemigrations/") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			deleted++
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
			return true
		}
		fmt.Fprintf(w, `{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name":
			"x"}, "status": {"phase": %q, "migrationState": {"failureReason": "no room"}}}`, phases[0])
		phases = phases[1:]
		return true
	})
	var done []result.PlatformOperation
	c.meter.operated = func(o result.PlatformOperation) { done = append(done, o) }
	v := &vm{Name: "a", Short: "m1", On: true}
	c.state.VMs["a"] = v
	if err := c.Migrate(t.Context(), "a", 1); err != nil || v.Node != 1 {
		t.Errorf("on node %d, %v", v.Node, err)
	}
	if len(done) != 1 || done[0].Name != result.Migrated || done[0].Seconds <= 0 {
		t.Errorf("it took %+v", done)
	}
	err := c.Migrate(t.Context(), "a", 0)
	if err == nil || !holds(err.Error(), `vm "a"`, "KubeVirt failed to: no room") || v.Node != 1 {
		t.Errorf("on node %d, %v", v.Node, err)
	}
	if deleted != 2 || len(done) != 1 {
		t.Errorf("%d migrations were removed, and %d measured", deleted, len(done))
	}
	v.On = false
	if err := c.Migrate(t.Context(), "a", 0); err == nil || !strings.Contains(err.Error(), "is off") {
		t.Errorf("one that is off: %v", err)
	}
}

// TestForward logs into a guest by SSH through the API: the guest has the keys that its user data give it.
func TestForward(t *testing.T) {
	var c *cluster
	server := func(conn io.ReadWriteCloser) {
		var user struct {
			Keys     []string          `yaml:"ssh_authorized_keys"`
			HostKeys map[string]string `yaml:"ssh_keys"`
		}
		if err := yaml.Unmarshal([]byte(c.login.userData()), &user); err != nil {
			t.Error(err)
			return
		}
		config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata,
			key ssh.PublicKey) (*ssh.Permissions, error) {
			if len(user.Keys) != 1 || string(ssh.MarshalAuthorizedKey(key)) != user.Keys[0] {
				return nil, errors.New("another key")
			}
			return nil, nil
		}}
		host, err := ssh.ParsePrivateKey([]byte(user.HostKeys["ed25519_private"]))
		if err != nil {
			t.Error(err)
			return
		}
		config.AddHostKey(host)
		s, channels, requests, err := ssh.NewServerConn(conn.(*websocket.Conn), config)
		if err != nil {
			t.Error(err)
			return
		}
		go ssh.DiscardRequests(requests)
		go func() {
			for ch := range channels {
				_ = ch.Reject(ssh.Prohibited, "none")
			}
		}()
		_ = s.Wait() // the client ends it
	}
	c = guests(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis/subresources.kubevirt.io/v1/namespaces/perf/virtualmachineinstances/m1/portforward/22/tcp" {
			return false
		}
		if r.Header.Get("Authorization") != "Bearer t" {
			refuse(w, http.StatusUnauthorized, "Unauthorized", "")
			return true
		}
		websocket.Server{Handshake: func(config *websocket.Config, _ *http.Request) error {
			if !slices.Contains(config.Protocol, plainStream) {
				return websocket.ErrBadWebSocketProtocol
			}
			config.Protocol = []string{plainStream}
			return nil
		}, Handler: func(ws *websocket.Conn) {
			ws.PayloadType = websocket.BinaryFrame
			server(ws)
		}}.ServeHTTP(w, r)
		return true
	})
	m := c.entered(&vm{Name: "a", Short: "m1"}, nil)
	login := m.Login()
	conn, err := login.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known, err := knownhosts.New(login.KnownHosts...)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(login.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	client, _, _, err := ssh.NewClientConn(conn, "m1:22", &ssh.ClientConfig{User: login.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: known})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.api.forward(t.Context(), "m2", 22); err == nil || !strings.Contains(err.Error(), "port 22 of m2") {
		t.Errorf("a guest that is not there: %v", err)
	}
}
