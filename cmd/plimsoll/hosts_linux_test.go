package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/bmctest"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
	"plimsoll/internal/workloads/postgres"
)

const hostsScenario = `
name: on_hosts
display_name: fio on hosts
summary: s
description: ""
estimated_runtime: 60
vars:
  secs: {default: 6}
experiment:
  factors: {secs: [6, 7]}
  repeats: 1
  order: interleaved
vms:
  - Loader: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads:
  - Load: {vm_group: Loader, config_file: load.fio, iogen_params: {reporting_interval: 1}}
results:
  - Load: {title: Operations per second, vm_group: Loader, result_type: iops, aggregate: sum, workload_mask: Load}
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate: {vm_group_name: Loader}
  - vm_group.PowerOn: {vm_group_name: Loader}
run:
  - workload.Start: {workload_name: Load, runtime_secs: {{ secs }}}
teardown:
  - cluster.CleanUp: {}
`

// onHosts is a folder with a scenario "grid" for hosts, and a plimsoll that runs in it where they are reached.
func onHosts(t *testing.T, l *sshtest.Lab, text, job string) (dir string, plimsoll func(...string) (int, string)) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "grid"), 0o755); err != nil {
		t.Fatal(err)
	}
	sshtest.Write(t, filepath.Join(dir, "grid", "test.yml"), text)
	sshtest.Write(t, filepath.Join(dir, "grid", "load.fio"), "[job]\nfilename=/dev/sdb\nrw=randwrite\nbs=4k\n"+
		"rate_iops=100\nioengine=libaio\niodepth=2\ndirect=1\n"+job)
	program := filepath.Join(dir, "plimsoll")
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, func(words ...string) (int, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", l.Space, program}, words...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("plimsoll %v: %v:\n%s", words, err, out)
		}
		return c.ProcessState.ExitCode(), string(out)
	}
}

// TestMarkOnHosts: a search on a host that crashes in the second probe says what it learned before, and goes on when
// the host is back.
func TestMarkOnHosts(t *testing.T) {
	needs.Fio(t)
	l := sshtest.NewApart(t, "db1")
	before, after, _ := strings.Cut(hostsScenario, "experiment:\n")
	_, after, _ = strings.Cut(after, "order: interleaved\n")
	dir, plimsoll := onHosts(t, l, strings.Replace(before+after, "default: 6", "default: 3", 1), "time_based\n")
	crashed := make(chan struct{})
	go func() {
		defer close(crashed)
		for range 1200 {
			runs, _ := filepath.Glob(filepath.Join(dir, "plimsoll-runs", "*", "runs", "*"))
			if len(runs) == 2 && l.Alive("--output-format=json+") > 0 {
				l.Hosts[0].Crash(t)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	code, text := plimsoll("mark", "grid", "--vary", "rate", "--from", "50", "--to", "100", "--limit", "p99 < 30s",
		"--target", "ssh", "--target-opt", "inventory="+l.Inventory, "--target-opt", "agents="+l.Dir, "--target-opt",
		"patience=3s", "--size-scale", "0.002")
	<-crashed
	t.Logf("mark ends with %d:\n%s", code, text)
	if code == 0 || !strings.Contains(text, "Unfinished after 1 probe: no limit broke up to 50 IOPS") ||
		!strings.Contains(text, "plimsoll resume") {
		t.Error("it ends well, forgets the first probe, or does not say how to go on")
	}
	l.Hosts[0].Start(t)
	code, text = plimsoll("resume", "latest")
	t.Logf("resume ends with %d:\n%s", code, text)
	if code != 0 || !strings.Contains(text, "No limit broke up to 100 IOPS") {
		t.Error("it does not go on to its end")
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestFailoverOnHosts: the host of a database loses its power, and its standby on another one takes over. With
// synchronous replication nothing that was acknowledged is lost.
func TestFailoverOnHosts(t *testing.T) {
	needs.Long(t, "a failover with its time before and after")
	_, err := postgres.Folder()
	needs.That(t, err == nil, "postgresql", "apt-get install postgresql")
	l := sshtest.NewApart(t, "db1", "db2", "client")
	if err := os.Chmod(filepath.Dir(l.Dir), 0o711); err != nil { // PostgreSQL runs as another user
		t.Fatal(err)
	}
	text := strings.Replace(l.Text, "Loader", "Databases", 2)
	text = strings.Replace(text, "Loader", "Client", 1)
	var first *bmctest.BMC
	for _, h := range l.Hosts {
		bmc := bmctest.NewIn(t, l.Space)
		if first == nil {
			first = bmc
		}
		power := "power: {kind: ipmi"
		for name, value := range bmc.Options(t) {
			power += fmt.Sprintf(", %s: %s", name, value)
		}
		text = strings.Replace(text, h.Name+": {", h.Name+": {"+power+"}, ", 1)
	}
	sshtest.Write(t, l.Inventory, text)
	_, plimsoll := onHosts(t, l, hostsScenario, "")
	over, switched := make(chan struct{}), make(chan struct{})
	go func() { // the host runs as long as its BMC has it on
		defer close(switched)
		for on := true; ; time.Sleep(20 * time.Millisecond) {
			select {
			case <-over:
				return
			default:
			}
			is, err := first.State()
			if err != nil || is == target.Unknown || on == (is == target.On) {
				continue
			}
			if on = is == target.On; on {
				l.Hosts[0].Start(t)
			} else {
				l.Hosts[0].Crash(t)
			}
		}
	}()
	code, out := plimsoll("run", "db-failover", "--once", "--set", "replication=synchronous", "--set", "before_secs=5",
		"--set", "after_secs=10", "--set", "clients=4", "--target", "ssh", "--target-opt", "inventory="+l.Inventory,
		"--target-opt", "agents="+l.Dir, "--target-opt", "patience=3s", "--size-scale", "0.002")
	close(over)
	<-switched
	t.Logf("run ends with %d:\n%s", code, out)
	if code != 0 || !strings.Contains(out, "acknowledged commits are on the standby that took over") {
		t.Error("it does not end well, or does not say what was lost")
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestFaultsOfAServer: a server of a pair is killed, stopped or cut off under load. What the ledger calls lost is held
// to the rows of both servers, read by psql, and a server that comes back is told as one that was never lost.
func TestFaultsOfAServer(t *testing.T) {
	needs.Long(t, "three failovers with their time before and after")
	bin, err := postgres.Folder()
	needs.That(t, err == nil, "postgresql", "apt-get install postgresql")
	published, err := os.ReadFile("../../scenarios/db-failover/test.yml")
	if err != nil {
		t.Fatal(err)
	}
	load, err := os.ReadFile("../../scenarios/db-failover/load.yml")
	if err != nil {
		t.Fatal(err)
	}
	// The fault comes from outside, and the servers stay until their rows are read.
	text := regexp.MustCompile(`(?m)^  - nodes\.PowerOff:(\n    .*)+\n`).ReplaceAllString(string(published), "")
	text = regexp.MustCompile(`(?m)^  - nodes\.PowerOn:(\n    .*)+\n`).ReplaceAllString(text,
		"  - test.Wait: {duration_secs: 20}\n")
	link := func(state string) func(pair) {
		return func(p pair) { p.inSpace("ip", "link", "set", "host0", state) }
	}
	for name, c := range map[string]struct {
		do, undo func(pair) // undo after the standby has taken over; nil: it never comes back
	}{
		"killed":  {do: pair.kill},
		"stopped": {do: pair.hold, undo: pair.free},
		"cut off": {do: link("down"), undo: link("up")},
	} {
		t.Run(name, func(t *testing.T) {
			l := sshtest.NewApart(t, "db1", "db2", "client")
			if err := os.Chmod(filepath.Dir(l.Dir), 0o711); err != nil { // PostgreSQL runs as another user
				t.Fatal(err)
			}
			inventory := strings.Replace(strings.Replace(l.Text, "Loader", "Databases", 2), "Loader", "Client", 1)
			sshtest.Write(t, l.Inventory, inventory)
			dir, plimsoll := onHosts(t, l, text, "")
			sshtest.Write(t, filepath.Join(dir, "grid", "load.yml"), string(load))
			p := pair{t, l, bin}
			faulted := make(chan [2]map[string]bool, 1)
			go func() {
				defer close(faulted)
				p.until("commits", func() bool { return len(p.rows(0)) > 500 })
				c.do(p)
				p.until("a standby that has taken over", func() bool {
					return p.ask(1, "SELECT pg_is_in_recovery()") == "f"
				})
				if c.undo != nil {
					c.undo(p)
				}
				p.until("the end of the load", func() bool { return sshtest.Alive("failover-worker") == 0 })
				second := p.rows(1)
				if c.undo == nil {
					faulted <- [2]map[string]bool{p.rowsOfDead(), second}
				} else {
					faulted <- [2]map[string]bool{p.rows(0), second}
				}
			}()
			code, out := plimsoll("run", "grid", "--once", "--set", "replication=asynchronous", "--set",
				"before_secs=10", "--set", "after_secs=30", "--set", "clients=4", "--target", "ssh", "--target-opt",
				"inventory="+l.Inventory, "--target-opt", "agents="+l.Dir, "--size-scale", "0.002")
			t.Logf("run ends with %d:\n%s", code, out)
			there := <-faulted
			n := valuesOf(t, dir)
			var lost float64
			for row := range there[0] {
				if !there[1][row] {
					lost++
				}
			}
			t.Logf("rows: %d on the first, %d on the second, %v only on the first; ledger: %v", len(there[0]),
				len(there[1]), lost, n)
			if want := n["acknowledged"] - n["lost"] + n["in_doubt_kept"]; float64(len(there[1])) != want {
				t.Errorf("the standby has %d rows, want %v", len(there[1]), want)
			}
			if n["lost"] > lost || lost > n["lost"]+n["in_doubt"] {
				t.Errorf("%v rows are on the first server only, of %v lost and %v in doubt", lost, n["lost"],
					n["in_doubt"])
			}
			if _, alive := n["given_up_alive"]; code != 0 || n["without_commits"] < 2 || alive != (c.undo != nil) {
				t.Error("it does not end well, or does not say how long nothing was committed, or who was alive")
			}
		})
	}
}

// pair is two hosts with a server each, of which one follows the other.
type pair struct {
	t   *testing.T
	lab *sshtest.Lab
	bin string // of PostgreSQL
}

// until waits for something.
func (p pair) until(what string, is func() bool) {
	for range 1200 {
		if is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Errorf("%s: not within two minutes", what)
}

// inSpace runs a program where the hosts are reached, and gives what it prints.
func (p pair) inSpace(words ...string) string {
	c := exec.Command("ip", append([]string{"netns", "exec", p.lab.Space}, words...)...)
	c.Env = append(os.Environ(), "PGPASSFILE="+p.found(1, ".pgpass"))
	out, _ := c.Output() // a server that is gone does not answer
	return strings.TrimSpace(string(out))
}

// found is a file of a host's server.
func (p pair) found(at int, name string) (path string) {
	_ = filepath.WalkDir(p.lab.Hosts[at].Folder, func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, "/"+postgres.ServerFolder+"/"+name) {
			path = file
		}
		return nil // what is gone meanwhile is not it
	})
	return path
}

// ask asks one of the servers with psql; "" when it does not answer.
func (p pair) ask(at int, sql string) string {
	return p.inSpace("timeout", "5", filepath.Join(p.bin, "psql"), "-XAtq", "-F", " ", "-h", p.lab.Hosts[at].Address,
		"-U", postgres.OwnUser, "-d", postgres.OwnDatabase, "-c", sql)
}

const ledgerRows = "SELECT client, number FROM plimsoll_ledger"

func rowsIn(text string) map[string]bool {
	rows := map[string]bool{}
	for line := range strings.Lines(text) {
		rows[strings.TrimSpace(line)] = true
	}
	return rows
}

func (p pair) rows(at int) map[string]bool { return rowsIn(p.ask(at, ledgerRows)) }

// rowsOfDead are those of the first server's data when no server runs on them any more.
func (p pair) rowsOfDead() map[string]bool {
	data := p.found(0, "data")
	to := filepath.Join(data, "rows")
	c := exec.Command("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups",
		filepath.Join(p.bin, "postgres"), "--single", "-D", data, postgres.OwnDatabase)
	c.Dir, c.Stdin = data, strings.NewReader(fmt.Sprintf("COPY (%s) TO '%s' (DELIMITER ' ')\n", ledgerRows, to))
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		p.t.Error(err)
	}
	return rowsIn(string(text))
}

// signal is for every process of the first server.
func (p pair) signal(s syscall.Signal) {
	out, err := exec.Command("ip", "netns", "pids", p.lab.Space+"-0").Output()
	if err != nil {
		p.t.Error(err)
	}
	for word := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(word)
		if name, _ := os.ReadFile("/proc/" + word + "/comm"); err == nil && string(name) == "postgres\n" {
			_ = syscall.Kill(pid, s) // a session may have ended
		}
	}
}

func (p pair) kill() { p.signal(syscall.SIGKILL) }
func (p pair) hold() { p.signal(syscall.SIGSTOP) }
func (p pair) free() { p.signal(syscall.SIGCONT) }

// valuesOf are the measures of the one workload of a run in a folder.
func valuesOf(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "plimsoll-runs", "*", "data.json"))
	var data struct {
		Workloads []struct {
			VM     string
			Values []struct {
				Measure string
				Value   float64
			}
		}
	}
	raw, err := os.ReadFile(strings.Join(found, ""))
	if err == nil {
		err = json.Unmarshal(raw, &data)
	}
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, w := range data.Workloads {
		for _, v := range w.Values {
			if w.VM != "" {
				values[v.Measure] = v.Value
			}
		}
	}
	return values
}

// TestHostLostAndResumed: an experiment over two machines, of which one crashes in the first run. What was measured is
// kept, the verdict says whose part is missing, no run follows without it, and when it is back resume makes what is
// left.
func TestHostLostAndResumed(t *testing.T) {
	needs.Fio(t)
	l := sshtest.NewApart(t, "db1", "db2")
	dir, plimsoll := onHosts(t, l, hostsScenario, "")
	crashed := make(chan struct{})
	go func() {
		defer close(crashed)
		for range 600 {
			if l.Alive("--output-format=json+") >= 2 { // on both
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		l.Hosts[1].Crash(t)
	}()
	code, text := plimsoll("run", "grid", "--target", "ssh", "--target-opt", "inventory="+l.Inventory, "--target-opt",
		"agents="+l.Dir, "--target-opt", "patience=3s", "--size-scale", "0.002")
	<-crashed
	t.Logf("run ends with %d:\n%s", code, text)
	if code == 0 || !strings.Contains(text, "plimsoll resume") {
		t.Error("it ends well, or does not say how to go on")
	}
	runs, err := filepath.Glob(filepath.Join(dir, "plimsoll-runs", "*", "runs", "*", "data.json"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("no run has data: %v", err)
	}
	var data struct {
		Workloads []struct {
			VM, Ended string
			Ops       []struct{ Count uint64 }
		}
	}
	raw, err := os.ReadFile(runs[0])
	if err == nil {
		err = json.Unmarshal(raw, &data)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range data.Workloads {
		if len(w.Ops) == 0 || w.Ops[0].Count == 0 {
			t.Errorf("nothing that %q did is kept", w.VM)
		}
		if w.VM == "db2" && w.Ended != "lost" {
			t.Errorf("the one that crashed has %q", w.Ended)
		}
	}
	manifest, err := os.ReadFile(filepath.Join(filepath.Dir(runs[0]), "manifest.json"))
	if err != nil || !bytes.Contains(manifest, []byte(`db2 went away under workload`)) {
		t.Errorf("the verdict does not name it: %v, %s", err, manifest)
	}
	l.Hosts[1].Start(t)
	code, text = plimsoll("resume", "latest")
	t.Logf("resume ends with %d:\n%s", code, text)
	if code != 0 || !strings.Contains(text, "0 of 2 runs made") || !strings.Contains(text, "2 of 2 runs measured") {
		t.Error("it does not make the run again that has lost a machine, and go on to its end")
	}
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestKilledPlaybook kills the Ansible of a run while a load goes on, and then one process of it alone, as a kernel
// that wants memory does. The run says so and ends partial, keeps what was measured, and leaves nothing on the host.
func TestKilledPlaybook(t *testing.T) {
	needs.Fio(t)
	needs.Ansible(t)
	for name, c := range map[string]struct {
		sleeps, says string
		worker       bool
	}{
		"all of it": {sleeps: "7654.765", says: "ansible-playbook: signal: killed"},
		"a process": {sleeps: "7654.876", says: "worker was found in a dead state", worker: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := sshtest.NewApart(t, "db1")
			before, after, _ := strings.Cut(hostsScenario, "experiment:\n")
			_, after, _ = strings.Cut(after, "order: interleaved\n")
			dir, plimsoll := onHosts(t, l, strings.Replace(before+after, "runtime_secs: {{ secs }}}",
				"runtime_secs: 600, async: True}\n  - test.Wait: {duration_secs: {{ secs }}}\n  - playbook.Run: "+
					"{filename: play.yml, inventory: [Loader], remote_user: root, remote_pass: x}", 1), "time_based\n")
			sshtest.Write(t, filepath.Join(dir, "grid", "play.yml"), "- hosts: all\n  gather_facts: no\n  tasks:\n"+
				"  - name: Long\n    script: long.sh\n")
			sshtest.Write(t, filepath.Join(dir, "grid", "long.sh"), "#!/bin/bash\nexec sleep "+c.sleeps+"\n")
			hit := make(chan int, 1)
			go func() {
				var processes []int
				for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					if sshtest.Alive(c.sleeps) > 0 {
						processes = ansibles(dir)
						break
					}
				}
				if c.worker && len(processes) > 0 {
					processes = processes[1:]
				}
				if len(processes) > 0 {
					_ = syscall.Kill(processes[0], syscall.SIGKILL)
				}
				hit <- len(processes)
			}()
			code, text := plimsoll("run", "grid", "--target", "ssh", "--target-opt", "inventory="+l.Inventory,
				"--target-opt", "agents="+l.Dir, "--size-scale", "0.002", "--allow-host-commands")
			t.Logf("%d:\n%s", code, text)
			if n := <-hit; n == 0 || code != 1 {
				t.Errorf("hit one process of %d; it ends with %d", n, code)
			}
			for _, want := range []string{`playbook "play.yml"`, c.says, "run: partial", "cleanup: complete"} {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if code, text = plimsoll("report", "latest", "-o", "csv"); code == 1 || !strings.Contains(text, "iops") {
				t.Errorf("what was measured before is not told: %d:\n%s", code, text)
			}
			left, _ := filepath.Glob("/tmp/ansible-tmp-plimsoll-*/long.sh")
			for _, name := range left {
				if data, _ := os.ReadFile(name); strings.Contains(string(data), c.sleeps) {
					t.Errorf("left: %s", name)
				}
			}
			if left := append(l.Remains(), fmt.Sprint(ansibles(dir))); len(left) != 1 || left[0] != "[]" {
				t.Errorf("left: %q", left)
			}
			if n := sshtest.Alive(c.sleeps); n > 0 {
				t.Errorf("%d processes of the playbook still run", n)
			}
		})
	}
}

// ansibles are the processes of Ansible that work below a folder, the one that began the others first.
func ansibles(dir string) (list []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		to, linkError := os.Readlink(link)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		if err == nil && linkError == nil && strings.HasPrefix(to, dir+"/") &&
			bytes.Contains(line, []byte("ansible-playbook")) {
			if group, _ := syscall.Getpgid(pid); group == pid {
				list = slices.Insert(list, 0, pid)
			} else {
				list = append(list, pid)
			}
		}
	}
	return list
}
