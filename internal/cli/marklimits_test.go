package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/result"
)

// Limits that no rate can meet, or that the jobs never answer, are refused before the first run.
func TestMarkLimits(t *testing.T) {
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[r]\nrw=randread\nbs=4k\nsize=64m\n")
	for limit, want := range map[string]string{
		"write p99 < 1ms": "its jobs do not write",
		"read p99 < 0ms":  "can never hold",
		"mean < -1ms":     "can never hold",
		"p99 > 1ms":       "want a most (<)",
		"iops >= 5000":    "see --assert 'mark >= RATE'",
		"nopm > 3":        `counts no measure "nopm"`,
		"errors > 1":      "errors grow with the load",
		"p42x < 1ms":      `"p42x" is no measure of times, as mean, max and percentiles like p99 are`,
		"":                `--limit "": want [OPERATION] MEASURE < VALUE`,
	} {
		a, out, errs := quiet(t)
		code := a.main([]string{"mark", job, "--target", "sim", "--dir", t.TempDir(), "--limit", limit})
		if code == 0 || !strings.Contains(errs.String(), want) || strings.Contains(errs.String(), "probe 0") {
			t.Errorf("%s: exit code %d, %s%s", limit, code, out, errs)
		}
	}
}

// No rate above --to is offered, the first included; what is varied of a job file is its rate or its VMs.
func TestMarkTo(t *testing.T) {
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[r]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\n")
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{[]string{"--to", "2000"}, 0, "No limit broke up to 2,000 IOPS"},
		{[]string{"--from", "1500", "--to", "2000.4"}, 0, "2,000 IOPS    2,000 IOPS  held: p99 < 5ms at 11 % of its limit\n\n"},
		{[]string{"--limit", "read p95 < 5ms", "--to", "2000"}, 0, "No limit broke up to 2,000 IOPS"},
		{[]string{"--limit", "p90<2", "--to", "2000"}, 0, "held: p99 < 5ms at 11 % of its limit\n"},
		{[]string{"--limit", "p90<0.0001", "--from", "1500", "--to", "2000"}, 5, "p90 < 0.0001s breaks at"},
		{[]string{"--limit", "errors < 0"}, 2, `mark: --limit "errors < 0" can never hold`},
		{[]string{"--limit", "p99<5ms", "--to", "2000"}, 0, "Limits: r p99 < 5ms. "},
		{[]string{"--to", "1e13"}, 2, `"1e13" is more than anything does in a second`},
		{[]string{"--probe", "0s"}, 2, `mark: invalid argument "0s" for "--probe" flag: "0s" is not a length of time above 0`},
		{[]string{"--probe", "1500ms"}, 2, "mark: --probe 1.5s: want whole seconds, 1s or more"},
		{[]string{"--vary", "iodepth"}, 2, `--vary "iodepth": of a job file it is rate or vms`},
	} {
		a, out, errs := quiet(t)
		args := []string{"mark", job, "--target", "sim", "--dir", t.TempDir(), "--limit", "p99 < 5ms"}
		code := a.main(append(args, c.flags...))
		if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit code %d, %s%s", c.flags, code, out, errs)
		}
	}
}

// Of several conditions on the mark all must hold.
func TestMarkAsserts(t *testing.T) {
	var mf markFlags
	for _, text := range []string{"mark >= 10", "mark >= 5k", "mark >= 1"} {
		if err := mf.assert(text); err != nil {
			t.Fatal(err)
		}
	}
	if mf.least != 5000 {
		t.Errorf("at least %v", float64(mf.least))
	}
}

// A plan says what would be offered, how often, for how long and under what, of each condition what is done, and
// touches nothing; what would be refused is.
func TestMarkPlan(t *testing.T) {
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[r]\nrw=randread\nbs=4k\nsize=64m\ndirect=1\n")
	for _, c := range []struct {
		flags []string
		code  int
		want  []string
	}{
		{[]string{"--limit", "errors = 0"}, 0, []string{"Limits: r p99 < 5ms; r errors = 0.", "0.6 of what that did",
			"At most 12 probes, each in a run of its own: at most 13 runs in all, of 10 min 25 s together.",
			"Below 666.7 a second a probe is longer", "2 h 14 min together if all are", "Nothing has been touched.",
			`run workload "r" on group "Load" for 30 s`}},
		{[]string{"--from", "500", "--to", "4000", "--probes", "5"}, 0, []string{"First 500; then",
			"4000 at most", "at most 5 runs in all"}},
		{[]string{"--condition", "alone", "--condition", "worn-in"}, 0, []string{
			"At most 12 probes under each of 2 conditions, each in a run of its own: at most 26 runs in all",
			`One probe under "alone":`, `One probe under "worn-in":`, "precondition"}},
		{[]string{"--vary", "vms", "--to", "8"}, 0, []string{"by vms", "First 1; then", "at most 12 runs in all"}},
		{[]string{"--json"}, 0, []string{`"runs": 13`, `"seconds": 625`, `"longest_seconds": 8035`, `"r p99 < 5ms"`}},
		{[]string{"--limit", "nopm > 3"}, 4, []string{`counts no measure "nopm"`}},
		{[]string{"--condition", "node-lost"}, 2, []string{"two nodes at least"}},
	} {
		a, out, errs := quiet(t)
		dir := filepath.Join(t.TempDir(), "runs")
		code := a.main(append([]string{"mark", job, "--target", "sim", "--dir", dir, "--limit", "p99 < 5ms", "--plan"},
			c.flags...))
		for _, want := range c.want {
			if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, want) {
				t.Errorf("%v: exit code %d, no %q in %s", c.flags, code, want, said)
			}
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%v: there is a folder of runs", c.flags)
		}
	}
}

// A job with a rate of bytes takes none of operations beside it, and a search says so before its first run.
func TestMarkOfBytes(t *testing.T) {
	job := filepath.Join(t.TempDir(), "my.fio")
	write(t, job, "[r]\nrw=randread\nbs=4k\nsize=64m\nrate=10m\n")
	a, out, errs := quiet(t)
	code := a.main([]string{"mark", job, "--target", "sim", "--dir", t.TempDir(), "--limit", "p99 < 5ms"})
	if code != 4 || !strings.Contains(errs.String(), "rate=10m: rate_iops=1000 beside it: fio takes one of them") ||
		strings.Contains(errs.String(), "probe 0") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
}

// What is varied sets the rate of the workload, or is refused with what does.
func TestMarkVariesARate(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s", "test.yml"), `name: s
display_name: S
summary: One.
description: ""
estimated_runtime: 30
vars:
  seconds: {default: 30, min: 1, max: 1000}
  iops: {default: 100, min: 1, max: 100000}
  deep: {default: 8, min: 1, max: 512}
results: []
vms:
  - V: {template: ubuntu1604, vcpus: 1, ram_mb: 512, data_disks: {count: 1, size: 1}, count_per_cluster: 1}
workloads:
  - Open: {vm_group: V, config_file: w.fio, job_options: {rate_iops: {{ iops }}, iodepth: 512}}
  - Closed: {vm_group: V, config_file: w.fio, job_options: {iodepth: {{ deep }}}}
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: V, power_on: True}
run:
  - workload.Start: {workload_name: Open, runtime_secs: {{ seconds }}}
  - workload.Start: {workload_name: Closed, runtime_secs: {{ seconds }}}
teardown: [cluster.CleanUp: {}]
`)
	write(t, filepath.Join(dir, "s", "w.fio"),
		"[r]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nioengine=libaio\ndirect=1\nsize=1g\n")
	for _, c := range []struct {
		vary, workload string
		code           int
		want           []string
	}{
		{"iops", "Open", 0, []string{"A search for the mark of Open, by iops."}},
		{"rate", "Closed", 0, []string{"A search for the mark of Closed"}},
		{"vms", "Closed", 0, []string{"A search for the mark of Closed, by vms."}},
		{"seconds", "Open", 4, []string{`--vary seconds: that is not the rate of workload "Open": its jobs offer 100 a second ` +
			"each whatever it is", "--vary takes one of: rate, vms, iops"}},
		{"deep", "Closed", 4, []string{`--vary deep: that is not the rate of workload "Closed": its jobs offer what they get ` +
			"back (a closed loop)", "--vary takes one of: rate, vms"}},
	} {
		a, out, errs := quiet(t)
		code := a.main([]string{"mark", filepath.Join(dir, "s"), "--target", "sim", "--dir", t.TempDir(), "--limit",
			"read p99 < 5ms", "--vary", c.vary, "--workload", c.workload, "--plan"})
		for _, want := range c.want {
			if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, want) {
				t.Errorf("%s of %s: exit code %d, no %q in %s", c.vary, c.workload, code, want, said)
			}
		}
	}
}

// A job that reads and writes is offered its rate in its own mix, the first at 0.6 of what it did without one, with one
// operation in flight as with many.
func TestMarkKeepsMix(t *testing.T) {
	for _, engine := range []string{"libaio", "psync"} {
		job, dir := filepath.Join(t.TempDir(), "my.fio"), t.TempDir()
		write(t, job, "[m]\nrw=randrw\nrwmixread=70\nbs=4k\nsize=64m\ndirect=1\nnumjobs=2\nioengine="+engine+"\n")
		a, _, errs := quiet(t)
		if code := a.main([]string{"mark", job, "--target", "sim", "--dir", dir, "--limit", "p99 < 5ms"}); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		made, err := filepath.Glob(filepath.Join(dir, "*", "runs", "*"))
		if err != nil || len(made) < 3 {
			t.Fatal(made, err)
		}
		var free float64
		for i, run := range made[:2] {
			opened, err := result.Open(run)
			if err != nil {
				t.Fatal(err)
			}
			d, err := opened.Data()
			if err != nil {
				t.Fatal(err)
			}
			counts := map[string]float64{}
			for _, w := range d.Workloads {
				if w.Name == "m" && w.Merged() {
					for _, o := range w.Ops {
						counts[o.Op] += float64(o.Count) / w.Seconds()
					}
				}
			}
			rate := counts["read"] + counts["write"]
			if share := counts["read"] / rate; math.Abs(share-0.7) > 0.01 {
				t.Errorf("%s, run %d: %v of the operations read", engine, i, share)
			}
			if i == 0 {
				free = rate
			} else if math.Abs(rate/free-0.6) > 0.01 {
				t.Errorf("%s: first %v, of %v without a rate", engine, rate, free)
			}
		}
	}
}
