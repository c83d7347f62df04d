package nutanix

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/listen"
	"plimsoll/internal/needs"
	"plimsoll/internal/prism/prismsim"
	"plimsoll/internal/prism/prismtest"
)

// run runs a program to its end, which must be a good one.
func run(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// serve runs a program until the test ends, and waits until it answers at an address.
func serve(t *testing.T, ready, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	var out lines
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // ended by us
		if t.Failed() {
			t.Logf("%s: %s", program, out.String())
		}
	})
	eventually(t, program+" answers", func() bool { _, err := get(ready); return err == nil })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("not within half a minute: %s", what)
}

func get(address string) (string, error) {
	r, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != 200 {
		err = fmt.Errorf("%s: %s %.300s", address, r.Status, body)
	}
	return string(body), err
}

// port is one that is free at the moment.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ask is the value of a query to Prometheus; "" when it returns nothing.
func ask(address, query string) string {
	body, err := get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err != nil || json.Unmarshal([]byte(body), &answer) != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}

func prometheus(t *testing.T, scrape string) string {
	t.Helper()
	program, dir, at := needs.Prometheus(t), t.TempDir(), port(t)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(scrape), 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, "http://"+at+"/-/ready", program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+at, "--web.enable-remote-write-receiver", "--log.level=warn")
	return at
}

// Prometheus scrapes a served cluster with hostile names; a Pushgateway and Prometheus get what is pushed, and the
// group is gone when the program has ended.
func TestPrometheusAndPushgateway(t *testing.T) {
	gateway := port(t)
	s := prismtest.Start(t, prismsim.Options{VMs: 30, Hostile: true})
	written := prometheus(t, "global: {}\n")
	serve(t, "http://"+gateway+"/-/ready", needs.Pushgateway(t), "--web.listen-address="+gateway, "--log.level=warn")
	x, log := made(t, config(t, s, func(c *Config) {
		c.Poll = time.Second
		c.Push = []Push{{Pushgateway: "http://" + gateway, Job: "a/b"},
			{RemoteWrite: "http://" + written + "/api/v1/write"}}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addresses, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- x.Run(ctx, listen.Server{Address: "127.0.0.1:0", Listening: func(a string) { addresses <- a }}, nil)
	}()
	at := <-addresses
	scraping := prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s}
scrape_configs:
  - job_name: nutanix
    static_configs: [{targets: [%q]}]
`, at))
	for _, q := range []struct{ at, query, want string }{
		{scraping, `up{job="nutanix"}`, "1"},
		{scraping, `count(nutanix_vm_vcpus{vm="twin"})`, "2"},
		{scraping, `count(nutanix_vm_vcpus{vm="line\nend"})`, "1"},
		{scraping, `count(nutanix_disk_info)`, "60"},
		{written, `count(nutanix_vm_vcpus{vm="quo\"te",job="nutanix"})`, "1"},
		{written, `count(nutanix_disk_capacity_bytes == 100e9)`, "60"},
	} {
		eventually(t, q.query+" is "+q.want, func() bool { return ask(q.at, q.query) == q.want })
	}
	pushed := func() string { body, _ := get("http://" + gateway + "/metrics"); return body }
	eventually(t, "the Pushgateway has it", func() bool {
		return strings.Contains(pushed(), `nutanix_vm_vcpus{cluster="one",instance="",job="a/b",uuid=`)
	})
	if page := pageOf(t, x, ""); !has(page, `nutanix_exporter_push_failures_total{push="1",to="pushgateway"} 0`) ||
		!has(page, `nutanix_exporter_push_failures_total{push="2",to="remote_write"} 0`) {
		t.Errorf("%v\n%s", once(page, "nutanix_exporter_push"), log)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if strings.Contains(pushed(), "nutanix_") {
		t.Error("the group is still there")
	}
	http.DefaultClient.CloseIdleConnections()
}

// A place that takes nothing is told of, and hinders nobody.
func TestPushFails(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 1})
	x, log := made(t, config(t, s, func(c *Config) { c.Push = []Push{{Pushgateway: "http://" + port(t)}} }))
	x.PollOnce(t.Context())
	x.push(t.Context(), x.sources[0])
	if !has(pageOf(t, x, ""), `nutanix_exporter_push_failures_total{push="1",to="pushgateway"} 1`) ||
		!strings.Contains(log.String(), "push failed") {
		t.Errorf("%s", log)
	}
}

// nginx runs the program by fcgiwrap, a process for each request.
func TestCGI(t *testing.T) {
	nginx, wrap := needs.NginxCGI(t)
	s := prismtest.Start(t, prismsim.Options{VMs: 4})
	dir := t.TempDir()
	conf := config(t, s, nil)
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	password := write("password", prismtest.Password, 0o600)
	clusters := write("clusters.yaml", fmt.Sprintf("clusters:\n  - {name: one, url: %q, user: viewer, "+
		"password: %q, ca: %q}\n", s.URL, "file:"+password, conf.Clusters[0].CA), 0o600)
	// The test's own executable is the program: TestMain sees the variable.
	script := write("nutanix.cgi", fmt.Sprintf("#!/bin/sh\nPLIMSOLL_CGI=%s exec %s\n", clusters, self), 0o700)
	socket, at := filepath.Join(dir, "f.sock"), port(t)
	ngx := write("nginx.conf", fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d;
  scgi_temp_path %[1]s/e;
  server { listen %[2]s; location /nutanix {
    fastcgi_pass unix:%[3]s; fastcgi_param SCRIPT_FILENAME %[4]s;
    fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method; } }
}
`, dir, at, socket, script), 0o600)
	wrapper := exec.CommandContext(t.Context(), wrap, "-s", "unix:"+socket)
	if err := wrapper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = wrapper.Process.Kill(); _ = wrapper.Wait() })
	eventually(t, "fcgiwrap listens", func() bool { _, err := os.Stat(socket); return err == nil })
	serve(t, "http://"+at+"/nutanix?format=ntnx_bash", nginx, "-c", ngx, "-p", dir)
	var page string
	page, err = get("http://" + at + "/nutanix?target=one")
	if err != nil || len(once(page, "nutanix_vm_info{")) != 4 {
		t.Errorf("%v %.500s", err, page)
	}
	check(t, page)
	if page, err = get("http://" + at + "/nutanix?format=ntnx_bash"); err != nil ||
		!strings.HasPrefix(page, `ntnx_bash{metric="cluster_iops"} `) {
		t.Errorf("%v %.500s", err, page)
	}
	if _, err = get("http://" + at + "/nutanix?target=other"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	s.Set(prismsim.Faults{Slow: time.Minute}) // it answers within its own deadline, and says why there is nothing
	began := time.Now()
	if page, err = get("http://" + at + "/nutanix"); err != nil || !has(page, `nutanix_up{cluster="one"} 0`) ||
		time.Since(began) > 50*time.Second {
		t.Errorf("after %v: %v %.500s", time.Since(began), err, page)
	}
	http.DefaultClient.CloseIdleConnections()
}

// What CGI says without a web server.
func TestCGIHeads(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 1})
	x, _ := made(t, config(t, s, nil))
	x.PollOnce(t.Context())
	for _, c := range []struct{ query, method, want string }{
		{"", "GET", "200 OK"}, {"target=x", "GET", "404 Not Found"}, {"", "POST", "405 Method Not Allowed"},
		{"%zz", "GET", "400 Bad Request"}, {"format=ntnx_bash", "", "200 OK"}, {"", "HEAD", "200 OK"},
	} {
		var b bytes.Buffer
		if err := CGI(&b, x, c.query, c.method, false); err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(b.String(), "\r\n\r\n")
		if !strings.HasPrefix(head, "Status: "+c.want+"\r\nContent-Type: text/plain") ||
			(len(body) == 0) != (c.method == "HEAD") {
			t.Errorf("%q %s: %s with %d bytes", c.query, c.method, head, len(body))
		}
	}
}
