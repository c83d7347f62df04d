package web_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"plimsoll/internal/report/web"
	"plimsoll/result"
)

// TestOpenAPI: the description has every path of the API, and what is answered is as it says, by a validator of others.
func TestOpenAPI(t *testing.T) {
	s := serve(t)
	r := s.run("20260301-100000-done-0001", "done", t0).work(60)
	r.event(result.Event{Kind: result.KindFault, Text: "node 3 lost its power"})
	r.end(result.StatusSucceeded)
	live := s.run("20260301-103000-live-0002", "live", t0.Add(30*time.Minute)).work(60)
	defer live.end(result.StatusSucceeded)
	code, text, _ := s.get("/api/v1/openapi.json")
	if code != http.StatusOK {
		t.Fatal(code, text)
	}
	var written bytes.Buffer
	if err := web.WriteOpenAPI(&written, "test"); err != nil || strings.TrimSpace(written.String()) != text {
		t.Errorf("what is served is not what is written: %v", err)
	}
	description, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	const at = "https://example.com/openapi.json"
	if err := c.AddResource(at, description); err != nil {
		t.Fatal(err)
	}
	var paths struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &paths); err != nil {
		t.Fatal(err)
	}
	schemaOf := func(path, response string) *jsonschema.Schema {
		t.Helper()
		pointer := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
		schema, err := c.Compile(at + "#/paths/" + pointer + "/get/responses/" + response +
			"/content/application~1json/schema")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return schema
	}
	fits := func(schema *jsonschema.Schema, asked string, want int) {
		t.Helper()
		code, body, _ := s.get(asked)
		answer, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err == nil {
			err = schema.Validate(answer)
		}
		if code != want || err != nil {
			t.Errorf("%s: %d, want %d: %v\n%.600s", asked, code, want, err, body)
		}
	}
	asks := map[string]string{ // a question of each path; those of experiments and comparisons need a library
		"runs": "runs", "runs/{id}": "runs/" + "20260301-100000-done-0001",
		"runs/{id}/findings": "runs/20260301-100000-done-0001/findings",
		"runs/{id}/series":   "runs/20260301-103000-live-0002/series",
		"runs/{id}/beside":   "runs/20260301-100000-done-0001/beside",
		"catalogue":          "catalogue?word=sim",
		"runs/{id}/events":   "runs/20260301-100000-done-0001/events",
		"history":            "history",
		"experiments":        "experiments", "query": "query?query=up", "labels": "labels",
		"query_range": "query_range?query=plimsoll_workload_ops_total&start=1772359200&end=1772359260&step=30",
		"series":      "series?match[]=plimsoll_workload_ops_total", "label/{name}/values": "label/run/values",
		"metadata": "metadata", "query_exemplars": "query_exemplars", "rules": "rules", "alerts": "alerts",
		"status/buildinfo": "status/buildinfo",
	}
	for path := range paths.Paths {
		schema := schemaOf(path, "200")
		every := url.Values{}
		for _, p := range parametersOf(t, paths.Paths[path]["get"]) {
			every.Set(p, map[string]string{"query": "up", "match[]": "up", "step": "30", "timeout": "5s", "limit": "1",
				"simulated": "true", "since": "1d", "offset": "0"}[p])
			if every.Get(p) == "" {
				every.Set(p, "1772359200")
			}
		}
		filled := strings.NewReplacer("{id}", "20260301-100000-done-0001", "{name}", "run").Replace(path)
		_, needs := every["run"] // sides that a library compares
		if len(every) > 0 && !needs {
			fits(schema, filled+"?"+every.Encode(), http.StatusOK)
		}
		if ask := asks[strings.TrimPrefix(path, "/api/v1/")]; ask != "" {
			fits(schema, "/api/v1/"+ask, http.StatusOK)
		} else if path != "/api/v1/experiments/{id}" && path != "/api/v1/history/{name}" && path != "/api/v1/compare" {
			t.Errorf("%s is not asked for", path)
		}
	}
	if len(paths.Paths) != len(asks)+3 {
		t.Errorf("%d paths are described, %d are asked for", len(paths.Paths), len(asks)+3)
	}
	fits(schemaOf("/api/v1/runs/{id}", "default"), "/api/v1/runs/none", http.StatusNotFound)
	for path, ask := range map[string]string{"runs/{id}/series": "runs/none/series",
		"runs/{id}/events": "runs/none/events", "runs/{id}/beside": "runs/none/beside",
		"experiments/{id}": "experiments/" + url.PathEscape("\u202e<script>\n\"'"),
		"history/{name}":   "history/" + strings.Repeat("x", 300), "runs/{id}/findings": "runs/%00/findings"} {
		fits(schemaOf("/api/v1/"+path, "default"), "/api/v1/"+ask, http.StatusNotFound)
	}
	for path, ask := range map[string]string{"catalogue": "catalogue?simulated=2", "query": "query?query=up&limit=-1",
		"series":      "series?match[]=up&limit=99999999999999999999",
		"query_range": "query_range?query=up&start=a&end=1&step=1"} {
		fits(schemaOf("/api/v1/"+path, "default"), "/api/v1/"+ask, http.StatusBadRequest)
	}
	fits(schemaOf("/api/v1/compare", "default"), "/api/v1/compare", http.StatusBadRequest)
	const told = "/api/v1/" // what the program itself answers objects to what it does not know
	for _, ask := range []string{"runs?limt=1", "runs?limit=-1", "runs?limit=x", "runs?offset=1.5", "runs?since=soon",
		"runs?limit=1&limit=2", "runs?limit=%zz", "experiments?page=2", "history?limit=a", "catalogue?words=x",
		"compare?run=a&run=b&redact=1", "runs/20260301-100000-done-0001?limit=1", "catalogue?system=a&system=b",
		"catalogue?offset=99999999999999999999", "runs?" + strings.Repeat("x", 500) + "=1"} {
		fits(schemaOf("/api/v1/runs", "default"), told+ask, http.StatusBadRequest)
	}
	if _, text, _ := s.get(told + "runs?limt=1"); !strings.Contains(text, `\"limt\"; it has q, scenario, target,`) {
		t.Errorf("of an unknown parameter: %s", text)
	}
	for ask, want := range map[string]string{"": "live done", "?limit=0": "live done", "?limit=1": "live",
		"?limit=1&offset=1": "done", "?offset=1": "done", "?offset=7": "", "?limit=50&scenario=done": "done",
		"?status=succeeded": "done", "?status=executing": "live", "?q=LIVE": "live", "?tag=none": "", "?target=x": "",
		"?since=2026-03-01": "live done", "?since=2026-03-02": ""} {
		fits(schemaOf("/api/v1/runs", "200"), told+"runs"+ask, http.StatusOK)
		var runs []struct {
			ID string `json:"run_id"`
		}
		_, text, _ := s.get(told + "runs" + ask)
		if err := json.Unmarshal([]byte(text), &runs); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range runs {
			got = append(got, r.ID[16:20])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("runs%s: %q, want %q", ask, got, want)
		}
	}
	for ask, want := range map[string]int{"catalogue?limit=3": 3, "catalogue?limit=3&offset=2": 3,
		"catalogue?offset=100000": 0} {
		_, text, _ := s.get(told + ask)
		if n := strings.Count(text, `"system":`); n != want {
			t.Errorf("%s: %d records, want %d", ask, n, want)
		}
	}
	for path, want := range map[string]int{"": 405, "runs/x": 405, "compare": 405, "catalogue/x": 405, "x": 404} {
		answer, err := http.DefaultClient.Do(must(http.NewRequest(http.MethodDelete, s.url+"/"+path, nil)))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Allow"); answer.StatusCode != want || (got == "GET, HEAD") != (want == 405) {
			t.Errorf("DELETE /%s: %d, allowed are %q", path, answer.StatusCode, got)
		}
	}
	for path, allowed := range map[string]string{"runs": "GET, HEAD", "runs/x/findings": "GET, HEAD",
		"openapi.json": "GET, HEAD", "query": "GET, HEAD, POST", "nothing": ""} {
		answer, err := http.DefaultClient.Do(must(http.NewRequest(http.MethodDelete, s.url+"/api/v1/"+path, nil)))
		if err != nil {
			t.Fatal(err)
		}
		body, want := new(bytes.Buffer), http.StatusMethodNotAllowed
		if allowed == "" {
			want = http.StatusNotFound
		}
		_, err = body.ReadFrom(answer.Body)
		answer.Body.Close()
		got := answer.Header.Get("Allow")
		if err != nil || answer.StatusCode != want || got != allowed || !json.Valid(body.Bytes()) {
			t.Errorf("DELETE %s: %d, allowed are %q: %v %s", path, answer.StatusCode, got, err, body)
		}
	}
	if err := schemaOf("/api/v1/runs", "200").Validate([]any{map[string]any{"run_id": 7}}); err == nil {
		t.Error("a run without what runs have fits the description")
	}
}

// parametersOf are the names of the parameters that an operation has in its question.
func parametersOf(t *testing.T, operation json.RawMessage) (names []string) {
	t.Helper()
	var op struct{ Parameters []struct{ Name, In string } }
	if err := json.Unmarshal(operation, &op); err != nil {
		t.Fatal(err)
	}
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

// must is a value that cannot fail to be made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
