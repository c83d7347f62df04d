package collect

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/metrics/series"
	"plimsoll/internal/testkit/recordtest"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Batch requests of SQL Server are there under the names of two generations of its exporter; a page without that
// counter, as the published sample is, gives nothing.
func TestBatchesOfSQLServer(t *testing.T) {
	sample, err := os.ReadFile("../../../../shared/corpus/windows_exporter-mssql/windows_exporter-0.20.0-mssql-subset.prom")
	pages := map[string]string{
		"new": "windows_mssql_sqlstats_batch_requests{mssql_instance=\"A\"} %d\n" +
			"windows_mssql_sqlstats_batch_requests{mssql_instance=\"B\"} %[1]d\n",
		"old":    "wmi_mssql_sqlstats_batch_requests{instance=\"MSSQLSERVER\"} %d\n",
		"sample": strings.ReplaceAll(string(sample), "%", "%%") + "# %d\n",
	}
	if err != nil {
		t.Log("corpus: no sample of windows_exporter:", err)
		delete(pages, "sample")
	}
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm-0000", "G", "W", 1)
	got := map[string]string{}
	for n := range 60 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Report()
			for name, page := range pages {
				text := []byte(fmt.Sprintf(page, 700*(n+1)))
				of := l.Recorder.Exporter("sqlserver", name, "")
				l.Must(of.Served(series.Page{Text: text, Time: l.Now}, time.Millisecond))
			}
		})
	}
	j.End("finished")
	for _, s := range collected(l, &scenario.Scenario{Name: "s"}).Series {
		if strings.HasPrefix(s.Measure, "db_") && s.Values[45] != nil {
			got[s.Machine] = fmt.Sprintf("%s %.6g %s", s.Measure, *s.Values[45], s.Unit)
		}
	}
	want := map[string]string{"new": "db_batches 1400 ops/s", "old": "db_batches 700 ops/s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What two servers said of themselves, one of 15 and one of 18 whose sessions the exporter may not see, is in the data.
func TestDatabases(t *testing.T) {
	l := recordtest.New(t)
	l.Event(result.KindPhase, "run", "")
	j := l.Start("vm-0000", "G", "W", 1)
	old := l.Recorder.Exporter("postgres", "vm-0000", "G")
	young := l.Recorder.Exporter("postgres", "db.example:5432", "")
	for n := range 40 {
		l.Second(func() {
			j.Do(&j.Next.Ops[0], 100, 4096, time.Millisecond)
			j.Report()
			k := n + 1
			page := fmt.Sprintf(`pg_up 1
pg_stat_database_xact_commit{datname="a"} %d
pg_stat_database_xact_commit{datname="b"} %d
pg_stat_database_xact_rollback{datname="a"} %d
pg_stat_database_blks_hit{datname="a"} %d
pg_stat_database_blks_read{datname="a"} %d
pg_stat_activity_count{datname="a",state="active"} 6
pg_stat_activity_count{datname="a",state="idle"} 4
pg_stat_activity_active_backends{wait_event_type="CPU"} 2
pg_stat_activity_active_backends{wait_event_type="Lock"} 4
pg_stat_activity_active_backends{wait_event_type="IO"} 0
pg_settings_max_connections 100
pg_settings_block_size 8192
pg_settings_checkpoint_completion_target 0.5
pg_settings_fsync 1
pg_wal_position_bytes_total %d
`, 10*k, 20*k, k, 99*k, k, 1000*k)
			first := page + "pg_reads_all_stats 1\n" +
				"pg_settings_info{name=\"synchronous_commit\",setting=\"on\"} 1\n" +
				fmt.Sprintf("pg_stat_bgwriter_buffers_checkpoint_total %d\n", 2*k)
			if n%2 == 0 {
				first += "pg_stat_activity_waiting_backends{wait_event_type=\"Lock\",wait_event=\"tuple\"} 3\n"
			}
			second := page + "pg_reads_all_stats 0\n" +
				"pg_settings_info{name=\"synchronous_commit\",setting=\"off\"} 1\n" +
				fmt.Sprintf("pg_stat_checkpointer_buffers_written_total %d\n", 3*k)
			l.Must(old.Served(series.Page{Text: []byte(first), Time: l.Now}, time.Millisecond))
			l.Must(young.Served(series.Page{Text: []byte(second), Time: l.Now}, time.Millisecond))
		})
	}
	j.End("finished")
	got := map[string]string{}
	for _, s := range collected(l, &scenario.Scenario{Name: "s"}).Series {
		if !strings.HasPrefix(s.Measure, "db_") {
			continue
		}
		v := s.Values[20]
		if v == nil {
			t.Fatalf("%s %s has no value in the middle", s.Measure, s.Name)
		}
		got[s.Measure+" "+s.Name] = fmt.Sprintf("%.6g %s", *v, s.Unit)
	}
	want := map[string]string{"db_sessions vm-0000, CPU": "2 count", "db_sessions vm-0000, Lock": "4 count"}
	for _, m := range []string{"db_waits vm-0000, Lock tuple"} {
		want[m] = got[m] // 0 or 3 as the step falls
	}
	for machine, pages := range map[string]int{"vm-0000": 2, "db.example:5432": 3} {
		for measure, value := range map[string]string{
			"transactions": "31 ops/s", "connections": "10 %", "cache_hits": "99 %", "log": "1000 bytes/s",
			"checkpoint_writes": fmt.Sprint(8192*pages, " bytes/s"), "checkpoint_spread": "0.5 ratio",
			"durable_commits": fmt.Sprint(3-pages, " count"),
		} {
			want["db_"+measure+" "+machine] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
