package nutanix

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/prismtest"
	"plimsoll/internal/testkit/programtest"
)

// ask is the value of a query to Prometheus; "" when it returns nothing.
func ask(address, query string) string {
	body, err := programtest.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
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

// Prometheus scrapes a served cluster with hostile names; a Pushgateway and Prometheus get what is pushed, and the
// group is gone when the program has ended.
func TestPrometheusAndPushgateway(t *testing.T) {
	gateway := programtest.Port(t)
	s := prismtest.Start(t, prismsim.Options{VMs: 30, Hostile: true})
	written := programtest.Prometheus(t, "global: {}\n")
	programtest.Serve(
		t,
		"http://"+gateway+"/-/ready",
		needs.Pushgateway(t),
		"--web.listen-address="+gateway,
		"--log.level=warn",
	)
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
	scraping := programtest.Prometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s}
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
		programtest.Eventually(t, q.query+" is "+q.want, func() bool { return ask(q.at, q.query) == q.want })
	}
	pushed := func() string { body, _ := programtest.Get("http://" + gateway + "/metrics"); return body }
	programtest.Eventually(t, "the Pushgateway has it", func() bool {
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
	x, log := made(t, config(t, s, func(c *Config) { c.Push = []Push{{Pushgateway: "http://" + programtest.Port(t)}} }))
	x.PollOnce(t.Context())
	x.push(t.Context(), x.sources[0])
	if !has(pageOf(t, x, ""), `nutanix_exporter_push_failures_total{push="1",to="pushgateway"} 1`) ||
		!strings.Contains(log.String(), "push failed") {
		t.Errorf("%s", log)
	}
}

// A place that answers without end is left after its first words.
func TestPushAnsweredWithoutEnd(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 1})
	hungUp := make(chan error, 1)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.Copy(w, rand.Reader)
		hungUp <- err
	}))
	defer to.Close()
	x, _ := made(t, config(t, s, func(c *Config) { c.Push = []Push{{RemoteWrite: to.URL}} }))
	x.PollOnce(t.Context())
	x.push(t.Context(), x.sources[0])
	if err := <-hungUp; err == nil {
		t.Error("all of it was taken")
	}
	if want := `nutanix_exporter_push_failures_total{push="1",to="remote_write"} 0`; !has(pageOf(t, x, ""), want) {
		t.Errorf("want %s", want)
	}
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
