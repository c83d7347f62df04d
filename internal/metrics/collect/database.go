package collect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// mostWaits is how many events that a server's sessions waited for have a series of their own.
const mostWaits = 6

// databases are the series of the database servers that were asked, on the grid. The names are those of
// postgres_exporter, so a server that another exporter has asked is there as well, with what that knows; of SQL Server
// those of windows_exporter.
func (c *replayed) databases(ctx context.Context) []result.Series {
	if c.store == nil || c.grid.n == 0 {
		return nil
	}
	step := fmt.Sprintf("%ds", int(max(c.grid.step, time.Second).Seconds()))
	// A stall lasts a second or two: no mean over more than a point of the grid where that is short.
	rate := func(name string) string {
		if c.grid.step <= 2*time.Second {
			return fmt.Sprintf("irate(%s{SCOPE}[10s])", name)
		}
		return fmt.Sprintf("rate(%s{SCOPE}[%ds])", name, int(c.grid.step.Seconds())+2)
	}
	ask := func(query, metric, unit string, part func(series.Series) string) []result.Series {
		scope := fmt.Sprintf("scenario_id=\"%d\"", c.m.Scenario.ID)
		return c.measured(ctx, strings.NewReplacer("SCOPE", scope, "STEP", step).Replace(query), metric, unit, part)
	}
	all := func(text string) string { return "sum by (instance) (" + text + ")" }
	out := ask(all(`rate({__name__=~"(windows|wmi)_mssql_sqlstats_batch_requests",SCOPE}[30s])`),
		result.DatabaseBatches, "ops/s", whole)
	hits, reads := all(rate("pg_stat_database_blks_hit")), all(rate("pg_stat_database_blks_read"))
	transactions := ask(all(rate("pg_stat_database_xact_commit"))+" + "+all(rate("pg_stat_database_xact_rollback")),
		result.DatabaseTransactions, "ops/s", whole)
	if transactions == nil {
		return out
	}
	out = append(out, transactions...)
	sessions := ask("sum by (instance, wait_event_type)"+
		" (avg_over_time(pg_stat_activity_active_backends{SCOPE}[STEP]))"+
		" and on (instance) (min by (instance) (pg_reads_all_stats{SCOPE}) == 1)", result.DatabaseSessions, "count",
		func(s series.Series) string { return s.Label("wait_event_type") })
	out = append(out, slices.DeleteFunc(sessions, func(s result.Series) bool {
		return s.Part != "CPU" && peak(s) == 0
	})...)
	waits := ask("sum by (instance, wait_event_type, wait_event)"+
		" (sum_over_time(pg_stat_activity_waiting_backends{SCOPE}[STEP]))"+
		" / on (instance) group_left () max by (instance) (count_over_time(pg_up{SCOPE}[STEP]))", result.DatabaseWaits,
		"count", func(s series.Series) string { return s.Label("wait_event_type") + " " + s.Label("wait_event") })
	slices.SortStableFunc(waits, func(a, b result.Series) int { return cmp.Compare(sumOf(b), sumOf(a)) })
	out = append(out, waits[:min(len(waits), mostWaits)]...)
	const written = "pg_stat_bgwriter_buffers_checkpoint_total"
	for _, s := range []struct{ query, metric, unit string }{
		{"100 * " + all("pg_stat_activity_count{SCOPE}") +
			" / max by (instance) (pg_settings_max_connections{SCOPE})", result.DatabaseConnections, "%"},
		{"100 * " + hits + " / (" + hits + " + " + reads + " > 0)", result.DatabaseHits, "%"},
		{all(rate("pg_wal_position_bytes_total")), result.DatabaseLog, "bytes/s"},
		{all(rate(written)+" or "+rate("pg_stat_checkpointer_buffers_written_total")) +
			" * max by (instance) (pg_settings_block_size{SCOPE})", result.DatabaseCheckpoints, "bytes/s"},
		{"max by (instance) (pg_settings_checkpoint_completion_target{SCOPE})", result.DatabaseSpread, "ratio"},
		{"max by (instance) (pg_settings_fsync{SCOPE})" + ` unless on (instance) pg_settings_info{SCOPE,name="synchronous_commit",setting="off"}` +
			` or max by (instance) (0 * pg_settings_info{SCOPE,name="synchronous_commit",setting="off"})`,
			result.DatabaseDurable, "count"},
	} {
		out = append(out, ask(s.query, s.metric, s.unit, whole)...)
	}
	return out
}

// sumOf adds up the values of a series.
func sumOf(s result.Series) (sum float64) {
	for _, v := range s.Values {
		if v != nil {
			sum += *v
		}
	}
	return sum
}
