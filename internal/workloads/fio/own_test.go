package fio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/scenario"
)

// read loads what Own made as any scenario is loaded, and returns what is wrong with it.
func read(made workload.Own) (*scenario.Scenario, []string) {
	sc, diagnostics := scenario.Load(made.Files, scenario.LoadOptions{File: "test.yml", Nodes: 1,
		CheckQuery: func(string) error { return nil }, Generators: map[string]scenario.Generator{"fio": Engine{}}})
	var bad []string
	for _, d := range diagnostics {
		if d.Severity == scenario.Error {
			bad = append(bad, d.String())
		}
	}
	return sc, bad
}

// TestOwn holds the scenarios that job files become.
func TestOwn(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]workload.OwnRequest{
		"plain":  {},
		"stages": {},
		"joined": {Set: map[string]string{"DEV": "/dev/sdq", "other": "x"}, Size: 8 << 30},
		"swept": {Repeats: 3, Runtime: time.Minute, Sweeps: []workload.Sweep{{Key: "numjobs", Values: []string{"1",
			"8"}},
			{Key: "blocksize", Values: []string{"4k", "64k"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "own", strings.Replace(name, "swept", "plain", 1)+".fio")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r.Name, r.Data = file, data
			made, err := Engine{}.ReadOwn(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, bad := read(made); bad != nil {
				t.Error(strings.Join(bad, "\n"))
			}
			var b strings.Builder
			fmt.Fprintf(&b, "used: %v\n", made.Used)
			for _, n := range made.Notes {
				fmt.Fprintf(&b, "note: %s\n", n)
			}
			for _, f := range []string{"test.yml", "job.fio", "stage-1.fio", "stage-2.fio", "prefill.fio"} {
				if text, err := fs.ReadFile(made.Files, f); err == nil {
					fmt.Fprintf(&b, "\n-- %s --\n%s", f, text)
				}
			}
			golden.Compare(t, filepath.Join("testdata", "own", name+".txt"), []byte(b.String()))
		})
	}
}

// nowhere has no fio to ask.
var nowhere = Engine{Program: "/nonexistent/fio"}

// TestOwnObjections: all at once, each at its place in the author's file.
func TestOwnObjections(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[a]\nrw=read\n": "f.fio:1:1: no size is given for [a]: write size=, or give --job-size",
		"[a]\nszie=1m\n": "f.fio:1:1: no size is given for [a]: write size=, or give --job-size\n" +
			"f.fio:2:6: [a] szie=1m: no option of fio 3.28 to 3.42 has this name, and there is no fio here to ask; did you mean size?",
		"[a]\nsize=1m\nbs=$X\n[b]\nsize=${Y}\n": "f.fio:3:4: [a] bs=$X: the keyword $X is not filled in; write the value\n" +
			"f.fio:5:6: [b] size=${Y}: ${Y} has no value; give one with --set Y=VALUE",
		"[global]\nsize=${X}\nfilename=/tmp/${X}\n[a]\nbs=${X}\n": "" +
			"f.fio:2:6: [global] size=${X}: ${X} has no value; give " +
			"one with --set X=VALUE (also in line 3, 5)",
		"[a]\nrw=read\n[b]\nrw=read\n[c]\nrw=read\n[d]\nrw=read\n": "f.fio:1:1: " +
			"no size is given for [a], [b], [c] and 1 more: write size=, or give --job-size (also in line 3, 5, 7)",
		"[global]\nsize=1m\nrate=1250\n[a]\n[b]\n[c]\n[d]\n": "f.fio:3:6: [a], [b], [c] and 1 more rate=1250: that is one " +
			"operation each 3.28 s, and beside other jobs fio hangs, or loses figures, when a job sleeps so long: write a " +
			"higher rate (it is of bytes: 300k is 300 KiB a second)",
		"[a]\nioengine=rdma\n[b]\nioengine=rdma\n[c]\nioengine=nbd\n": "f.fio:2:10: [a], [b] ioengine=rdma: this engine " +
			"is not allowed here; use libaio, io_uring, psync or another one that only does I/O on the data disks (also in " +
			"line 4)\nf.fio:6:10: [c] ioengine=nbd: this engine is not allowed here; use libaio, io_uring, psync or another " +
			"one that only does I/O on the data disks",
		"[a]\nzonemode=strided\nsize=1m\n": "f.fio:2:10: [a] zonemode=strided: fio refuses it " +
			"without zonesize=: write the size of a zone",
		"[a]\nioengine=rados\npool=x\nsize=1g\n[b]\nprofile=tiobench\n": "f.fio:2:10: [a] ioengine=rados: this engine is not " +
			"allowed here; use libaio, io_uring, psync or another one that only does I/O on the data disks\n" +
			"f.fio:6:9: [b] profile=tiobench: refused: it would replace the job by one built into fio; take it out",
		"[a]\nsize=1m\nfillname=x\niodpeth=3\n": "f.fio:3:10: [a] fillname=x: no option of fio 3.28 to 3.42 has this name, and there is no fio here to ask; did you " +
			"mean filename?\nf.fio:4:9: [a] iodpeth=3: no option of fio 3.28 to 3.42 has this name, and there is no fio here to ask; did you mean iodepth?",
		"[a]\nsize=1m\nnumjobs=0\n":     "f.fio:3:9: [a] numjobs=0: cannot be read before the run; write a plain number with a unit",
		"size=1m\n":                     "f.fio:1:1: option \"size=1m\" stands before any section; put it under [global]",
		"[a]\nsize=9223372036854775807": "f.fio:2:6: [a] size=9223372036854775807: cannot be read before the run; write a plain number with a unit",
	} {
		_, err := nowhere.ReadOwn(workload.OwnRequest{Name: "f.fio", Data: []byte(text)})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%q:\n%s", text, cmp.Diff(want, got))
		}
	}
	const job = "[a]\nsize=1m\n"
	_, err := nowhere.ReadOwn(workload.OwnRequest{Name: "f.fio", Data: []byte(job), Sweeps: []workload.Sweep{
		{
			Key:    "iodpth",
			Values: []string{"1", "2"},
		}, {Key: "filename", Values: []string{"a", "b"}}, {Key: "bs", Values: []string{"4q"}},
		{Key: "iodepth", Values: []string{"1", "1"}}, {Key: "group_reporting", Values: []string{"0", "1"}}}})
	want := `--sweep iodpth: no option of fio 3.28 to 3.42 has this name, and there is no fio here to ask; did you mean iodepth?
--sweep filename: it cannot be swept: it says which disk; give every disk a job of its own
--sweep bs: "4q" is not a whole number, with or without a unit such as k or m
--sweep bs: a sweep takes two values or more, like --sweep bs=1,2,4
--sweep iodepth: "1" stands there twice; --repeat makes more runs of each
--sweep group_reporting: it cannot be swept: it takes no plain value, or is ours to set`
	if got := fmt.Sprint(err); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

// commands makes the job of every workload of a scenario on disks such as its group has.
func commands(made workload.Own, sc *scenario.Scenario) error {
	var disks []target.Disk
	for i, bytes := range sc.Groups[0].DiskBytes {
		disks = append(disks, target.Disk{Device: deviceName(i), Path: fmt.Sprintf("/disks/%d", i), Bytes: bytes})
	}
	var errs []error
	for _, w := range sc.Workloads {
		text, err := fs.ReadFile(made.Files, w.ConfigFile)
		if err == nil {
			_, err = Engine{}.Command(
				workload.Spec{Name: w.Name, VM: "vm", ConfigFile: w.ConfigFile, Config: text, Disks: disks,
					Settings: w.Settings, Prefill: w.Name == "Prefill", Depth: 4},
			)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// TestOwnExamples: every example that comes with fio is a scenario, or is refused for a reason that names its place.
// None of their text is kept here.
func TestOwnExamples(t *testing.T) {
	t.Parallel()
	dir := needs.FioExamples(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.fio"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d examples in %s: %v", len(files), dir, err)
	}
	runs := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		made, err := Engine{}.ReadOwn(workload.OwnRequest{Name: name, Data: data})
		if err != nil {
			if !strings.HasPrefix(err.Error(), name+":") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		runs++
		sc, bad := read(made)
		if bad != nil {
			t.Errorf("%s: %s", name, strings.Join(bad, "\n"))
			continue
		}
		if err := commands(made, sc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Logf("%d of %d examples run", runs, len(files))
	if runs < 34 { // exitwhat.fio, whose jobs sleep for 7 s between operations, hangs fio
		t.Errorf("only %d of %d examples run", runs, len(files))
	}
}

// FuzzOwn: whatever a file says, it is refused, or is a scenario whose jobs are ones that run.
func FuzzOwn(f *testing.F) {
	for _, file := range []string{"plain", "stages", "joined"} {
		data, err := os.ReadFile(filepath.Join("testdata", "own", file+".fio"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), "iodepth", "4")
	}
	f.Add("[{{ 1 }}]\nfilename={% raw %}:a\nsize=1m\nrw=read\n", "bs", "4k")
	f.Add("[a]\nstonewall\nsize=1%\nfilename=/dev/x\n[a]\nstonewall\nsize=1\n[global]\nrw=write\n[a: b]\nsize=2\n",
		"size", "1g")
	f.Fuzz(func(t *testing.T, text, key, value string) {
		made, err := Engine{}.ReadOwn(
			workload.OwnRequest{Name: "x/" + key + ".fio", Data: []byte(text), Set: map[string]string{"DEV": value},
				Sweeps: []workload.Sweep{{Key: key, Values: []string{"1", value}}}},
		)
		if err != nil {
			return
		}
		sc, bad := read(made)
		if bad == nil {
			if err := commands(made, sc); err != nil {
				bad = []string{err.Error()}
			}
		}
		if bad != nil {
			text, _ := fs.ReadFile(made.Files, "test.yml")
			t.Errorf("%s\n%s", strings.Join(bad, "\n"), text)
		}
	})
}

// TestStonewallTime: jobs that wait for each other go on one after the other, and the time of the whole is theirs
// together.
func TestStonewallTime(t *testing.T) {
	t.Parallel()
	job := func(name string, ios, ms int) string {
		return fmt.Sprintf(
			`{"jobname":%q,"elapsed":1,"job_runtime":%d,"read":{"total_ios":%d,"io_bytes":%d,"runtime":%d,`+
				`"lat_ns":{"min":1,"max":9,"mean":5,"stddev":1,"N":%d}}}`,
			name,
			ms,
			ios,
			ios*4096,
			ms,
			ios,
		)
	}
	var b strings.Builder
	for _, at := range []struct{ first, second, wall int }{{1000, 0, 1000}, {2000, 0, 2000}, {2100, 700, 3010}, {2100,
		1700, 4010}, {2100, 2000, 4310}} {
		fmt.Fprintf(&b, `{"fio version":"fio-3.33","timestamp":%d,"timestamp_ms":%d,"jobs":[%s,%s]}`+"\n",
			1000+at.wall/1000, 1_000_000+at.wall, job("section-1", 10*at.first, at.first),
			job("section-2", at.second, at.second))
	}
	var got []time.Duration
	sink := &elapsedSink{}
	if _, err := (Engine{}).Parse(workload.Declared{}, strings.NewReader(b.String()), sink); err != nil {
		t.Fatal(err)
	}
	got = sink.elapsed
	ms := time.Millisecond
	want := []time.Duration{1000 * ms, 2000 * ms, 2800 * ms, 3800 * ms, 4100 * ms}
	if len(got) == 4 { // two that come too soon are one
		want = []time.Duration{1000 * ms, 2000 * ms, 2800 * ms, 4100 * ms}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

type elapsedSink struct{ elapsed []time.Duration }

func (s *elapsedSink) Report(r workload.Report) { s.elapsed = append(s.elapsed, r.Elapsed) }
func (s *elapsedSink) Warn(string)              {}

// TestOwnNamedStages: stages of a file that was made of another tool's have the names that they had there, and jobs
// that share what there is within one stage do not keep the stages together.
func TestOwnNamedStages(t *testing.T) {
	t.Parallel()
	text := "[wd1]\nfilename=/dev/sdb\nsize=1m\nrw=read\nflow=1\nflow_id=1\n[wd2]\nfilename=/dev/sdb\nsize=1m\nrw=read\n" +
		"flow=2\nflow_id=1\n[wd1]\nstonewall\nfilename=/dev/sdb\nsize=1m\nrw=read\n"
	for _, names := range [][]string{{"rd1 xfersize=4k threads=8", "rd2"}, nil} {
		made, err := Engine{}.ReadOwn(workload.OwnRequest{Name: "a.vdb", Data: []byte(text), Stages: names})
		if err != nil {
			t.Fatal(err)
		}
		sc, bad := read(made)
		if bad != nil {
			t.Fatal(strings.Join(bad, "\n"))
		}
		var got []string
		for _, w := range sc.Workloads {
			if w.Name != "Prefill" {
				got = append(got, w.Name)
			}
		}
		want := names
		if names == nil { // flow is the author's own, and may go over stages
			want = []string{"a"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestOwnWorkloads: jobs are workloads by their names, but those that know of each other, and those alike of which
// group_reporting asks the sum.
func TestOwnWorkloads(t *testing.T) {
	t.Parallel()
	const two = "[a]\nrw=randread\n[b]\nrw=write\nbs=128k\n"
	for text, want := range map[string]string{
		"[a]\nrw=read\n":                                "a",
		two:                                             "a & b",
		"[global]\ngroup_reporting\n" + two:             "a & b",
		"[global]\nexitall\n" + two:                     "f",
		"[a]\nrw=read\n[a]\nrw=write\n":                 "a & a (2)",
		"[a b]\nrw=read\n[c/d]\nrw=read\n":              "a-b & c-d",
		"[a]\n[b]\n":                                    "a & b",
		"[global]\ngroup_reporting\n[a]\n[b]\n":         "f",
		two + "[c]\nstonewall\n":                        "a & b, c",
		two + "[c]\nstonewall\n[d]\nbs=8k\n":            "a & b, c & d",
		"[a]\n[b]\nstonewall\n[c]\nstonewall\n":         "a, b, c",
		two + "wait_for=a\n[c]\nwait_for=a\n":           "a, b & c",
		two + "wait_for=a\n[c]\nwait_for=b\n":           "a, b, c",
		two + "[c]\nwait_for=a\n":                       "f",
		two + "wait_for=a\n[c]\n":                       "f",
		two + "wait_for=a\nexitall\n":                   "f",
		"[1]\n[2]\n[3]\n[4]\n[5]\n[6]\n[7]\n[8]\n[9]\n": "f",
	} {
		made, err := Engine{}.ReadOwn(workload.OwnRequest{Name: "f.fio", Data: []byte(text), Size: 1 << 20})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		sc, bad := read(made)
		if bad != nil {
			t.Errorf("%q: %s", text, strings.Join(bad, "\n"))
			continue
		}
		got := ""
		waits := 0
		for _, s := range sc.Run {
			switch {
			case s.Name == "workload.Wait":
				waits--
				continue
			case s.Args.Bool("async"):
				got += s.Args.String("workload_name") + " & "
				waits++
			default:
				got += s.Args.String("workload_name") + ", "
			}
		}
		if got = strings.TrimSuffix(got, ", "); got != want || waits != 0 {
			t.Errorf("%q: workloads %q, want %q, %d not waited for", text, got, want, waits)
		}
		told := strings.Contains(strings.Join(made.Notes, "\n"), "figures are in sum with those of the jobs")
		if told != (want == "f" && strings.Contains(text, "wait_for")) {
			t.Errorf("%q: notes %q", text, made.Notes)
		}
	}
}

// A job that says no size, or a share, means all of a device that is there: neither 1 GiB nor more than it has.
func TestOwnDeviceBytes(t *testing.T) {
	const large = 300<<30 + 4096
	device := func(name string) int64 { return map[string]int64{"/dev/a": large, "/dev/b": 64 << 20}[name] }
	for text, want := range map[string]struct{ size, disks, limit string }{
		"filename=/dev/a\nrw=read\n":                   {"322122547200", "size: 300", "timeout_secs: 30720"},
		"filename=/dev/a:/dev/b\nrw=write\n":           {"134217728", "[64, 64]", "timeout_secs: 86400"},
		"filename=/dev/b\nrw=write\noffset=25%\n":      {"50331648", "[64]", ""},
		"filename=/dev/b\nrw=write\noffset=16m\n":      {"50331648", "[64]", ""},
		"filename=/dev/b\nrw=randread\nsize=50%\n":     {"50%", "[64]", ""},
		"filename=/dev/c\nrw=read\n":                   {"1073741824", "size: 1", ""},
		"filename=/dev/b\nrw=read\nsize=8m\nloops=2\n": {"8m", "[8]", "timeout_secs: 86400"},
		"filename=/dev/a\nrw=write\nloops=9\n":         {"322122547200", "size: 300", "timeout_secs: 2764800"},
	} {
		made, err := Engine{}.ReadOwn(workload.OwnRequest{Name: "f.fio", Data: []byte("[j]\n" + text),
			DeviceBytes: device})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, bad := read(made); bad != nil {
			t.Errorf("%q: %s", text, bad)
		}
		scenario, _ := fs.ReadFile(made.Files, "test.yml")
		names, _ := fs.Glob(made.Files, "*.fio")
		jobs := ""
		for _, name := range names {
			if name != "prefill.fio" {
				b, _ := fs.ReadFile(made.Files, name)
				jobs += string(b)
			}
		}
		if !strings.Contains(jobs, "size="+want.size+"\n") || !strings.Contains(string(scenario), want.disks+"\n") ||
			!strings.Contains(string(scenario), want.limit) {
			t.Errorf("%q: want %v:\n%s%s", text, want, jobs, scenario)
		}
	}
	_, err := Engine{}.ReadOwn(workload.OwnRequest{Name: "f.fio", Data: []byte("[j]\nfilename=/dev/b\noffset=64m\n"),
		DeviceBytes: device})
	if err == nil || err.Error() != "f.fio:3:8: [j] offset=64m: leaves nothing of a device of 64 MiB" {
		t.Errorf("a job behind its device: %v", err)
	}
}

// A rate of one direction is told: the figure of the other is free, and nobody else says that this one is not.
func TestOwnHeldInPart(t *testing.T) {
	for text, want := range map[string]string{
		"rate=,2m": "[j]: rate=,2m: the rate of its writes is what they are held to, and no " +
			"measure of what could be had; its reads have none",
		"rate_iops=100,": "[j]: rate_iops=100,: the rate of its reads is what they are held to, and no " +
			"measure of what could be had; its writes have none",
		"rate_iops=100":         "",
		"rate_iops=100,50":      "",
		"rate=1m,1m":            "",
		"rwmixread=70\nrate=2m": "",
	} {
		made, err := Engine{}.ReadOwn(workload.OwnRequest{Name: "f.fio",
			Data: []byte("[j]\nrw=randrw\nsize=1m\n" + text + "\n")})
		if err != nil || strings.Join(made.Notes, "\n") != want {
			t.Errorf("%q: %v, %q", text, err, made.Notes)
		}
	}
}
