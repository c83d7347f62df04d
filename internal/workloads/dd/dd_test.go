package dd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/scenario"
)

func TestDD(t *testing.T) {
	needs.Time(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte("commit 8KiB\n"),
		Faulty: []byte("# a log\ncommit 100\n  disc /dev/sdc\ndisk /dev/sdx\n"),
		Objections: []string{
			`suite.cfg:2:1: commit: "100" is not a whole number of sectors`,
			`suite.cfg:3:3: unknown key "disc"; known are commit, disk`,
			`suite.cfg:4:1: disk: the VM has no "/dev/sdx"`,
		},
		Noise: []byte("1+0 records in\n1+0 records out\n"),
	}.Run(t)
}

// printed holds the output of two passes over a disk of four commits, the second cut short by the end of the time.
const printed = "\r4096 bytes (4.1 kB, 4.0 KiB) copied, 2 s, 2.0 kB/s\r" +
	"4+0 records in\n4+0 records out\n16384 bytes (16 kB, 16 KiB) copied, 1.75 s, 9.4 kB/s\n" +
	"1+0 records in\n1+0 records out\n4096 bytes (4.1 kB, 4.0 KiB) copied, 5e-01 s, 8.2 kB/s\ntime is over\n"

var ofPrinted = workload.Declared{Format: json.RawMessage(`{"commit_bytes": 4096, "pass_bytes": 16384}`)}

// A pass goes on from where the one before ended; the seconds that dd has rounded up do not run backwards, nor does one
// moment have two reports.
func TestParse(t *testing.T) {
	var got workloadtest.Recorder
	outcome, err := (Engine{}).Parse(ofPrinted, strings.NewReader(printed), &got)
	report := func(seconds float64, commits uint64, final bool) workload.Report {
		return workload.Report{Elapsed: time.Duration(seconds * float64(time.Second)), Final: final,
			Ops:    workload.Counts{{Ops: commits, Bytes: commits * 4096, Seconds: seconds}},
			Values: []float64{float64(commits) / 4}}
	}
	want := []workload.Report{report(2, 4, false), report(2.5, 5, true)}
	if diff := cmp.Diff(want, got.Reports); diff != "" || err != nil || outcome.Reports != len(want) {
		t.Errorf("%+v, %v\n%s", outcome, err, diff)
	}
}

func TestRefusals(t *testing.T) {
	disk := target.Disk{Device: "/dev/sdb", Path: "/d", Bytes: 4096}
	good := workload.Spec{Name: "Log", ConfigFile: "log", Config: []byte("commit 4KiB"), Disks: []target.Disk{disk},
		Runtime: time.Second}
	for want, change := range map[string]func(*workload.Spec){
		"":                           func(*workload.Spec) {},
		"no prefill":                 func(s *workload.Spec) { s.Prefill = true },
		"give a longer runtime_secs": func(s *workload.Spec) { s.Runtime = 0 },
		"no data disk":               func(s *workload.Spec) { s.Disks = nil },
		"a commit 8192":              func(s *workload.Spec) { s.Config = []byte("commit 8KiB") },
		"log: it needs":              func(s *workload.Spec) { s.Config = nil },
		"job_options: commit": func(s *workload.Spec) {
			s.Settings = []scenario.Setting{{Key: "commit", Value: "1GiB"}}
		},
	} {
		spec := good
		change(&spec)
		_, err := (Engine{}).Command(spec)
		if (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Whatever is printed, counters only grow, and how it is cut into pieces changes nothing.
func FuzzParse(f *testing.F) {
	f.Add([]byte(printed), 7)
	f.Add([]byte("dd: error writing 'x': No space left on device\r\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		var whole, cut workloadtest.Recorder
		_, err := (Engine{}).Parse(ofPrinted, bytes.NewReader(data), &whole)
		if (err != nil) != (len(whole.Reports) == 0) {
			t.Errorf("%d reports, %v", len(whole.Reports), err)
		}
		before := workload.Counters{}
		for _, r := range whole.Reports {
			if now := r.Ops[0]; now.Bytes < before.Bytes || now.Seconds < before.Seconds || now.Ops < before.Ops {
				t.Fatalf("%+v after %+v", now, before)
			}
			before = r.Ops[0]
		}
		if len(data) > longest { // lines that are cut may be cut elsewhere
			return
		}
		p, err := newParser(ofPrinted, &cut)
		if err != nil {
			t.Fatal(err)
		}
		n := min(max(at, 0), len(data))
		p.Feed(data[:n])
		p.Feed(data[n:])
		_, _ = p.Finish() // its error was looked at above
		if diff := cmp.Diff(whole.Reports, cut.Reports); diff != "" {
			t.Error(diff)
		}
	})
}
