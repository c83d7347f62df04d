package dashboards

// rates are sums by labels of what a counter rises per second.
func rates(by, metric, sel string) string {
	return `sum by (run, instance` + by + `) (rate(` + metric + `{` + sel + `}[$__rate_interval]))`
}

// share is a part of a whole, nothing where both are 0.
func share(part, whole string) string { return `(` + part + `) / (` + whole + ` > 0)` }

// postgres is the dashboard of what `plimsoll exporter postgres` serves.
func postgres() Dashboard {
	const (
		sel    = `run=~"$run",instance=~"$instance"`
		of     = sel + `,datname=~"$database"`
		who    = "{{instance}} {{run}}"
		base   = who + " {{datname}}"
		before = "From version 17 on under another name; both are asked for."
	)
	count := func(metric string) string { return rates(", datname", "pg_stat_database_"+metric, of) }
	hits, reads := count("blks_hit"), count("blks_read")
	either := func(old, since string) string {
		return rates("", "pg_stat_bgwriter_"+old, sel) + ` or ` + rates("", "pg_stat_checkpointer_"+since, sel)
	}
	return Dashboard{Name: "postgresql", Title: "PostgreSQL", refresh: "10s",
		Help: "What PostgreSQL servers count: transactions, buffers, waits, locks, checkpoints and the log.",
		variables: []variable{anyRun("pg_up"), choice("instance", "Server", `pg_up{run=~"$run"}`),
			{
				name:  "database",
				label: "Database",
				query: `label_values(pg_stat_database_xact_commit{` + sel + `}, datname)`,
			}},
		rows: []row{
			{"Now", []panel{
				number(
					"Servers that answer",
					"short",
					"Out of those that are chosen.",
					`sum(pg_up{`+sel+`})`,
				).under(1, 0.5),
				number("Transactions, all", "ops", "Committed and rolled back, per second.",
					`sum(`+count("xact_commit")+` + `+count("xact_rollback")+`)`),
				number(
					"Found in buffers, all",
					"percentunit",
					"Of the blocks asked for; the rest came from the system's cache or "+
						"from a disk.",
					share(`sum(`+hits+`)`, `sum(`+hits+` + `+reads+`)`),
				).under(0.95, 0.8),
				number("Connections used", "percentunit", "Sessions out of max_connections, on the fullest server.",
					`max(sum by (run, instance) (pg_stat_database_numbackends{`+sel+`}) / max by (run, instance) `+
						`(pg_settings_max_connections{`+sel+`}))`).to(1, 0.8, 0.95),
			}},
			{"Transactions and sessions", []panel{
				chart("Transactions", "ops", "Per second.", query{count("xact_commit"), base + " committed"},
					query{count("xact_rollback"), base + " rolled back"}),
				chart("Rows", "ops", "Per second: fetched by indexes, and changed.",
					query{count("tup_fetched"), base + " fetched"}, query{count("tup_inserted"), base + " inserted"},
					query{count("tup_updated"), base + " updated"}, query{count("tup_deleted"), base + " deleted"}),
				chart("Sessions", "short", "By what they do.", query{
					`sum by (run, instance, state) (pg_stat_activity_count{` + of + `})`, who + " {{state}}"}).stack(),
				chart("What sessions at work wait for", "short", "CPU: for nothing, or for a processor.", query{
					`pg_stat_activity_active_backends{` + sel + `}`, who + " {{wait_event_type}}"}).stack(),
				chart(
					"Oldest transaction",
					"s",
					"How long it has been open: old ones keep dead rows from being removed.",
					query{`max by (run, instance) (pg_stat_activity_max_tx_duration{` + of + `})`, who},
				),
				chart("Locks", "short", "Of objects of the databases, by mode.",
					query{`sum by (run, instance, mode) (pg_locks_count{` + of + `})`, who + " {{mode}}"}),
				chart("Deadlocks and conflicts", "ops", "Per second.", query{count("deadlocks"), base + " deadlocks"},
					query{count("conflicts"), base + " conflicts"}),
				chart("Temporary files", "binBps", "Bytes per second: sorts and hashes that did not fit into work_mem.",
					query{count("temp_bytes"), base}),
			}},
			{"Buffers and space", []panel{
				chart("Found in buffers", "percentunit", "Share of the blocks asked for.",
					query{share(hits, hits+` + `+reads), base}).to(1, 0, 0),
				chart("Blocks not in buffers", "ops", "Per second, from the system's cache or from a disk.",
					query{reads, base}),
				chart("Size of databases", "bytes", "On disk.", query{`pg_database_size_bytes{` + of + `}`, base}),
				chart(
					"Buffers allocated",
					"ops",
					"Per second.",
					query{rates("", "pg_stat_bgwriter_buffers_alloc_total", sel), who},
				),
			}},
			{"Checkpoints and the log", []panel{
				chart("The log grows", "binBps", "Bytes of write-ahead log per second.",
					query{rates("", "pg_wal_position_bytes_total", sel), who}),
				chart(
					"Checkpoints",
					"ops",
					"Per second: at their time, and asked for, as when max_wal_size is reached. "+before,
					query{either("checkpoints_timed_total", "num_timed_total"), who + " timed"},
					query{either("checkpoints_req_total", "num_requested_total"), who + " requested"},
				),
				chart("Buffers written by checkpoints", "ops", "Per second. "+before,
					query{either("buffers_checkpoint_total", "buffers_written_total"), who}),
				chart("Time that checkpoints take", "percentunit", "Share of time in which files are written and "+
					"synchronized. "+before,
					query{"(" + either("checkpoint_write_time_total", "write_time_total") + ") / 1000", who + " write"},
					query{"(" + either("checkpoint_sync_time_total", "sync_time_total") + ") / 1000", who + " sync"}),
			}},
		}}
}

// sqlServer is the dashboard of what windows_exporter's collector mssql serves.
func sqlServer() Dashboard {
	const (
		server = `run=~"$run",instance=~"$instance",mssql_instance=~"$mssql_instance"`
		of     = server + `,database=~"$database"`
		who    = "{{instance}} {{mssql_instance}} {{run}}"
		base   = who + " {{database}}"
	)
	metric := func(name string) string { return "windows_mssql_" + name + "{" + server + "}" }
	count := func(name string) string { return rates(", mssql_instance", "windows_mssql_"+name, server) }
	each := func(name string) string {
		return rates(", mssql_instance, database", "windows_mssql_databases_"+name, of)
	}
	hit := share(`sum by (run, instance, mssql_instance) (`+metric("bufman_buffer_cache_hits")+`)`,
		`sum by (run, instance, mssql_instance) (`+metric("bufman_buffer_cache_lookups")+`)`)
	perPage := func(expr string) string { return expr + " * 8192" }
	return Dashboard{Name: "sqlserver", Title: "SQL Server", refresh: "10s",
		Help: "What SQL Server counts, by windows_exporter with its collector mssql: batches, locks, buffers, the log.",
		variables: []variable{anyRun("windows_mssql_collector_success"),
			choice("instance", "Machine", `windows_mssql_collector_success{run=~"$run"}`),
			choice("mssql_instance", "Instance", `windows_mssql_collector_success{run=~"$run",instance=~"$instance"}`),
			choice("database", "Database", `windows_mssql_databases_transactions{`+server+`}`)},
		rows: []row{
			{"Now", []panel{
				number("Collectors that work", "percentunit", "Share of windows_exporter's parts that succeeded.",
					`avg(`+metric("collector_success")+`)`).under(1, 0.99),
				number(
					"Batches",
					"ops",
					"Batch requests per second; 60 times that should be near a load generator's own "+
						"figure per minute.",
					`sum(`+count("sqlstats_batch_requests")+`)`,
				),
				number("Users", "short", "Connections of users.", `sum(`+metric("genstats_user_connections")+`)`),
				number("Blocked processes", "short", "Processes that wait for another's lock.",
					`sum(`+metric("genstats_blocked_processes")+`)`).to(0, 1, 10),
			}},
			{"Work", []panel{
				chart(
					"Batches a minute",
					"short",
					"rate of batch requests × 60, to be held beside the generator's own.",
					query{count("sqlstats_batch_requests") + " * 60", who},
				),
				chart("Transactions", "ops", "Per second, by database.", query{each("transactions"), base},
					query{each("write_transactions"), base + " that write"}),
				chart("Compilations", "ops", "Per second; many of them per batch mean plans that are not used again.",
					query{count("sqlstats_sql_compilations"), who + " compiled"},
					query{count("sqlstats_sql_recompilations"), who + " recompiled"}),
				chart("Active transactions", "short", "By database.",
					query{"windows_mssql_databases_active_transactions{" + of + "}", base}),
				chart("Scans and searches", "ops", "Per second: full scans, and searches of indexes.",
					query{count("accessmethods_full_scans"), who + " full scans"},
					query{count("accessmethods_index_searches"), who + " index searches"}),
				chart("Errors", "ops", "Per second, of all kinds.", query{count("sql_errors_total"), who}),
			}},
			{"Locks", []panel{
				chart(
					"Waits for locks",
					"ops",
					"Lock requests per second that had to wait.",
					query{count("locks_lock_waits"), who},
				),
				chart("Deadlocks", "ops", "Per second.", query{count("locks_deadlocks"), who}),
			}},
			{"Memory", []panel{
				chart(
					"Found in buffers",
					"percentunit",
					"Look-ups of pages that needed no read.",
					query{hit, who},
				).to(1, 0, 0),
				chart(
					"Page life expectancy",
					"s",
					"How long a page stays that nobody asks for; a fall says that memory is short.",
					query{metric("bufman_page_life_expectancy_seconds"), who},
				),
				chart("Memory of the server", "bytes", "What the server has, and what it would like to have.",
					query{metric("memmgr_total_server_memory_bytes"), who + " has"},
					query{metric("memmgr_target_server_memory_bytes"), who + " target"}),
				chart("Memory grants that wait", "short", "Queries that wait for memory to sort or hash in.",
					query{metric("memmgr_pending_memory_grants"), who}),
			}},
			{"Storage and the log", []panel{
				chart("Pages read and written", "binBps", "Bytes per second, of pages of 8 KiB.",
					query{perPage(count("bufman_page_reads")), who + " read"},
					query{perPage(count("bufman_page_writes")), who + " written"}),
				chart("Written by", "binBps", "Who writes pages: checkpoints, the lazy writer, the background writer.",
					query{perPage(count("bufman_checkpoint_pages")), who + " checkpoints"},
					query{perPage(count("bufman_lazywrites")), who + " lazy writer"},
					query{perPage(count("bufman_background_writer_pages")), who + " background writer"}),
				chart(
					"The log grows",
					"binBps",
					"Bytes flushed per second, by database.",
					query{each("log_flushed_bytes"), base},
				),
				chart("Flushes of the log", "ops", "Per second, and commits that waited for one.",
					query{each("log_flushes"), base + " flushes"}, query{each("log_flush_waits"), base + " waits"}),
				chart("Share of the log used", "percentunit", "A log that is full stops all writers.", query{
					share("windows_mssql_databases_log_files_used_size_bytes{"+of+"}",
						"windows_mssql_databases_log_files_size_bytes{"+of+"}"), base}).to(1, 0.8, 0.95),
				chart("Size of data files", "bytes", "By database.",
					query{"windows_mssql_databases_data_files_size_bytes{" + of + "}", base}),
			}},
		}}
}
