package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/scenario"
)

const optional = `
command: [tool, "{option threads}", "{option size}", "{runtime}", "{disk /dev/sdc}"]
options: {threads: 2, size: 1M}
operations: [{name: a, noun: as}]
output: {format: lines, records: [{match: '(?P<n>[0-9]+)', final: true, operations: {a: {count: n}}}]}
`

// Settings of a workload take the place of the file's own values, and nothing else.
func TestOptions(t *testing.T) {
	t.Parallel()
	spec := specOf("o.yml", []byte(optional))
	spec.Settings = []scenario.Setting{{Key: "threads", Value: "8; reboot"}}
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tool", "8; reboot", "1M", "4", "/disks/c"}, job.Command.Argv); diff != "" {
		t.Error(diff)
	}
	spec.Settings = []scenario.Setting{{Key: "thread", Value: "8"}}
	want := `o.yml: there is no "thread" under options: of the file; did you mean "threads"?`
	if err := (Engine{}).Validate(spec); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// What is wrong with a file, for its VMs or for a step is said when the scenario is checked.
func TestGenerator(t *testing.T) {
	t.Parallel()
	c, objections := Engine{}.ReadConfig("o.yml", []byte(optional), nil)
	if c == nil || len(objections) > 0 {
		t.Fatal(objections)
	}
	codes := map[string]bool{"bounds": true}
	for _, k := range (Engine{}).Codes() {
		codes[k.Name] = true
	}
	show := func(list []scenario.Objection) string {
		var lines []string
		for _, o := range list {
			if !codes[o.Code] {
				t.Errorf("code %q is none of the engine's", o.Code)
			}
			lines = append(lines, fmt.Sprintf("%s %d:%d %s", o.Code, o.Line, o.Col, o.What))
		}
		return strings.Join(lines, "\n")
	}
	_, faults := Engine{}.ReadConfig("o.yml", []byte("command: [a]\noptions: 5\n"),
		[]scenario.Setting{{Key: "x", Value: "1"}})
	for got, want := range map[string]string{
		show(faults): "bounds 0:0 there is no \"x\" under options: of the file; there is none\n" +
			"command-file 1:1 the file lacks \"output\"\ncommand-file 2:10 options must be a mapping (key: value), " +
			"not \"5\"",
		show(c.Fit(scenario.Use{Workload: "W", DiskBytes: []int64{1, 1}})): "",
		show(c.Fit(scenario.Use{Workload: "W", DiskBytes: []int64{1},
			Prefilled: true})): "command-prefill 0:0 workload \"W\": a program of " +
			"one's own cannot be made to prefill\ncommand-disk 2:67 {disk /dev/sdc}: the machine has no /dev/sdc; it " +
			"has /dev/sdb",
		show(c.Start(scenario.Start{Workload: "W", Runtime: true})): "",
		show(c.Start(scenario.Start{Workload: "W"})): "command-runtime 0:0 workload \"W\": its " +
			"program is told a runtime with {runtime}, and the step gives none",
	} {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
