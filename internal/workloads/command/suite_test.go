package command

import (
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

// counting is a program of the test's own: a shell that counts, ten times a second, until its time is over.
const counting = `
command: [sh, "{file count.sh}", "{runtime}", "{disk}"]
concurrency: 1
files:
  count.sh: |
    i=0
    test -f "$2" || { echo "error: no disk at $2" >&2; exit 3; }
    while [ $i -lt $(($1 * 10)) ]; do
      sleep 0.1
      i=$((i + 1))
      echo "at $((i * 100)) ms: $((i * 7)) steps, $((i * 4096)) bytes, 5 percent"
    done
    echo "0.5 ms or less: $((i * 7))"
    echo "all: $((i * 7)) steps"
operations:
  - {name: step, noun: steps, bytes: true}
measures:
  - {name: busy, unit: "%", better: lower, kind: level}
output:
  format: lines
  records:
    - match: '^at (?P<t>\d+) ms: (?P<n>\d+) steps, (?P<b>\d+) bytes, (?P<busy>\d+) percent'
      elapsed: {field: t, unit: ms}
      operations: {step: {count: n, bytes: {count: b}, mean: {value: 0.5, unit: ms}}}
      measures: {busy: busy}
    - match: '^(?P<ms>[0-9.]+) ms or less: (?P<n>\d+)'
      histogram: {operation: step, upto: {field: ms, unit: ms}, count: n}
    - match: '^all: (?P<n>\d+) steps'
      final: true
      operations: {step: {count: n}}
`

const faulty = `
command: [sh, "{file none.sh}", "{runtim}"]
comand: x
operations:
  - {name: step, noun: steps, byte: true}
output:
  format: lines
  records:
    - match: '(?P<n>\d+'
      final: true
      operations: {step: {count: n}}
`

func TestSuite(t *testing.T) {
	needs.Time(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte(counting),
		Faulty: []byte(faulty),
		Objections: []string{"suite.cfg:2:15", `no "none.sh" under files`, `{runtim}; did you mean "runtime"?`,
			"suite.cfg:3:1", `did you mean "command"?`,
			"suite.cfg:5:31", `did you mean "bytes"?`, "suite.cfg:9:14", "missing closing )"},
		Refused: []byte("command: [sh, -c, 'echo FATAL: no such benchmark >&2; exit 2']\noperations: [{name: a, " +
			"noun: as}]\noutput: {format: lines, records: [{match: '^(?P<n>[0-9]+)$', final: true, operations: {a: " +
			"{count: n}}}]}\n"),
		RefusedWords: []string{"FATAL: no such benchmark", "code 2", "Suite Load"},
		Noise:        []byte("sysbench 1.0\nThreads started!\n"),
	}.Run(t)
}

// Real programs keep the contract, too.
func TestSuiteOfRealPrograms(t *testing.T) {
	for _, name := range []string{"sysbench-cpu", "sysbench-memory", "sysbench-fileio", "stress-ng-metrics"} {
		t.Run(name, func(t *testing.T) {
			if name == "stress-ng-metrics" {
				needs.StressNg(t)
			} else {
				needs.Sysbench(t)
			}
			workloadtest.Suite{
				Engine:     Engine{},
				Good:       read(t, "testdata", name+".yml"),
				Faulty:     []byte(faulty),
				Objections: []string{"runtim"},
				Noise:      []byte("nothing to see\n"),
				AtEnd:      name == "stress-ng-metrics",
			}.Run(t)
		})
	}
}
