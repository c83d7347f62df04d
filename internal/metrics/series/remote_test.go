package series_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"plimsoll/hist"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/programtest"
)

var labelsOfRun = []series.Label{{Name: series.RunLabel, Value: "r1"}}

// write enters rounds of points, of three series and a histogram, from now on.
func write(t testing.TB, s *series.Store, rounds int) {
	t.Helper()
	begin, h := time.Now().Add(time.Second).Truncate(time.Millisecond), &hist.Histogram{}
	for i := range rounds {
		b, at := s.Batch(), begin.Add(time.Duration(i)*time.Millisecond)
		b.Float("ops_total", label("a"), at, float64(i))
		b.Float("ops_total", label("b"), at, float64(2*i))
		b.Float("free", []series.Label{{Name: "vm", Value: `ü "x"`}}, at, -0.25*float64(i))
		h.Add(uint64(i)*10_000_000, 2)
		b.Histogram("d_seconds", label("a"), at, h)
		commit(t, b)
	}
}

func remoteTo(t testing.TB, address string) *series.Remote {
	t.Helper()
	r, err := series.RemoteTo(address)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readRemote(t testing.TB, text string) *series.Remote {
	t.Helper()
	r, err := series.ReadRemote(programtest.Write(t, t.TempDir(), "remote.yml", text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func send(t testing.TB, s *series.Store, to *series.Remote, trouble func(string)) *series.Sender {
	t.Helper()
	out, err := s.Send(to, labelsOfRun, trouble)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRemoteWriteToPrometheus: a Prometheus has, in the end, the very points that the database has, with the labels of
// the run and of the file; and histograms where they are asked for.
func TestRemoteWriteToPrometheus(t *testing.T) {
	at := programtest.Prometheus(t, "global: {}\n", "--enable-feature=native-histograms")
	to := readRemote(t, fmt.Sprintf(`global: {external_labels: {site: b, instance: hidden}}
remote_write:
- url: http://%s/api/v1/write
  send_native_histograms: true
  write_relabel_configs: [{source_labels: [vm], regex: .+, action: drop}]
`, at))
	s := open(t)
	sender := send(t, s, to, func(why string) { t.Error(why) })
	write(t, s, 3000)
	if d := cmp.Diff(series.Sent{Points: 9000}, sender.Close(t.Context())); d != "" {
		t.Error(d)
	}
	asked := url.Values{"query": {`{run="r1"}[1h]`}, "time": {fmt.Sprint(time.Now().Add(time.Minute).Unix())}}
	there, err := programtest.Get("http://" + at + "/api/v1/query?" + asked.Encode())
	if err != nil {
		t.Fatal(err)
	}
	here, err := s.AnswerAt(t.Context(), `{__name__=~".+",vm=""}[1h]`, time.Now().Add(time.Minute), 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(there, `"site":"b"`); n != 3 {
		t.Errorf("%d series with the label of the file", n)
	}
	want, got := answered(t, string(ours)), answered(t, there)
	for name, points := range want {
		for i, point := range points {
			if i >= len(got[name]) || got[name][i] != point {
				t.Fatalf("%s, point %d: want %s, got %s", name, i, point, append(got[name], make([]string, i+1)...)[i])
			}
		}
	}
	if len(want) != 3 || len(got) != 3 {
		t.Errorf("%d and %d series", len(want), len(got))
	}
}

// answered are the points of an answer by series, without the labels that are added.
func answered(t testing.TB, text string) map[string][]string {
	t.Helper()
	var a struct {
		Data struct {
			Result []struct {
				Metric             map[string]string
				Values, Histograms []any
			}
		}
		Result []struct {
			Metric             map[string]string
			Values, Histograms []any
		}
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, s := range append(a.Data.Result, a.Result...) {
		delete(s.Metric, "run")
		delete(s.Metric, "site")
		for _, p := range append(s.Values, s.Histograms...) {
			out[fmt.Sprint(s.Metric)] = append(out[fmt.Sprint(s.Metric)], fmt.Sprint(numbers(p)))
		}
	}
	return out
}

// numbers has texts that are numbers as numbers: 1e-10 and 0.0000000001 are one.
func numbers(v any) any {
	switch v := v.(type) {
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// receiver is a server that keeps how often it got each point.
type receiver struct {
	mu     sync.Mutex
	points map[string]int
}

func (r *receiver) receive(q *http.Request) error {
	packed, err := io.ReadAll(q.Body)
	if err != nil {
		return err
	}
	text, err := snappy.Decode(nil, packed)
	if err != nil {
		return err
	}
	var w prompb.WriteRequest
	if err := w.Unmarshal(text); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.points == nil {
		r.points = map[string]int{}
	}
	for _, s := range w.Timeseries {
		for _, p := range s.Samples {
			r.points[fmt.Sprint(s.Labels, p.Timestamp)]++
		}
	}
	return nil
}

// TestRemoteWriteTriesAgain: what a server refuses for a while arrives, each point once, and the first failure is told.
func TestRemoteWriteTriesAgain(t *testing.T) {
	var r receiver
	var asked, told atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if n := asked.Add(1); n <= 3 {
			http.Error(w, "busy now", []int{0, 503, 429, 500}[n])
			return
		}
		if err := r.receive(q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	defer server.Close()
	s := open(t)
	sender := send(t, s, remoteTo(t, server.URL+"/write"), func(why string) {
		if told.Add(1) > 1 || !strings.Contains(why, "busy now") {
			t.Errorf("told %q", why)
		}
	})
	write(t, s, 1500)
	if d := cmp.Diff(series.Sent{Points: 4500}, sender.Close(t.Context())); d != "" {
		t.Error(d)
	}
	for point, n := range r.points {
		if n != 1 || !strings.Contains(point, "r1") {
			t.Error(point, n)
		}
	}
	if len(r.points) != 4500 || told.Load() != 1 {
		t.Errorf("%d points, told %d times", len(r.points), told.Load())
	}
}

// TestRemoteWriteMisses: servers that refuse, hang or are gone keep nobody from writing, and what they miss is counted,
// also beside a server that takes everything.
func TestRemoteWriteMisses(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	var r receiver
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/refuses":
			http.Error(w, "no such tenant", http.StatusBadRequest)
		case "/drips":
			err := r.receive(q)
			w.WriteHeader(http.StatusOK)
			if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
				t.Error(err)
			}
			fallthrough
		case "/hangs":
			select {
			case <-let:
			case <-q.Context().Done():
			}
		default:
			if err := r.receive(q); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(let) })
	gone := "http://" + programtest.Port(t)
	for _, c := range []struct {
		name, to, why string
		points        int
	}{
		{"refuses", server.URL + "/refuses", "no such tenant", 0},
		{"hangs", server.URL + "/hangs", "no answer in time", 0},
		{"gone", gone, "connection refused", 0},
		{"takes, and never ends its answer", server.URL + "/drips", "connection refused", 36_000},
		{"one of two", server.URL + "/takes", "connection refused", 36000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			urls := []string{c.to}
			if c.points > 0 {
				urls = append(urls, gone)
			}
			text := "remote_write:\n"
			for _, u := range urls {
				text += "- {url: " + u + ", queue_config: {capacity: 4000}}\n"
			}
			sender := send(t, s, readRemote(t, text), nil)
			write(t, s, 12_000)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			got := sender.Close(ctx)
			if got.Points != c.points || got.Missed != 36_000 || !strings.Contains(got.Why, c.why) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestRemoteRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"h:9090":                  "an address begins with http:// or https:// and a host",
		"ftp://h/x":               "an address begins with http:// or https:// and a host",
		"http://":                 "an address begins with http:// or https:// and a host",
		"http://h:x/":             `invalid port ":x" after host`,
		"https://u:secret@h/push": `"https://u:xxxxx@h/push" holds a password`,
	} {
		if _, err := series.RemoteTo(text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"":                          "remote_write names no server",
		"remote_write: [{name: a}]": "url for remote_write is empty",
		"remote_write: [{url: http://h/w, shards: 3}]":                               "field shards not found",
		"remote_write: [{url: http://h/w}]\nscrape_configs: [{job_name: a}]":         "scrape_configs does nothing here",
		"remote_write: [{url: http://h/w, sigv4: {region: a}}]":                      "sigv4, azuread and google_iam",
		"remote_write: [{url: h, protobuf_message: io.prometheus.write.v2.Request}]": "only prometheus.WriteRequest",
	} {
		_, err := series.ReadRemote(programtest.Write(t, t.TempDir(), "r.yml", text, 0o600))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	s, err := series.Open(t.TempDir(), series.Options{Timeless: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Send(remoteTo(t, "http://h/w"), nil, nil); err == nil {
		t.Error("a Timeless store is sent on")
	}
}
