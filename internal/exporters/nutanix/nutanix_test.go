package nutanix

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/exporters/nutanix/prism"
	"plimsoll/internal/exporters/nutanix/prismsim"
	"plimsoll/internal/kit/listen"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/prismtest"
	"plimsoll/internal/testkit/programtest"
)

func TestMain(m *testing.M) {
	os.Setenv("PRISM_TEST", prismtest.Password)
	os.Setenv("PRISM_WRONG", "sw0rdfish")
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(goleak.IgnoreTopFunction("internal/poll.runtime_pollWait")); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

func source1(t testing.TB, text string) secret.Source {
	t.Helper()
	s, err := secret.ParseSource(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// config is one of a cluster that is polled often.
func config(t testing.TB, s *prismtest.Server, change func(*Config)) Config {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, s.Certificate.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Clusters: []Cluster{{Name: "one", URL: s.URL, User: "viewer", Password: source1(t, "env:PRISM_TEST"),
		CA: ca, API: prism.V2}}}
	if change != nil {
		change(&c)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	return c
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func made(t testing.TB, c Config) (*Exporter, *lines) {
	t.Helper()
	log := new(lines)
	x, err := New("v1", c, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range x.list() {
			s.client.Close()
		}
	})
	return x, log
}

func pageOf(t testing.TB, x *Exporter, target string) string {
	t.Helper()
	var b bytes.Buffer
	if err := x.Page(&b, target, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func has(page, line string) bool { return strings.Contains("\n"+page, "\n"+line+"\n") }

// once are the lines of a page that begin as one of these do.
func once(page string, prefixes ...string) (out []string) {
	for line := range strings.Lines(page) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// The metrics of a small cluster, with names that break careless programs: promtool takes the page, the parser of
// Prometheus finds each series once, and packed it is the same page.
func TestPage(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 20, Hostile: true})
	x, _ := made(t, config(t, s, nil))
	x.PollOnce(t.Context())
	text := pageOf(t, x, "")
	for _, want := range []string{
		`nutanix_up{cluster="one"} 1`,
		`nutanix_exporter_tls_verified{cluster="one"} 1`,
		`nutanix_exporter_entities{cluster="one",kind="disk"} 40`,
		`nutanix_vm_vcpus{cluster="one",vm="quo\"te",uuid="00000000-0000-4000-8004-000000000001"} 4`,
		`nutanix_vm_vcpus{cluster="one",vm="line\nend",uuid="00000000-0000-4000-8004-000000000002"} 4`,
		`nutanix_vm_vcpus{cluster="one",vm="twin",uuid="00000000-0000-4000-8004-000000000005"} 4`,
		`nutanix_vm_vcpus{cluster="one",vm="twin",uuid="00000000-0000-4000-8004-000000000006"} 4`,
		`nutanix_vm_vcpus{cluster="one",uuid="00000000-0000-4000-8004-000000000009"} 4`,
		`nutanix_disk_capacity_bytes{cluster="one",vm="twin",disk="scsi.0",` +
			`uuid="00000000-0000-4000-8005-000000000009"} 100000000000`,
		`nutanix_cluster_storage_tier_used_bytes{cluster="one",name="cluster-0001",` +
			`uuid="00000000-0000-4000-8001-000000000001",tier="ssd"} 4000000000000`,
	} {
		if !has(text, want) {
			t.Errorf("the page has no line %s", want)
		}
	}
	if strings.Contains(text, " -1\n") {
		t.Error("a -1 came through")
	}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "} ")
		if !strings.HasPrefix(line, "#") && seen[name] {
			t.Errorf("twice: %s", line)
		}
		seen[name] = true
	}
	var packed bytes.Buffer
	if err := x.Page(&packed, "", true); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	age := regexp.MustCompile(`(data_age_seconds\{.*\}) .*`)
	if d := cmp.Diff(age.ReplaceAllString(text, "$1"), age.ReplaceAllString(string(unpacked), "$1")); d != "" ||
		err != nil {
		t.Errorf("packed it differs: %v %.500s", err, d)
	}
	programtest.CheckMetrics(t, text)
}

// One cluster's page holds nothing of another; of several, /metrics tells of the exporter only.
func TestSeveralClusters(t *testing.T) {
	a, b := prismtest.Start(t, prismsim.Options{VMs: 1}), prismtest.Start(t, prismsim.Options{VMs: 3})
	c := config(t, a, func(c *Config) {
		c.Clusters = append(c.Clusters, Cluster{Name: "two", URL: b.URL, User: "viewer", API: prism.V4,
			Password: source1(t, "env:PRISM_TEST"), Insecure: true})
	})
	x, _ := made(t, c)
	x.PollOnce(t.Context())
	h := httptest.NewServer(x.Handler())
	defer h.Close()
	get := func(path string) (int, string) {
		r, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	status, all := get("/metrics")
	if status != 200 || !has(all, `nutanix_up{cluster="two"} 1`) || strings.Contains(all, "nutanix_vm_") {
		t.Errorf("%d: %.300s", status, all)
	}
	if !has(all, `nutanix_exporter_tls_verified{cluster="two"} 0`) {
		t.Error("that a certificate is not verified is not told")
	}
	if _, two := get("/probe?target=two"); len(once(two, "nutanix_vm_info{")) != 3 ||
		strings.Contains(two, `"one"`) ||
		!has(two, `nutanix_exporter_api_info{cluster="two",version="v4"} 1`) {
		t.Errorf("%.2000s", two)
	}
	for path, want := range map[string]int{"/probe?target=169.254.169.254": 404, "/probe": 400, "/-/ready": 200,
		"/-/healthy": 200} {
		if status, body := get(path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	programtest.CheckMetrics(t, all)
}

// What goes wrong is told by a metric and a line of the log, without secrets, and leaves the last good values.
func TestWhatGoesWrong(t *testing.T) {
	needs.Time(t)
	for _, c := range []struct {
		name   string
		faults prismsim.Faults
		change func(*Cluster)
		reason prism.Reason
	}{
		{"wrong password", prismsim.Faults{}, func(k *Cluster) { k.Password = source1(t, "env:PRISM_WRONG") },
			prism.Refused},
		{"no password", prismsim.Faults{}, func(k *Cluster) { k.Password = source1(t, "env:PRISM_NOWHERE") },
			prism.Secret},
		{"half a JSON", prismsim.Faults{Half: true}, nil, prism.Broken},
		{"breaks off", prismsim.Faults{Truncate: true}, nil, prism.Broken},
		{"500", prismsim.Faults{Status: 500}, nil, prism.Server},
		{"429", prismsim.Faults{Status: 429}, nil, prism.Limited},
		{"403", prismsim.Faults{Status: 403}, nil, prism.Forbidden},
		{"slow", prismsim.Faults{Slow: time.Minute}, func(k *Cluster) { k.Timeout = 30 * time.Millisecond },
			prism.Slow},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := prismtest.Start(t, prismsim.Options{VMs: 2})
			conf := config(t, s, nil)
			x, log := made(t, conf)
			x.PollOnce(t.Context())
			if c.change != nil {
				c.change(&conf.Clusters[0])
			}
			bad, err := newSource(conf, conf.Clusters[0], slog.New(slog.NewTextHandler(log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer bad.client.Close()
			bad.blocks = x.sources[0].blocks
			x.sources[0] = bad
			s.Set(c.faults)
			x.PollOnce(t.Context())
			page := pageOf(t, x, "")
			if !has(page, `nutanix_up{cluster="one"} 0`) || len(once(page, "nutanix_vm_info{")) != 2 ||
				len(once(page, "nutanix_exporter_data_age_seconds{")) != 5 {
				t.Errorf("%.3000s", page)
			}
			want := fmt.Sprintf(`nutanix_exporter_api_errors_total{cluster="one",kind="cluster",reason="%s"} `, c.reason)
			if !strings.Contains(page, want) {
				t.Errorf("no %s; there is %v", want, once(page, "nutanix_exporter_api_errors_total"))
			}
			said := log.String()
			if !strings.Contains(said, "reason="+string(c.reason)) || strings.Contains(said+page, "sw0rdfish") ||
				strings.Contains(said+page, prismtest.Password) {
				t.Errorf("the log says %s", said)
			}
			s.Set(prismsim.Faults{})
			if c.change == nil {
				x.PollOnce(t.Context())
				if !has(pageOf(t, x, ""), `nutanix_up{cluster="one"} 1`) ||
					!strings.Contains(log.String(), "poll works again") {
					t.Error("it does not say that it works again")
				}
			}
		})
	}
}

// Values of one kind that come no more stay while they are young and then go; the other kinds are not touched. A
// cluster that shrinks is smaller at once.
func TestOldValuesGo(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 9})
	x, log := made(t, config(t, s, nil))
	x.PollOnce(t.Context())
	s.Set(prismsim.Faults{Status: 500, Paths: "/vms"})
	x.PollOnce(t.Context())
	if page := pageOf(t, x, ""); len(once(page, "nutanix_vm_info{")) != 9 ||
		!has(page, `nutanix_exporter_data_told{cluster="one",kind="vm"} 1`) {
		t.Errorf("%.500s", page)
	}
	x.sources[0].mu.Lock()
	b := x.sources[0].blocks[prism.VM]
	b.part.At = b.part.At.Add(-6 * time.Minute)
	x.sources[0].blocks[prism.VM] = b
	x.sources[0].mu.Unlock()
	page := pageOf(t, x, "")
	if len(once(page, "nutanix_vm_")) != 0 || len(once(page, "nutanix_disk_info{")) != 18 ||
		!has(page, `nutanix_exporter_data_told{cluster="one",kind="vm"} 0`) {
		t.Errorf("%.500s", page)
	}
	s.Set(prismsim.Faults{Missing: 5})
	x.PollOnce(t.Context())
	if n := len(once(pageOf(t, x, ""), "nutanix_vm_info{")); n != 4 ||
		!strings.Contains(log.String(), "fewer than before") {
		t.Errorf("%d VMs of 4", n)
	}
}

// A slow API makes polls fewer: they never overlap, and readers are answered as before.
func TestSlowAPI(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{VMs: 2})
	conf := config(t, s, nil)
	conf.Poll = 20 * time.Millisecond
	x, _ := made(t, conf)
	ctx, cancel := context.WithCancel(t.Context())
	s.Set(prismsim.Faults{Slow: 30 * time.Millisecond})
	x.start(ctx, x.sources[0])
	deadline := time.Now().Add(30 * time.Second)
	for strings.Contains(pageOf(t, x, ""), `nutanix_exporter_polls_skipped_total{cluster="one"} 0`) {
		if time.Now().After(deadline) {
			t.Error("no poll was skipped")
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	<-x.sources[0].ended
}

// After a wrong password the next tries are further and further apart, so that no account is locked.
func TestWrongPasswordIsNotHammered(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{})
	x, _ := made(t, config(t, s, func(c *Config) { c.Clusters[0].Password = source1(t, "env:PRISM_WRONG") }))
	var holds []time.Duration
	for range 7 {
		x.PollOnce(t.Context())
		holds = append(holds, x.sources[0].hold())
	}
	want := []time.Duration{40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, longestHold,
		longestHold, longestHold}
	if d := cmp.Diff(want, holds); d != "" || s.Requests() != 14 {
		t.Error(d)
	}
}

func TestReload(t *testing.T) {
	s := prismtest.Start(t, prismsim.Options{})
	conf := config(t, s, nil)
	x, log := made(t, conf)
	ctx, cancel := context.WithCancel(t.Context())
	addresses, reload, ended := make(chan string, 1), make(chan func() (Config, error)), make(chan error, 1)
	go func() {
		ended <- x.Run(ctx, listen.Server{Address: "127.0.0.1:0", Listening: func(a string) { addresses <- a }}, reload)
	}()
	<-addresses
	kept := x.sources[0]
	reload <- func() (Config, error) { return Config{}, fmt.Errorf("line 3: no") }
	two := config(t, s, func(c *Config) {
		other := c.Clusters[0]
		other.Name = "two"
		c.Clusters = append(c.Clusters, other)
	})
	two.Clusters[0].CA = conf.Clusters[0].CA
	reload <- func() (Config, error) { return two, nil }
	reload <- func() (Config, error) { return two, nil } // taken when the one before is done
	if got := x.list(); len(got) != 2 || got[0] != kept {
		t.Errorf("%d clusters, the first kept: %v", len(got), got[0] == kept)
	}
	reload <- func() (Config, error) { two.Clusters = two.Clusters[1:]; return two, nil }
	reload <- func() (Config, error) { return Config{}, fmt.Errorf("line 4: no") }
	reload <- func() (Config, error) { return Config{}, fmt.Errorf("line 5: no") }
	page := pageOf(t, x, "")
	if !has(page, "nutanix_exporter_config_last_reload_successful 0") || len(x.list()) != 1 ||
		!strings.Contains(log.String(), "line 3: no") {
		t.Errorf("%d clusters, log %s", len(x.list()), log)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestClassic(t *testing.T) {
	now := time.Now()
	s := prismtest.Start(t, prismsim.Options{VMs: 6, Containers: 1, Now: func() time.Time { return now }})
	x, _ := made(t, config(t, s, nil))
	x.PollOnce(t.Context())
	var b bytes.Buffer
	if err := x.Classic(&b, ""); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`\} \d+\n`).ReplaceAllString(b.String(), "} N\n")
	var want strings.Builder
	for _, of := range []string{"cluster_", "container_container-0001_"} {
		for _, name := range []string{"iops", "read_iops", "write_iops", "io_bandwidth_kBps", "read_io_bandwidth_kBps",
			"write_io_bandwidth_kBps", "avg_io_latency_usecs", "avg_read_io_latency_usecs",
			"avg_write_io_latency_usecs"} {
			fmt.Fprintf(&want, "ntnx_bash{metric=\"%s%s\"} N\n", of, name)
		}
	}
	if d := cmp.Diff(want.String(), got); d != "" {
		t.Error(d)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "clusters: there is none: name one with its url, user and password"},
		{"misspelt", "clusters:\n  - {pasword: env:A}\n", `line 2: unknown key "pasword"; did you mean "password"?`},
		{"everything", `
poll: 1ms
iops_floor: -3
kinds: [vm, moon]
clusters:
  - {name: a b, url: "http://x:9440", user: u, password: "env:P"}
  - {url: "https://y:9440", api: v7}
  - {name: y, url: "https://y:9440", user: u, password: "env:P", ca: /nowhere.pem}
push:
  - {pushgateway: "http://g:9091", remote_write: "http://g:9091"}
  - {remote_write: "http://g:9090/api/v1/write", user: u, password: "env:P"}
`, `poll: 1ms is not from 1s to 1h
iops_floor: -3 is below 0
kinds: "moon" is none of cluster, host, container, vm, disk
cluster "a b": a name is of letters, digits, '_', '.' and '-', 63 at most
cluster "a b": url: http://x:9440: want https: a password is not sent over "http"
cluster "y": api: "v7" is none of auto, v1, v2.0, v3, v4
cluster "y": give user and password, or an API key
cluster "y": there are two of that name
cluster "y": ca: open /nowhere.pem: no such file or directory
push 1: give either pushgateway or remote_write
push 2: http://g:9090/api/v1/write: a password is sent over https only`},
	} {
		_, err := Parse([]byte(c.text))
		if d := cmp.Diff(c.want, fmt.Sprint(err)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	_, err := Parse([]byte("clusters:\n  - {name: a, url: \"https://y:9440\", user: u, password: hunter2}\n"))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password in the file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("poll: 20s\nclusters:\n  - {name: a, url: \"https://y:9440\", user: u, password: \"env:P\"}\n"))
	f.Add([]byte("clusters: [{}, {}]\nkinds: [1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Parse(data); err == nil && (len(c.Clusters) == 0 || c.Poll < time.Second) {
			t.Fatalf("took %q", data)
		}
	})
}

// Labels as they are written are read again as they were.
func FuzzLabels(f *testing.F) {
	f.Add("a\"b\\\n", "\\\\\"")
	f.Add(`x="1",y=`, "\xff")
	f.Fuzz(func(t *testing.T, one, two string) {
		var want [][2]string
		for i, v := range []string{one, two} {
			if v != "" {
				want = append(want, [2]string{"l" + string(rune('0'+i)), v})
			}
		}
		if d := cmp.Diff(want, pairsOf(label(label(nil, "l0", one), "l1", two))); d != "" {
			t.Error(d)
		}
	})
}

// TestTableOfMetrics makes the table that the page for users links to.
func TestTableOfMetrics(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Metrics of Nutanix clusters\n\n| Prism | metric, after `nutanix_KIND_` | is |\n|---|---|---|\n")
	for _, c := range prism.Counters {
		name := c.Metric
		if c.Label != "" {
			name += "{" + c.Label + "}"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", c.Prism, name, c.Help)
	}
	golden.Compare(t, "testdata/metrics.md", []byte(b.String()))
}
