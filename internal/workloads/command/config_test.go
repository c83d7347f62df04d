package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Every mistake in the files of testdata/faulty is objected to, with its place and what to do.
func TestObjections(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/faulty/*.yml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no configs: ", err)
	}
	var all strings.Builder
	for _, path := range paths {
		name := filepath.Base(path)
		err := Engine{}.Validate(specOf(name, read(t, path)))
		if err == nil {
			t.Errorf("%s passes", name)
			continue
		}
		if _, commandErr := (Engine{}).Command(specOf(name, read(t, path))); commandErr == nil ||
			commandErr.Error() != err.Error() {
			t.Errorf("%s: Command says %v, Validate %v", name, commandErr, err)
		}
		fmt.Fprintf(&all, "%v\n", err)
	}
	golden.Compare(t, "testdata/faulty.golden", []byte(all.String()))
}

// What is too large is refused, not cut.
func TestLimits(t *testing.T) {
	t.Parallel()
	const head = "operations: [{name: a, noun: as}]\noutput: {format: lines, records: [{match: '(?P<n>x)', final: " +
		"true, operations: {a: {count: n}}}]}\n"
	for want, config := range map[string]string{
		"at most 262144 are read": "command: [a]\n" + head + "# " + strings.Repeat("x", maxConfig),
		"at most 128 are read":    "command: [" + strings.Repeat("a,", maxArguments) + "a]\n" + head,
		"at most 4096 are read":   "command: [a, " + strings.Repeat("x", maxText+1) + "]\n" + head,
		"env has 257 keys; at most 256": "command: [a]\nenv: {" + strings.Repeat("A: b, ", maxList+1) +
			"}\n" + head,
		"expression has 1001 bytes; at most 1000": "command: [a]\nversion: {command: [a], match: '" +
			strings.Repeat("x", maxPattern+1) + "'}\n" + head,
		"rate must name one of options:, whose value is operations per second; there is no \"qps\"": "command: [a]\nrate: qps\n" +
			head,
		"rate: option qps is \"fast\", which is no number": "command: [a]\nrate: qps\noptions: {qps: fast}\n" + head,
		"from 1 to 1048576, not \"1048577\"":               "command: [a]\nconcurrency: 1048577\n" + head,
		"a word or two, at most 40 bytes": "command: [a]\nmeasures: [{name: m, unit: " +
			strings.Repeat("x", 41) + ", kind: count}]\n" + head,
		"letters, digits, _ . - and at most 64": "command: [a]\nfiles: {../../etc/passwd: x}\n" + head,
		"is a file of plimsoll's own":           "command: [a]\nfiles: {output: x}\n" + head,
		"is a measure of plimsoll's own": "command: [a]\nmeasures: [{name: latency_p99, unit: us, kind: " +
			"single}]\n" + head,
		"anchors and aliases are not read":          "command: &c [a]\nversion: {command: *c, match: (a)}\n" + head,
		"a second document begins":                  "command: [a]\n" + head + "---\na: b\n",
		"it is empty":                               "# nothing\n",
		"it is no YAML":                             "command: [a\n",
		"must be a mapping (key: value), not \"x\"": "x",
	} {
		if err := (Engine{}).Validate(specOf("big.yml", []byte(config))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %.300v, want %q", err, want)
		}
	}
}

// What is declared to be the rate is the stream's, and is set by the word rate whatever the option is called.
func TestRate(t *testing.T) {
	t.Parallel()
	const config = `
command: [tool, "--qps={option qps}", "{runtime}"]
options: {qps: "0"}
rate: qps
operations: [{name: a, noun: as}]
output: {format: lines, records: [{match: '(?P<n>\d+)', final: true, operations: {a: {count: n}}}]}
`
	for rate, want := range map[string]result.Stream{
		"":       {Rate: 0},
		"1500.5": {Rate: 1500.5, OpenLoop: true, Arrivals: result.ArrivalsUnknown},
	} {
		spec, shown := specOf("c.yml", []byte(config)), "0"
		spec.Runtime = time.Second
		if rate != "" {
			shown = rate
			spec.Settings = []scenario.Setting{{Key: "rate", Value: rate}}
		}
		job, err := Engine{}.Command(spec)
		if err != nil {
			t.Fatal(err)
		}
		want.Name, want.Depth, want.TimeBased, want.Runtime = "tool", 1, true, time.Second
		if diff := cmp.Diff([]result.Stream{want}, job.Streams); diff != "" {
			t.Errorf("rate %q: %s", rate, diff)
		}
		argv := []string{"tool", "--qps=" + shown, "1"}
		if diff := cmp.Diff(argv, job.Command.Argv); diff != "" {
			t.Errorf("rate %q: %s", rate, diff)
		}
	}
}

// Placeholders are filled, each argument stays one argument, and nothing goes through a shell.
func TestCommand(t *testing.T) {
	t.Parallel()
	const config = `
command: [tool, "-t{runtime}", "{interval}", "{seed}", "{disk}:{disk /dev/sdc}", "{size 1GiB}", "{duration 90s}", "{name}", "{{}}", "a b; rm $HOME", "{file in.txt}", -o, "{output}"]
env: {LC_ALL: C, SIZE: "{size 10k}"}
files: {in.txt: "data\n"}
concurrency: 8
latency: response time
operations: [{name: a, noun: as}]
output: {from: file, format: lines, records: [{match: '(?P<n>\d+)', final: true, operations: {a: {count: n}}}]}
`
	spec := specOf("c.yml", []byte(config))
	spec.Name, spec.SizeScale, spec.TimeScale, spec.Runtime, spec.Interval = "My Load", 0.5, 0.1, 2500*time.Millisecond,
		5*time.Second
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	folder := workload.FolderName("My Load")
	want := workload.Job{
		Declared: workload.Declared{Operations: []result.Operation{{Name: "a", Noun: "as"}}, Format: job.Format,
			Latency: "response time"},
		Command: target.Command{
			Argv: []string{"tool", "-t3", "5", "43", "/disks/b:/disks/c", "536870912", "9", "My Load", "{}",
				"a b; rm $HOME", folder + "/in.txt",
				"-o", folder + "/output"},
			Env: []string{"LC_ALL=C", "SIZE=4096"}, Stdout: folder + "/stdout", Stderr: folder + "/stderr",
			Label: "My Load",
		},
		Files:   map[string][]byte{folder + "/in.txt": []byte("data\n"), folder + "/command.yml": []byte(config)},
		Output:  folder + "/output",
		Limit:   2500 * time.Millisecond,
		Streams: []result.Stream{{Name: "tool", Depth: 8, TimeBased: true, Runtime: 2500 * time.Millisecond}},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
	spec.Runtime, spec.Disks, spec.Seed = 0, nil, 0
	if err := (Engine{}).Validate(spec); err != nil {
		t.Errorf("the form is in order: %v", err)
	}
	_, err = Engine{}.Command(spec)
	if err == nil || !strings.Contains(err.Error(),
		"c.yml:2:17: {runtime}: the workload is started without a runtime") ||
		!strings.Contains(err.Error(), "{disk}: the machine has no data disk") ||
		!strings.Contains(err.Error(), "{disk /dev/sdc}") {
		t.Errorf("no runtime and no disk: %v", err)
	}
	spec.Prefill = true
	if _, err := (Engine{}).Command(spec); err == nil || !strings.Contains(err.Error(), "cannot be made to prefill") {
		t.Errorf("prefill: %v", err)
	}
}

// tool is a config that asks for a version of a shell's making.
func tool(program, printed, oldest string) []byte {
	return fmt.Appendf(nil, `
command: [%q, x]
version: {command: [echo, %q], match: 'version ([0-9.a-z]+)', oldest: %q}
operations: [{name: a, noun: as}]
output: {format: lines, records: [{match: '(?P<n>\d+)', final: true, operations: {a: {count: n}}}]}
`, program, printed, oldest)
}

func TestCheckTool(t *testing.T) {
	t.Parallel()
	host := workloadtest.NewHost(t)
	for _, c := range []struct{ program, printed, oldest, version, refused string }{
		{"sh", "sh, version 1.10 (x)", "1.9", "sh 1.10", ""},
		{"sh", "version 1.0", "1.0.0", "sh 1.0", ""},
		{"sh", "version 1.0.20", "1.1", "", "it is version 1.0.20, needed is 1.1 or later"},
		{"sh", "version new", "1", "", `"new" cannot be compared with 1`},
		{"sh", "nothing of the kind", "1", "", "echo nothing of the kind printed nothing that matches"},
		{"no-such-program", "version 1", "1", "", "check: no-such-program on testhost: not found; install it in the VMs"},
		{"/hidden/from/others/sh", "version 2", "1", "sh 2", ""}, // its start tells whether it is there
	} {
		got, err := Engine{}.CheckTool(t.Context(), host, specOf("c.yml", tool(c.program, c.printed, c.oldest)))
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) ||
			got.Version != c.version {
			t.Errorf("%s %q, at least %s: %+v, %v; want version %q, error %q", c.program, c.printed, c.oldest, got, err,
				c.version, c.refused)
		}
	}
	for printed, want := range map[string]string{"version 2.1": "sh 2.1", "version 1": "", "none": ""} {
		served := fmt.Appendf(nil, "server: {command: [sh], version: {command: [echo, %q], match: 'version ([0-9.]+)', "+
			"oldest: \"2\"}}%s", printed, tool("client", "", "1"))
		if got, err := (Engine{}).CheckServer(t.Context(), host, specOf("s.yml", served)); got.Version != want ||
			(err == nil) != (want != "") {
			t.Errorf("a server that prints %q: %+v, %v; want version %q", printed, got, err, want)
		}
	}
	unsaid := append([]byte("server: {command: [no-such-program]}"), tool("client", "", "1")...)
	got, err := Engine{}.CheckServer(t.Context(), host, specOf("s.yml", unsaid))
	if got != (workload.Tool{}) || err != nil {
		t.Errorf("a server whose version nothing tells: %+v, %v", got, err)
	}
	if left, err := os.ReadDir(host.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Failures speak in the program's own words, and say how much of the output was understood.
func TestFailures(t *testing.T) {
	t.Parallel()
	const head = "operations: [{name: a, noun: as}]\noutput: {format: lines, records: [{match: '^(?P<t>\\d+) " +
		"(?P<n>\\d+)$', elapsed: {field: t, unit: s}, operations: {a: {count: n}}}, {match: '^all (?P<n>\\d+)$', " +
		"final: true, operations: {a: {count: n}}}]}\n"
	for _, c := range []struct {
		script string
		says   []string
	}{
		{"echo banner 1.0; echo loading; echo two; echo three; echo 'FATAL: no table'; exit 4",
			[]string{"sh ended with code 4", "sh says: FATAL: no table; banner 1.0"}},
		{"echo banner 1.0; echo done", []string{"0 of 2 records matched any of 2 lines",
			`the first line was "banner 1.0"`}},
		{"true", []string{"sh output: it is empty", "sh says: nothing"}},
		{"echo 'all 0'", []string{"did not complete a single operation"}},
		{"echo begun >&2; kill -9 $$", []string{"out of memory?", "begun"}},
	} {
		job := jobOf(t, "f.yml", fmt.Appendf(nil, "command: [sh, -c, %q]\n%s", strings.ReplaceAll(c.script, "{", "{{"),
			head))
		var r workloadtest.Recorder
		err := run(t, job, &r)
		for _, text := range c.says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: error %v lacks %q", c.script, err, text)
			}
		}
	}
}

func run(t *testing.T, job workload.Job, sink workload.Sink) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := Engine{}.Run(ctx, workload.Env{Host: workloadtest.NewHost(t), Clock: clock.Real{}, Raw: io.Discard,
		Sink: sink}, job)
	return err
}

// The file of the reference page does what the page says.
func TestWorkedExample(t *testing.T) {
	t.Parallel()
	page := string(read(t, needs.Root(), "docs", "how-to", "run-any-program.md"))
	_, rest, _ := strings.Cut(page, "```yaml\ncommand:")
	config, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no file")
	}
	job := jobOf(t, "cpu.yml", []byte("command:"+config))
	var r workloadtest.Recorder
	_, err := Engine{}.Parse(job.Declared, bytes.NewReader(read(t, "testdata", "sysbench-cpu.out")), &r)
	if err != nil || len(r.Warnings) > 0 {
		t.Fatal(err, r.Warnings)
	}
	last := r.Reports[len(r.Reports)-1]
	if c := last.Ops[0]; c.Ops != 3985 || c.Hist.Count() != 3985 || c.Seconds != 8.00661 ||
		last.Elapsed != 4014900*time.Microsecond {
		t.Errorf("the last report: %+v", last)
	}
}
