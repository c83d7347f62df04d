package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/cli/drivers"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
)

// withPlaybook is a scenario of a playbook for hosts that are there already.
const withPlaybook = `
name: with_playbook
display_name: a playbook on hosts
summary: s
description: ""
estimated_runtime: 60
vms:
  - Loader: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_node: 1}
workloads: []
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: Loader}
  - vm_group.PowerOn: {vm_group_name: Loader}
run:
  - playbook.Run:
      filename: play.yml
      inventory: [Loader]
      variables: {word: hello there, place: PLACE}
      remote_user: root
      remote_pass: secret-word
      annotate: true
teardown:
  - cluster.CleanUp: {}
`

// TestPlaybookOverSSH runs a playbook with the real Ansible on two hosts as a user would: what it does is done, told
// and kept; a task that fails on one host is named with what it said; what Ansible does not read is refused before
// anything starts; and nobody's playbook runs without leave.
func TestPlaybookOverSSH(t *testing.T) {
	needs.Ansible(t)
	l := sshtest.New(t, "db1", "db2")
	dir, place, runs := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "runs")
	plimsoll := extended(runs, func(*drivers.Registry) {})
	write(t, filepath.Join(dir, "test.yml"), strings.ReplaceAll(withPlaybook, "PLACE", place))
	write(t, filepath.Join(dir, "say.sh"), "#!/bin/sh\necho \"$1\" >\"$2\"\n")
	const script = "- hosts: all\n  gather_facts: no\n  tasks:\n  - name: Say it\n    script: say.sh '{{ word }}' " +
		"{{ place }}/{{ inventory_hostname }}\n"
	target := []string{"--target", "ssh", "--target-opt", "inventory=" + l.Inventory, "--target-opt", "agents=" + l.Dir,
		"--size-scale", "0.002"}
	run := func(more ...string) (int, string) {
		return plimsoll(append(append([]string{"run", dir}, target...), more...)...)
	}

	write(t, filepath.Join(dir, "play.yml"), script)
	code, text := run()
	if code == 0 {
		t.Error("a playbook runs without leave")
	}
	says(t, text, "--allow-host-commands")

	code, text = run("--allow-host-commands")
	if code != 0 {
		t.Fatalf("run ends with %d:\n%s", code, text)
	}
	for _, name := range []string{"db1", "db2"} {
		if data, err := os.ReadFile(filepath.Join(place, name)); err != nil || string(data) != "hello there\n" {
			t.Errorf("on %s: %q, %v", name, data, err)
		}
	}
	logs, err := filepath.Glob(filepath.Join(runs, "*", "playbooks", "*-play-*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs of Ansible: %q, %v", logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	says(t, string(data), "TASK [Say it]", "changed: [db1]", "PLAY RECAP")
	journals, err := filepath.Glob(filepath.Join(runs, "*", "journal*"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("journals: %q, %v", journals, err)
	}
	if data, err = os.ReadFile(journals[0]); err != nil {
		t.Fatal(err)
	}
	says(t, string(data), "which changed db1, db2", "db2: ok 1, changed 1", "Say it")
	if strings.Contains(string(data), "secret-word") {
		t.Error("the journal tells the password")
	}

	write(t, filepath.Join(dir, "play.yml"), script+"  - name: Fail on one\n    shell: echo no room >&2; exit 3\n"+
		"    when: inventory_hostname == 'db2'\n")
	code, text = run("--allow-host-commands")
	if code == 0 {
		t.Error("a run whose playbook failed ends with 0")
	}
	says(t, text, "db2", "Fail on one", "no room")

	write(t, filepath.Join(dir, "play.yml"), "- hosts: all\n  tasks:\n  - name: Nonsense\n    no_such_module: {}\n")
	code, text = run("--allow-host-commands")
	if code == 0 {
		t.Error("a playbook that Ansible does not read is run")
	}
	says(t, text, "play.yml", "no_such_module")
	if left := l.Remains(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
