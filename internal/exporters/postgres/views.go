package postgres

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/contract/exporter"
)

// Versions of PostgreSQL (major numbers) that the table knows. A newer one is asked as the newest is.
const (
	oldest = 12
	newest = 18
)

// view is one question to the server: rows of labels and of values.
type view struct {
	name    string // in pg_scrape_collector_success
	labels  []string
	columns []column
	from    string        // FROM and what follows it
	every   time.Duration // how long an answer is good for; 0: for one page
	since   int           // first version that has it; 0: all have
}

// column holds what one value of a view becomes. One that is NULL is left out.
type column struct {
	sql          string
	since, until int // first version that has it, and first that has it no more; 0: all have
	exporter.Family
}

// of is the query for a version; "" when that has nothing of the view.
func (v view) of(version int) (query string, columns []column) {
	if version < v.since {
		return "", nil
	}
	parts := make([]string, 0, len(v.labels)+len(v.columns))
	for _, l := range v.labels {
		sql, _ := named(l)
		parts = append(parts, sql)
	}
	for _, c := range v.columns {
		if version >= c.since && (c.until == 0 || version < c.until) {
			parts, columns = append(parts, c.sql), append(columns, c)
		}
	}
	return "SELECT " + strings.Join(parts, ", ") + " " + v.from, columns
}

// named parts a label into its SQL and its name, which may follow from that.
func named(l string) (sql, name string) {
	if i := strings.LastIndex(l, " AS "); i >= 0 {
		return l[:i], l[i+len(" AS "):]
	}
	return l, l[strings.LastIndexByte(l, '.')+1:]
}

func (c column) in(since, until int) column {
	c.since, c.until = since, until
	return c
}

func metric(kind exporter.Type, name, unit, sql, help string) column {
	return column{sql: sql, Family: exporter.Family{Name: "pg_" + name, Type: kind, Unit: unit, Help: help}}
}

// counter is one of the conventions: its name ends with _total.
func counter(name, sql, help string) column { return metric(exporter.Counter, name, "", sql, help) }

func seconds(name, sql, help string) column {
	return metric(exporter.Counter, name+"_seconds_total", "seconds", sql+" / 1000", help) // of milliseconds
}

func volume(name, sql, help string) column {
	return metric(exporter.Counter, name+"_bytes_total", "bytes", sql, help)
}

func gauge(name, unit, sql, help string) column { return metric(exporter.Gauge, name, unit, sql, help) }

// each are columns that are called as the metric is but for its prefix, of which the community's names have no _total
// at the end: pairs of a column and a help.
func each(prefix string, pairs ...string) (list []column) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, metric(exporter.Counter, prefix+pairs[i], "", pairs[i], pairs[i+1]))
	}
	return list
}

func join(lists ...[]column) (all []column) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// rare is for what costs a look at every file, or seldom changes.
const rare = 15 * time.Second

// values writes a list of texts as a table of one column.
func values(name string, texts ...string) string {
	return fmt.Sprintf("(VALUES ('%s')) %s", strings.Join(texts, "'), ('"), name)
}

// inRecovery picks what a standby has, or what others have.
func inRecovery(standby, other string) string {
	return "CASE WHEN pg_is_in_recovery() THEN " + standby + " ELSE " + other + " END"
}

// views is everything that is asked, in this order. Names are those of the community's postgres_exporter where it has
// the metric; where it has not, they follow Prometheus' conventions.
var views = []view{
	{
		name: "static", labels: []string{"current_setting('server_version') AS version",
			"current_setting('server_version_num') AS short_version"}, every: rare,
		columns: []column{gauge("static", "", "1", "Version of the server; always 1.")},
	},
	{
		name: "server",
		columns: []column{
			gauge("postmaster_start_time_seconds", "seconds", "extract(epoch FROM pg_postmaster_start_time())",
				"When the server was started, in seconds since 1970."),
			gauge("replication_is_replica", "", inRecovery("1", "0"), "Whether the server is a standby."),
			gauge("replication_lag_seconds", "seconds",
				inRecovery("greatest(0, extract(epoch FROM now() - pg_last_xact_replay_timestamp()))", "0"),
				"How long ago the last transaction that a standby has replayed was committed."),
			volume("wal_position",
				"pg_wal_lsn_diff("+inRecovery("pg_last_wal_replay_lsn()", "pg_current_wal_insert_lsn()")+", '0/0')",
				"Position in the write-ahead log: of what is written, of a standby what is replayed."),
			gauge("reads_all_stats", "", "pg_has_role('pg_read_all_stats', 'usage')::int",
				"Whether the exporter's role may see what the sessions of others do."),
		},
	},
	{
		name: "stat_database", labels: []string{"s.datid", "s.datname"},
		from: "FROM pg_stat_database s JOIN pg_database d ON d.oid = s.datid WHERE NOT d.datistemplate",
		columns: join(
			[]column{gauge("stat_database_numbackends", "", "numbackends", "Sessions of the database.")},
			each("stat_database_",
				"xact_commit", "Transactions committed.",
				"xact_rollback", "Transactions rolled back.",
				"blks_read", "Blocks that were not in the server's buffers.",
				"blks_hit", "Blocks found in the server's buffers.",
				"tup_returned", "Rows read by scans.",
				"tup_fetched", "Rows fetched by index scans.",
				"tup_inserted", "Rows inserted.",
				"tup_updated", "Rows updated.",
				"tup_deleted", "Rows deleted.",
				"conflicts", "Queries cancelled because of conflicts with recovery.",
				"temp_files", "Temporary files made by queries.",
				"deadlocks", "Deadlocks detected.",
				"blk_read_time", "Time spent to read blocks, where track_io_timing is on, in milliseconds.",
				"blk_write_time", "Time spent to write blocks, where track_io_timing is on, in milliseconds."),
			[]column{
				metric(exporter.Counter, "stat_database_temp_bytes", "bytes", "temp_bytes",
					"Bytes written to temporary files by queries."),
				seconds("stat_database_active_time", "active_time", "Time spent to execute statements.").in(14, 0),
				seconds("stat_database_idle_in_transaction_time", "idle_in_transaction_time",
					"Time that sessions idled in a transaction.").in(14, 0),
				counter("stat_database_sessions_total", "sessions", "Sessions begun.").in(14, 0),
				counter("stat_database_sessions_abandoned_total", "sessions_abandoned",
					"Sessions whose client was lost.").in(14, 0),
				counter("stat_database_sessions_fatal_total", "sessions_fatal",
					"Sessions ended by an error.").in(14, 0),
				counter("stat_database_sessions_killed_total", "sessions_killed",
					"Sessions ended by an operator.").in(14, 0),
			}),
	},
	{
		name: "stat_bgwriter", from: "FROM pg_stat_bgwriter",
		columns: []column{
			counter("stat_bgwriter_checkpoints_timed_total", "checkpoints_timed",
				"Checkpoints because of checkpoint_timeout.").in(0, 17),
			counter("stat_bgwriter_checkpoints_req_total", "checkpoints_req",
				"Checkpoints asked for, by max_wal_size too.").in(0, 17),
			counter("stat_bgwriter_checkpoint_write_time_total", "checkpoint_write_time",
				"Time spent in checkpoints to write files, in milliseconds.").in(0, 17),
			counter("stat_bgwriter_checkpoint_sync_time_total", "checkpoint_sync_time",
				"Time spent in checkpoints to synchronize files, in milliseconds.").in(0, 17),
			counter("stat_bgwriter_buffers_checkpoint_total", "buffers_checkpoint",
				"Buffers written by checkpoints.").in(0, 17),
			counter("stat_bgwriter_buffers_clean_total", "buffers_clean", "Buffers written by the background writer."),
			counter("stat_bgwriter_maxwritten_clean_total", "maxwritten_clean",
				"Times the background writer stopped because it had written bgwriter_lru_maxpages."),
			counter("stat_bgwriter_buffers_backend_total", "buffers_backend",
				"Buffers written by sessions themselves.").in(0, 17),
			counter("stat_bgwriter_buffers_backend_fsync_total", "buffers_backend_fsync",
				"Times a session had to synchronize a file itself.").in(0, 17),
			counter("stat_bgwriter_buffers_alloc_total", "buffers_alloc", "Buffers allocated."),
		},
	},
	{
		name: "stat_checkpointer", since: 17, from: "FROM pg_stat_checkpointer",
		columns: []column{
			counter("stat_checkpointer_num_timed_total", "num_timed", "Checkpoints because of checkpoint_timeout."),
			counter("stat_checkpointer_num_requested_total", "num_requested",
				"Checkpoints asked for, by max_wal_size too."),
			counter("stat_checkpointer_num_done_total", "num_done", "Checkpoints that have been performed.").in(18, 0),
			counter("stat_checkpointer_write_time_total", "write_time",
				"Time spent in checkpoints to write files, in milliseconds."),
			counter("stat_checkpointer_sync_time_total", "sync_time",
				"Time spent in checkpoints to synchronize files, in milliseconds."),
			counter("stat_checkpointer_buffers_written_total", "buffers_written", "Buffers written by checkpoints."),
		},
	},
	{
		name: "stat_wal", since: 14, from: "FROM pg_stat_wal",
		columns: []column{
			counter("stat_wal_records_total", "wal_records", "Records of the write-ahead log."),
			counter("stat_wal_full_page_images_total", "wal_fpi", "Images of whole pages in the write-ahead log."),
			volume("stat_wal", "wal_bytes", "Bytes of the write-ahead log."),
			counter("stat_wal_buffers_full_total", "wal_buffers_full",
				"Times the log was written because its buffers were full."),
			counter("stat_wal_writes_total", "wal_write", "Writes of the write-ahead log.").in(14, 18),
			counter("stat_wal_syncs_total", "wal_sync", "Synchronizations of the write-ahead log.").in(14, 18),
			seconds("stat_wal_write", "wal_write_time",
				"Time spent to write the log, where track_wal_io_timing is on.").in(14, 18),
			seconds("stat_wal_sync", "wal_sync_time",
				"Time spent to synchronize the log, where track_wal_io_timing is on.").in(14, 18),
		},
	},
	{
		// What of the log moved in 18 to pg_stat_io, under the names that it had.
		name: "stat_wal_io", since: 18, from: "FROM pg_stat_io WHERE object = 'wal'",
		columns: []column{
			counter("stat_wal_writes_total", "sum(writes)", "Writes of the write-ahead log."),
			counter("stat_wal_syncs_total", "sum(fsyncs)", "Synchronizations of the write-ahead log."),
			seconds("stat_wal_write", "sum(write_time)",
				"Time spent to write the log, where track_wal_io_timing is on."),
			seconds("stat_wal_sync", "sum(fsync_time)",
				"Time spent to synchronize the log, where track_wal_io_timing is on."),
		},
	},
	{
		name: "stat_io", since: 16, labels: []string{"backend_type", "object", "context"}, from: "FROM pg_stat_io",
		columns: []column{
			counter("stat_io_reads_total", "reads", "Reads."),
			volume("stat_io_read", "reads * op_bytes", "Bytes read.").in(16, 18),
			volume("stat_io_read", "read_bytes", "Bytes read.").in(18, 0),
			seconds("stat_io_read", "read_time", "Time spent to read, where track_io_timing is on."),
			counter("stat_io_writes_total", "writes", "Writes."),
			volume("stat_io_write", "writes * op_bytes", "Bytes written.").in(16, 18),
			volume("stat_io_write", "write_bytes", "Bytes written.").in(18, 0),
			seconds("stat_io_write", "write_time", "Time spent to write, where track_io_timing is on."),
			counter("stat_io_extends_total", "extends", "Writes that made a file longer."),
			counter("stat_io_hits_total", "hits", "Blocks found in buffers."),
			counter("stat_io_evictions_total", "evictions", "Blocks that had to leave buffers for others."),
			counter("stat_io_fsync_total", "fsyncs", "Synchronizations of files."),
			seconds("stat_io_fsync", "fsync_time", "Time spent to synchronize files, where track_io_timing is on."),
		},
	},
	{
		name: "stat_activity", labels: []string{"d.datname", "s.state"},
		columns: []column{
			gauge("stat_activity_count", "", "count(a.pid)", "Sessions by state, without the exporter's."),
			gauge("stat_activity_max_tx_duration", "",
				"coalesce(max(extract(epoch FROM clock_timestamp() - a.xact_start)), 0)",
				"How long the oldest transaction of sessions in that state has been open, in seconds."),
		},
		from: "FROM pg_database d CROSS JOIN " + values("s(state)", "active", "idle", "idle in transaction",
			"idle in transaction (aborted)", "fastpath function call", "disabled") +
			" LEFT JOIN pg_stat_activity a ON a.datid = d.oid AND a.state = s.state AND a.pid <> pg_backend_pid()" +
			" WHERE NOT d.datistemplate GROUP BY 1, 2",
	},
	{
		name: "wait", labels: []string{"w.type AS wait_event_type"},
		columns: []column{gauge("stat_activity_active_backends", "", "count(a.pid)",
			"Sessions that execute a statement, by the kind of event that they wait for; CPU: for none, or for a CPU.")},
		from: "FROM " + values("w(type)", "CPU", "BufferPin", "Client", "Extension", "IO", "IPC", "Lock", "LWLock",
			"Timeout") + " LEFT JOIN pg_stat_activity a ON coalesce(a.wait_event_type, 'CPU') = w.type" +
			" AND a.state = 'active' AND a.pid <> pg_backend_pid() GROUP BY 1",
	},
	{
		name: "wait_event", labels: []string{"wait_event_type", "wait_event"},
		columns: []column{gauge("stat_activity_waiting_backends", "", "count(*)",
			"Sessions that execute a statement and wait, by the event.")},
		from: "FROM pg_stat_activity WHERE state = 'active' AND wait_event IS NOT NULL AND pid <> pg_backend_pid()" +
			" GROUP BY 1, 2",
	},
	{
		name: "locks", labels: []string{"d.datname", "lower(m.mode) AS mode"},
		columns: []column{gauge("locks_count", "", "count(l.pid)", "Locks of objects of the database, by mode.")},
		from: "FROM pg_database d CROSS JOIN " + values("m(mode)", "AccessShareLock", "RowShareLock",
			"RowExclusiveLock", "ShareUpdateExclusiveLock", "ShareLock", "ShareRowExclusiveLock", "ExclusiveLock",
			"AccessExclusiveLock", "SIReadLock") +
			" LEFT JOIN pg_locks l ON l.database = d.oid AND l.mode = m.mode AND l.pid <> pg_backend_pid()" +
			" WHERE NOT d.datistemplate GROUP BY 1, 2",
	},
	{
		name: "stat_replication", labels: []string{"application_name", "client_addr", "state"},
		columns: []column{
			gauge("stat_replication_pg_wal_lsn_diff", "",
				"max("+inRecovery("NULL", "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)")+")",
				"How far a standby is behind, in bytes of the log."),
			gauge("stat_replication_replay_lag_seconds", "seconds", "max(extract(epoch FROM replay_lag))",
				"How long it took until a standby had replayed recent log; absent when it has nothing to replay."),
		},
		from: "FROM pg_stat_replication GROUP BY 1, 2, 3",
	},
	{
		name: "replication_slots", labels: []string{"slot_name", "database"},
		columns: []column{
			gauge("replication_slots_active", "", "active::int", "Whether the slot is in use."),
			gauge("replication_slots_pg_wal_lsn_diff", "",
				inRecovery("NULL", "pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)"),
				"How much log the server keeps for the slot, in bytes."),
		},
		from: "FROM pg_replication_slots",
	},
	{
		name: "database", labels: []string{"datname"}, every: rare,
		columns: []column{
			gauge("database_size_bytes", "bytes",
				"CASE WHEN has_database_privilege(oid, 'CONNECT') THEN pg_database_size(oid) END",
				"Bytes of the database on disk."),
			gauge("database_connection_limit", "", "datconnlimit", "Most sessions of the database; -1: no limit."),
		},
		from: "FROM pg_database WHERE NOT datistemplate",
	},
}

// settings are those of the server's that decide how fast it is and what a commit promises.
var settings = view{
	name: "settings", labels: []string{"name", "setting", "unit", "vartype"}, every: rare,
	from: "FROM pg_settings WHERE name IN ('" + strings.Join([]string{
		"autovacuum", "autovacuum_max_workers", "autovacuum_naptime", "bgwriter_delay", "bgwriter_lru_maxpages",
		"block_size", "checkpoint_completion_target", "checkpoint_timeout", "checkpoint_warning", "commit_delay",
		"commit_siblings", "data_checksums", "default_statistics_target", "effective_cache_size",
		"effective_io_concurrency", "fsync", "full_page_writes", "hot_standby", "huge_page_size", "huge_pages",
		"huge_pages_status", "io_method", "io_workers", "jit", "maintenance_work_mem", "max_connections",
		"max_parallel_workers", "max_parallel_workers_per_gather", "max_wal_size", "max_worker_processes",
		"min_wal_size", "random_page_cost", "shared_buffers", "superuser_reserved_connections",
		"synchronous_commit", "temp_buffers", "track_io_timing", "track_wal_io_timing", "wal_buffers",
		"wal_compression", "wal_level", "wal_segment_size", "wal_sync_method", "wal_writer_delay",
		"wal_writer_flush_after", "work_mem",
	}, "', '") + "')",
}
