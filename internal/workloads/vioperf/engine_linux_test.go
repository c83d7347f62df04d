package vioperf

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
	"plimsoll/result"
	"plimsoll/scenario"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if code, worked := workloadtest.Worker(vioperf.WorkCommand, vioperf.Work); worked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	needs.Time(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte("threads: 2\nblock_size: 64KiB\nqueue_depth: 2\nrate: 20MB/s\n"),
		Faulty: []byte("thread: 2\nblock_size: 64Kb\nqueue_depth: many\ndisk: /dev/sdx\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "thread"; did you mean "threads"?`,
			`suite.cfg:2:13: block_size: size "64Kb"`,
			`suite.cfg:3:14: queue_depth: "many" is no whole number`,
			`suite.cfg:4:7: disk: the VM has no "/dev/sdx"`,
		},
		Noise: []byte("plimsoll: something went wrong\n{\"elapsed_ns\": 1}\n"),
	}.Run(t)
}

// As fast as it goes, histograms are of service times.
func TestFullSpeed(t *testing.T) {
	needs.Time(t)
	workloadtest.Suite{
		Engine:     Engine{},
		Good:       []byte("block_size: 1MiB\nchecksum: false\ncompressibility: 50\n"),
		Faulty:     []byte("- a list\n"),
		Objections: []string{`suite.cfg:1:1: want pairs such as "threads: 2"`},
		Noise:      []byte("{}\n"),
	}.Run(t)
}

var disk = target.Disk{Device: "/dev/sdb", Path: "/d", Bytes: 1 << 30}

func specOf(config string) workload.Spec {
	return workload.Spec{Name: "Load", ConfigFile: "load.yml", Config: []byte(config), Disks: []target.Disk{disk},
		Runtime: time.Minute, Seed: 7}
}

func TestCommand(t *testing.T) {
	job, err := Engine{}.Command(specOf("threads: 3\nrate: 64MiB/s\ncompressibility: 25\n"))
	if err != nil {
		t.Fatal(err)
	}
	part := int64(1<<30) / 3 >> 20 << 20
	want := workload.Job{
		Declared: workload.Declared{Latency: "response time", Operations: []result.Operation{{Name: "write",
			Noun: "writes", Bytes: true, Block: result.BlockWrite}}},
		Command: target.Command{Argv: []string{"./Load/plimsoll", "vioperf-worker", "Load/vioperf.json"},
			Stdout: "Load/output", Stderr: "Load/stderr", Label: "Load"},
		Files: map[string][]byte{"Load/vioperf.json": []byte(`{"path":"/d","bytes":1073741824,"threads":3,` +
			`"block_bytes":1048576,"queue_depth":2,"rate_bytes_per_second":67108864,"checksum":true,` +
			`"compressibility_percent":25,"seed":7,"duration_ns":60000000000}`)},
		Config: "Load/vioperf.json", Output: "Load/output", Limit: time.Minute,
		Streams: []result.Stream{{Name: "writers", Device: "/dev/sdb", Depth: 6, Rate: 64, Writes: true,
			Bytes:    3 * part,
			OpenLoop: true, Arrivals: result.ArrivalsEven, Direct: true, Checksums: true, Reducible: 0.25,
			TimeBased:  true,
			WriteBytes: 1 << 20, Runtime: time.Minute}},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*workload.Spec){
		"":                  func(*workload.Spec) {},
		"no prefill":        func(s *workload.Spec) { s.Prefill = true },
		"give runtime_secs": func(s *workload.Spec) { s.Runtime = 0 },
		"no data disk":      func(s *workload.Spec) { s.Disks = nil },
		"the disk has 4 MiB, a part of": func(s *workload.Spec) {
			s.Disks = []target.Disk{{Path: "/d", Bytes: 4 << 20}}
		},
		"load.yml: queue depth 0": func(s *workload.Spec) { s.Config = []byte("queue_depth: 0") },
		"threads is there twice":  func(s *workload.Spec) { s.Config = []byte("threads: 2\nthreads: 3") },
		"want one value":          func(s *workload.Spec) { s.Config = []byte("threads: [2]") },
		"load.yml:1:1: ":          func(s *workload.Spec) { s.Config = []byte("a: b: c") },
		"neither true nor false":  func(s *workload.Spec) { s.Config = []byte("checksum: 2") },
		"job_options: threads": func(s *workload.Spec) {
			s.Settings = []scenario.Setting{{Key: "threads", Value: "x"}}
		},
	} {
		spec := specOf("")
		change(&spec)
		_, err := Engine{}.Command(spec)
		if (err == nil) != (want == "") || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
