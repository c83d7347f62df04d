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
