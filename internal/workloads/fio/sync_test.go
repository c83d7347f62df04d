package fio

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/result"
)

// synced is a job of a report: writes, and flushes of which three took 1 ms and one 9 ms (jq of such a report: mean 3
// ms).
const synced = `{"jobname":"a","error":0,"eta":0,"elapsed":2,"write":{"io_bytes":4096,"io_kbytes":4,"runtime":1000,"total_ios":4,
"lat_ns":{"min":1000,"max":1000,"mean":1000,"N":4}},"sync":{"lat_ns":{"min":1000000,"max":9000000,"mean":3000000,"N":4,
"bins":{"1003520":3,"8978432":1}}}}`

// A run of our own whose jobs flush tells how long that took, all of its jobs together; of jobs that do not, nothing.
func TestSyncValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jobs, want string
	}{
		"one job":  {synced, "4 3000 1000 9000 9000 9000"},
		"two jobs": {synced + "," + synced, "8 3000 1000 9000 9000 9000"},
		"without":  {strings.ReplaceAll(synced, `"sync"`, `"other"`), "NaN NaN NaN NaN NaN NaN"},
	} {
		var rec workloadtest.Recorder
		d := workload.Declared{Operations: result.BlockOperations(), Measures: syncMeasures, Format: []byte(`["a"]`)}
		text := `{"fio version":"fio-3.33","timestamp_ms":1700000000000,` + "\n" + `"jobs":[` + c.jobs + "]\n}\n"
		if _, err := (Engine{}).Parse(d, strings.NewReader(text), &rec); err != nil || len(rec.Reports) == 0 {
			t.Fatalf("%s: %d reports, %v", name, len(rec.Reports), err)
		}
		var got []string
		for _, v := range rec.Reports[len(rec.Reports)-1].Values {
			if v > 100 { // a bin's end
				v = math.Round(v/100) * 100
			}
			got = append(got, fmt.Sprintf("%.0f", v))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
}

// Jobs that flush declare it, and are not expected to keep their depth all the time.
func TestFlushesAreDeclared(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"fsync=1": true, "fdatasync=8": true, "fsync=0": false, "bs=4k": false} {
		_, job := adapted(t, spec("[a]\nfilename=/dev/sdb\nrw=write\nsize=4m\n"+text+"\n"))
		if got := len(job.Measures) > 0; got != want || job.Streams[0].Pauses != want {
			t.Errorf("%s: declared %v, pauses %v; want %v", text, got, job.Streams[0].Pauses, want)
		}
	}
	_, job := adapted(t, spec("[a]\nfilename=/dev/sdb\nflow=8\n[b]\nfilename=/dev/sdb\nflow=1\n"))
	if !job.Streams[0].Pauses || !job.Streams[1].Pauses {
		t.Errorf("of one flow, each waits for the other: %+v", job.Streams)
	}
}

// TestRampWithoutTimes: where fio measures no times, its clock tells what is of the ramp time. A job of gtod_reduce and
// ramp_time had no figures at all.
func TestRampWithoutTimes(t *testing.T) {
	t.Parallel()
	const inFlight = 3 // which a status has besides
	const untimed = rampOption + `, "gtod_reduce" : "1"`
	for name, c := range map[string]struct {
		reports [][3]int // runtime in ms, operations, seconds to go
		want    string
	}{
		"one report of the whole": {[][3]int{{1500, 40, 0}}, "40 in 1.5s"},
		"as it runs": {[][3]int{{900, 5, 9}, {1900, 9, 8}, {1000, 3, 7}, {2000, 7, 6}, {3600, 12, 1},
			{4600, 16, 1}, {5600, 20, 0}}, "12 in 3.6s, 16 in 4.6s, 20 in 5.6s"},
	} {
		text := ""
		for i, r := range c.reports {
			text += status{stampMS: t0 + 1000*int64(i), runtimeMS: int64(r[0]), issued: r[1] - inFlight,
				eta: int64(r[2]), options: untimed}.String()
		}
		var sink workloadtest.Recorder
		_, err := (Engine{}).Parse(workload.Declared{}, strings.NewReader(text), &sink)
		var got []string
		for _, r := range sink.Reports {
			got = append(got, fmt.Sprintf("%d in %v", r.Ops[0].Ops, r.Elapsed))
		}
		if s := strings.Join(got, ", "); err != nil || s != c.want {
			t.Errorf("%s: %s, %v; want %s", name, s, err, c.want)
		}
	}
}
