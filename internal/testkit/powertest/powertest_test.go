package powertest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/testkit/powertest"
)

// outlet is a kind with credentials, for a made-up switched outlet with a page for each command: small, and all that a
// BMC's controller has to think of.
type outlet struct{}

func (outlet) Name() string    { return "outlet" }
func (outlet) Summary() string { return "a switched outlet with a web page" }

func (outlet) Options() []target.Option {
	return []target.Option{{Name: "url", Help: "where it answers"}, {Name: "user", Help: "who we are there"},
		{Name: "password", Type: target.Secret, Help: "where the password is kept"}}
}

func (outlet) Open(v target.Values) (target.PowerController, error) {
	if v.Text("url") == "" {
		return nil, fmt.Errorf("option %q is missing", "url")
	}
	return &socket{v.Text("url"), v.Text("user"), v.Secret("password")}, nil
}

// socket is one controller. It keeps where the password is kept, and reads it for each call.
type socket struct {
	url, user string
	password  secret.Source
}

func (s *socket) call(ctx context.Context, word string) (string, error) {
	password, err := s.password.Read(ctx)
	if err != nil {
		return "", fmt.Errorf("outlet %s: %w", s.url, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/"+word, nil)
	if err != nil {
		return "", err
	}
	r.SetBasicAuth(s.user, password.Reveal())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("outlet: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("outlet %s: %s: it answered %q", s.url, word, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 100))
	return string(text), err
}

func (s *socket) State(ctx context.Context) (target.PowerState, error) {
	text, err := s.call(ctx, "state")
	if err != nil {
		return target.Unknown, err
	}
	return target.PowerState(text), nil
}

func (s *socket) do(ctx context.Context, word string) error { _, err := s.call(ctx, word); return err }

func (s *socket) PowerOn(ctx context.Context) error  { return s.do(ctx, "on") }
func (s *socket) PowerOff(ctx context.Context) error { return s.do(ctx, "off") }
func (s *socket) Shutdown(ctx context.Context) error { return s.do(ctx, "off") }

// TestKindWithCredentials has the suite find nothing wrong with a kind that does it right.
func TestKindWithCredentials(t *testing.T) {
	const password = "correct horse battery"
	var mu sync.Mutex
	state := target.On
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, given, _ := r.BasicAuth(); given != password {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		switch strings.TrimPrefix(r.URL.Path, "/") {
		case "on":
			state = target.On
		case "off":
			state = target.Off
		}
		_, _ = io.WriteString(w, string(state))
	}))
	defer server.Close()
	t.Setenv("OUTLET_PASSWORD", password)
	t.Setenv("OTHER_PASSWORD", "wrong")
	with := func(from string) target.Options {
		return target.Options{"url": server.URL, "user": "admin", "password": from}
	}
	powertest.RunKind(t, powertest.Bench{
		Kind: outlet{}, Options: with("env:OUTLET_PASSWORD"), Secret: password,
		Wrong: with("env:OTHER_PASSWORD"), Graceful: true,
		Node: func() (target.PowerState, error) {
			mu.Lock()
			defer mu.Unlock()
			return state, nil
		},
		Wait: func(done func() bool) {
			for !done() {
				t.Fatal("it switches at once")
			}
		},
	})
}

// TestSettings: what cannot be opened says what to do.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		setting target.PowerSetting
		words   []string
	}{
		"unknown kind":  {target.PowerSetting{Kind: "outlets"}, []string{"node 3", `"outlets"`, `did you mean "outlet"`}},
		"lacks its url": {target.PowerSetting{Kind: "outlet"}, []string{"node 3", "outlet", `"url"`}},
		"foreign option": {target.PowerSetting{Kind: "outlet", Options: target.Options{"urls": "x"}},
			[]string{"node 3", `"urls"`, `did you mean "url"`}},
	} {
		_, err := c.setting.Open("node 3", []target.PowerKind{outlet{}})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
	_, err := target.PowerSetting{Kind: "ipmi"}.Open("node 3", nil)
	if err == nil || !strings.Contains(err.Error(), "there are none") {
		t.Errorf("without any kind: %v", err)
	}
}
