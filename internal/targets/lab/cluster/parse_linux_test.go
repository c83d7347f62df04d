package lab

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"plimsoll/internal/contract/target"
)

func data(t testing.TB, name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGlusterAnswers reads what GlusterFS 10.3 said with all nodes on, and with the third off.
func TestGlusterAnswers(t *testing.T) {
	all := map[string]bool{"10.77.0.11": true, "10.77.0.12": true, "10.77.0.13": true}
	two := map[string]bool{"10.77.0.11": true, "10.77.0.12": true, "10.77.0.13": false}
	if got, err := parseBricks(data(t, "status.xml")); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("status: %v, %v", got, err)
	}
	if got, n, err := parseHeals(data(t, "healed.xml")); err != nil || n != 0 || !reflect.DeepEqual(got, all) {
		t.Errorf("healed: %v, %d, %v", got, n, err)
	}
	if got, n, err := parseHeals(data(t, "heal-down.xml")); err != nil || n != -1 || !reflect.DeepEqual(got, two) {
		t.Errorf("one down: %v, %d, %v", got, n, err)
	}
	if _, _, err := parseHeals([]byte("<cliOutput/>")); err == nil {
		t.Error("no brick at all is nothing to heal")
	}
}

func FuzzGluster(f *testing.F) {
	for _, name := range []string{"status.xml", "heal-down.xml"} {
		f.Add(data(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if online, n, err := parseHeals(b); n < -1 || (online == nil) != (err != nil) {
			t.Errorf("%v, %d entries, %v", online, n, err)
		}
		if m, err := parseBricks(b); (m == nil) != (err != nil) {
			t.Errorf("%v, %v", m, err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"id":"00ff1a","nodes":3,"storage":"gluster"}`))
	f.Add([]byte(`{"version":1,"id":"../../","nodes":99,"storage":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err == nil && (len(r.ID) != 6 || strings.ContainsAny(r.ID, "/.+-_") || r.Nodes > mostNodes) {
			t.Errorf("%+v is taken", r)
		}
	})
}

// TestRedfishRefuses asks as others might.
func TestRedfishRefuses(t *testing.T) {
	r := &redfish{system: "node1", password: "right", tokens: map[string]string{}}
	h := r.handler()
	ask := func(method, path, body, user, password, token string) *httptest.ResponseRecorder {
		q := httptest.NewRequest(method, path, strings.NewReader(body))
		if user != "" {
			q.SetBasicAuth(user, password)
		}
		if token != "" {
			q.Header.Set("X-Auth-Token", token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		return w
	}
	const action = systems + "/node1/Actions/ComputerSystem.Reset"
	for _, c := range []struct {
		method, path, body, user, password, token string
		want                                      int
	}{
		{"GET", rootPath + "/", "", "", "", "", 200},
		{"GET", systems, "", "", "", "", 401},
		{"GET", systems, "", "admin", "wrong", "", 401},
		{"GET", systems, "", "admin", "right", "", 200},
		{"GET", systems, "", "", "", "stolen", 401},
		{"GET", systems + "/node2", "", "admin", "right", "", 404},
		{"POST", action, `{"ResetType":"Explode"}`, "admin", "right", "", 400},
		{"POST", action, `{`, "admin", "right", "", 400},
		{"POST", action, `{"ResetType":"ForceOff"}`, "", "", "", 401},
		{"POST", sessions, `{"UserName":"admin","Password":"wrong"}`, "", "", "", 401},
	} {
		if w := ask(c.method, c.path, c.body, c.user, c.password, c.token); w.Code != c.want {
			t.Errorf("%+v: %d: %s", c, w.Code, w.Body)
		}
	}
	w := ask("POST", sessions, `{"UserName":"admin","Password":"right"}`, "", "", "")
	token := w.Header().Get("X-Auth-Token")
	if w.Code != http.StatusCreated || ask("GET", systems, "", "", "", token).Code != 200 {
		t.Errorf("session: %d", w.Code)
	}
	ask("DELETE", w.Header().Get("Location"), "", "", "", token)
	if code := ask("GET", systems, "", "", "", token).Code; code != 401 {
		t.Errorf("after logging out: %d", code)
	}
}

// What daemons say while they still join is waited out; what is wrong for good is not.
func TestSettling(t *testing.T) {
	for words, want := range map[string]bool{
		"volume create: gv: failed: Another transaction is in progress for gv. Please try again after some time.": true,
		"refused: Locking failed on 10.77.0.13. Please check log file for details.":                               true,
		"volume create: gv: failed: Host 10.77.0.12 is not in 'Peer in Cluster' state":                            true,
		"volume create: gv: failed: /x/brick or a prefix of it is already part of a volume":                       false,
	} {
		if got := settling(errors.New(words)); got != want {
			t.Errorf("%s: %t, want %t", words, got, want)
		}
	}
}

// A node of a lab that was taken down is no node: nobody is to wait for it.
func TestNodeOfNoLab(t *testing.T) {
	n := &Node{lab: &Lab{dir: filepath.Join(t.TempDir(), "gone")}, number: 1}
	_, _, err := n.State(t.Context())
	for _, err := range []error{err, n.Power().PowerOn(t.Context())} {
		if !errors.Is(err, target.ErrNoSuchNode) || !errors.Is(err, target.ErrNotAccessible) {
			t.Error(err)
		}
	}
}
