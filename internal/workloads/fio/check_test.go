package fio

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
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
