package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"plimsoll/internal/contract/target"
)

// TestMain lets the test's own executable be the supervisor of its units.
func TestMain(m *testing.M) {
	if os.Args[0] == Program {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// A supervisor outlives whoever started it, and is waited for as long as it takes.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"))
}

// talk opens a session over pipes, as one over SSH is.
func talk(t *testing.T, folder string) func(method, path string, give any) (status int, text string) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- session(folder, far, far) }()
	transport := &http.Transport{Protocols: new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}
	transport.Protocols.SetUnencryptedHTTP2(true)
	conn, err := transport.NewClientConn(t.Context(), "http", "agent:80")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // the session ends with it
		if err := <-ended; err != nil {
			t.Log(err)
		}
	})
	return func(method, path string, give any) (int, string) {
		t.Helper()
		data, err := json.Marshal(give)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://agent:80"+path, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := conn.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, strings.TrimSpace(string(text))
	}
}

// A unit is started once, however often it is asked for, and by whichever session; its end is told to all.
func TestUnitRunsOnce(t *testing.T) {
	folder := t.TempDir()
	first, second := talk(t, folder), talk(t, folder)
	start := Start{Command: target.Command{Argv: []string{"sh", "-c", "echo once >>count; exit 3"}, Stdout: "out"}}
	for _, ask := range []func(string, string, any) (int, string){first, second, first} {
		if status, text := ask("POST", "/unit/a-1", start); status != http.StatusOK {
			t.Fatalf("%d: %s", status, text)
		}
		_, text := ask("GET", "/unit/a-1/end", nil)
		var got State
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if got.Began == 0 {
			t.Error("it is not told when it began")
		}
		got.Usage, got.Began = target.Usage{}, 0
		if diff := cmp.Diff(State{Known: true, Exit: target.Exit{Code: 3}}, got); diff != "" {
			t.Error(diff)
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, work, "count"))
	if err != nil || string(data) != "once\n" {
		t.Errorf("it ran: %q, %v", data, err)
	}
}

// An end that the machine has lost with its power, half written, is no end: the unit is lost, once and for all.
func TestEndLostWithThePower(t *testing.T) {
	folder := t.TempDir()
	ask := talk(t, folder)
	for id, left := range map[string]string{"empty": "", "blank": "   ", "zeros": "\x00\x00", "half": `{"exit":{"Co`} {
		start := Start{Command: target.Command{Argv: []string{"true"}}}
		if status, text := ask("POST", "/unit/"+id, start); status != http.StatusOK {
			t.Fatalf("%d: %s", status, text)
		}
		ask("GET", "/unit/"+id+"/end", nil)
		exit := filepath.Join(keeper{folder: folder}.dir(id), exitFile)
		if err := os.WriteFile(exit, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, text := ask("GET", "/unit/"+id+"/end", nil)
			var got State
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v: %s", id, err, text)
			}
			want := State{Known: true, Exit: target.Exit{Code: -1, Lost: true}, Why: got.Why}
			if diff := cmp.Diff(want, got); diff != "" || got.Why == "" {
				t.Errorf("%s: %q %s", id, got.Why, diff)
			}
		}
	}
}

// A unit whose supervisor was killed is lost to all who ask at the same moment, and none of them meets an error.
func TestLostUnitToldToAll(t *testing.T) {
	folder := t.TempDir()
	ask := talk(t, folder)
	k := keeper{folder: folder}
	for round := range 5 {
		id := fmt.Sprint("lost-", round)
		start := Start{Command: target.Command{Argv: []string{"sleep", "300"}}}
		if status, text := ask("POST", "/unit/"+id, start); status != http.StatusOK {
			t.Fatalf("%d: %s", status, text)
		}
		pid, err := os.ReadFile(filepath.Join(k.dir(id), beganFile))
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(string(pid))
		if err == nil {
			err = unix.Kill(number, unix.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		for held := true; held && err == nil; {
			held, err = k.held(id)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if s, err := k.state(id); err != nil || !s.Exit.Lost {
					t.Errorf("%+v, %v", s, err)
				}
			})
		}
		group.Wait()
	}
}

// A folder whose processes are still there keeps the program that ends them, so that the end can be asked for again.
func TestEndAgain(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{TagFile: "tag", Program: "the program"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stays := errors.New("processes [7] are still there")
	if err := end(folder, "tag", func(string) error { return stays }); !errors.Is(err, stays) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(folder, Program)); err != nil {
		t.Errorf("what ends them is gone: %v", err)
	}
	if err := end(folder, "tag", endMarked); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
}

// What is asked wrongly is refused with words, and leads nowhere.
func TestRefusals(t *testing.T) {
	folder := t.TempDir()
	ask := talk(t, folder)
	for path, want := range map[string]string{
		"GET /file?name=../x&offset=0":     "not below the working folder",
		"GET /file?name=x&offset=-1":       "offset -1 is below 0",
		"PUT /file?name=/etc/x&mode=644":   "not below the working folder",
		"PUT /file?name=x&mode=abc":        "mode",
		"DELETE /file?name=.":              "not below the working folder",
		"POST /make?name=x&bytes=-4":       "is no size",
		"POST /discard?name=x&upto=lots":   "is no offset",
		"POST /unit/A.b":                   "is no id of a unit",
		"GET /unit/a/follow?name=&offset=": "not below the working folder",
	} {
		method, path, _ := strings.Cut(path, " ")
		if status, text := ask(method, path, Start{}); status == http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s %s: %d %s: want %q", method, path, status, text, want)
		}
	}
	err := end(folder, "tag", endMarked)
	if err == nil || !strings.Contains(err.Error(), "not the folder of this run") {
		t.Errorf("a folder without its tag: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, work)); err != nil {
		t.Error(err)
	}
}

// What the agent counts has node_exporter's names, and its own cost is there.
func TestMetrics(t *testing.T) {
	_, page := talk(t, t.TempDir())("GET", "/metrics", nil)
	for _, want := range []string{"node_cpu_seconds_total{", "node_memory_MemTotal_bytes ", "node_disk_io_now",
		"plimsoll_agent_resident_memory_bytes ", "plimsoll_agent_cpu_seconds_total "} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
}

func ExampleMain() {
	code := Main([]string{"end", "/nowhere/plimsoll-x", "tag"}, nil, io.Discard, os.Stdout)
	fmt.Println(code)
	// Output:
	// plimsoll-agent: /nowhere/plimsoll-x: it is not the folder of this run: its tag is another
	// 1
}
