package command

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/scenario"
)

const served = `
server:
  vm_group: DB
  command: [db, --bind, "{address}", --cluster, "{peers 7000}", --data, "{disk /dev/sdc}", --config, "{file db.conf}", "{option cache}", "{folder}"]
  env: {LC_ALL: C, ME: "{name}"}
  files: {db.conf: "fast=yes"}
  ports: [7000, 7001]
  ready: {command: [db-ping, "{address}"], match: '^ok$', within: 20s}
  stop: 3s
  version: {command: [db, --version], match: 'v([0-9.]+)', oldest: "7.0"}
  for: run
options: {cache: 1G}
command: [bench, "{peer 7000}", "{peer}", "{peers}", "{peers 7001}", "{disk}"]
operations: [{name: a, noun: as}]
output: {format: lines, records: [{match: '(?P<n>\d+)', final: true, operations: {a: {count: n}}}]}
`

// servedSpec is a client's, the second of its group, with one disk; the servers have two.
func servedSpec(config string) workload.Spec {
	spec := specOf("db.yml", []byte(config))
	spec.Name, spec.Disks = "OLTP", []target.Disk{{Device: "/dev/sdb", Path: "/client/b"}}
	spec.Peers = []workload.Peer{
		{VM: "db-0", Address: "192.0.2.1"},
		{VM: "db-1", Address: "fd00::2"},
		{VM: "db-2", Address: "192.0.2.3"},
	}
	spec.Peer = 1
	return spec
}

// A load knows the machines that it goes to, and what runs on each of them.
func TestServer(t *testing.T) {
	t.Parallel()
	spec := servedSpec(served)
	peers, there, err := Engine{}.Peers(spec)
	if want := (workload.Peers{Group: "DB", Served: true, Network: true}); err != nil || !there || peers != want {
		t.Errorf("%+v, %t, %v; want %+v", peers, there, err, want)
	}
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := target.Command{
		Label:  "OLTP",
		Stdout: "OLTP/output",
		Stderr: "OLTP/stderr",
		Dials:  []int{7000, 7001},
		Argv: []string{"bench",
			"[fd00::2]:7000", "fd00::2", "192.0.2.1,fd00::2,192.0.2.3", "192.0.2.1:7001,[fd00::2]:7001,192.0.2.3:7001",
			"/client/b"},
	}
	if diff := cmp.Diff(want, job.Command); diff != "" {
		t.Error(diff)
	}
	if want := []string{`its server, db, runs on the VMs of group "DB" from its first start until the teardown, TCP port 7000, 7001`}; !slices.Equal(
		job.Notes, want) {
		t.Errorf("notes %q, want %q", job.Notes, want)
	}
	spec.VM, spec.Address, spec.Disks = "db-2", "192.0.2.3", []target.Disk{
		{Device: "/dev/sdb", Path: "/b"},
		{Device: "/dev/sdc", Path: "/c"},
	}
	got, err := Engine{}.Server(spec)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"LC_ALL=C", "ME=OLTP"}
	wanted := workload.Server{
		Service: target.Service{Name: "OLTP", Command: target.Command{
			Argv: []string{
				"db",
				"--bind",
				"192.0.2.3",
				"--cluster",
				"192.0.2.1:7000,[fd00::2]:7000,192.0.2.3:7000",
				"--data",
				"/c",
				"--config",
				"OLTP.server/db.conf",
				"1G",
				"OLTP.server",
			},
			Env: env, Stdout: "OLTP.server/output", Stderr: "OLTP.server/output", Listens: []int{7000, 7001},
			Dials: []int{7000, 7001}}},
		Files: map[string][]byte{"OLTP.server/db.conf": []byte("fast=yes")},
		Ready: target.Readiness{
			Command: target.Command{
				Argv:   []string{"db-ping", "192.0.2.3"},
				Env:    env,
				Label:  "OLTP ready",
				Stdout: "OLTP.server/ready",
				Dials: []int{
					7000,
					7001,
				},
			},
			Output: "OLTP.server/output",
			Match:  regexp.MustCompile(`^ok$`),
			Within: 20 * time.Second,
		},
		Grace: 3 * time.Second,
		Stays: true,
	}
	same := cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })
	if diff := cmp.Diff(wanted, got, same); diff != "" {
		t.Error(diff)
	}
	spec.Disks = spec.Disks[:1]
	if _, err := (Engine{}).Server(spec); err == nil || !strings.Contains(err.Error(), "db.yml:4:") ||
		!strings.Contains(err.Error(), "/dev/sdc") {
		t.Errorf("a server's machine without its disk: %v", err)
	}
}

// Loads on the server's own machine, without a network, and to a server that runs already.
func TestServerElsewhere(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(served, "options:")
	rest = "command: [bench, sock]\n" + rest[strings.Index(rest, "operations:"):]
	for name, c := range map[string]struct {
		server string
		want   workload.Peers
		there  bool
	}{
		"none": {"", workload.Peers{}, false},
		"same machine": {"server: {command: [db, sock], ready: {match: up}}\n", workload.Peers{Served: true},
			true},
		"its port": {"server: {command: [db], ports: [1]}\n", workload.Peers{Served: true, Network: true},
			true},
		"runs there before": {"server: {vm_group: DB, ports: [5432]}\n", workload.Peers{Group: "DB", Network: true},
			true},
	} {
		spec := servedSpec(c.server + rest)
		got, there, err := Engine{}.Peers(spec)
		if err != nil || there != c.there || got != c.want {
			t.Errorf("%s: %+v, %t, %v; want %+v", name, got, there, err, c.want)
		}
		_, err = Engine{}.Server(spec)
		if (err == nil) != c.want.Served {
			t.Errorf("%s: server: %v", name, err)
		}
		if _, err := (Engine{}).Command(spec); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec := servedSpec(served)
	spec.Peers = nil
	if _, err := (Engine{}).Command(spec); err == nil ||
		!strings.Contains(err.Error(), `no machine to go to in group "DB"`) {
		t.Errorf("without machines: %v", err)
	}
}

// The server of the reference page is read.
func TestServerOfThePage(t *testing.T) {
	t.Parallel()
	page := string(read(t, needs.Root(), "docs", "how-to", "run-any-program.md"))
	_, rest, _ := strings.Cut(page, "```yaml\nserver:")
	config, _, found := strings.Cut(rest, "```")
	_, counted, _ := strings.Cut(served, "operations:")
	if !found {
		t.Fatal("the page has no server")
	}
	job, err := Engine{}.Command(servedSpec("server:" + config + "operations:" + counted))
	want := []string{"redis-benchmark", "-h", "fd00::2", "-n", "100000", "-c", "10", "-t", "get", "--csv"}
	if err != nil || !slices.Equal(job.Command.Argv, want) {
		t.Errorf("%q, %v", job.Command.Argv, err)
	}
}

// The language tells of a group that there is not, where it stands, before anything runs.
func TestServerGroup(t *testing.T) {
	t.Parallel()
	c, objections := Engine{}.ReadConfig("db.yml", []byte(served), nil)
	if len(objections) > 0 {
		t.Fatal(objections)
	}
	use := scenario.Use{
		Workload:  "OLTP",
		Group:     "Clients",
		DiskBytes: []int64{1 << 30},
		Groups:    []string{"Clients", "DBs"},
	}
	want := []scenario.Objection{{Code: codeGroup, Line: 3, Col: 3, Hint: `did you mean "DBs"?`,
		What: `workload "OLTP": server: there is no VM group "DB"`}}
	if diff := cmp.Diff(want, c.Fit(use)); diff != "" {
		t.Error(diff)
	}
	use.Groups = []string{"DB"}
	if got := c.Fit(use); len(got) > 0 { // its disks are not the load's
		t.Errorf("%+v", got)
	}
}
