// Package programtest runs real servers for tests, on loopback ports that are free, until the test ends: any program,
// Prometheus, and nginx with fcgiwrap for a CGI program. Tests only, above package needs, which finds the programs.
package programtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// Serve runs a program until the test ends, and waits until it answers at an address. What it said is logged when the
// test fails.
func Serve(t testing.TB, ready, program string, args ...string) {
	t.Helper()
	Start(t, exec.Command(program, args...)) // a test's own program
	Eventually(t, program+" answers", func() bool { _, err := Get(ready); return err == nil })
}

// Start runs a command until the test ends, with an interrupt and, ten seconds later, a kill.
func Start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	var out said
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // ended by us
		late.Stop()
		if t.Failed() {
			t.Logf("%s: %s", cmd.Path, out.String())
		}
	})
}

// said holds what a program prints, which is read while it runs.
type said struct {
	mu sync.Mutex
	b  strings.Builder
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

// Eventually waits half a minute for something.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("not within half a minute: %s", what)
}

// Get is the body of a page; any status but 200 is an error.
func Get(address string) (string, error) {
	r, err := http.Get(address)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(r.Body)
	err = errors.Join(err, r.Body.Close())
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %.300s", address, r.Status, body)
	}
	return string(body), err
}

// Port is an address on loopback with a port that is free at the moment.
func Port(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Write makes a file in a folder and returns its path.
func Write(t testing.TB, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Prometheus runs prometheus with a configuration and flags, and returns its address, HOST:PORT. It takes remote
// writes.
func Prometheus(t testing.TB, config string, flags ...string) string {
	t.Helper()
	program, dir, at := needs.Prometheus(t), t.TempDir(), Port(t)
	flags = append(flags, "--config.file="+Write(t, dir, "prometheus.yml", config, 0o600),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at,
		"--web.enable-remote-write-receiver", "--log.level=warn")
	Serve(t, "http://"+at+"/-/ready", program, flags...)
	return at
}

// CheckMetrics has promtool look at a page of metrics.
func CheckMetrics(t testing.TB, page string) {
	t.Helper()
	cmd := exec.Command(needs.Promtool(t), "check", "metrics") // promtool
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v: %s", err, out)
	}
}

const nginxConfig = `daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d;
  scgi_temp_path %[1]s/e;
  server { listen %[2]s; location /cgi {
    fastcgi_pass unix:%[3]s; fastcgi_param SCRIPT_FILENAME %[4]s;
    fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; } }
}
`

// CGI has nginx and fcgiwrap run a script, a process for each request, and returns the script's URL. ready is the query
// of a request that it answers well.
func CGI(t testing.TB, script, ready string) string {
	t.Helper()
	nginx, wrap := needs.NginxCGI(t)
	dir, at := t.TempDir(), Port(t)
	sockets, err := os.MkdirTemp("", "cgi") // short: the path of a unix socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(sockets); err != nil {
			t.Error(err)
		}
	})
	socket := filepath.Join(sockets, "s")
	Start(t, exec.Command(wrap, "-s", "unix:"+socket)) // fcgiwrap
	Eventually(t, "fcgiwrap listens", func() bool { _, err := os.Stat(socket); return err == nil })
	file := Write(t, dir, "nginx.conf", fmt.Sprintf(nginxConfig, dir, at, socket, script), 0o600)
	Serve(t, "http://"+at+"/cgi?"+ready, nginx, "-c", file, "-p", dir)
	return "http://" + at + "/cgi"
}
