package ansible

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/sshtest"
)

func play(t *testing.T, l *sshtest.Lab, text string) Play {
	t.Helper()
	p := Play{Dir: t.TempDir(), File: "play.yml", Log: filepath.Join(t.TempDir(), "log")}
	sshtest.Write(t, filepath.Join(p.Dir, p.File), text)
	g := Group{Name: "g"}
	for _, s := range l.Hosts {
		g.Hosts = append(g.Hosts, target.Login{Machine: s.Name, User: "root",
			Keys:       []string{filepath.Join(l.Dir, "key")},
			KnownHosts: []string{filepath.Join(l.Dir, "known_hosts")}, KnownAs: knownhosts.Normalize(s.At()),
			Dial: func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", s.At())
			}})
	}
	p.Groups = []Group{g}
	return p
}

// TestFailures: ignored failures, failures and hosts that are not reached, each told once; the recap is whole.
func TestFailures(t *testing.T) {
	needs.Ansible(t)
	l := sshtest.New(t, "a", "b")
	p := play(t, l, "- hosts: all\n  gather_facts: no\n  tasks:\n  - name: One\n    command: 'false'\n"+
		"    ignore_errors: yes\n  - name: Two\n    fail: {msg: no room}\n    when: inventory_hostname == 'b'\n")
	known := p.Groups[0].Hosts[1]
	known.Machine, known.KnownAs = "stranger", "elsewhere"
	p.Groups[0].Hosts = append(p.Groups[0].Hosts, known)
	var tasks []string
	var failures []Failure
	p.Task = func(name string) { tasks = append(tasks, name) }
	p.Failed = func(f Failure) { f.Text = ""; failures = append(failures, f) }
	recap, err := p.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), `host b: task "Two" failed: no room`) ||
		!strings.Contains(err.Error(), `host stranger: task "One" could not be begun`) {
		t.Errorf("error: %v", err)
	}
	if want := []string{"One", "Two"}; !reflect.DeepEqual(tasks, want) {
		t.Errorf("tasks %q, want %q", tasks, want)
	}
	if len(failures) != 4 { // a and b ignored, stranger, b
		t.Errorf("failures: %+v", failures)
	}
	want := []Recap{{Host: "a", OK: 1, Changed: 1, Skipped: 1, Ignored: 1}, {Host: "b", OK: 1, Changed: 1, Failed: 1,
		Ignored: 1}, {Host: "stranger", Unreachable: 1}}
	if !reflect.DeepEqual(recap, want) {
		t.Errorf("recap:\n%+v, want\n%+v", recap, want)
	}
}

// TestOneLine: however much failed, it is told on one line.
func TestOneLine(t *testing.T) {
	err := asOne([]Failure{{Host: "c", Task: "T", Unreachable: true}, {Host: "b", Task: "T", Text: "no\n room"},
		{Host: "a", Task: "T"}, {Host: "d", Task: "T"}})
	want := `host a: task "T" failed; host b: task "T" failed: no room; host d: task "T" failed; and 1 more`
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestLongLine: what comes after a long line is read, as what a loop of thousands fails with may be one; Ansible would
// wait for ever for somebody to read.
func TestLongLine(t *testing.T) {
	p := Play{}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString(`{"kind":"task","task":"` + strings.Repeat("x", 3<<20) + "\"}\n")
		_, _ = w.WriteString(`{"kind":"recap","host":"a","ok":1}` + "\n")
		_ = w.Close()
	}()
	recap, _ := p.follow(r)
	if len(recap) != 1 || recap[0].OK != 1 {
		t.Errorf("recap %v", recap)
	}
}

// TestStop: when the run stops, so do Ansible and what it has started on the host.
func TestStop(t *testing.T) {
	needs.Ansible(t)
	l := sshtest.New(t, "a")
	p := play(t, l, "- hosts: all\n  gather_facts: no\n  tasks:\n  - name: Long\n    script: long.sh {{ mark }}\n")
	mark := filepath.Join(t.TempDir(), "mark")
	p.Variables = map[string]any{"mark": mark}
	sshtest.Write(t, filepath.Join(p.Dir, "long.sh"), "#!/bin/bash\ntouch $1\nexec sleep 7654.321\n")
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for range 600 {
			if _, err := os.Stat(mark); err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		cancel()
	}()
	_, err := p.Run(ctx)
	<-stopped
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the task did not begin: %v", err)
	}
	for range 100 {
		if sshtest.Alive("7654.321") == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("what the playbook started still runs")
}

func TestCheck(t *testing.T) {
	needs.Ansible(t)
	files := fstest.MapFS{
		"good.yml": {Data: []byte("- hosts: all\n  tasks:\n  - debug: msg=yes\n")},
		"bad.yml":  {Data: []byte("- hosts: all\n  tasks:\n  - nonsense: {}\n")},
		"worse":    {Data: []byte("- hosts: [all\n")},
	}
	if err := Check(t.Context(), files, []string{"good.yml"}); err != nil {
		t.Error(err)
	}
	err := Check(t.Context(), files, []string{"bad.yml", "good.yml", "worse"})
	if err == nil || !strings.Contains(err.Error(), `playbook "bad.yml"`) || !strings.Contains(err.Error(), "nonsense") ||
		!strings.Contains(err.Error(), `playbook "worse"`) || strings.Contains(err.Error(), "good.yml") {
		t.Errorf("error: %v", err)
	}
}

// TestHit: Ansible that is killed, or stopped and then ended for that, fails its play with what happened to it, and
// what it has started on the host ends with it.
func TestHit(t *testing.T) {
	needs.Ansible(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		sleeps string
		want   string
		task   string
	}{
		"killed": {syscall.SIGKILL, "7654.432", "signal: killed", "script: long.sh {{ mark }}"},
		"stopped": {syscall.SIGSTOP, "7654.543", "stood still for 1 s and was ended: process ",
			"script: long.sh {{ mark }}"},
		"killed in a module": {syscall.SIGKILL, "7654.654", "signal: killed",
			"shell: touch {{ mark }}; exec sleep 7654.654"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := sshtest.New(t, "a")
			p := play(t, l, "- hosts: all\n  gather_facts: no\n  tasks:\n  - name: Long\n    "+c.task+"\n")
			mark := filepath.Join(t.TempDir(), "mark")
			p.Variables, p.Patience = map[string]any{"mark": mark}, time.Second
			sshtest.Write(t, filepath.Join(p.Dir, "long.sh"), "#!/bin/bash\ntouch $1\nexec sleep "+c.sleeps+"\n")
			private := "" // the folder of ours, by whose name those on the host are known
			copies := func() (list []string) {
				list, _ = filepath.Glob("/tmp/ansible*" + private + "*")
				return list
			}
			var before []string
			hit := make(chan int)
			go func() {
				for range 600 {
					if _, err := os.Stat(mark); err == nil {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				pid := leaderWith(p.Dir)
				environ, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
				_, config, _ := strings.Cut(string(environ), "ANSIBLE_CONFIG=")
				config, _, _ = strings.Cut(config, "\x00")
				private = filepath.Base(filepath.Dir(config))
				before = copies()
				if pid > 0 {
					_ = syscall.Kill(pid, c.signal)
				}
				hit <- pid
			}()
			_, err := p.Run(t.Context())
			if pid := <-hit; pid == 0 || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("process %d, error %v, want %q in it", pid, err, c.want)
			}
			unpacked := strings.Contains(strings.Join(before, " "), "_payload_")
			if after := copies(); len(before) == 0 || len(after) > 0 || unpacked != strings.HasPrefix(c.task, "shell") {
				t.Errorf("folders on the host: %q, then %q", before, after)
			}
			for range 100 {
				if sshtest.Alive(c.sleeps) == 0 {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Error("what the playbook started still runs")
		})
	}
}

// leaderWith is the process that works in a folder and leads its group, 0 for none.
func leaderWith(dir string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if to, linkError := os.Readlink(link); err == nil && linkError == nil && to == dir {
			if group, err := syscall.Getpgid(pid); err == nil && group == pid {
				return pid
			}
		}
	}
	return 0
}
