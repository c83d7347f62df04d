package judge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/history"
)

func TestPost(t *testing.T) {
	t.Parallel()
	var got history.Document
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPost ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Error(r.Method, r.Header, err)
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	d := history.Document{History: "nightly", Points: 18, Changes: []history.Change{{
		New: true, Verdict: history.Worse, Points: 18,
		Known: history.Known{Measure: "p99", At: "c12", Before: 100, After: 110, P: 0.005}}}}
	if err := post(s.URL+"/hook?secret", d); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(d, got); diff != "" {
		t.Error(diff)
	}
	status = http.StatusInternalServerError
	if err := post(s.URL, d); err == nil || !strings.Contains(err.Error(), `answered "500`) {
		t.Error(err)
	}
	s.Close()
	if err := post(s.URL+"/hook?secret", d); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

func TestHistoryMarkdownKeepsItsTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	d := history.Document{History: "x", Points: 7, Changes: []history.Change{{Verdict: history.Unknown,
		Known: history.Known{Measure: "a|b\n<script>", At: "[x](y)", Told: time.Unix(0, 0).UTC(), Note: "@all"}}}}
	if err := historyMarkdown(&b, d); err != nil {
		t.Fatal(err)
	}
	want := "### History x: 1 change in 7 results, 0 new\n\n| measure | at | before | after | change | |\n" +
		"|---|---|---|---|---|---|\n| a\\|b &lt;script> | \\[x](y) | 0 | 0 |  | acknowledged, direction unknown: " +
		"&#64;all |\n"
	if got := b.String(); got != want {
		t.Errorf("%q", got)
	}
}
