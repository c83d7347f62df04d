package integrity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	integrity "plimsoll/internal/workloads/integrity/driver"
	"plimsoll/result"
	"plimsoll/scenario"
)

// TestMain has the test's own executable be the worker, as plimsoll is on a machine.
func TestMain(m *testing.M) {
	if code, worked := workloadtest.Worker(integrity.WorkCommand, integrity.Work); worked {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	needs.Time(t)
	workloadtest.Suite{
		Engine: Engine{},
		Good:   []byte("size: 4MiB\nblock_size: 4KiB\nflush_every: 64KiB\nthreads: 2\n"),
		Faulty: []byte("thread: 2\nblock_size: 64Kb\npasses: many\ndisk: /dev/sdx\norder: up\nflush_every: 0\n"),
		Objections: []string{
			`suite.cfg:1:1: unknown key "thread"; did you mean "threads"?`,
			`suite.cfg:2:13: block_size: size "64Kb"`,
			`suite.cfg:3:9: passes: "many" is no whole number from 1 on`,
			`suite.cfg:4:7: disk: the VM has no "/dev/sdx"`,
			`suite.cfg:5:8: order: "up" is none of sequential, random`,
			`suite.cfg:6:14: flush_every: "0" is no size from 1 on`,
		},
		Noise: []byte("plimsoll: something went wrong\n{\"elapsed_ns\": 1}\nintegrity-verified 0 {}\n"),
	}.Run(t)
}

var disk = target.Disk{Device: "/dev/sdb", Path: "/d", Bytes: 1 << 30}

func specOf(config string) workload.Spec {
	return workload.Spec{Name: "Ledger", ConfigFile: "l.yml", Config: []byte(config), Disks: []target.Disk{disk},
		Seed: 7}
}

func TestCommand(t *testing.T) {
	spec := specOf("size: 1MiB\nblock_size: 8KiB\n")
	spec.Runtime = time.Minute
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := workload.Job{
		Declared: workload.Declared{Operations: []result.Operation{{Name: "write", Noun: "writes", Bytes: true,
			Block: result.BlockWrite}}, Measures: []result.Measure{
			{Name: "acknowledged", Unit: "blocks", Kind: result.Count, Better: result.Higher},
			{Name: "flushes", Unit: "flushes", Kind: result.Count, Better: result.Higher}}},
		Command: target.Command{Argv: []string{"./Ledger/plimsoll", "integrity-worker", "Ledger/integrity.json"},
			Stdout: "Ledger/output", Stderr: "Ledger/stderr", Label: "Ledger"},
		Files: map[string][]byte{"Ledger/integrity.json": []byte(`{"path":"/d","device":"/dev/sdb","bytes":1048576,` +
			`"threads":4,"block_bytes":8192,"flush_bytes":65536,"order":"random","duration_ns":60000000000}`)},
		Config: "Ledger/integrity.json", Output: "Ledger/output", Limit: time.Minute,
		Streams: []result.Stream{{Name: "blocks", Device: "/dev/sdb", Depth: 4, Pauses: true, Writes: true,
			Bytes: 1 << 20, Direct: true, TimeBased: true, WriteBytes: 8 << 10, Random: 1, Runtime: time.Minute}},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*workload.Spec){
		"":             func(*workload.Spec) {},
		"no prefill":   func(s *workload.Spec) { s.Prefill = true },
		"no data disk": func(s *workload.Spec) { s.Disks = nil },
		"size: /dev/sdb has 1 GiB, and 2 GiB are": func(s *workload.Spec) { s.Config = []byte("size: 2GiB") },
		"block of 1000 bytes":                     func(s *workload.Spec) { s.Config = []byte("block_size: 1000") },
		"0 threads":                               func(s *workload.Spec) { s.Config = []byte("threads: 0") },
		"want the name of the workload":           func(s *workload.Spec) { s.Config = []byte("written_by: ''") },
		"has no size, no passes": func(s *workload.Spec) {
			s.Config = []byte("written_by: W\nsize: 1GiB\npasses: 2")
		},
		"want one value": func(s *workload.Spec) { s.Config = []byte("threads: [2]") },
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

// ran runs a job on a machine and gives what it printed.
func ran(t *testing.T, host target.Host, config string, during time.Duration, earlier []byte) (raw []byte,
	live *workloadtest.Recorder, err error) {
	t.Helper()
	live = &workloadtest.Recorder{}
	spec := specOf(config)
	spec.Name = fmt.Sprintf("Ledger %d", len(earlier))
	spec.Disks, spec.Runtime = host.Disks(), during
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	env := workload.Env{Host: host, Clock: clock.Real{}, Raw: &out, Sink: live,
		Earlier: func(name string) (io.ReadCloser, error) {
			if name != "Ledger write" || earlier == nil {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(earlier)), nil
		}}
	_, err = Engine{}.Run(t.Context(), env, job)
	return out.Bytes(), live, err
}

const verifies = "written_by: Ledger write\n"

// found are the values of a verification's last report that are not 0.
func found(t *testing.T, live *workloadtest.Recorder) map[string]float64 {
	t.Helper()
	if len(live.Reports) == 0 {
		t.Fatal("no report")
	}
	out := map[string]float64{}
	for i, v := range live.Reports[len(live.Reports)-1].Values {
		if v != 0 {
			out[integrity.Measures(true)[i]] = v
		}
	}
	return out
}

// TestLiars plays a storage that acknowledges and does not keep: chosen blocks are put back to what they were at an
// earlier moment, or worse. Each is counted by its kind and named by its address, and no other is.
func TestLiars(t *testing.T) {
	const blocks, size = 256, 4096
	host := workloadtest.NewHost(t, blocks*size)
	path := host.Disks()[0].Path
	content := func() []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	_, _, err := ran(t, host, "passes: 1", 0, nil) // another write, whose blocks are foreign
	foreign := content()
	if err != nil {
		t.Fatal(err)
	}
	raw, wrote, err := ran(t, host, "passes: 3\norder: sequential", 0, nil)
	sound := content()
	if err != nil {
		t.Fatal(err)
	}
	if last := wrote.Reports[len(wrote.Reports)-1]; !slices.Equal(last.Values, []float64{3 * blocks, 3 * blocks / 16}) {
		t.Errorf("the write reports %v", last.Values)
	}
	// The same write as it was in its second pass: what a storage falls back to.
	older := bytes.Clone(sound)
	for at := 0; at < len(older); at += integrity.Sector {
		sector := older[at : at+integrity.Sector]
		binary.LittleEndian.PutUint32(sector[24:], 2) // the generation, then the checksum: see the stamps
		binary.LittleEndian.PutUint32(sector[4:], crc32.Checksum(sector[8:], crc32.MakeTable(crc32.Castagnoli)))
	}
	for name, c := range map[string]struct {
		damage func(disk []byte)
		found  map[string]float64
		told   []string
	}{
		"honest": {damage: func([]byte) {}},
		"stale": {func(d []byte) { copy(d[5*size:7*size], older[5*size:]) }, map[string]float64{"lost": 2, "stale": 2},
			[]string{"stale: byte 20480 to 28672: generation 2, 3 was acknowledged"}},
		"torn": {func(d []byte) { copy(d[9*size:9*size+1024], older[9*size:]) },
			map[string]float64{"lost": 1, "torn": 1},
			[]string{"torn: byte 36864 to 37888: generation 2, 3 was acknowledged"}},
		"never written": {func(d []byte) { clear(d[255*size:]) }, map[string]float64{"lost": 1, "zeroed": 1},
			[]string{"zeroed: byte 1044480 to 1048576"}},
		"foreign": {func(d []byte) { copy(d[:size], foreign[:size]) },
			map[string]float64{"lost": 1, "foreign": 1}, nil},
		"misdirected": {func(d []byte) { copy(d[:size], sound[8*size:9*size]) },
			map[string]float64{"lost": 1, "misdirected": 1},
			[]string{"misdirected: byte 0 to 4096: belongs at byte 32768, generation 3"}},
		"all of them old": {func(d []byte) { copy(d, older) }, map[string]float64{"lost": blocks, "stale": blocks},
			[]string{"stale: byte 0 to 1048576: generation 2, 3 was acknowledged"}},
		"another disk": {func(d []byte) { copy(d, foreign) },
			map[string]float64{"lost": blocks, "foreign": blocks}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := bytes.Clone(sound)
			c.damage(damaged)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			_, live, err := ran(t, host, verifies, 0, raw)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{"checked": blocks}
			for k, v := range c.found {
				want[k] = v
			}
			if diff := cmp.Diff(want, found(t, live)); diff != "" {
				t.Error(diff)
			}
			if c.told != nil && !slices.Equal(live.Warnings, c.told) || c.found == nil && len(live.Warnings) > 0 {
				t.Errorf("it says %q, want %q", live.Warnings, c.told)
			}
			if name == "another disk" && !strings.Contains(fmt.Sprint(live.Warnings), "is this the disk") {
				t.Errorf("it says %q", live.Warnings)
			}
		})
	}
}

// TestRecords: a record may end anywhere, and then claims less; what is no record is refused.
func TestRecords(t *testing.T) {
	needs.Time(t)
	host := workloadtest.NewHost(t, 1<<20, 1<<20)
	raw, _, err := ran(t, host, "flush_every: 4KiB\npasses: 40", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	claimed := math.Inf(1)
	for _, share := range []int{4, 3, 2, 1} {
		cut := raw[:len(raw)*share/4-min(1, 4-share)]
		rec, err := integrity.ReadRecord(bytes.NewReader(cut))
		if err != nil {
			t.Fatal(err)
		}
		if n := float64(rec.Acknowledged.Writes(&rec.Manifest)); n >= claimed {
			t.Errorf("%d quarters claim %v", share, n)
		} else {
			claimed = n
		}
		_, live, err := ran(t, host, verifies, 0, cut)
		if err != nil || found(t, live)["lost"] != 0 {
			t.Errorf("%d quarters of the record: %v, %v", share, found(t, live), err)
		}
	}
	none := bytes.Replace(raw, []byte(`"bytes":`), []byte(`"bytez":`), 1)
	for name, c := range map[string]struct {
		raw    []byte
		config string
		want   string
	}{
		"none":         {nil, verifies, "has left no output on this machine; start it first"},
		"empty":        {[]byte{}, verifies, "it holds no record of a write: none had begun; let the writing run for longer"},
		"damaged":      {none, verifies, "says what was to be written is damaged"},
		"two":          {slices.Concat(raw, raw), verifies, "the record of two writes"},
		"goes back":    {slices.Concat(raw, lines[len(lines)-3], lines[1]), verifies, "goes back"},
		"another disk": {raw, verifies + "disk: /dev/sdc", `"Ledger write" wrote /dev/sdb, and this reads /dev/sdc`},
	} {
		if _, _, err := ran(t, host, c.config, 0, c.raw); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestInterrupted: a machine that goes away in the middle takes no claim with it that it had told, and what it wrote
// since is no damage.
func TestInterrupted(t *testing.T) {
	host := workloadtest.NewHost(t, 4<<20)
	spec := specOf("flush_every: 16KiB")
	spec.Disks, spec.Runtime = host.Disks(), time.Hour
	job, err := Engine{}.Command(spec)
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	live := workloadtest.Recorder{OnReport: func(workload.Report) { host.Lose() }}
	if _, err := (Engine{}).Run(t.Context(), workload.Env{Host: host, Clock: clock.Real{}, Raw: &raw, Sink: &live},
		job); err != nil {
		t.Fatal(err)
	}
	again := workloadtest.NewHost(t, 4<<20)
	b, err := os.ReadFile(host.Disks()[0].Path)
	if err := errors.Join(err, os.WriteFile(again.Disks()[0].Path, b, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, checked, err := ran(t, again, verifies, 0, raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got := found(t, checked)
	if got["checked"] == 0 || got["lost"] != 0 {
		t.Errorf("found %v", got)
	}
}

// TestDisksThatFail: a disk that is gone, too small, or full ends the job with what to look at.
func TestDisksThatFail(t *testing.T) {
	gone := workloadtest.NewHost(t, 1<<20)
	if err := os.Remove(gone.Disks()[0].Path); err != nil {
		t.Fatal(err)
	}
	small := workloadtest.NewHost(t, 1<<20)
	if err := os.Truncate(small.Disks()[0].Path, 4096); err != nil {
		t.Fatal(err)
	}
	full := workloadtest.NewHost(t, 1<<20)
	full.Wrap = []string{"sh", "-c", `ulimit -f 512; trap "" XFSZ; exec "$@"`, "sh"} // like a full disk: no write beyond
	for want, host := range map[string]*workloadtest.Host{
		"no such file or directory":                             gone,
		"/dev/sdb has 4 KiB, and 1 MiB of it are to be written": small,
		"/dev/sdb: write at byte":                               full,
	} {
		if _, _, err := ran(t, host, "order: sequential\nblock_size: 64KiB", 0, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
