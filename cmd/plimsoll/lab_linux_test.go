package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
)

// labSession is a session whose labs lie in a folder of its own, with the options that its runs on one have.
func labSession(t *testing.T) (s session, temporary string, run []string) {
	t.Helper()
	needs.Lab(t, false)
	needs.QEMU(t)
	agent, runs, scenario := needs.Program(t, "./cmd/plimsoll-agent"), t.TempDir(), tiny(t)
	temporary, err := os.MkdirTemp("", "pl") // short, since sockets are below
	if err != nil {
		t.Fatal(err)
	}
	needs.Outlives(t, temporary)
	t.Cleanup(func() { _ = os.Remove(temporary) }) // when it is empty, which the tests see to
	s = session{t: t, runs: filepath.Join(runs, "runs"),
		env: []string{"TMPDIR=" + temporary, "PLIMSOLL_LAB=/nowhere/lab"}}
	return s, temporary, []string{"run", scenario, "--target", "lab", "--nodes", "2", "--size-scale", "0.01", "--set",
		"seconds=2", "--target-opt", "storage=shared", "--target-opt", "agent=" + agent}
}

// nothingLeft demands that neither labs nor what runs in them are left.
func nothingLeft(t *testing.T, temporary string) {
	t.Helper()
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", temporary, left, err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range processes {
		if line, err := os.ReadFile(p); err == nil && strings.Contains(string(line), temporary) {
			t.Errorf("%s still lives: %q", filepath.Dir(p), line)
		}
	}
}

// A run where no lab is up makes one, works in guests, and takes it down.
func TestRunOnLab(t *testing.T) {
	t.Parallel()
	s, temporary, run := labSession(t)
	out := s.must(run...)
	for _, want := range []string{"run: complete   collection: complete   cleanup: complete   (succeeded)", "Load"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	nothingLeft(t, temporary)
	if out := s.cleaned(); out != "" {
		t.Errorf("cleanup: %s", out)
	}
}

// Plimsoll is killed while it makes a lab, starts guests, and has them work: a fresh process removes all of it.
func TestRunOnLabKilled(t *testing.T) {
	needs.Long(t, "labs of its own; kills of lab up, and of runs on this machine, are in every run")
	s, temporary, run := labSession(t)
	for _, moment := range []string{"run workload", "", "power on group"} {
		cmd := s.command(t.Context(), run...)
		lines, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for moment == "" && t.Context().Err() == nil { // the lab has begun to be
			if found, _ := filepath.Glob(filepath.Join(temporary, "*", "lab.json")); len(found) > 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		var last string
		for r := bufio.NewScanner(lines); moment != "" && r.Scan(); {
			if last = r.Text(); strings.Contains(last, moment) {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !strings.Contains(last, moment) {
			t.Fatalf("it ended before %q: %s", moment, last)
		}
		s.must("cleanup")
		nothingLeft(t, temporary)
	}
}

// TestFaultsOnLab runs what the lab is for, at the smallest size, each run with a lab of its own: the loads, faults and
// guests are real, and every sentence that a user would act on is there.
func TestFaultsOnLab(t *testing.T) {
	t.Parallel()
	const redfish, shared = "power=redfish", "storage=shared"
	integrity := []string{"storage-integrity", "--nodes", "2", "--size-scale", "0.0625", "--set", "write_secs=30",
		"--set", "dark_secs=2", "--set", "disk_gb=1", "--target-opt", shared}
	upgrade := filepath.Join("..", "..", "..", "shared", "corpus", "xray", "rolling_upgrade")
	for name, c := range map[string]struct {
		args []string
		says []string // findings: check, subject and severity; the first is with what the summary begins
		not  []string
	}{
		"colocation": {
			args: []string{"db-colocation", "--nodes", "3", "--time-scale", "0.005", "--size-scale", "0.001"},
			says: []string{"windows OLTP", "latency-cost OLTP"},
		},
		"power-loss": {
			args: []string{"power-loss", "--nodes", "3", "--time-scale", "0.25", "--size-scale", "0.002", "--set",
				"before_secs=30", "--set", "after_secs=60"},
			says: []string{"lost-writes Ledger check info", "recovery OLTP", "node-return run info"},
			not:  []string{"errors Ledger check warning"},
		},
		"node-loss": {
			args: []string{"node-loss", "--nodes", "3", "--time-scale", "0.5", "--size-scale", "0.002", "--set",
				"before_secs=30", "--set", "dark_secs=40", "--set", "after_secs=30", "--target-opt", redfish},
			says: []string{"recovery Kept"},
			not:  []string{"recovery Kept info After \"vm", "recovery Kept warning After \"vm"},
		},
		"integrity": {args: integrity, says: []string{"lost-writes Stamped check info"}},
		"dropped-flush": {
			args: append(slices.Clone(integrity), "--target-opt", "flush=dropped"),
			says: []string{"lost-writes Stamped check invalid"},
		},
		"rolling-upgrade": {
			args: []string{upgrade, "--nodes", "3", "--time-scale", "0.01", "--size-scale", "0.0002", "--target-opt",
				shared},
			says: []string{"migrations"},
		},
		"boot-storm": {
			args: []string{"boot-storm", "--nodes", "2", "--set", "desktops_per_node=3", "--set", "alone_secs=10",
				"--set", "settle_secs=10", "--size-scale", "0.002", "--target-opt", shared, "--target-opt",
				"memory=128MiB"},
			says: []string{"boots"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "integrity" {
				needs.Long(t, "guests of its own; integrity has a power loss in every run")
			}
			if name == "rolling-upgrade" {
				needs.Corpus(t, "xray")
			}
			t.Parallel()
			s, temporary, run := labSession(t)
			agent := run[len(run)-1]
			out := s.must(append([]string{"run"}, append(c.args, "--target", "lab", "--target-opt", agent)...)...)
			nothingLeft(t, temporary)
			var got struct {
				Findings []struct{ Check, Subject, Severity, Sentence string }
			}
			if err := json.Unmarshal([]byte(s.must("report", "latest", "-o", "json")), &got); err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range got.Findings {
				lines = append(lines, strings.Join([]string{f.Check, f.Subject, f.Severity, f.Sentence}, " "))
			}
			for _, want := range c.says {
				if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
					t.Errorf("no finding %q in:\n%s", want, strings.Join(lines, "\n"))
				}
			}
			answer, told := sentences(out), false
			for i, f := range got.Findings {
				head := regexp.MustCompile(`[;,(.] |\)[;.]`).Split(f.Sentence, 2)[0]
				told = told || strings.HasPrefix(lines[i], c.says[0]) && strings.Contains(answer, head[1:])
			}
			if !told {
				t.Errorf("the answer %q is not that of %s:\n%s", answer, c.says[0], strings.Join(lines, "\n"))
			}
			for _, no := range c.not {
				if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, no) }) {
					t.Errorf("a finding %q in:\n%s", no, strings.Join(lines, "\n"))
				}
			}
		})
	}
}

// withDatabase is a scenario whose server is one guest and whose clients are another, after a playbook has been there.
const withDatabase = `
name: with_database
display_name: a database in guests
summary: s
description: ""
estimated_runtime: 60
vms:
  - Database: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_cluster: 1}
  - Clients: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_cluster: 1}
workloads:
  - Lookups: {vm_group: Clients, generator: pgbench, config_file: load.yml, iogen_params: {reporting_interval: 1}}
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Database}
  - vm_group.CloneFromTemplate: {vm_group_name: Clients}
  - vm_group.PowerOn: {vm_group_name: Database}
  - vm_group.PowerOn: {vm_group_name: Clients}
  - playbook.Run:
      filename: play.yml
      inventory: [Database]
      variables: {word: hello there}
      remote_user: root
      remote_pass: secret-word
  - workload.PrefillRun: {workload_name: Lookups}
run:
  - workload.Start: {workload_name: Lookups, runtime_secs: 5}
teardown:
  - cluster.CleanUp: {}
`

// TestDatabaseOnLab has a playbook set up a guest by the real Ansible, and a PostgreSQL in it serve clients in another.
func TestDatabaseOnLab(t *testing.T) {
	needs.Long(t, "a guest with a whole Debian; databases and playbooks have tests of their own in every run")
	needs.Ansible(t)
	needs.Debian(t)
	t.Parallel()
	s, temporary, run := labSession(t)
	dir := t.TempDir()
	place(t, filepath.Join(dir, "test.yml"), withDatabase)
	place(t, filepath.Join(dir, "load.yml"), "server: {vm_group: Database}\nbuiltin: select-only\nscale: 1\nclients: 2\n")
	place(t, filepath.Join(dir, "play.yml"), "- hosts: Database\n  tasks:\n"+
		"  - {name: Say it, copy: {content: '{{ word }}', dest: /srv/said}}\n"+
		"  - {name: Read it, command: \"grep -c '^{{ word }}$' /srv/said\"}\n")
	args := []string{"run", dir, "--allow-host-commands", "--target", "lab", "--nodes", "2", "--size-scale", "0.01",
		"--target-opt", "image=debian", "--target-opt", "memory=512MiB"}
	out := s.must(append(args, run[len(run)-4:]...)...) // the storage and the agent
	for _, want := range []string{"run: complete   collection: complete   cleanup: complete   (succeeded)", "Lookups"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	nothingLeft(t, temporary)
	journals, _ := filepath.Glob(filepath.Join(s.runs, "*", "journal.jsonl"))
	if len(journals) != 1 {
		t.Fatalf("journals: %q", journals)
	}
	journal, err := os.ReadFile(journals[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(journal), "ok 3, changed 2") || strings.Contains(string(journal), "secret-word") {
		t.Errorf("of the playbook the journal says:\n%s", journal)
	}
}
