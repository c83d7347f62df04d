package redfish

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/powertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bmc is a Redfish service with two systems; what a test changes of it is in its fields.
type bmc struct {
	mu      sync.Mutex
	power   string
	members []string
	allowed []string
	instead func(w http.ResponseWriter, r *http.Request) bool // answers in its place
	stuck   bool
	server  *httptest.Server
	ca      string
}

const (
	password  = "correct horse battery"
	sushyHash = "4pqXHKuhi7XbKq7K6h/dM.y9myVff5l36R.hEBMJbfBR9OYNNFobm" // bcrypt's, of the password
)

func newBMC(t *testing.T) (*bmc, target.Options) {
	t.Helper()
	b := &bmc{power: "On", members: []string{"one"}, allowed: []string{"On", "ForceOff", "GracefulShutdown"}}
	b.server = httptest.NewUnstartedServer(b)
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	b.server.StartTLS()
	t.Cleanup(b.server.Close)
	b.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(b.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: b.server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BMC_PASSWORD", password)
	t.Setenv("WRONG_PASSWORD", "wrong")
	port := b.server.Listener.Addr().(*net.TCPAddr).Port
	return b, target.Options{"address": "127.0.0.1", "port": fmt.Sprint(port), "user": "admin",
		"password": "env:BMC_PASSWORD", "ca": b.ca}
}

func (b *bmc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const systems = "/redfish/v1/Systems"
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	if b.instead != nil && b.instead(w, r) {
		return
	}
	if user, given, _ := r.BasicAuth(); user != "admin" || given != password {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	var asked struct{ ResetType string }
	switch r.URL.Path {
	case "/redfish/v1/":
		answer(map[string]any{"Systems": link{systems}})
	case systems:
		skip, _ := strconv.Atoi(r.URL.Query().Get("$skip")) // a member a page
		page := map[string]any{"Members": []link{}}
		if skip < len(b.members) {
			page["Members"] = []link{{systems + "/" + b.members[skip]}}
		}
		if skip+1 < len(b.members) {
			page["Members@odata.nextLink"] = fmt.Sprint(systems, "?$skip=", skip+1)
		}
		answer(page)
	case systems + "/one":
		answer(map[string]any{"PowerState": b.power, "Actions": map[string]any{"#ComputerSystem.Reset": map[string]any{
			"target": systems + "/one/reset", "ResetType@Redfish.AllowableValues": b.allowed}}})
	case systems + "/one/reset":
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Method != http.MethodPost {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		to := map[string]string{"On": "On", "ForceOn": "On"}[asked.ResetType]
		if to == "" {
			to = "Off"
		}
		if to == b.power {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(
				w,
				`{"error": {"message": "general", "@Message.ExtendedInfo": [{"Message": "It is so."}]}}`,
			)
			return
		}
		if !b.stuck {
			b.power = to
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

func (b *bmc) state() (target.PowerState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return system{PowerState: b.power}.state(), nil
}

func poll(t *testing.T, done func() bool) {
	t.Helper()
	for range 300 {
		if done() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("it never was")
}

// The suite of the contract, on a service that refuses to do again what is done.
func TestConformance(t *testing.T) {
	b, o := newBMC(t)
	powertest.RunKind(t, powertest.Bench{Kind: Kind{}, Options: o, Secret: password, Node: b.state,
		Wait:  func(done func() bool) { poll(t, done) },
		Wrong: powertest.With(o, "password", "env:WRONG_PASSWORD"), Graceful: true})
}

// And on one that others wrote: its nodes take a moment to follow.
func TestConformanceSushy(t *testing.T) {
	program := needs.SushyEmulator(t)
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	const id = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
	const hashed = "admin:$2b$04$%s\n"
	for name, text := range map[string]string{
		"cert.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"key.pem":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"users":    fmt.Sprintf(hashed, sushyHash),
		"conf.py": fmt.Sprintf("SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = %d\n"+
			"SUSHY_EMULATOR_SSL_CERT = '%s/cert.pem'\nSUSHY_EMULATOR_SSL_KEY = '%[2]s/key.pem'\n"+
			"SUSHY_EMULATOR_AUTH_FILE = '%[2]s/users'\nSUSHY_EMULATOR_STATE_DIR = '%[2]s'\n"+
			"SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_FAKE_SYSTEMS = [{'uuid': '%s', 'name': 'node1', "+
			"'power_state': 'On', 'nics': []}]\n", port, dir, id),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := &bytes.Buffer{}
	emulator := exec.Command(program, "--config", filepath.Join(dir, "conf.py"))
	emulator.Stdout, emulator.Stderr, emulator.Dir = said, said, dir
	if err := emulator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = emulator.Process.Kill() // it may have ended
		_ = emulator.Wait()
		if t.Failed() {
			t.Logf("sushy-emulator said:\n%s", said)
		}
	})
	poll(t, func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	t.Setenv("BMC_PASSWORD", password)
	t.Setenv("WRONG_PASSWORD", "wrong")
	o := target.Options{"address": "127.0.0.1", "port": fmt.Sprint(port), "user": "admin", "system": id,
		"password": "env:BMC_PASSWORD", "ca": filepath.Join(dir, "cert.pem")}
	powertest.RunKind(t, powertest.Bench{Kind: Kind{}, Options: o, Secret: password,
		Node:  func() (target.PowerState, error) { return powertest.Open(t, Kind{}, o).State(t.Context()) },
		Wait:  func(done func() bool) { poll(t, done) },
		Wrong: powertest.With(o, "password", "env:WRONG_PASSWORD"), Graceful: true})
}

// What a BMC refuses or answers wrongly is said with what to do, and nothing is switched.
func TestWrongAnswers(t *testing.T) {
	text := func(code int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
			return true
		}
	}
	for name, c := range map[string]struct {
		options []string
		change  func(*bmc)
		words   []string
	}{
		"wrong password": {options: []string{"password", "env:WRONG_PASSWORD"},
			words: []string{"401", `user "admin" with the password from env:WRONG_PASSWORD`}},
		"another system": {options: []string{"system", "two"}, words: []string{`no system "two": there are one`}},
		"several systems": {change: func(b *bmc) { b.members = []string{"one", "two"} },
			words: []string{"it has 2 systems: give system: one of one, two"}},
		"no end": {change: func(b *bmc) {
			b.instead = text(200, `{"Systems": {"@odata.id": "/x"}, "Members@odata.nextLink": "/x"}`)
		}, words: []string{"its list of systems has no end: 1000 pages", `"/x"`}},
		"an answer without end": {change: func(b *bmc) {
			b.instead = func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = io.Copy(w, rand.Reader) // until it is hung up on
				return true
			}
		}, words: []string{"the answer of https://127.0.0.1:", "/redfish/v1/: it is larger than 4 MiB"}},
		"no systems": {change: func(b *bmc) { b.members = nil }, words: []string{"it has no systems"}},
		"no such reset": {change: func(b *bmc) { b.allowed = []string{"On", "Nmi"} },
			words: []string{"/redfish/v1/Systems/one offers the resets On, Nmi, and not ForceOff"}},
		"a page": {change: func(b *bmc) { b.instead = text(200, "<html>") },
			words: []string{"its answer is not Redfish's", "address and port"}},
		"no state": {change: func(b *bmc) { b.power = "" }, words: []string{"tells no PowerState"}},
		"its fault": {change: func(b *bmc) { b.instead = text(500, `{"error": {"message": "out of memory"}}`) },
			words: []string{
				`GET /redfish/v1/: it answered "500 Internal Server Error": "out of memory"`}},
		"a link elsewhere": {change: func(b *bmc) {
			b.instead = text(200, `{"Systems": {"@odata.id": "https://elsewhere.example/x"}}`)
		}, words: []string{`it refers to "https://elsewhere.example/x"`}},
		"a redirection": {change: func(b *bmc) {
			b.instead = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
				return true
			}
		}, words: []string{`it answered "302 Found"`}},
		"unknown certificate": {options: []string{"ca", ""},
			words: []string{"its certificate is not trusted", "give ca:"}},
		"another name": {options: []string{"address", "localhost"}, words: []string{"its certificate is not trusted",
			"localhost"}},
		"no CA": {options: []string{"ca", "/nonexistent.pem"}, words: []string{`option "ca"`, "/nonexistent.pem"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := newBMC(t)
			if c.change != nil {
				c.change(b)
			}
			controller := powertest.Open(t, Kind{}, powertest.With(o, c.options...))
			err := controller.PowerOff(t.Context())
			powertest.Fails(t, err, c.words...)
			if state, _ := b.state(); state == target.Off || errors.Is(err, target.ErrNotAccessible) {
				t.Errorf("the node is %s; %v: it does answer", state, err)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("%q shows the password", err)
			}
		})
	}
}

// A BMC that is silent, or not there, is not accessible; nobody waits longer than was asked for.
func TestNoAnswer(t *testing.T) {
	b, o := newBMC(t)
	b.instead = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	began := time.Now()
	state, err := powertest.Open(t, Kind{}, powertest.With(o, "timeout", "1s")).State(t.Context())
	powertest.Fails(t, err, "no answer within 1s", "firewall")
	if state != target.Unknown || !errors.Is(err, target.ErrNotAccessible) || time.Since(began) > 5*time.Second {
		t.Errorf("%s, %v after %v", state, err, time.Since(began))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	if err := powertest.Open(t, Kind{}, o).PowerOff(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	err = powertest.Open(t, Kind{}, powertest.With(o, "port", "1")).PowerOn(t.Context())
	powertest.Fails(t, err, "connection refused", "address and port")
	if !errors.Is(err, target.ErrNotAccessible) {
		t.Error(err)
	}
}

// A node that does not follow is the state's to show, as one is that has not got there.
func TestStates(t *testing.T) {
	b, o := newBMC(t)
	b.stuck = true
	c := powertest.Open(t, Kind{}, powertest.With(o, "ca", "", "tls", "insecure"))
	if err := c.PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]target.PowerState{"On": target.On, "Off": target.Off,
		"PoweringOff": target.Unknown, "PoweringOn": target.Unknown, "Paused": target.Unknown} {
		b.mu.Lock()
		b.power = said
		b.mu.Unlock()
		if state, err := c.State(t.Context()); state != want || err != nil {
			t.Errorf("%s: %s, %v", said, state, err)
		}
	}
}

// All that is wrong with options is said at once.
func TestOptions(t *testing.T) {
	_, err := target.PowerSetting{Kind: "redfish", Options: target.Options{"ca": "x", "tls": "insecure",
		"system": "/redfish/v1/Systems/1"}}.Open("node 0", []target.PowerKind{Kind{}})
	powertest.Fails(t, err, "node 0", `"address" is missing`, `"user" is missing`, `"password" is missing`, "give one of them",
		"without the path")
}
