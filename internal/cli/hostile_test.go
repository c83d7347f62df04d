package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"plimsoll/internal/kit/visible"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/visibletest"
)

// hostileScenario writes a scenario that runs and in which every text is hostile: all of the texts, each where the
// language lets it stand. It returns the directory.
func hostileScenario(t *testing.T) string {
	t.Helper()
	next := visibletest.Turns()
	text := func() string { // as YAML can hold it
		for {
			if s := strings.ToValidUTF8(next(), "?"); strings.TrimSpace(s) != "" {
				return s
			}
		}
	}
	used := map[string]bool{}
	name := func(most int) string { // of its own
		for {
			s := text()
			for len(s) > most || len([]rune(s)) > most {
				_, last := utf8.DecodeLastRuneInString(s)
				s = s[:len(s)-last]
			}
			plain := regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(s, "_")
			if strings.TrimSpace(s) != "" && !used[plain] && len(used) < 1000 {
				used[plain] = true
				return s
			}
		}
	}
	type m = map[string]any
	var groups, workloads, results, setup, run []m
	var members []string
	for range 6 {
		g := name(18)
		groups = append(groups, m{g: m{"template": text(), "data_disks": m{"count": 1, "size": 4},
			"count_per_cluster": 1}})
		setup = append(setup, m{"vm_group.CloneFromTemplate": m{"vm_group_name": g, "power_on": true,
			"annotate": true}})
		members = append(members, g)
	}
	for i := range 24 {
		w := name(150)
		workloads = append(workloads, m{w: m{"vm_group": members[i%len(members)], "config_file": "a.fio"}})
		run = append(run, m{"workload.Start": m{"workload_name": w, "runtime_secs": 10, "async": true,
			"annotate": true}})
		errs := m{"workload_name": w, "result_type": "errors", "report_metrics": []string{"AnyFail"}}
		results = append(results, m{"errors of " + w: errs})
	}
	for i := range len(visibletest.Texts) {
		results = append(results, m{text()[:1] + fmt.Sprint(i): m{
			"vm_group": members[i%len(members)], "result_type": "iops", "title": text(), "description": text(),
			"result_hint": text(), "report_group": text(), "group": text(), "x_label": text(), "y_label": text(),
			"result_value_bands": []m{{"name": text(), "upper": 1e6, "lower": 0}},
		}})
	}
	for i := range 3 {
		query := m{"vm_group": members[0], "result_type": "generic", "query": text()}
		results = append(results, m{fmt.Sprint("query ", i): query})
		command := m{"vm_group_name": members[i], "command": text(), "user": "root", "annotate": true}
		run = append(run, m{"vm_group.RunCommand": command})
	}
	run = append(run, m{"test.Wait": m{"duration_secs": 20, "annotate": true}})
	vars := m{}
	for i := range 8 {
		vars[fmt.Sprint("v", i)] = m{"default": text(), "description": text()}
	}
	var description strings.Builder
	for _, h := range visibletest.Texts {
		description.WriteString("<p>" + strings.ToValidUTF8(h.Text, "?") + "</p>\n")
	}
	file := "vars:\n"
	for name, v := range vars {
		file += fmt.Sprintf("  %s: %s\n", name, flow(t, v))
	}
	for key, v := range (m{
		"name": text(), "display_name": text(), "summary": text() + text(), "description": description.String(),
		"tags": []string{text(), text()}, "estimated_runtime": 60, "vms": groups, "workloads": workloads,
		"results": results, "setup": setup, "run": run, "teardown": []m{{"cluster.CleanUp": m{}}},
	}) {
		file += key + ":"
		if list, ok := v.([]m); ok {
			for _, e := range list {
				file += "\n - " + strings.ReplaceAll(flow(t, e), "{", "{{ '{' }}")
			}
		} else {
			file += " " + strings.ReplaceAll(flow(t, v), "{", "{{ '{' }}")
		}
		file += "\n"
	}
	dir := filepath.Join(t.TempDir(), "hostile\x1b[31m\u202e\n=1+1")
	write(t, filepath.Join(dir, "test.yml"), file)
	job := "[global]\nioengine=libaio\ndirect=1\ntime_based\nrw=randrw\nbs=64k\n" +
		"iodepth=1\nrate_iops=20,20\nsize=1G\nfilename=/dev/sdb\n"
	for _, h := range visibletest.Texts {
		s := strings.Trim(h.Text, " ]")
		if s != "" && len(s) < 40 && visible.Line(s) == s && !strings.ContainsAny(s, ";#[]$") {
			job += "[" + s + "]\n"
		}
	}
	write(t, filepath.Join(dir, "a.fio"), job)
	return dir
}

// flow is a value in YAML's flow style, in ASCII.
func flow(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range string(data) {
		if r < 0x7f {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// TestHostileScenario runs a scenario of hostile texts on the simulated cluster and has everything printed of it that a
// command prints: no control character, nothing hidden, no line of its own making, no file of an odd name.
func TestHostileScenario(t *testing.T) {
	needs.Time(t)
	dir := hostileScenario(t)
	home := t.TempDir()
	runs := filepath.Join(home, "runs")
	say := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := Main(append([]string{"--dir", runs}, args...), strings.NewReader(""), &out, &errs)
		if want >= 0 && code != want {
			end := out.String()[max(0, out.Len()-3000):]
			t.Fatalf("%q: exit code %d, want %d\n%.3000s\n%s", args, code, want, errs.String(), end)
		}
		for stream, text := range map[string]string{"standard output": out.String(), "standard error": errs.String()} {
			if loose := visibletest.Loose(text); loose != "" {
				t.Errorf("%.200q: %s: %s", args, stream, loose)
			}
			for line := range strings.Lines(text) {
				if forged.MatchString(line) {
					t.Errorf("%.200q: %s: a forged line: %q", args, stream, line)
				}
			}
			if len(text) > 64<<20 {
				t.Errorf("%.200q: %s: %d bytes", args, stream, len(text))
			}
		}
		wanted := slices.Contains(args, "json") || slices.Contains(args, "--json")
		if wanted && code == 0 && out.Len() > 0 && !json.Valid(out.Bytes()) {
			t.Errorf("%.200q: not JSON", args)
		}
		return out.String()
	}
	say(0, "check", dir)
	say(-1, "check", "--strict", dir)
	say(0, "check", dir, "--json")
	say(0, "scenarios", "show", dir)
	say(0, "scenarios", "show", dir, "--json")
	say(0, "plan", dir, "--target", "sim")
	say(0, "plan", dir, "--target", "sim", "--json")
	summary := say(0, "run", dir, "--target", "sim")
	if n := strings.Count(summary, "\nrun: complete   collection: complete   cleanup: complete   (succeeded)\n"); n != 1 {
		t.Errorf("%d lines of verdicts:\n%s", n, summary)
	}
	say(0, "run", dir, "--target", "sim", "--target-opt", "seed=2")
	entries, err := os.ReadDir(runs)
	if err != nil || len(entries) != 2 {
		t.Fatal(err, entries)
	}
	id, other := entries[0].Name(), entries[1].Name()
	for _, args := range [][]string{
		{"runs", "list"}, {"runs", "list", "--json"}, {"runs", "show", id}, {"runs", "show", id, "--json"},
		{"analyze", id, "--all"}, {"analyze", id, "-o", "md"}, {"analyze", id, "-o", "json"},
		{"metrics", "query", id, "plimsoll_workload_active"}, {"metrics", "query", id, "plimsoll_workload_active",
			"-o", "csv"},
		{"metrics", "query", id, "plimsoll_workload_active", "--json"},
		{"metrics", "export", id, "--match", "plimsoll_workload_active"},
		{"changes", id}, {"steady", id}, {"cleanup"}, {"cleanup", "--json"},
		{"compare", id, other, "--anyway"}, {"compare", id, other, "--anyway", "-o", "md"},
		{"compare", id, other, "--anyway", "-o", "html"}, {"compare", id, other, "--anyway", "-o", "json"},
		{"baseline", "set", "b", id}, {"baseline", "show"}, {"baseline", "check", "b", other, "--anyway"},
	} {
		if len(say(-1, args...)) == 0 {
			t.Errorf("%q prints nothing", args)
		}
	}
	for _, format := range []string{"html", "json", "csv", "md"} {
		file := filepath.Join(home, "report."+format)
		shown := say(0, "report", id, "-o", format)
		say(0, "report", id, "-o", format, "--output", file)
		if kept, err := os.ReadFile(file); err != nil || string(kept) != shown {
			t.Errorf("report -o %s: the file is not what is printed: %v", format, err)
		}
	}
	filesOfRun(t, filepath.Join(runs, id))
}

// forged is how a text would begin a line of its own.
var forged = regexp.MustCompile(`^plimsoll: all is well|^run: complete .*\(succeeded\)\\r`)

// filesOfRun looks at what a run has left: file names, JSON, the report.
func filesOfRun(t *testing.T, dir string) {
	t.Helper()
	plain := regexp.MustCompile(`^[A-Za-z0-9_%.][-A-Za-z0-9_.%=]{0,219}$`)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !plain.MatchString(d.Name()) {
			t.Errorf("file %q", path)
		}
		if d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".json":
			if !json.Valid(text) || !utf8.Valid(text) {
				t.Errorf("%s is not JSON", path)
			}
		case ".jsonl":
			for line := range bytes.Lines(text) {
				if !json.Valid(line) || !utf8.Valid(line) {
					t.Errorf("%s: %q is not JSON", path, line)
				}
			}
		case ".html":
			if loose := visibletest.Loose(string(text)); loose != "" {
				t.Errorf("%s: %s", path, loose)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHostileArguments gives hostile texts where commands take a name, a path, a value or the content of a file: what
// is printed of them is visible.
func TestHostileArguments(t *testing.T) {
	needs.Time(t)
	dir := t.TempDir()
	for i, h := range visibletest.Texts {
		bad := filepath.Join(dir, fmt.Sprint("bad", i))
		write(t, filepath.Join(bad, "test.yml"), "name: x\n"+h.Text+"\nvms: "+h.Text)
		quoted, err := json.Marshal(h.Text)
		if err != nil {
			t.Fatal(err)
		}
		value := filepath.Join(dir, fmt.Sprint("value", i))
		write(t, filepath.Join(value, "test.yml"), fmt.Sprintf("name: x\nestimated_runtime: %[1]s\n%[1]s: 1\n"+
			"vms: [{%[1]s: {vcpus: %[1]s}}]\nrun: [{%[1]s: {}}]\n", quoted))
		sheet := filepath.Join(dir, fmt.Sprintf("sheet%d.csv", i))
		write(t, sheet, "n,"+string(quoted)+"\n1,"+h.Text+"\n2,3\n")
		arg := strings.ReplaceAll(h.Text, "\x00", "")
		for _, args := range [][]string{
			{"check", bad}, {"check", value}, {"plan", value}, {"check", arg}, {arg}, {"--" + arg},
			{"report", arg}, {"report", "-o", arg, arg}, {"runs", arg}, {"runs", "show", arg},
			{"check", bad, "--set", arg + "=" + arg}, {"plan", "db-colocation", "--target", arg},
			{"usl", sheet}, {"steady", sheet}, {"changes", sheet, "--column", arg}, {"analyze", sheet},
			{"baseline", "set", arg, arg}, {"compare", arg, sheet}, {"scenarios", "show", arg},
			{"scenarios", "new", filepath.Join(bad, "test.yml"), "--from", arg},
		} {
			var out, errs bytes.Buffer
			_ = Main(append([]string{"--dir", filepath.Join(dir, "runs")}, args...), strings.NewReader(""), &out, &errs)
			for stream, text := range map[string]string{"standard output": out.String(),
				"standard error": errs.String()} {
				if loose := visibletest.Loose(text); loose != "" {
					t.Errorf("%s: %.200q: %s: %s", h.Name, args, stream, loose)
				}
			}
		}
	}
}
