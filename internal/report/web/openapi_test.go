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

// must is a value that cannot fail to be made.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
