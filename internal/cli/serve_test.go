package cli

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
)

// said is a stream that can be read while it is written to.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var served = regexp.MustCompile(`serving (http://\S+)/ `)

// TestServe: the command says where it serves, asks for the token, lists runs of experiments too, and ends at SIGTERM.
func TestServe(t *testing.T) {
	root := t.TempDir()
	t.Setenv("PLIMSOLL_RUNS", root)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := result.Create(root,
		result.Manifest{RunID: "20260301-100000-a-0001", Scenario: result.ScenarioInfo{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	var out, errs said
	signals := make(chan os.Signal)
	a := &app{in: strings.NewReader(""), out: &out, err: &errs, clock: clock.Real{}, drivers: drivers.All(),
		signals: signals}
	ended := make(chan int, 1)
	go func() { ended <- a.main([]string{"serve", "--listen", "127.0.0.1:0", "--token", "file:" + file}) }()
	url := ""
	for range 1000 {
		if m := served.FindStringSubmatch(errs.String()); m != nil {
			url = m[1]
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.SetBasicAuth("me", token)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if code, _ := get("/-/ready", ""); code != 200 {
		t.Errorf("ready: %d", code)
	}
	for _, token := range []string{"", "wrong"} {
		for _, path := range []string{"/", "/api/v1/labels", "/runs/20260301-100000-a-0001"} {
			if code, body := get(path, token); code != 401 || strings.Contains(body, "0001") {
				t.Errorf("%s with %q: %d %s", path, token, code, body)
			}
		}
	}
	if code, body := get("/", "open sesame"); code != 200 || !strings.Contains(body, "20260301-100000-a-0001") {
		t.Errorf("%d %s", code, body)
	}
	signals <- syscall.SIGTERM
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
	if text := out.String() + errs.String(); strings.Contains(text, "sesame") {
		t.Errorf("the token was printed:\n%s", text)
	}
	if _, err := client.Get(url); err == nil {
		t.Error("it still answers")
	}
}
