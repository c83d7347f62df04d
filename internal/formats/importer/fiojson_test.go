package importer

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/workload"
)

// fioJob is an entry of fio's JSON: a minute of so many reads of 4 KiB.
func fioJob(name string, group, reads int, more string) string {
	return fmt.Sprintf(`{"jobname":%q,"groupid":%d,"error":0,"eta":0,"elapsed":61,%s
"read":{"io_bytes":%d,"io_kbytes":%d,"iops":%d,"runtime":60000,"total_ios":%d,
"clat_ns":{"min":1000,"max":9000000,"mean":400000,"N":%d,"percentile":{"0.000000":0,"99.000000":5000000,"99.900000":7000000}},
"lat_ns":{"min":1000,"max":9000000,"mean":1000000,"N":%d}},
"sync":{"lat_ns":{"mean":0,"N":0}},"job_runtime":60000,"usr_cpu":10,"sys_cpu":5}`,
		name, group, more, reads*4096, reads*4, reads/60, reads, reads, reads)
}

func fioOutput(stamp int, jobs ...string) string {
	return fmt.Sprintf("{\"fio version\":\"fio-3.36\",\"timestamp_ms\":%d000,\n\"global options\":{\"ioengine\":\"libaio\"},"+
		"\"jobs\":[%s]\n}\n", stamp, strings.Join(jobs, ","))
}

// TestFioApart states of each part: its name, its reads, its mean in µs, its p99 and errors, its depth.
func TestFioApart(t *testing.T) {
	t.Parallel()
	deep := `"job options":{"rw":"randread","iodepth":"8","numjobs":"2","rate_iops":"100"},`
	failed := strings.Replace(fioJob("r", 0, 6000, ""), `"error":0`, `"error":84`, 1)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one job": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep)), []string{"fio 6000 400 5000 0 16"}},
		"three stages": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, ""), fioJob("b", 1, 12000, ""),
			fioJob("a", 2, 600, "")),
			[]string{"a 6000 400 5000 0 1", "b 12000 400 5000 0 1", "a (2) 600 400 5000 0 1"}},
		"two at once, not grouped": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, deep), fioJob("a", 0, 6000, deep)),
			[]string{"fio 12000 400 5000 0 8"}},
		"one after another in a group": {fioOutput(1_700_000_130, fioJob("a", 0, 6000, `"job_start":1700000000000,`),
			fioJob("b", 0, 60, `"job_start":1700000061000,`)), []string{"a 6000 400 5000 0 1", "b 60 400 5000 0 1"}},
		"appended": {fioOutput(1_700_000_000, fioJob("a", 0, 6000, "")) +
			fioOutput(1_700_000_100, fioJob("a", 0, 60, "")),
			[]string{"a 6000 400 5000 0 1", "a (2) 60 400 5000 0 1"}},
		"failed in verify": {fioOutput(1_700_000_000, failed), []string{
			"fio 6000 400 5000 1 1 job r ended with error 84 (data differ from what was written (verify))"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Prepare("out.json", strings.NewReader(c.text), time.Unix(1_700_000_200, 0), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range all {
				var sink lastReport
				if _, err := Engines()[d.Engine].Parse(d.Declared, strings.NewReader(c.text), &sink); err != nil {
					t.Fatal(err)
				}
				r, p99 := sink.Report0, math.NaN()
				for i, m := range d.Declared.Measures {
					if strings.HasSuffix(m.Name, "read_p99") {
						p99 = r.Values[i]
					}
				}
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %d %.0f %.0f %d %d %s", d.Workload, r.Ops[0].Ops,
					r.Ops[0].Seconds/float64(r.Ops[0].Ops)*1e6, p99, r.Errors, d.Lanes[0].Depth, d.Failure)))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

type lastReport struct{ Report0 workload.Report }

func (l *lastReport) Report(r workload.Report) { l.Report0 = r }
func (*lastReport) Warn(string)                {}
