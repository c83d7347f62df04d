package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/hist"
	"plimsoll/internal/metrics/record"
	"plimsoll/internal/metrics/series"
	"plimsoll/internal/report/web"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/visibletest"
	"plimsoll/result"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		needs.Print(os.Stderr)
		os.Exit(code)
	}))
}

var t0 = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// tester is a site over run folders in a folder, with a clock that stands still until it is moved.
type tester struct {
	*testing.T
	root string
	site *web.Site
	url  string
	mu   sync.Mutex
	time time.Time
}

func (t *tester) now() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.time
}

func (t *tester) pass(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time = t.time.Add(d)
}

func serve(t *testing.T) *tester {
	t.Helper()
	s := &tester{T: t, root: t.TempDir(), time: t0.Add(time.Hour)}
	t.Setenv("TMPDIR", t.TempDir())
	s.site = web.New(
		web.Options{Folders: func() ([]string, error) { return result.Folders(s.root) }, Now: s.now, Version: "test"})
	server := httptest.NewServer(s.site.Handler())
	s.url = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := s.site.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		if left, err := os.ReadDir(os.TempDir()); len(left) > 0 || err != nil {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return s
}

// running is a run that this process executes.
type running struct {
	*tester
	folder *result.Folder
	store  *series.Store
	at     time.Time
	ops    uint64
}

// run begins a run whose workload does 100 operations a second.
func (t *tester) run(id, scenario string, created time.Time) *running {
	t.Helper()
	folder, err := result.Create(t.root, result.Manifest{
		RunID: id, Created: created, Target: "local", ClusterName: "c", TimeScale: 1, SizeScale: 1,
		Scenario: result.ScenarioInfo{ID: 7, Name: scenario, DisplayName: "The " + scenario, Summary: "What?"},
		Nodes:    []result.Node{{Name: "n0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := series.Open(folder.MetricsDir(), series.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{tester: t, folder: folder, store: store, at: created}
	if err := folder.WritePlan(map[string]any{"steps": []map[string]any{
		{"number": 1, "text": "make the machines", "estimate_seconds": 10}, {"number": 2, "text": "measure <it>",
			"estimate_seconds": 100},
	}}); err != nil {
		t.Fatal(err)
	}
	r.event(result.Event{Kind: result.KindRunStart})
	r.event(result.Event{Kind: result.KindPhase, Phase: "run"})
	r.event(result.Event{Kind: result.KindStepStart, Phase: "run", Step: 2, Text: "measure <it>"})
	raw := result.RawJob{VM: "vm0", Group: "G", Workload: "W", Engine: "fio", Phase: "run", Start: created,
		Operations: []result.Operation{{Name: "read", Block: result.BlockRead, Bytes: true}}}
	if err := folder.WriteRawJob(raw); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *running) event(e result.Event) {
	r.Helper()
	e.Time = r.at
	if err := r.folder.AppendEvent(e); err != nil {
		r.Fatal(err)
	}
}

// work goes on for some seconds.
func (r *running) work(seconds int) *running {
	r.Helper()
	scope := []series.Label{
		{Name: "scenario_id", Value: "7"},
		{Name: "instance", Value: "vm0"},
		{Name: "vm_group", Value: "G"},
		{Name: "workload", Value: "W"},
		{Name: "op", Value: "read"},
	}
	for range seconds {
		h := &hist.Histogram{}
		h.Add(2_000_000, r.ops)
		b := r.store.Batch()
		b.Float(record.WorkloadOps, scope, r.at, float64(r.ops))
		b.Float(record.WorkloadBytes, scope, r.at, float64(r.ops)*4096)
		b.Histogram(record.WorkloadService, scope, r.at, h)
		if err := b.Commit(); err != nil {
			r.Fatal(err)
		}
		r.at, r.ops = r.at.Add(time.Second), r.ops+100
	}
	return r
}

// end ends the run.
func (r *running) end(status string) {
	r.Helper()
	if err := r.store.Close(); err != nil {
		r.Fatal(err)
	}
	yes := result.Verdict{State: "yes"}
	if err := r.folder.Update(func(m *result.Manifest) {
		m.Status, m.Ended, m.Measured, m.Collected, m.Cleaned = status, r.at, yes, yes, yes
	}); err != nil {
		r.Fatal(err)
	}
	if err := r.folder.Close(); err != nil {
		r.Fatal(err)
	}
}

func (t *tester) get(path string) (int, string, http.Header) {
	t.Helper()
	return t.answer(http.Get(t.url + path))
}

func (t *tester) answer(a *http.Response, err error) (int, string, http.Header) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, strings.TrimSpace(string(body)), a.Header
}

// query is the result of an instant query.
func (t *tester) query(promql string, at time.Time) string {
	t.Helper()
	v := url.Values{"query": {promql}, "time": {at.Format(time.RFC3339)}}
	code, body, _ := t.get("/api/v1/query?" + v.Encode())
	var out struct {
		Data     struct{ Result json.RawMessage }
		Warnings []string
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != 200 {
		t.Fatalf("%s: %d %s", promql, code, body)
	}
	return strings.Join(append([]string{string(out.Data.Result)}, out.Warnings...), " ")
}

// Every path of the API that clients use answers in Prometheus' own form, asked by GET and, where it is so, by POST.
func TestAPI(t *testing.T) {
	s := serve(t)
	s.run("20260301-100000-one-0001", "one", t0).work(60).end(result.StatusSucceeded)
	s.run("20260301-110000-two-0002", "two", t0.Add(10*time.Minute)).work(60).end(result.StatusFailed)
	const minute = "start=2026-03-01T10:00:00Z&end=2026-03-01T10:01:00Z"
	for _, c := range []struct {
		path string
		post bool
		code int
		want string
	}{
		{"query?query=sum+by+(run)+(rate(plimsoll_workload_ops_total[30s]))&time=1772359250", true, 200,
			`{"status":"success","data":{"resultType":"vector","result":[` +
				`{"metric":{"run":"20260301-100000-one-0001"},"value":[1772359250,"100"]}]}}`},
		{"query_range?query=sum(plimsoll_workload_ops_total)&start=1772359210&end=1772359220.0&step=5s", true, 200,
			`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":` +
				`[[1772359210,"1000"],[1772359215,"1500"],[1772359220,"2000"]]}]}}`},
		{"query?query=1%2B1&time=10", true, 200, `{"status":"success","data":{"resultType":"scalar","result":[10,"2"]}}`},
		{"query?query=vector(1)&time=10&limit=1", true, 200,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[10,"1"]}]}}`},
		{"labels", true, 200, `{"status":"success","data":["__name__","instance","op","run","scenario_id","vm_group","workload"]}`},
		{"labels?match[]=plimsoll_moon", true, 200, `{"status":"success","data":[]}`},
		{"label/run/values", false, 200, `{"status":"success","data":["20260301-100000-one-0001","20260301-110000-two-0002"]}`},
		{"label/run/values?" + minute, false, 200, `{"status":"success","data":["20260301-100000-one-0001"]}`},
		{"label/__name__/values?match[]={run=~%22.*one.*%22}&limit=1", false, 200,
			`{"status":"success","data":["plimsoll_workload_bytes_total"],"warnings":["only the first 1 results are shown"]}`},
		{"label/nothing/values", false, 200, `{"status":"success","data":[]}`},
		{"series?match[]=plimsoll_workload_ops_total&" + minute, true, 200, `{"status":"success","data":[{"__name__":` +
			`"plimsoll_workload_ops_total","instance":"vm0","op":"read","run":"20260301-100000-one-0001","scenario_id":"7",` +
			`"vm_group":"G","workload":"W"}]}`},
		{"metadata?metric=plimsoll_workload_errors_total", false, 200, `{"status":"success","data":{"plimsoll_workload_errors_total":` +
			`[{"help":"Operations of a workload that failed.","type":"counter","unit":""}]}}`},
		{"query_exemplars?query=x", true, 200, `{"status":"success","data":[]}`},
		{"rules", false, 200, `{"status":"success","data":{"groups":[]}}`},
		{"alerts", false, 200, `{"status":"success","data":{"alerts":[]}}`},

		{"query?query=sum(", true, 400, `{"status":"error","errorType":"bad_data","error":"1:5: parse error: unclosed left parenthesis"}`},
		{"query", true, 400, `{"status":"error","errorType":"bad_data","error":"unknown position: parse error: no expression found in input"}`},
		{"query?query=1&time=noon", true, 400, `{"status":"error","errorType":"bad_data","error":"parameter time: \"noon\" is no time: ` +
			`give seconds since 1970, or a time like 2026-11-22T10:00:00Z"}`},
		{"query?query=1&time=NaN", true, 400, ``}, {"query?query=1&time=1e300", true, 400, ``}, {"query?query=1&limit=-1", true, 400, ``},
		{"query?query=1&timeout=soon", true, 400, ``}, {"query?query=1&timeout=0s", true, 400, ``},
		{"query?query=1&lookback_delta=1m", true, 400, ``},
		{"query_range?query=1&start=0&end=10", true, 400, ``}, {"query_range?query=1&end=10&step=1", true, 400, `{"status":"error",` +
			`"errorType":"bad_data","error":"parameter start is missing"}`},
		{"query_range?query=1&start=10&end=0&step=1", true, 400, ``}, {"query_range?query=1&start=0&end=1000000&step=1", true, 400, ``},
		{"query_range?query=1&start=0&end=10&step=0", true, 400, ``}, {"query_range?query=1&start=0&end=10&step=-1", true, 400, ``},
		{"query?query=count_over_time(plimsoll_workload_ops_total[9999h:1ms])", true, 400, ``},
		{"series", true, 400, `{"status":"error","errorType":"bad_data","error":"no selector of series is given"}`},
		{"series?match[]={a=%22%22}", true, 400, ``}, {"labels?start=x", true, 400, ``},
		{"query?query=plimsoll_workload_ops_total*on()group_left()plimsoll_workload_bytes_total" +
			"*on(workload)plimsoll_workload_ops_total{run=~%22.*%22}*on(x)vector(1)%2Bon(op){scenario_id=%227%22}&time=1772359250", true, 422, ``},
		{"moon", false, 404, `{"status":"error","errorType":"not_found","error":"there is no GET /api/v1/moon here"}`},
		{"admin/tsdb/delete_series", false, 404, ``}, {"write", false, 404, ``},
	} {
		ways := []string{http.MethodGet}
		if c.post {
			ways = append(ways, http.MethodPost)
		}
		for _, way := range ways {
			path, values, _ := strings.Cut(c.path, "?")
			var code int
			var body string
			var header http.Header
			if way == http.MethodGet {
				code, body, header = s.get("/api/v1/" + c.path)
			} else {
				form, err := url.ParseQuery(values)
				if err != nil {
					t.Fatal(err)
				}
				code, body, header = s.answer(http.PostForm(s.url+"/api/v1/"+path, form))
			}
			if code != c.code || c.want != "" && body != c.want {
				t.Errorf("%s %s: %d %s\nwant %d %s", way, c.path, code, body, c.code, c.want)
			}
			if header.Get("Content-Type") != "application/json" || !json.Valid([]byte(body)) {
				t.Errorf("%s %s: no JSON: %s", way, c.path, body)
			}
			if (code == 200) != strings.HasPrefix(body, `{"status":"success","data":`) {
				t.Errorf("%s %s: %d with %s", way, c.path, code, body)
			}
		}
	}
	code, body, _ := s.get("/api/v1/status/buildinfo")
	if code != 200 || !strings.Contains(body, `"version":"3.`) {
		t.Error(code, body)
	}
	code, body, _ = s.get("/api/v1/metadata")
	if code != 200 || !strings.Contains(body, `"plimsoll_workload_service_time_seconds":[{"help":"Time from`) {
		t.Error(code, body)
	}
}

// A question is bounded before it is read and before it is parsed: its size, its form and its depth.
func TestBounds(t *testing.T) {
	s := serve(t)
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		name, kind, body string
		code             int
		want             string
	}{
		{"small", form, "query=1&time=0", 200, `[0,"1"]`},
		{"small, with a parameter", form + "; charset=utf-8", "query=1&time=0", 200, `[0,"1"]`},
		{"large", form, "query=" + strings.Repeat("x", 2<<20), 400, "the parameters cannot be read"},
		{"deep", form, "query=" + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000), 400,
			"query: it is nested more than 100 deep"},
		{"text", "text/plain", "query=1", 400, `content type \"text/plain\": want ` + form},
		{"parts", "multipart/form-data; boundary=x", "query=1", 400, "want " + form},
		{"JSON", "application/json", "{}", 400, "want " + form},
		{"nothing said", "", "query=1", 400, "want " + form},
	} {
		code, body, _ := s.answer(http.Post(s.url+"/api/v1/query", c.kind, strings.NewReader(c.body)))
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %.300s, want %d %s", c.name, code, body, c.code, c.want)
		}
	}
	if code, body, _ := s.answer(http.Post(s.url+"/api/v1/query?query=1&time=0", "", nil)); code != 200 {
		t.Errorf("parameters in the address alone: %d %s", code, body)
	}
}

// What runs there are is seen as it changes, and what they hold grows with them; nothing is written to them.
func TestRunsComeGrowAndGo(t *testing.T) {
	s := serve(t)
	const sum = `sum by (run) (plimsoll_workload_ops_total)`
	if got := s.query(sum, t0.Add(20*time.Second)); got != "[]" {
		t.Errorf("of nothing: %s", got)
	}
	live := s.run("20260301-100000-live-0001", "live", t0).work(11)
	s.pass(3 * time.Second)
	before := tree(t, s.root)
	at := func(sec int) string { return s.query(sum, t0.Add(time.Duration(sec)*time.Second)) }
	const is = `[{"metric":{"run":"20260301-100000-live-0001"},"value":[%d,"%d"]}]`
	if got, want := at(10), fmt.Sprintf(is, t0.Unix()+10, 1000); got != want {
		t.Errorf("live: %s, want %s", got, want)
	}
	if code, body, _ := s.get("/runs/20260301-100000-live-0001"); code != 200 || !strings.Contains(body, `http-equiv="refresh"`) ||
		!strings.Contains(body, "Step 2 of 2: measure &lt;it&gt;") ||
		!strings.Contains(body, "Throughput of the workloads") ||
		!strings.Contains(body, "<svg ") {
		t.Errorf("%d %s", code, body)
	}
	if code, body, _ := s.get("/runs/20260301-100000-live-0001/report"); code != 200 ||
		!strings.Contains(body, "still going on") {
		t.Errorf("report: %d %.300s", code, body)
	}
	if d := cmp.Diff(before, tree(t, s.root)); d != "" {
		t.Errorf("a live run's folder was changed:\n%s", d)
	}
	live.work(10)
	s.pass(3 * time.Second)
	if got, want := at(20), fmt.Sprintf(is, t0.Unix()+20, 2000); got != want {
		t.Errorf("grown: %s, want %s", got, want)
	}
	live.end(result.StatusSucceeded)
	s.pass(3 * time.Second)
	if code, body, _ := s.get("/runs/20260301-100000-live-0001"); code != 200 ||
		strings.Contains(body, `http-equiv="refresh"`) ||
		!strings.Contains(body, "<b>succeeded</b>") {
		t.Errorf("%d %s", code, body)
	}
	if got, want := at(20), fmt.Sprintf(is, t0.Unix()+20, 2000); got != want {
		t.Errorf("ended: %s, want %s", got, want)
	}
	s.run("20260301-100100-next-0002", "next", t0).work(2).end(result.StatusSucceeded)
	s.pass(3 * time.Second)
	if got := s.query(`count(`+sum+`)`, t0.Add(time.Second)); !strings.Contains(got, `"2"`) {
		t.Errorf("with the next: %s", got)
	}
	if err := os.RemoveAll(filepath.Join(s.root, "20260301-100000-live-0001")); err != nil {
		t.Fatal(err)
	}
	s.pass(3 * time.Second)
	if got := at(1); strings.Contains(got, "live") || !strings.Contains(got, "next") {
		t.Errorf("removed: %s", got)
	}
	if code, _, _ := s.get("/runs/20260301-100000-live-0001"); code != 404 {
		t.Errorf("a removed run: %d", code)
	}
}

// tree is every file and folder with what a writer would change of it.
func tree(t *testing.T, root string) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			stat := info.Sys().(*syscall.Stat_t)
			out[path] = fmt.Sprint(info.Size(), info.ModTime(), info.Mode(), stat.Nlink, stat.Ctim)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Many ask at once while a run grows and others come and go: everybody gets an answer that was right at some time.
func TestManyAtOnce(t *testing.T) {
	needs.Time(t)
	s := serve(t)
	live := s.run("20260301-100000-live-0001", "live", t0).work(2)
	var g sync.WaitGroup
	stop := make(chan struct{})
	for k := range 8 {
		g.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := []string{"/", "/runs/20260301-100000-live-0001", "/api/v1/labels", "/api/v1/label/run/values?match[]=plimsoll_workload_ops_total",
					"/api/v1/query?time=1772359201&query=plimsoll_workload_ops_total{run=~%22.*live.*%22}"}[(i+k)%5]
				answer, err := http.Get(s.url + path)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != 200 ||
					strings.Contains(path, "query") && !strings.Contains(string(body), `"100"]`) {
					t.Errorf("%s: %d %v %.300s", path, answer.StatusCode, err, body)
				}
			}
		})
	}
	for i := range 10 {
		live.work(3)
		id := fmt.Sprintf("20260301-1001%02d-other-%04d", i, i)
		s.run(id, "other", t0).work(2).end(result.StatusSucceeded)
		s.pass(3 * time.Second)
		s.get("/")
		if i%2 == 0 {
			if err := os.RemoveAll(filepath.Join(s.root, id)); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	g.Wait()
	live.end(result.StatusSucceeded)
}

// Damaged folders are shown as such and hide no others.
func TestDamaged(t *testing.T) {
	s := serve(t)
	s.run("20260301-100000-good-0001", "good", t0).work(10).end(result.StatusSucceeded)
	damage := map[string]func(dir string) error{
		"20260301-100001-manifest-0002": func(dir string) error {
			return os.WriteFile(filepath.Join(dir,
				"manifest.json"), []byte("{"), 0o644)
		},
		"20260301-100002-newer-0003": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"version": 9999}`), 0o644)
		},
		"20260301-100003-metrics-0004": func(dir string) error {
			all, err := filepath.Glob(filepath.Join(dir, "metrics", "*", "*"))
			for _, name := range all {
				if info, statErr := os.Stat(name); statErr == nil && !info.IsDir() {
					err = os.WriteFile(name, []byte("damaged"), 0o644)
				}
			}
			return err
		},
		"20260301-100004-gone-0005": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "metrics")) },
		"20260301-100005-journal-0006": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte("{{{\n"), 0o644)
		},
		"20260301-100006-pipe-0007": func(dir string) error {
			name := filepath.Join(dir, "manifest.json")
			return errorsOf(os.Remove(name), syscall.Mkfifo(name, 0o644))
		},
		"20260301-100007-data-0008": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "data.json"),
				[]byte("[]"), 0o644)
		},
	}
	for id, damaged := range damage {
		r := s.run(id, "bad", t0).work(5)
		if err := r.folder.WriteData(&result.Data{}); err != nil {
			t.Fatal(err)
		}
		r.end(result.StatusSucceeded)
		if err := damaged(filepath.Join(s.root, id)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.query(`sum by (run) (plimsoll_workload_ops_total)`, t0.Add(4*time.Second))
	if !strings.Contains(got, `"run":"20260301-100000-good-0001"`) ||
		!strings.Contains(got, `run "20260301-100004-gone-0005" is left out: `) {
		t.Error(got)
	}
	code, body, _ := s.get("/")
	for id := range damage {
		if code != 200 || !strings.Contains(body, id) {
			t.Errorf("the list does not have %s", id)
		}
		if code, page, _ := s.get("/runs/" + id); code != 200 || !strings.Contains(page, id) {
			t.Errorf("%s: %d", id, code)
		}
		if code, _, _ := s.get("/runs/" + id + "/report"); code != 200 && code != 500 {
			t.Errorf("%s: report: %d", id, code)
		}
	}
	for _, words := range []string{"manifest.json is damaged", "9999", "data.json: changed since its sum was taken"} {
		if !strings.Contains(body, words) {
			t.Errorf("the list does not say %q", words)
		}
	}
	if _, list, _ := s.get("/api/v1/runs"); !strings.Contains(list, "data.json: changed since its sum was taken") {
		t.Error("the list for programs does not say what is damaged")
	}
	if _, page, _ := s.get("/runs/20260301-100005-journal-0006"); !strings.Contains(page, "journal line 1") {
		t.Error("the page of a run with a damaged journal does not say so") // lists read no journals
	}
	if strings.Contains(body, "manifest.json: changed since its sum was taken") {
		t.Error("the list says twice that a manifest is damaged")
	}
	const data = "20260301-100007-data-0008"
	const why = "data.json: changed since its sum was taken"
	if _, page, _ := s.get("/runs/" + data); !strings.Contains(page, why) {
		t.Error("the page of a run does not say what of it is damaged")
	}
	for path, want := range map[string]int{
		data + "/findings": 409, data + "/series": 409, data + "/beside": 409, data: 200, data + "/events": 200,
		data + "/findings?trust=1": 200, "20260301-100005-journal-0006/events": 409,
		"20260301-100000-good-0001/findings": 200,
	} {
		code, body, _ := s.get("/api/v1/runs/" + path)
		if code != want || code == 409 && !strings.Contains(body, "changed since its sum was taken") {
			t.Errorf("%s: %d, want %d: %s", path, code, want, body)
		}
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The list's filters leave what fits.
func TestFilters(t *testing.T) {
	s := serve(t)
	s.run("20260301-100000-a-0001", "a", t0).work(1).end(result.StatusSucceeded)
	s.run("20260227-100000-a-0002", "a", t0.Add(-48*time.Hour)).work(1).end(result.StatusFailed)
	s.run("20260301-103000-b-0003", "b", t0.Add(30*time.Minute)).work(1).end(result.StatusFailed)
	if _, err := result.ChangeLabels(filepath.Join(s.root, "20260227-100000-a-0002"), func(l *result.Labels) {
		l.Tags, l.Note = []string{"blue", "rack:7"}, "after the Firmware"
	}); err != nil {
		t.Fatal(err)
	}
	all := []string{"20260301-100000-a-0001", "20260227-100000-a-0002", "20260301-103000-b-0003"}
	for query, want := range map[string][]string{
		"":                          all,
		"?scenario=a":               {all[0], all[1]},
		"?scenario=a&status=failed": {all[1]},
		"?status=failed":            {all[1], all[2]},
		"?target=local":             all,
		"?target=sim":               nil,
		"?since=1h":                 {all[0], all[2]},
		"?since=45m":                {all[2]},
		"?since=2026-02-28":         {all[0], all[2]},
		"?since=7d":                 all,
		"?since=noon":               all,
		"?tag=blue":                 {all[1]},
		"?tag=rack:7&scenario=a":    {all[1]},
		"?tag=green":                nil,
		"?q=firmware":               {all[1]},
		"?tags=blue":                all, // no word of the list, which says so
	} {
		code, body, _ := s.get("/" + query)
		if code != 200 {
			t.Errorf("%s: %d", query, code)
		}
		for _, id := range all {
			wanted := false
			for _, w := range want {
				wanted = wanted || w == id
			}
			if strings.Contains(body, id) != wanted {
				t.Errorf("%q: %s is there: %v", query, id, !wanted)
			}
		}
		if said := strings.Contains(body, "is no date"); said != (query == "?since=noon") {
			t.Errorf("%q: complains: %v", query, said)
		}
		if said := strings.Contains(body, "has no filter"); said != (query == "?tags=blue") {
			t.Errorf("%q: complains of the filter: %v", query, said)
		}
	}
	_, page, _ := s.get("/runs/" + all[1])
	for _, text := range []string{"<title>The a, " + all[1] + " – Plimsoll</title>", "<dd>blue, rack:7</dd>",
		"<dd>after the Firmware</dd>"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page of the run lacks %q", text)
		}
	}
}

// A list is sorted by what is asked for; of runs that are alike in that the newest is first.
func TestOrder(t *testing.T) {
	s := serve(t)
	for _, r := range []struct {
		id, scenario, status, name string
		after                      time.Duration
		seconds                    int
	}{
		{"20260301-100000-b-0001", "b", result.StatusSucceeded, "zeta", 0, 3},
		{"20260301-101000-a-0002", "a", result.StatusFailed, "", 10 * time.Minute, 2},
		{"20260301-102000-a-0003", "a", result.StatusSucceeded, "alpha", 20 * time.Minute, 1},
	} {
		s.run(r.id, r.scenario, t0.Add(r.after)).work(r.seconds).end(r.status)
		_, err := result.ChangeLabels(filepath.Join(s.root, r.id), func(l *result.Labels) { l.Name = r.name })
		if err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{"": "3 2 1", "?sort=oldest": "1 2 3", "?sort=scenario": "3 2 1",
		"?sort=longest": "1 2 3", "?sort=status": "2 3 1", "?sort=name": "3 1 2", "?sort=none": "3 2 1",
		"?sort=oldest&status=succeeded": "1 3"} {
		_, body, _ := s.get("/" + query)
		var got []string
		for _, m := range regexp.MustCompile(`value="20260301-\d+-[ab]-000(\d)"`).FindAllStringSubmatch(body, -1) {
			got = append(got, m[1])
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// The home page shows what runs now and how far it is, but not where something else is looked for.
func TestRunningNow(t *testing.T) {
	s := serve(t)
	r := s.run("20260301-105900-live-0001", "live", t0.Add(59*time.Minute)).work(30)
	defer r.end(result.StatusSucceeded)
	_, body, _ := s.get("/")
	for _, words := range []string{"Running now", "Step 2 of 2: measure &lt;it&gt;", "1 min so far", `value="60"`} {
		if !strings.Contains(body, words) {
			t.Errorf("the page does not say %q", words)
		}
	}
	if _, body, _ := s.get("/?q=live"); strings.Contains(body, "Running now") {
		t.Error("a search shows what runs now")
	}
}

// A report is handed over as files, redacted where asked; of a live run, too, and of others not.
func TestFiles(t *testing.T) {
	s := serve(t)
	const id = "20260301-100000-done-0001"
	s.run(id, "done", t0).work(30).end(result.StatusSucceeded)
	for file, begins := range map[string]string{"report.html": "<!DOCTYPE html>", "report.csv": "",
		"report.md":   "# The done",
		"report.json": "{"} {
		for query, name := range map[string]string{"": "plimsoll-" + file, "?redact=1": "redacted-" + file} {
			code, body, head := s.get("/runs/" + id + "/files/" + file + query)
			if code != http.StatusOK || len(body) < 20 || !strings.Contains(body[:min(len(body), 600)], begins) ||
				head.Get("Content-Disposition") != `attachment; filename="`+name+`"` {
				t.Errorf("%s%s: %d, %q\n%.300s", file, query, code, head.Get("Content-Disposition"), body)
			}
			said := strings.Contains(body, "Redacted: names of hosts")
			if said != (query != "") && file != "report.csv" {
				t.Errorf("%s%s says that it is redacted: %v", file, query, said)
			}
		}
	}
	for _, path := range []string{"/runs/" + id + "/files/manifest.json", "/runs/none/files/report.csv"} {
		if code, _, _ := s.get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// Every answer says what a browser must not do with it.
func TestHeaders(t *testing.T) {
	s := serve(t)
	s.run("20260301-100000-a-0001", "a", t0).work(1).end(result.StatusSucceeded)
	for _, path := range []string{"/", "/runs/20260301-100000-a-0001", "/runs/20260301-100000-a-0001/report",
		"/runs/none", "/none",
		"/api/v1/labels", "/api/v1/none", "/-/healthy", "/-/ready"} {
		_, _, h := s.get(path)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin"} {
			if h.Get(name) != want {
				t.Errorf("%s: %s: %q", path, name, h.Get(name))
			}
		}
		if p := h.Get("Content-Security-Policy"); !strings.Contains(p, "frame-ancestors 'none'") ||
			!strings.HasSuffix(path, "/report") &&
				!strings.Contains(p, "default-src 'none'") || strings.Count(p, "script-src 'sha256-") > 1 ||
			strings.Contains(p, "'unsafe-eval'") || strings.Contains(p, "script-src 'unsafe") {
			t.Errorf("%s: policy %q", path, p)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may be read by any page", path)
		}
	}
	s.site.Stopping()
	if code, body, _ := s.get("/-/ready"); code != 503 || body != "stopping" {
		t.Error(code, body)
	}
	if code, body, _ := s.get("/-/healthy"); code != 200 || body != "healthy" {
		t.Error(code, body)
	}
}

// TestPromtool: Prometheus' own client asks the API.
func TestPromtool(t *testing.T) {
	promtool := needs.Promtool(t)
	s := serve(t)
	s.run("20260301-100000-one-0001", "one", t0).work(60).end(result.StatusSucceeded)
	two := s.run("20260301-100000-two-0002", "two", t0).work(60)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"instant", "--time", "2026-03-01T10:00:50Z", s.url, "sum by (run) (plimsoll_workload_ops_total)"},
			"{run=\"20260301-100000-one-0001\"} => 5000 @[1772359250]\n{run=\"20260301-100000-two-0002\"} => 5000 @[1772359250]\n"},
		{[]string{"range", "--start", "1772359210", "--end", "1772359220", "--step", "10s", s.url,
			"sum(plimsoll_workload_ops_total)"},
			"{} =>\n2000 @[1772359210]\n4000 @[1772359220]\n"},
		{[]string{"labels", s.url, "run"}, "20260301-100000-one-0001\n20260301-100000-two-0002\n"},
		{[]string{"series", "--match", `plimsoll_workload_bytes_total{run=~".*one.*"}`, s.url},
			`{__name__="plimsoll_workload_bytes_total", instance="vm0", op="read", run="20260301-100000-one-0001", ` +
				`scenario_id="7", vm_group="G", workload="W"}` + "\n"},
	} {
		out, err := exec.CommandContext(t.Context(), promtool, append([]string{"query"}, c.args...)...).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%q: %v\n%s\nwant\n%s", c.args, err, out, c.want)
		}
	}
	out, err := exec.CommandContext(t.Context(), promtool, "query", "instant", s.url, "sum(").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "bad_data") ||
		!strings.Contains(string(out), "unclosed left parenthesis") {
		t.Errorf("%v %s", err, out)
	}
	two.end(result.StatusStopped)
}

// Hostile texts everywhere in a run: no page and no answer of the API holds anything that hides, what is markup
// in them is shown as text, and the API gives every value back as it was.
func TestHostileTexts(t *testing.T) {
	s := serve(t)
	turn := visibletest.Turns()
	r := s.run("20260301-100000-hostile-0001", turn(), t0).work(5)
	for range len(visibletest.Texts) {
		r.event(result.Event{Kind: result.KindAnnotation, Text: turn(), Name: turn()})
		r.event(result.Event{Kind: turn(), Text: turn(), Error: turn(), Phase: turn()})
	}
	b := r.store.Batch()
	for i, h := range visibletest.Texts {
		b.Float("hostile", []series.Label{{Name: "i", Value: fmt.Sprint(i)}, {Name: "text", Value: h.Text}}, t0, 1)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := r.folder.Update(func(m *result.Manifest) {
		id, status := m.RunID, m.Status
		visibletest.Fill(m, turn)
		m.RunID, m.Status = id, status
	}); err != nil {
		t.Fatal(err)
	}
	s.pass(3 * time.Second)
	paths := []string{
		"/",
		"/?scenario=" + url.QueryEscape("\x1b[31m\u202e<script>"),
		"/runs/20260301-100000-hostile-0001",
		"/runs/20260301-100000-hostile-0001/report",
		"/runs/" + url.PathEscape("\u202e<script>window.PWNED=1</script>"),
		"/api/v1/label/text/values",
		"/api/v1/series?match[]=hostile",
		"/api/v1/query?query=hostile&time=1772359200",
		"/api/v1/query?query=" + url.QueryEscape("\x1b]0;x\a\u202e"),
		"/api/v1/" + url.PathEscape("\u202e"),
	}
	for _, path := range paths {
		_, body, h := s.get(path)
		if loose := visibletest.Loose(body); loose != "" {
			t.Errorf("%s: %s", path, loose)
		}
		if strings.HasPrefix(h.Get("Content-Type"), "text/html") {
			for _, bad := range []string{"<script>window", "<img src=x", "onerror=\"window", "<iframe"} {
				if strings.Contains(body, bad) {
					t.Errorf("%s: %s is there as it was", path, bad)
				}
			}
		} else if !json.Valid([]byte(body)) {
			t.Errorf("%s: %s", path, body)
		}
	}
	// A label's value comes back as it was.
	code, body, _ := s.get("/api/v1/series?match[]=hostile")
	var out struct{ Data []map[string]string }
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != 200 || len(out.Data) != len(visibletest.Texts) {
		t.Fatal(code, err, len(out.Data))
	}
	for _, ls := range out.Data {
		var i int
		if _, err := fmt.Sscan(ls["i"], &i); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(visibletest.Texts[i].Text, "\uFFFD"); ls["text"] != want {
			t.Errorf("%s: %q became %q", visibletest.Texts[i].Name, want, ls["text"])
		}
	}
	r.end(result.StatusSucceeded)
}

// What is held of many runs stays small, however many of them were asked about.
func TestHeapOfManyRuns(t *testing.T) {
	needs.Time(t)
	s := serve(t)
	const runs, most = 200, 70 << 20
	r := s.run("20260301-100000-x-0000", "x", t0).work(10)
	for second := range 20 {
		b := r.store.Batch()
		for n := range 120 { // as a host has counters
			scope := []series.Label{{Name: "instance", Value: "n0"}, {Name: "device", Value: fmt.Sprintf("d%d", n%7)}}
			b.Float(fmt.Sprintf("node_counter_%d_total", n), scope, r.at.Add(time.Duration(second)*time.Second),
				float64(n))
		}
		if err := b.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	r.end(result.StatusSucceeded)
	for n := range runs - 1 {
		copied := filepath.Join(s.root, fmt.Sprintf("20260301-100000-x-%04d", n+1))
		if err := os.CopyFS(copied, os.DirFS(r.folder.Dir())); err != nil {
			t.Fatal(err)
		}
	}
	pages := map[string]string{"/": "1 to 100 of 200 runs", "/?page=2": "101 to 200 of 200 runs",
		"/?page=9": "101 to 200 of 200 runs", "/?q=0007": "1 of 200 runs"}
	s.get("/api/v1/runs") // which waits for all that are read
	for path, caption := range pages {
		if code, body, _ := s.get(path); code != http.StatusOK || !strings.Contains(body, caption) {
			t.Fatalf("%s: %d, lacks %q", path, code, caption)
		}
	}
	before := heapAfterGC()
	for _, path := range []string{"/api/v1/labels", "/", "/runs/20260301-100000-x-0007",
		"/runs/20260301-100000-x-0008/report"} {
		if code, body, _ := s.get(path); code != http.StatusOK {
			t.Fatalf("%s: %d %.500s", path, code, body)
		}
	}
	if after := heapAfterGC(); after > before+most {
		t.Errorf("%d MiB on the heap when %d runs were asked about, %d MiB before: want %d MiB more at most",
			after>>20, runs, before>>20, most>>20)
	}
}

func heapAfterGC() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestRecord: the loads of a record are told apart in their titles, and a column without any value is left out.
func TestRecord(t *testing.T) {
	s := serve(t)
	const id = "IO500 UW-Madison NetLab Research Group/MadRacks Testbed/GluonFS/2025/submission-742"
	_, page, _ := s.get("/catalogue/" + url.PathEscape(id))
	titles := map[string]bool{}
	for _, m := range regexp.MustCompile(`<h2>([^<]*)</h2>`).FindAllStringSubmatch(page, -1) {
		titles[m[1]] = true
	}
	if n := strings.Count(page, "<h2>"); n != 4 || len(titles) != n {
		t.Errorf("%d loads with %d titles: %v", n, len(titles), titles)
	}
	if strings.Contains(page, "Interval") {
		t.Error("no figure has an interval, and they have a column")
	}
}
