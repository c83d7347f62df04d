package run_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/run"
	"plimsoll/internal/run/plan"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/workloads/command"
	"plimsoll/result"
	"plimsoll/scenario"
)

// peerVariable names what a copy of this test does as a program of a workload.
const peerVariable = "PLIMSOLL_TEST_PEER"

// peer is a server that echoes, or a client that counts the echoes of one second.
func peer(what string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if what == "server" {
		l, err := net.Listen("tcp", os.Args[1])
		fail(err)
		fmt.Println("listening on", l.Addr())
		for {
			c, err := l.Accept()
			fail(err)
			go func() {
				_, _ = io.Copy(c, c) // until the client has gone
				_ = c.Close()
			}()
		}
	}
	c, err := net.Dial("tcp", os.Args[1])
	fail(err)
	began := time.Now()
	for n := 1; ; n++ {
		_, err := c.Write([]byte("x"))
		fail(err)
		_, err = io.ReadFull(c, make([]byte, 1))
		fail(err)
		if took := time.Since(began); took > time.Second {
			fmt.Printf("after %v %d echoes of %s\n", took.Seconds(), n, os.Args[1])
			return
		}
	}
}

// twoGroups has clients on two nodes and two servers on others.
const twoGroups = `
name: peers
display_name: Peers
summary: s
description: ""
estimated_runtime: 60
vms:
  - Servers: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: "0:2", data_disks: {count: 1, size: 1}}
  - Clients: {template: ubuntu1604, vcpus: 1, ram_mb: 512, nodes: "2:4", data_disks: {count: 1, size: 1}}
workloads:
  - Asks: {vm_group: Clients, generator: command, config_file: asks.yml, iogen_params: {reporting_interval: 1}}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Servers}
  - vm_group.CloneFromTemplate: {vm_group_name: Clients}
  - vm_group.PowerOn: {vm_group_name: Servers}
  - vm_group.PowerOn: {vm_group_name: Clients}
run:
  - workload.Start: {workload_name: Asks}
  - workload.Start: {workload_name: Asks}
teardown:
  - cluster.CleanUp: {}
`

// runPeers executes twoGroups on sandboxes with a config, and returns what was printed, by client, and all that was
// journalled.
func runPeers(t *testing.T, config string) (summary run.Summary, outputs []string, events string, err error) {
	t.Helper()
	root, place, facts := here(t, target.Config{Nodes: 4,
		AllowHostCommands: true, Options: target.Options{"reserve": "1MiB"}})
	needs.That(t, facts.Can(target.PeerNetwork), "namespaces", facts.Missing[target.PeerNetwork])
	files := fstest.MapFS{"test.yml": {Data: []byte(twoGroups)}, "asks.yml": {Data: []byte(config)}}
	engines := map[string]workload.Engine{"command": command.Engine{}}
	sc, diagnostics := scenario.Load(files, scenario.LoadOptions{Now: time.Now(), Nodes: 4,
		Generators: map[string]scenario.Generator{"command": command.Engine{}}})
	if sc == nil {
		t.Fatal(diagnostics)
	}
	p, err := plan.Build(sc, facts, plan.Options{TimeScale: 1, SizeScale: 0.001, Engines: engines})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var journal strings.Builder
	summary, err = run.Execute(ctx, run.Request{
		Root: root, RunID: "peers", Program: "test", Source: "peers", Files: files, Scenario: sc, Plan: p,
		Target: place, Facts: facts,
		Engines: engines, Clock: clock.Real{}, Observer: telling{func(e result.Event) {
			fmt.Fprintln(&journal, e.Kind, e.Name, e.Text, e.Error)
		}},
	})
	folder, openErr := result.Open(summary.Dir)
	if openErr != nil {
		t.Fatal(openErr)
	}
	jobs, _ := folder.RawJobs()
	for _, job := range jobs {
		r, e := folder.OpenRaw(job)
		if e != nil {
			t.Fatal(e)
		}
		text, _ := io.ReadAll(r)
		outputs = append(outputs, string(text))
		_ = r.Close()
	}
	return summary, outputs, journal.String(), err
}

type telling struct{ tell func(result.Event) }

func (o telling) Event(e result.Event) { o.tell(e) }
func (telling) Progress(run.Progress)  {}

// TestPeers has clients on some machines ask servers on others, twice, with real programs and sockets.
func TestPeers(t *testing.T) {
	config := func(server string) string {
		return fmt.Sprintf(`
server:
  vm_group: Servers
  command: [%[1]q, "{address}:4711"]
  env: {%[2]s: %[3]s}
  ports: [4711]
  ready: {match: 'listening', within: 20s}
command: [%[1]q, "{peer 4711}"]
env: {%[2]s: client}
operations: [{name: echo, noun: echoes}]
output: {format: lines, records: [{match: '^after (?P<t>[0-9.]+) (?P<n>\d+) echoes', final: true, elapsed: {field: t, unit: s},
  operations: {echo: {count: n}}}]}
`, os.Args[0], peerVariable, server)
	}
	t.Run("as it should be", func(t *testing.T) {
		summary, outputs, events, err := runPeers(t, config("server"))
		want := result.Verdict{State: "yes"}
		if err != nil || summary.Measured != want || summary.Cleaned != want {
			t.Fatalf("%v: %+v\n%s", err, summary, events)
		}
		asked := map[string]int{}
		for _, text := range outputs {
			_, server, _ := strings.Cut(strings.TrimSpace(text), "echoes of ")
			asked[server]++
		}
		if len(asked) != 2 || len(outputs) != 4 {
			t.Errorf("the two servers were asked %v; want each, in each of the starts", asked)
		}
		for _, n := range asked {
			if n != 2 {
				t.Errorf("the servers were asked %v: want as often each", asked)
			}
		}
		if n := strings.Count(events, "servers of workload Asks: 2 VMs ready"); n != 2 {
			t.Errorf("%d notes of servers that are ready:\n%s", n, events)
		}
	})
	t.Run("a server that ends", func(t *testing.T) {
		summary, _, _, err := runPeers(t, strings.Replace(config("server"), `"{address}:4711"`, `"no address"`, 1))
		if err == nil || !strings.Contains(err.Error(), "ended before it was ready") ||
			!strings.Contains(err.Error(), "no address") {
			t.Errorf("%v", err)
		}
		if summary.Cleaned.State != "yes" {
			t.Errorf("%+v", summary)
		}
	})
}

// TestRedis is the same with a server and clients of everyday: one server on each machine for both starts, whose
// version and words are kept.
func TestRedis(t *testing.T) {
	server := needs.Redis(t)
	_, err := exec.LookPath("redis-benchmark")
	needs.That(t, err == nil, "redis-benchmark", "apt-get install redis-tools")
	summary, outputs, events, err := runPeers(t, fmt.Sprintf(`
server:
  vm_group: Servers
  command: [%[1]q, --bind, "{address}", --port, "6379", --save, "", --dir, "{folder}"]
  ports: [6379]
  ready: {command: [redis-cli, -h, "{address}", ping], match: PONG}
  version: {command: [%[1]q, --version], match: 'v=([0-9.]+)', oldest: "4.0"}
  for: run
command: [redis-benchmark, -h, "{peer}", -n, "2000", -c, "5", -t, set, --csv]
operations: [{name: set, noun: sets}]
output: {format: lines, records: [{match: '^"SET","(?P<rate>[0-9.]+)"', final: true, operations: {set: {count: {value: 2000}}}}]}
`, server))
	want := result.Verdict{State: "yes"}
	if err != nil || summary.Measured != want || summary.Cleaned != want || len(outputs) != 4 {
		t.Fatalf("%v: %+v, %d outputs\n%s", err, summary, len(outputs), events)
	}
	folder, err := result.Open(summary.Dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := folder.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range data.Workloads {
		if !strings.HasPrefix(w.Server, "redis-server ") {
			t.Errorf("%s on %q: its server is %q", w.Name, w.VM, w.Server)
		}
	}
	kept, err := filepath.Glob(filepath.Join(summary.Dir, "raw", "*", "Asks", "server.out.zst"))
	if err != nil || len(kept) != 2 {
		t.Fatalf("%v of the servers' words are kept, %v; want one of each machine", kept, err)
	}
	for _, name := range kept {
		if text := decompressed(t, name); !strings.Contains(text, "Ready to accept connections") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if n := strings.Count(events, "note  what the server of workload Asks on "); n != 2 {
		t.Errorf("%d notes of servers' words, want 2:\n%s", n, events)
	}
	if n := strings.Count(events, "servers of workload Asks: 2 VMs ready"); n != 2 {
		t.Errorf("%d notes of servers that are ready:\n%s", n, events)
	}
}

func decompressed(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	text, err := dec.DecodeAll(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
