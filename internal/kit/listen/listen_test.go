package listen_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func token(t *testing.T, value string) secret.Secret {
	t.Helper()
	t.Setenv("LISTEN_TEST_TOKEN", value)
	source, err := secret.ParseSource("env:LISTEN_TEST_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	s, err := source.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Addresses that other machines can reach want a token; others do not; what is no address is said.
func TestAddresses(t *testing.T) {
	far := func(address, near string) string {
		return `listen: address "` + address + `" can be reached from other machines: give a token, or listen on ` + near
	}
	known := token(t, "sesame")
	for address, want := range map[string]string{
		"127.0.0.1:0": "", "localhost:9100": "", "[::1]:9100": "", "127.8.9.1:9": "",
		":9100":        far(":9100", "127.0.0.1:9100"),
		"0.0.0.0:9100": far("0.0.0.0:9100", "127.0.0.1:9100"),
		"[::]:1":       far("[::]:1", "127.0.0.1:1"),
		"host:1":       far("host:1", "127.0.0.1:1"),
		"9100":         `listen: address "9100": want HOST:PORT, like 127.0.0.1:9100`,
		"localhost:x":  `listen: address "localhost:x": port "x" is no number up to 65535`,
	} {
		for _, s := range []listen.Server{{Address: address}, {Address: address, Token: known}} {
			if !s.Token.IsZero() && strings.Contains(want, "give a token") {
				want = ""
			}
			got := ""
			if err := s.Check(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", address, got, want)
			}
		}
	}
}

// Who is let in: with the token in either form; without one by whoever names this machine.
func TestPermission(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") })
	basic := func(user, password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	known := token(t, "open sesame")
	for _, c := range []struct {
		name          string
		token         secret.Secret
		host, path    string
		authorization string
		want          int
	}{
		{"nothing", known, "far.example", "/", "", 401},
		{"wrong", known, "far.example", "/", "Bearer sesame", 401},
		{"longer", known, "far.example", "/", "Bearer open sesame ", 401},
		{"no scheme", known, "far.example", "/", "open sesame", 401},
		{"bearer", known, "far.example", "/", "Bearer open sesame", 200},
		{"password", known, "far.example", "/", basic("anybody", "open sesame"), 200},
		{"password of nobody", known, "far.example", "/", basic("", "open sesame"), 200},
		{"as a name", known, "far.example", "/", basic("open sesame", ""), 401},
		{"half", known, "far.example", "/", "Basic !", 401},
		{"open path", known, "far.example", "/-/healthy", "", 200},
		{"below an open path", known, "far.example", "/-/healthy/more", "", 401},
		{"local", secret.Secret{}, "127.0.0.1:9090", "/", "", 200},
		{"local name", secret.Secret{}, "LocalHost", "/", "", 200},
		{"local, IPv6", secret.Secret{}, "[::1]:9090", "/", "", 200},
		{"name that leads here", secret.Secret{}, "attacker.example:9090", "/", "", 403},
		{"name that begins like it", secret.Secret{}, "127.0.0.1.attacker.example", "/", "", 403},
		{"no name", secret.Secret{}, "", "/", "", 403},
	} {
		h := listen.Server{Token: c.token, Open: []string{"/-/healthy"}}.Handler(answer)
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		r.Header.Set("Authorization", c.authorization)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || (w.Body.String() == "in") != (c.want == 200) {
			t.Errorf("%s: %d %q, want %d", c.name, w.Code, w.Body, c.want)
		}
		if strings.Contains(w.Body.String()+strings.Join(w.Header().Values("WWW-Authenticate"), ""), "sesame") {
			t.Errorf("%s: the token is in the answer", c.name)
		}
	}
}

// A page of another origin gets nothing, whatever it asks and with or without a token; programs, pages from here and
// clicks on links do.
func TestForeignPages(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") })
	known := token(t, "sesame")
	for _, c := range []struct {
		name, method string
		header       []string // names and values in turn
		want         int
	}{
		{"a program", "GET", nil, 200},
		{"a program that posts", "POST", nil, 200},
		{"a page from here", "GET", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		{"a page from here that posts", "POST",
			[]string{"Origin", "http://127.0.0.1:9095", "Sec-Fetch-Site", "same-origin"}, 200},
		{"an address that was typed", "GET", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		{"a link elsewhere", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document", "Sec-Fetch-User", "?1"}, 200},
		{"a page that goes here by itself", "GET",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"a form elsewhere", "POST", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document", "Sec-Fetch-User", "?1"}, 403},
		{"a frame", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "iframe", "Sec-Fetch-User", "?1"}, 403},
		{"a picture", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"another port of this machine", "GET", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"what browsers may say one day", "GET", []string{"Sec-Fetch-Site", "elsewhere"}, 403},
		{"an old browser", "POST", []string{"Origin", "http://evil.example"}, 403},
		{"an old browser, another port", "POST", []string{"Origin", "http://127.0.0.1:3000"}, 403},
		{"an origin that is hidden", "GET", []string{"Origin", "null"}, 403},
		{"an origin that is none", "GET", []string{"Origin", "http://127.0.0.1:9095\x7f"}, 403},
		{"two origins", "GET", []string{"Origin", "http://127.0.0.1:9095", "Origin", "http://evil.example"}, 403},
	} {
		for _, s := range []listen.Server{{}, {Token: known}} {
			r := httptest.NewRequest(c.method, "/", nil)
			r.Host = "127.0.0.1:9095"
			r.Header.Set("Authorization", "Bearer sesame")
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Add(c.header[i], c.header[i+1])
			}
			w := httptest.NewRecorder()
			s.Handler(answer).ServeHTTP(w, r)
			if w.Code != c.want || (w.Body.String() == "in") != (c.want == 200) {
				t.Errorf("%s, token %v: %d %q, want %d", c.name, !s.Token.IsZero(), w.Code, w.Body, c.want)
			}
		}
	}
}

// A stop is told of first, lets a request under way come to its end, and then nothing is answered.
func TestStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	entered, release := make(chan struct{}), make(chan struct{})
	address, stopping, ended := make(chan string, 1), make(chan struct{}), make(chan error, 1)
	s := listen.Server{
		Address:   "127.0.0.1:0",
		Listening: func(a string) { address <- a },
		Stopping:  func() { close(stopping) },
	}
	go func() {
		ended <- s.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			_, _ = io.WriteString(w, "whole")
		}))
	}()
	url := "http://" + <-address
	body := make(chan string, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		answer, err := client.Get(url)
		if err != nil {
			body <- err.Error()
			return
		}
		defer answer.Body.Close()
		all, _ := io.ReadAll(answer.Body)
		body <- string(all)
	}()
	<-entered
	stop()
	<-stopping
	close(release)
	if got := <-body; got != "whole" {
		t.Errorf("the request under way got %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if answer, err := client.Get(url); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}
