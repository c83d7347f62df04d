package fio

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/workloads/fio/fiofile"
	"plimsoll/scenario"
)

const two = "[global]\nioengine=libaio\nrw=randread\ntime_based\n[a]\nfilename=/dev/sdb\nsize=1G\nbs=8k\n[b]\n" +
	"filename=/dev/sdb\nsize=1G\n"

// A workload's settings reach every job: in place where a section has the option, else in [global] and every job.
func TestSettings(t *testing.T) {
	settings := []scenario.Setting{{Key: "bs", Value: "4k"}, {Key: "iodepth", Value: "8"}}
	job, err := Engine{}.Command(workload.Spec{Name: "W", VM: "vm", ConfigFile: "w.fio", Config: []byte(two),
		Settings: settings,
		Disks:    []target.Disk{{Device: "/dev/sdb", Path: "/dev/vdb", Bytes: 2 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	type stream struct {
		depth int
		bytes float64
	}
	var got []stream
	for _, l := range job.Streams {
		got = append(got, stream{l.Depth, l.ReadBytes})
	}
	if diff := cmp.Diff([]stream{{8, 4096}, {8, 4096}}, got, cmp.AllowUnexported(stream{})); diff != "" {
		t.Error(diff)
	}
}

// One rate_iops is that of each direction to fio, which makes any mix an even one (measured with fio 3.36: rwmixread=70
// and rate_iops=50 do 300 reads and 300 writes in 6 s; 70,30 do 420 and 180). A search for a mark keeps the mix.
func TestRateKeepsMix(t *testing.T) {
	for _, c := range []struct {
		job, rate  string
		keep       bool
		sum, reads float64
	}{
		{"rw=randrw\nrwmixread=70\n", "50", true, 100, 0.7},
		{"rw=randrw\nrwmixread=70\n", "50", false, 100, 0.5},
		{"rw=rw\nrwmixwrite=75\nrate_iops=7\n", "2", true, 4, 0.25},
		{"rw=randrw\n", "50", true, 100, 0.5},
		{"rw=randrw\nrwmixread=100\n", "50", true, 100, 0.99},
		{"rw=randrw\nrwmixread=70\n", "10,90", true, 100, 0.1},
		{"rw=randrw\nrwmixread=70\n", "0", true, 0, 0.7},
		{"rw=randread\nrwmixread=70\n", "50", true, 50, 1},
		{"rw=randwrite\n", "50", true, 50, 0},
	} {
		settings := []scenario.Setting{{Key: "rate_iops", Value: c.rate}}
		if c.keep {
			settings = append(settings, scenario.Setting{Key: workload.KeepMix, Value: "1"})
		}
		job, err := Engine{}.Command(workload.Spec{Name: "W", VM: "vm", ConfigFile: "w.fio", Settings: settings,
			Config: []byte("[global]\nioengine=libaio\nsize=1G\nfilename=/dev/sdb\n[a]\n" + c.job),
			Disks:  []target.Disk{{Device: "/dev/sdb", Path: "/dev/vdb", Bytes: 2 << 30}}})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if l := job.Streams[0]; l.Rate != c.sum || l.ReadShare != c.reads {
			t.Errorf("%+v: %v operations a second, %v of them reads", c, l.Rate, l.ReadShare)
		}
	}
}

// What is wrong with a setting is told at the setting, and the engine refuses it as well.
func TestSettingsRefused(t *testing.T) {
	settings := []scenario.Setting{{Key: "a=b", Value: "1"}, {Key: "exec_prerun", Value: "touch x"}}
	_, objections := Engine{}.ReadConfig("w.fio", []byte(two), settings)
	want := []scenario.Objection{{Code: "bounds", Setting: true,
		What: `"a=b": it would be read as something else in a job file`,
		Hint: "write the name of an option and its plain value"}}
	if diff := cmp.Diff(want, objections); diff != "" {
		t.Error(diff)
	}
	err := Engine{}.Validate(workload.Spec{Name: "W", VM: "vm", ConfigFile: "w.fio", Config: []byte(two),
		Settings: settings})
	if err == nil {
		t.Error("the engine takes an option that is none")
	}
}

// TestRateOfMixedBlocks: what fio offers where blocks have several sizes. fio 3.33 did 51.2 reads and 24.2 writes a
// second of rate_iops=140,60 with bssplit=4k/60:8k/30:64k/10, 72 of rate=2m with 4k/50:64k/50, and with poisson 61.4 of
// rate_iops=60 with bsrange=4k-32k and 48.9 of rate=200k with 4k/50:12k/50 (jq, of its JSON).
func TestRateOfMixedBlocks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"rw=randrw\nrate_iops=140,60\nbssplit=4k/60:8k/30:64k/10\n":            140*4/11.2 + 60*4/11.2,
		"rw=randread\nrate=2m\nbssplit=4k/50:64k/50\n":                         2048.0 / 34,
		"rw=randread\nrate_iops=60\nbsrange=4k-32k\nrate_process=poisson\n":    60,
		"rw=randread\nrate=200k\nbssplit=4k/50:12k/50\nrate_process=poisson\n": 50,
		"rw=randrw\nrate_iops=70,30\nbssplit=8k/100,4k/50:12k/50\n":            70 + 30.0/2,
		"rw=randread\nrate_iops=70\nbs=8k\n":                                   70,
		"rw=randread\nrate=80k\nbs=8k\n":                                       10,
	} {
		file, err := fiofile.Parse("f.fio", []byte("[a]\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		job := file.Jobs()[0]
		reads, writes, trims := directions(job.Value("rw"))
		if got := rate(job, reads, writes, trims); math.Abs(got-want) > 1e-6 {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestPacedNotes: a rate that is not the one of its option is told.
func TestPacedNotes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"rate_iops=90\nbssplit=4k/50:12k/50\n": "[a]: rate_iops=90: fio counts it in blocks of the smallest size, and their " +
			"mean is larger: about 45 operations a second are offered; rate_process=poisson offers what is asked for",
		"rate_iops=90\nbssplit=4k/50:12k/50\nrate_process=poisson\n": "",
		"rate=90k\nbsrange=4k-12k\n":                                 "",
		"rate=400k\nbsrange=4k-12k\nrate_process=poisson\n": "[a]: rate=400k: fio's poisson draws as many " +
			"operations as blocks of the smallest size would make it, and their mean is larger: about 100 a second are offered, and more bytes",
	} {
		text = "[a]\nsize=1m\nrw=randread\n" + text
		own, err := nowhere.ReadOwn(workload.OwnRequest{Name: "f.fio", Data: []byte(text)})
		if got := strings.Join(own.Notes, "\n"); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
