package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

var servedAt = regexp.MustCompile(`serving (http://\S+)/ `)

// TestServeMemory asks what serves a long run four of the worst questions at once, with steps that make their answers
// too much, just too much, and just not. It stays below 500 MB, goes on to answer, and ends when told to.
func TestServeMemory(t *testing.T) {
	needs.Time(t)
	t.Parallel()
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	scenario := tiny(t)
	text, err := os.ReadFile(filepath.Join(scenario, "test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(scenario, "test.yml"), strings.Replace(string(text), "max: 60", "max: 20000", 1))
	const seconds = 10800
	s.must("run", scenario, "--target", "sim", "--nodes", "16", "--set", fmt.Sprint("seconds=", seconds), "--quiet")
	cmd := s.command(t.Context(), "serve", "--listen", "127.0.0.1:0")
	says, ended := startUntil(t, cmd, "Ctrl-C")
	at := servedAt.FindStringSubmatch(says.String())
	if at == nil {
		t.Fatalf("where it serves is not said: %s", says)
	}
	get := func(path string) (int, string, error) {
		answer, err := http.Get(at[1] + path)
		if err != nil {
			return 0, "", err
		}
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), errors.Join(err, answer.Body.Close())
	}
	const all = `{__name__=~".+"}`
	end := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC).Unix() // of the simulation
	counted, body, err := get("/api/v1/query?" + url.Values{"query": {"count(" + all + ")"},
		"time": {fmt.Sprint(end - 100)}}.Encode())
	if err != nil || counted != 200 || !regexp.MustCompile(`"\d{3,}"`).MatchString(body) {
		t.Fatalf("there are no hundred series: %d %s %v", counted, body, err)
	}
	var got []int
	for _, step := range []int{1, 4, 16, 64}[:needs.Draws(2, 4)] {
		var asked sync.WaitGroup
		codes := make([]int, 4)
		for i, query := range []string{all, `count_values("v",` + all + `)`,
			`sort_desc(label_replace(` + all + `,"x","$1","__name__","(.*)"))`,
			all + ` or (` + all + ` offset 1s)`} {
			asked.Go(func() {
				code, body, err := get("/api/v1/query_range?" + url.Values{"query": {query}, "end": {fmt.Sprint(end)},
					"start": {fmt.Sprint(end - seconds)}, "step": {fmt.Sprint(step)}}.Encode())
				if codes[i] = code; err != nil || code != 200 && (code != 422 || !strings.Contains(body, `"query: `)) {
					t.Errorf("%s every %d s: %d %.200s %v", query, step, code, body, err)
				}
			})
		}
		asked.Wait()
		got = append(got, codes...)
	}
	t.Log("answered with", got)
	if code, _, err := get("/"); code != 200 {
		t.Errorf("the list of runs: %d %v", code, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		t.Fatalf("no peak in %s", status)
	}
	held, err := strconv.Atoi(string(peak[1]))
	if t.Logf("%d MiB", held>>10); err != nil || held*1024 >= 500e6 {
		t.Errorf("it held %d kB: %v", held, err)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Error("it does not end")
	}
}
