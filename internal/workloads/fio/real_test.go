package fio

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

const mib = 1 << 20

type ran struct {
	outcome workload.Outcome
	err     error
	sink    workloadtest.Recorder
	raw     bytes.Buffer
}

func (r *ran) last() workload.Report { return r.sink.Reports[len(r.sink.Reports)-1] }

// runReal runs a config on a host with the fio of this machine.
func runReal(t *testing.T, host *workloadtest.Host, s workload.Spec, during func(workload.Report)) *ran {
	t.Helper()
	needs.Fio(t)
	s.Name, s.VM, s.ConfigFile, s.Disks = "Real Load", "vm1", "real.fio", host.Disks()
	job, err := Engine{}.Command(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &ran{}
	r.sink.OnReport = during
	r.outcome, r.err = Engine{}.Run(ctx, workload.Env{Host: host, Clock: clock.Real{}, Raw: &r.raw, Sink: &r.sink}, job)
	return r
}

func config(text string) workload.Spec { return workload.Spec{Config: []byte(text)} }

// Files written for old versions of fio, where a zone size stood alone and files were opened a few at a time.
func TestRealOldFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"zones": "[global]\nioengine=libaio\ndirect=1\nnorandommap\n[z]\nfilename=/dev/sdb\nrw=randread\nbs=64k\n" +
			"size=32m\nfilesize=32m\nzonesize=1m\nzoneskip=1m\n",
		"files": "[global]\nioengine=libaio\ndirect=1\niodepth_batch=2\n[f]\nfilename=/dev/sdb\nrw=write\nbs=64k\n" +
			"size=8m\nnrfiles=1\nopenfiles=1\nzero_buffers\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runReal(t, workloadtest.NewHost(t, 32<<20), config(text), nil)
			if r.err != nil {
				t.Fatal(r.err)
			}
		})
	}
}

// What the file asks for is what fio does: sizes, offsets, directions, rates, and every operation in a bin.
func TestRealOptionsTakeEffect(t *testing.T) {
	t.Parallel()
	s := config("[global]\nioengine=psync\nbs=64k\n[w]\nfilename=/dev/sdb\nsize=64m\noffset=32m\nrw=write\n[r]\n" +
		"filename=/dev/sdc\nsize=32m\nrw=randread\nnorandommap\n")
	s.SizeScale = 0.125
	r := runReal(t, workloadtest.NewHost(t, 16*mib, 16*mib), s, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	end := r.last()
	if end.Ops[1].Bytes != 8*mib || end.Ops[1].Ops != 128 || end.Ops[0].Bytes != 4*mib || end.Ops[0].Ops != 64 ||
		!end.Final {
		t.Errorf("ended with %+v", end)
	}
	if end.Ops[1].Hist.Count() != 128 || end.Ops[0].Hist.Count() != 64 || end.Ops[1].Hist.Sum() <= 0 {
		t.Errorf("histograms hold %d and %d", end.Ops[1].Hist.Count(), end.Ops[0].Hist.Count())
	}
	if r.outcome.Usage.User+r.outcome.Usage.System <= 0 {
		t.Errorf("usage %+v", r.outcome.Usage)
	}
}

// A rate and a runtime in the file, scaled: 10 s become 1 s, and the offered load stays what it was.
func TestRealRateAndTimes(t *testing.T) {
	t.Parallel()
	s := config("[j]\nioengine=psync\nfilename=/dev/sdb\nbs=4k\nrw=randread\nrate_iops=200\ntime_based\nruntime=15s\n")
	s.TimeScale, s.Runtime = 0.1, time.Hour // the file's own runtime wins
	r := runReal(t, workloadtest.NewHost(t, 4*mib), s, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	if end := r.last(); end.Elapsed < 1400*time.Millisecond || end.Elapsed > 2900*time.Millisecond ||
		end.Ops[0].Ops < 150 || end.Ops[0].Ops > 600 {
		t.Errorf("ended after %v with %d operations", end.Elapsed, end.Ops[0].Ops)
	}
}

// Being told apart changes nothing but the reports: the same operations in the same order of stages, threads of a
// section together.
func TestRealSections(t *testing.T) {
	t.Parallel()
	text := "[global]\nioengine=psync\nfilename=/dev/sdb\nbs=4k\nsize=1m\n[data-read]\nrw=randread\nnumjobs=2\n" +
		"rate_iops=150\n" +
		"[data-write]\nrw=randrw\nrwmixread=25\nstartdelay=1\n[log]\nrw=write\nbs=16k\nrate_iops=100\nstonewall\n" +
		"[end]\nrw=read\n"
	var ends []workload.Report
	for _, allowed := range []int{0, workload.MostSections} {
		s := config(text)
		s.Seed, s.Sections = 7, allowed
		r := runReal(t, workloadtest.NewHost(t, 4*mib), s, nil)
		if r.err != nil {
			t.Fatal(r.err)
		}
		ends = append(ends, r.last())
		if allowed == 0 {
			continue
		}
		for _, rep := range r.sink.Reports {
			if s := rep.Sections; len(s) != 4 || s[2][1].Ops > 0 &&
				(s[0][0].Ops < 512 || s[1][0].Ops+s[1][1].Ops < 256) {
				t.Errorf("the log was written before the stage before it had ended: %+v", s)
			}
		}
	}
	type counts struct{ ops, bytes, hist uint64 }
	of := func(c workload.Counters) counts { return counts{c.Ops, c.Bytes, c.Hist.Count()} }
	if diff := cmp.Diff([]counts{of(ends[0].Ops[0]), of(ends[0].Ops[1])},
		[]counts{of(ends[1].Ops[0]), of(ends[1].Ops[1])}, cmp.AllowUnexported(counts{})); diff != "" {
		t.Errorf("other totals:\n%s", diff)
	}
	s := ends[1].Sections
	mixed := of(s[1][0])
	want := []counts{{512, 2 * mib, 512}, {256 - mixed.ops, mib - mixed.bytes, 256 - mixed.ops}, {64, mib, 64},
		{256, mib, 256}}
	if diff := cmp.Diff(want, []counts{of(s[0][0]), of(s[1][1]), of(s[2][1]), of(s[3][0])},
		cmp.AllowUnexported(counts{})); diff != "" {
		t.Error(diff)
	}
}

func TestRealPrefillWritesEverything(t *testing.T) {
	t.Parallel()
	host := workloadtest.NewHost(t, 8*mib)
	if err := os.WriteFile(host.Disks()[0].Path, make([]byte, 8*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config("[a]\nfilename=/dev/sdb\nsize=4m\nrw=randread\n[b]\nfilename=/dev/sdb\nsize=4m\noffset=4m\n" +
		"rw=randread\nzero_buffers\n")
	s.Prefill, s.Depth = true, 2
	r := runReal(t, host, s, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	data, err := os.ReadFile(host.Disks()[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	zero := make([]byte, 4096)
	for at := 0; at < len(data); at += len(zero) {
		if bytes.Equal(data[at:at+len(zero)], zero) {
			t.Fatalf("nothing was written at %d", at)
		}
	}
	if len(data) != 8*mib || r.last().Ops[1].Bytes != 8*mib {
		t.Errorf("the disk has %d bytes, %d were written", len(data), r.last().Ops[1].Bytes)
	}
}

func TestRealKilledByOthers(t *testing.T) {
	t.Parallel()
	host := workloadtest.NewHost(t, 4*mib)
	s := config("[j]\nioengine=psync\nfilename=/dev/sdb\nbs=4k\nrw=randread\nrate_iops=100\ntime_based\n")
	s.Runtime = time.Hour
	killed := false
	r := runReal(t, host, s, func(workload.Report) {
		if !killed {
			killed = true
			for _, pid := range host.Pids() {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
		}
	})
	if r.err == nil || !strings.Contains(r.err.Error(), `signal "killed"`) {
		t.Errorf("got %v", r.err)
	}
	if len(r.sink.Reports) == 0 || r.outcome.Exit.Signal != "killed" || r.outcome.Stopped {
		t.Errorf("%d reports, %+v", len(r.sink.Reports), r.outcome)
	}
}

// Writes beyond a limit fail, as on a full disk. fio goes on only after EIO and EILSEQ; any other error ends the job,
// and what it did until then stands.
func TestRealDiskFull(t *testing.T) {
	t.Parallel()
	host := workloadtest.NewHost(t, 2*mib)
	host.Wrap = []string{"/bin/sh", "-c", `trap '' XFSZ; ulimit -f 2048; exec "$@"`, "sh"} // 512-byte units: 1 MiB
	r := runReal(t, host, config("[j]\nioengine=psync\nfilename=/dev/sdb\nbs=64k\nsize=2m\nrw=write\n"), nil)
	for _, want := range []string{"code 1", "job j ended with error 27 (file too large)", "disk0.img", "Real Load",
		"testhost"} {
		if r.err == nil || !strings.Contains(r.err.Error(), want) {
			t.Errorf("%v lacks %q", r.err, want)
		}
	}
	if len(r.sink.Reports) == 0 || r.last().Ops[1].Bytes != mib {
		t.Errorf("reports %+v", r.sink.Reports)
	}
}

func TestRealRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"depth of 0": {"[j]\nfilename=/dev/sdb\niodepth=0\n", []string{"min value out of range", "code 1", "testhost",
			"Real Load"}},
		"tiny size": {"[j]\nfilename=/dev/sdb\nsize=512\nbs=4k\n", []string{"size too small", "raise --size-scale"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runReal(t, workloadtest.NewHost(t, mib), config(c.config), nil)
			if r.err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(r.err.Error(), want) {
					t.Errorf("%q lacks %q", r.err, want)
				}
			}
		})
	}
}

// A program that ends with success and an empty report has not measured anything.
func TestNothingDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, want string }{
		"no operation": {status{stampMS: t0, runtimeMS: 1000}.String(), "did not complete a single operation"},
		"no output":    {"", "it is empty"},
		"only words":   {"fio: nothing to do\n", "fio says: fio: nothing to do"},
	} {
		host := workloadtest.NewHost(t, mib)
		if err := target.WriteFile(t.Context(), host, "prepared", []byte(c.output)); err != nil {
			t.Fatal(err)
		}
		job := workload.Job{Output: "w/fio.out",
			Command: target.Command{Label: "w", Argv: []string{"/bin/sh", "-c", "mkdir -p w; cp prepared w/fio.out"}}}
		var sink workloadtest.Recorder
		_, err := Engine{}.Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &bytes.Buffer{},
			Sink: &sink}, job)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The same seed gives the same offsets, another seed others. fio itself tells, through a log that only this test asks
// for.
func TestRealSeeds(t *testing.T) {
	t.Parallel()
	fio := needs.Fio(t)
	host := workloadtest.NewHost(t, 4*mib)
	offsets := func(seed uint64) string {
		s := config("[j]\nioengine=psync\nfilename=/dev/sdb\nbs=4k\nrw=randread\nnumber_ios=200\n")
		s.Name, s.ConfigFile, s.Disks, s.Seed = "seeds", "seeds.fio", host.Disks(), seed
		job, err := Engine{}.Command(s)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range job.Files {
			if err := target.WriteFile(t.Context(), host, name, data); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), fio, append(append([]string{}, "--write_iolog=io.log"),
			job.Command.Argv[1:]...)...)
		cmd.Dir = host.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		log, err := os.ReadFile(filepath.Join(host.Dir, "io.log"))
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Remove(t.Context(), "io.log"); err != nil { // fio appends
			t.Fatal(err)
		}
		var b strings.Builder
		for line := range strings.Lines(string(log)) {
			if fields := strings.Fields(line); len(fields) == 5 { // time, file, action, offset, length
				fmt.Fprintln(&b, fields[3])
			}
		}
		return b.String()
	}
	a, again, other := offsets(math.MaxInt64), offsets(math.MaxInt64), offsets(1)
	if strings.Count(a, "\n") != 200 || a != again {
		t.Errorf("the same seed gave other offsets:\n%s", cmp.Diff(strings.Fields(a), strings.Fields(again)))
	}
	if a == other {
		t.Error("another seed gave the same offsets")
	}
}

// fio itself accepts what comes out of every published job file, with our defaults in force.
func TestRealAcceptsPublishedJobs(t *testing.T) {
	t.Parallel()
	fio := needs.Fio(t)
	root := needs.Corpus(t, "xray")
	host := workloadtest.NewHost(t, mib, mib, mib, mib, mib, mib)
	var roomy []target.Disk
	for _, d := range host.Disks() {
		d.Bytes = 0 // unknown: the scenarios' disks differ in size
		roomy = append(roomy, d)
	}
	files := 0
	seen := make(map[string]bool) // many published files have the same content
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".fio" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, prefill := range []bool{false, true} {
			s := workload.Spec{Name: "p", ConfigFile: filepath.Base(path), Config: text, Disks: roomy, SizeScale: 0.002,
				TimeScale: 0.02,
				Runtime:   60 * time.Second, Seed: 5, Prefill: prefill, Depth: 1}
			job, err := Engine{}.Command(s)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if text := string(job.Files["p/job.fio"]) + string(job.Files["p_prefill/job.fio"]); !seen[text] {
				seen[text] = true
				showcmd(t, fio, host, job)
			}
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// showcmd lets fio parse a job, and checks that every section carries our defaults.
func showcmd(t *testing.T, fio string, host *workloadtest.Host, job workload.Job) {
	t.Helper()
	for name, data := range job.Files {
		if err := target.WriteFile(t.Context(), host, name, data); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), fio, append([]string{"--showcmd"}, job.Command.Argv[1:]...)...)
	cmd.Dir = host.Dir
	out, err := cmd.CombinedOutput()
	if err == nil { // --showcmd writes to --output
		out, err = os.ReadFile(filepath.Join(host.Dir, job.Output))
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"--lat_percentiles=1", "--clat_percentiles=0", "--group_reporting", "--disk_util=0",
		"--continue_on_error=all"} {
		if strings.Count(string(out), want) != 1 {
			t.Errorf("%s does not stand once in %q", want, out)
		}
	}
	if got := strings.Count(string(out), "--name="); got != len(job.Streams) {
		t.Errorf("fio sees %d jobs, want %d", got, len(job.Streams))
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   workload.Tool
		err    string
	}{
		"good":    {"echo fio-3.36-44-g9bc9", workload.Tool{Version: "fio-3.36-44-g9bc9"}, ""},
		"oldest":  {"echo fio-3.28-dirty", workload.Tool{Version: "fio-3.28-dirty"}, ""},
		"too old": {"echo fio-3.27", workload.Tool{Version: "fio-3.27"}, "needed is 3.28 or later; install it with"},
		"ancient": {"echo fio-2.1.4", workload.Tool{Version: "fio-2.1.4"}, "needed is 3.28 or later"},
		"other": {"echo file indexing for office", workload.Tool{Version: "file indexing for office"},
			"no version of fio"},
		"broken": {"exit 3", workload.Tool{}, "not found; install it with: apt-get install fio"},
		"absent": {"", workload.Tool{}, "not found; install it with: apt-get install fio"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := workloadtest.NewHost(t, mib)
			program := filepath.Join(host.Dir, "myfio")
			if c.script != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.want.Version != "" {
				c.want.Path = program
			}
			got, err := Engine{Program: program}.Check(t.Context(), host)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

// BenchmarkParseReal measures a stream that the fio of this machine writes at the benchmark's start.
func BenchmarkParseReal(b *testing.B) {
	fio := needs.Fio(b)
	host := workloadtest.NewHost(b, 16*mib)
	cmd := exec.CommandContext(b.Context(), fio, "--output-format=json+", "--status-interval=1", "--eta=never",
		"--output=out",
		"--lat_percentiles=1", "--clat_percentiles=0", "--group_reporting", "--ioengine=psync", "--rw=randrw",
		"--bs=4k", "--size=16m",
		"--time_based", "--runtime=3", "--filename="+host.Disks()[0].Path, "--name=j")
	cmd.Dir = host.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(host.Dir, "out"))
	if err != nil {
		b.Fatal(err)
	}
	benchmarkParse(b, data)
}

// A pass of a preconditioning writes every disk from its beginning to its end, whatever the sections say and however
// sizes are scaled, with data that are no zeros.
func TestRealWhole(t *testing.T) {
	t.Parallel()
	host := workloadtest.NewHost(t, 8*mib, 3*mib)
	s := config("[a]\nfilename=/dev/sdb\nrw=randread\nbs=4k\nsize=1m\nzero_buffers\n")
	s.Prefill, s.Whole, s.Block, s.Depth, s.SizeScale = true, true, 128<<10, 4, 0.5
	r := runReal(t, host, s, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	if end := r.last(); end.Ops[1].Bytes != 11*mib || end.Ops[1].Ops != 88 || end.Ops[0].Ops != 0 || end.Errors != 0 {
		t.Errorf("ended with %+v", end)
	}
	for i, d := range host.Disks() {
		data, err := os.ReadFile(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		zero := make([]byte, 4096)
		for at := 0; at < len(data); at += len(zero) {
			if bytes.Equal(data[at:at+len(zero)], zero) {
				t.Fatalf("disk %d: block at byte %d was not written", i+1, at)
			}
		}
		if int64(len(data)) != d.Bytes {
			t.Errorf("disk %d has %d bytes, want %d", i+1, len(data), d.Bytes)
		}
	}
}
