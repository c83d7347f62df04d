package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/cli/drivers"
	cliruns "plimsoll/internal/cli/runs"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/report/web"
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
	a := newApp(&console.Console{In: strings.NewReader(""), Out: &out, Err: &errs, Clock: clock.Real{},
		Signals: signals},
		drivers.All())
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

// TestServeExperiments: experiments are one row each and open into their answer and runs; what is ticked is compared,
// by identities of what is served and of nothing else; unlike sides are refused, and compared when told so.
func TestServeExperiments(t *testing.T) {
	root := t.TempDir()
	job := filepath.Join(t.TempDir(), "my.fio")
	write := func(depth string) {
		t.Helper()
		text := "[job]\nrw=randread\nbs=4k\nsize=64m\nioengine=libaio\ndirect=1\ntime_based\nruntime=20\niodepth=" + depth + "\n"
		if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	main := func(args ...string) {
		t.Helper()
		var errs said
		a := newApp(&console.Console{In: strings.NewReader(""), Out: io.Discard, Err: &errs, Clock: clock.Real{}},
			drivers.All())
		if code := a.main(append([]string{"--dir", root, "-q", "run", job, "--target", "sim"}, args...)); code != 0 {
			t.Fatalf("%q: exit code %d\n%s", args, code, errs.String())
		}
	}
	write("4")
	main("--name", "first")
	main("--name", "second", "--target-opt", "seed=2")
	main("--name", "swept", "--sweep", "iodepth=1,8", "--repeat", "2")
	write("16")
	main("--name", "deeper")

	a := newApp(&console.Console{Clock: clock.Real{}}, drivers.All())
	a.RunsDir = root
	now := time.Now()
	site := web.New(web.Options{Folders: a.AllFolders, Now: func() time.Time { return now }, Version: "test",
		Catalogue: filepath.Join(root, result.CatalogueDir),
		Library:   library(a.Store, cliruns.NewFolderIndex(root), true)})
	defer site.Close()
	get := func(path string) (int, string) {
		t.Helper()
		answer := httptest.NewRecorder()
		site.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Code, answer.Body.String()
	}
	asked := func(path string, code int, want ...string) string {
		t.Helper()
		got, body := get(path)
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: lacks %q:\n%.3000s", path, text, body)
			}
		}
		if got != code {
			t.Errorf("%s: %d, want %d\n%.3000s", path, got, code, body)
		}
		return body
	}
	var runs []struct {
		ID     string `json:"run_id"`
		Labels struct{ Name string }
	}
	if err := json.Unmarshal([]byte(asked("/api/v1/runs", 200)), &runs); err != nil {
		t.Fatal(err)
	}
	id := map[string]string{}
	for _, r := range runs {
		if r.Labels.Name != "" {
			id[r.Labels.Name] = r.ID
		}
	}
	var experiments []web.Experiment
	if err := json.Unmarshal([]byte(asked("/api/v1/experiments", 200)), &experiments); err != nil {
		t.Fatal(err)
	}
	if len(experiments) != 1 || experiments[0].Done != 4 || experiments[0].Labels.Name != "swept" {
		t.Fatalf("experiments: %+v", experiments)
	}
	x := experiments[0].ID
	added := newApp(&console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Clock: clock.Real{}}, drivers.All())
	if code := added.main([]string{"--dir", root, "catalogue", "add", id["second"],
		"--system", "the other"}); code != 0 {
		t.Fatalf("catalogue add: exit code %d", code)
	}
	asked("/api/v1/runs/"+id["first"]+"/beside", 200, `"system": "the other"`, `"systems": 1`)
	if body := asked("/api/v1/runs/"+id["deeper"]+"/beside", 200); body != "[]\n" {
		t.Errorf("a run of another load stands beside:\n%s", body)
	}
	asked("/api/v1/runs/none/beside", 404)
	for question, want := range map[string]int{"word=THE+other&simulated=true": 1, "system=the+other": 1,
		"word=the+other&simulated=false": 0, "word=the+other&word=nowhere": 0, "source=nobody": 0} {
		var given struct{ Records, Sources, Problems []any }
		err := json.Unmarshal([]byte(asked("/api/v1/catalogue?"+question, 200)), &given)
		if err != nil || len(given.Records) != want || len(given.Problems) > 0 {
			t.Errorf("%s: %d records, want %d: %v %v", question, len(given.Records), want, given.Problems, err)
		}
	}
	asked("/api/v1/catalogue?simulated=perhaps", 400)
	asked("/api/v1/catalogue?word=iozone", 200, `"address": "http`, `"licence": `)
	asked("/catalogue?q=OTHER&sort=newest", 200, "the other", "1 of 220 records", "own")
	asked("/catalogue?q=x&what=y", 200, "The list has no filter")
	asked("/catalogue?page=999999999999", 200, "201 to 220 of 220")
	asked("/catalogue/none", 404, "There is no record")
	asked("/catalogue/"+id["second"], 200, "/runs/"+id["second"], "/catalogue?alike=", "outstanding")
	asked("/runs/"+id["first"], 200, "/catalogue?alike=")
	added = newApp(&console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Clock: clock.Real{}}, drivers.All())
	if code := added.main([]string{"--dir", root, "history", "add", "nightly", id["first"], id["second"]}); code != 0 {
		t.Fatalf("history add: exit code %d", code)
	}
	if err := os.WriteFile(filepath.Join(root, result.HistoryDir, "broken.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked("/history", 200, "<caption>2 histories", "broken", "is damaged")
	asked("/history?q=p99", 200, "1 of 2 histories", "nightly")
	asked("/history/nightly", 200, "0 changes in 2 results, 0 new", "<svg", "/runs/"+id["second"])
	asked("/history/none", 404, "There is no history")
	asked("/history/broken", 500, "is damaged")
	asked("/api/v1/history/broken", 500, `"errorType":"internal"`)
	list := asked("/", 200, "<b>swept</b>", `value="`+id["first"]+`"`, "<caption>4 runs, newest first")
	if rows := strings.Count(list, "<tr>"); rows != 1+4 {
		t.Errorf("the list has %d rows", rows)
	}
	within := time.Now().Add(30 * time.Second)
	for !strings.Contains(list, "Cells, curve, best point") && time.Now().Before(within) {
		list = asked("/", 200)
	}
	opened := regexp.MustCompile(`(?s)<details class="peek">.*?</details>`).FindString(list)
	for _, text := range []string{"<svg", "iodepth 1", "iodepth 8", "2 runs"} {
		if !strings.Contains(opened, text) {
			t.Errorf("the row of the experiment lacks %q:\n%s", text, opened)
		}
	}
	if !strings.Contains(list, "With iodepth 8 instead of 1, read IOPS of job: ") {
		t.Errorf("the experiment has no first figure:\n%s", list)
	}
	asked("/?q=DEEPER+my", 200, "1 of 4 runs", "<b>deeper</b>")
	asked("/?q=nothing+of+the+kind", 200, "No run fits")
	page := asked("/experiments/"+x, 200, "4 runs, newest first", "iodepth")
	inner := regexp.MustCompile(`href="(/experiments/[^"]+/runs/[^"]+/report)"`).FindStringSubmatch(page)
	if inner == nil {
		t.Fatalf("no run is linked:\n%s", page)
	}
	asked(inner[1], 200, "my.fio")
	asked("/experiments/"+x+"/report", 200, "Plimsoll experiment")
	asked("/api/v1/experiments/"+x, 200, `"factors"`)
	asked("/api/v1/runs/"+id["first"], 200, `"run_id"`)
	asked("/api/v1/runs/"+id["first"]+"/findings", 200, "[")

	asked("/compare?run="+id["first"]+"&run="+id["second"], 200, "first", "second", "same within 5 %",
		"/runs/"+id["first"]+"/report")
	asDescribed(t, asked("/api/v1/openapi.json", 200), map[string]string{
		"compare":          asked("/api/v1/compare?run="+id["first"]+"&run="+id["second"], 200, `"baseline"`),
		"experiments/{id}": asked("/api/v1/experiments/"+x, 200), "experiments": asked("/api/v1/experiments", 200),
		"history": asked("/api/v1/history", 200), "history/{name}": asked("/api/v1/history/nightly", 200, `"changes": []`),
		"runs/{id}":          asked("/api/v1/runs/"+id["first"], 200),
		"runs/{id}/findings": asked("/api/v1/runs/"+id["first"]+"/findings", 200),
		"runs/{id}/series":   asked("/api/v1/runs/"+id["first"]+"/series", 200),
		"runs/{id}/events":   asked("/api/v1/runs/"+id["first"]+"/events", 200)})
	runOf := strings.TrimSuffix(strings.TrimPrefix(inner[1], "/experiments/"+x+"/runs/"), "/report")
	asked("/compare?anyway=1&run="+id["first"]+"&run="+url.QueryEscape(x+"/"+runOf), 200, `href="`+inner[1]+`"`)
	for _, run := range []string{id["first"], id["second"]} { // two of one name are told apart by their identities
		_, err := result.ChangeLabels(filepath.Join(root, run), func(l *result.Labels) { l.Name = "alike" })
		if err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Minute) // runs are looked at again
	asked("/compare?run="+id["first"]+"&run="+id["second"], 200, id["first"], id["second"])
	unlike := "/compare?run=" + id["first"] + "&run=" + id["deeper"]
	asked(unlike, 409, "Not compared: these differ", "jobs of", "Compare them anyway")
	asked("/api/v1"+unlike, 409, `"errorType":"bad_data"`)
	asked(unlike+"&anyway=1", 200, "COMPARED ANYWAY")
	asked("/compare?run="+id["first"]+"&run="+id["first"], 400, "Chosen are 1.")
	for path, code := range map[string]int{
		"/experiments/none": 404, "/experiments/" + x + "/runs/none/report": 404, "/api/v1/experiments/none": 404,
		"/compare": 400, "/compare?run=" + id["first"]: 400, "/compare?run=" + id["first"] + "&run=none": 404,
		"/compare?run=" + id["first"] + "&run=" + url.QueryEscape(root+"/"+id["second"]): 404,
		"/compare?run=" + id["first"] + "&run=" + url.QueryEscape(x+"/../"+id["second"]): 404,
		"/compare?" + strings.Repeat("run="+id["first"]+"&run="+id["second"]+"&", 10):    400,
	} {
		asked(path, code)
	}
}

// asDescribed checks answers, by their paths, against the description of the API.
func asDescribed(t *testing.T, description string, answers map[string]string) {
	t.Helper()
	c := jsonschema.NewCompiler()
	const at = "https://example.com/openapi.json"
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(description))
	if err == nil {
		err = c.AddResource(at, doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, answer := range answers {
		pointer := strings.NewReplacer("/", "~1", "{", "%7B", "}", "%7D").Replace("/api/v1/" + path)
		schema, err := c.Compile(at + "#/paths/" + pointer + "/get/responses/200/content/application~1json/schema")
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%s: %v\n%.300s", path, err, answer)
		}
	}
}
