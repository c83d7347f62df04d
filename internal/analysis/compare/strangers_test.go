package compare

import (
	"testing"

	"plimsoll/internal/analysis/effect"
)

// namesOfTools are those of measures as tools of the field print them, by which way of them is good; "" where that
// depends on what is measured, or neither is.
var namesOfTools = map[effect.Direction][]string{
	effect.HigherIsBetter: {
		// fio, vdbench, DISKSPD, elbencho, IOzone, bonnie++, filebench, dbench
		"jobs.read.iops", "iops_mean", "bw_bytes", "write_bw_mean (KiB/s)", "i/o rate", "MB/sec 1024**2", "MiB/s",
		"I/O per s", "IOPS last done", "kB/sec rewrite", "Seq_Output_Block_K/sec", "mb/s", "Throughput MB/sec",
		// sysbench, pgbench, HammerDB, BenchBase, YCSB
		"transactions per sec.", "queries per sec.", "events per second", "tps (without initial connection time)",
		"NOPM",
		"PostgreSQL TPM", "tpmC", "Throughput (requests/second)", "Goodput (requests/second)",
		"[OVERALL] Throughput(ops/sec)",
		// redis-benchmark, memtier_benchmark, wrk, hey, k6, JMeter, iperf3, netperf
		"rps", "Ops/sec", "Hits/sec", "Requests/sec", "Transfer/sec", "Received KB/sec", "bits_per_second", "trans/s",
		"http_reqs_per_second", "success_rate", "cache_hit_ratio", "hits_per_second",
		// go test, Google Benchmark, JMH, stress-ng, STREAM, perf, 7-Zip
		"MB/s", "items_per_second", "bytes_per_second", "thrpt ops/s", "bogo ops/s", "Triad MB/s", "insn per cycle",
		"Rating MIPS", "ops_per_watt", "iops_per_dollar", "tpmC per kW", "availability", "recall@10", "apdex",
	},
	effect.LowerIsBetter: {
		"clat_ns.mean", "lat_ns.percentile.99.000000", "slat_ns", "iops_stddev", "bw_dev", "resp time", "resp stddev",
		"AvgLat", "LatStdDev", "IopsStdDev", "us/op", "ms/op", "IO lat us", "drop_ios", "short_ios", "max_latency",
		"95th percentile:", "ignored errors", "reconnects per sec.", "err/s", "reconn/s", "latency average (ms)",
		"latency stddev", "number of failed transactions", "number of transactions retried",
		"rate limit schedule lag avg (ms)", "number of transactions skipped", "initial connection time (ms)",
		"99th Percentile Latency (microseconds)", "[READ] AverageLatency(us)", "[READ] 99thPercentileLatency(us)",
		"[READ] Return=ERROR", "avg_msec", "p99_latency_ms", "Misses/sec", "Avg. Latency", "Socket errors: timeout",
		"http_req_duration p(95)", "http_req_failed", "http_req_waiting", "dropped_iterations_per_second", "Error %",
		"90% Line", "retransmits", "retransmits_per_second", "retrans/s", "jitter_ms", "lost_packets", "lost_percent",
		"packet loss", "rtt min/avg/max/mdev", "MEAN_LATENCY", "P99_LATENCY", "ns/op", "B/op", "allocs/op",
		"real_time (ns)",
		"cpu_time_ns_per_iteration", "time per request (ms)", "score error", "cache-misses/s", "branch-misses",
		"page-faults/s", "majflt/s", "major faults per second", "context-switches/s", "cswch/s",
		"cpu-migrations_per_second",
		"r_await", "w_await", "svctm", "aqu-sz", "%iowait", "%steal", "pswpin/s", "pswpout/s", "swapped MB/s",
		"pgscank/s", "rxerr/s", "txerr/s", "rxdrop/s", "coll/s", "tcp_retransmit_rate", "replication_lag_ms",
		"wal_fsync_duration_seconds", "leader_changes_per_hour", "go_gc_duration_seconds", "gc_pause_ms",
		"gc_pauses_per_second", "lock waits per second", "deadlocks/s", "slow_queries_per_second", "slow_ops/s",
		"temp_bytes/s", "tmp_disk_tables_per_second", "wal_bytes_per_transaction", "MB_read_per_query", "KB/op",
		"cost_per_op_usd", "joules_per_op", "cpu seconds per GB", "cpu_us_per_io", "media_errors", "unsafe_shutdowns",
		"time to first byte (ms)", "5xx_per_second", "Non-2xx responses/s", "throttles_per_second", "nr_throttled",
		"oom_kills", "dirty_pages_stalled_per_s", "wakeups/s", "interrupts/s", "write_amplification", "backlog_bytes",
		"backlog_MB/s", "cancelled_ops_per_second", "invalid_requests_per_second", "conflicts/s",
		"serialization_failures/s", "checksum_errors", "bad_blocks", "corrupt_reads_per_second", "expired_ops/s",
		"overruns/s", "underruns_per_second", "late_ops_per_second", "stale_reads_per_second",
		"degraded_ops_per_second",
	},
	"": {
		"total_ios", "runtime (ms)", "read pct", "queue depth", "iodepth_level.16", "util", "%util", "thds", "vus",
		"iterations", "requests_total", "scale", "clients", "number of transactions actually processed", "wrqm/s",
		"areq-sz", "avgrq-sz", "temperature", "power_on_hours", "seed", "rate_iops", "target_qps",
		"offered load (ops/s)",
		"idle_ms", "think time (ms)", "time_based_s", "fsync_interval_ms", "sampling rate (1/s)", "block size (KiB)",
		"read/write ratio", "rebuild_MB/s", "recovering_bytes_per_sec", "scrub_mb/s", "compactions/s", "vacuum_MB/s",
		"background_writes/s", "evictions_avoided/s", "checkpoint_MB/s", "limit_mbps", "max_allowed_iops",
	},
}

// No measure of a tool is judged or shown the wrong way; that a way is not known is no mistake.
func TestStrangersAreNotTurned(t *testing.T) {
	t.Parallel()
	known, all := 0, 0
	for want, names := range namesOfTools {
		for _, name := range names {
			all++
			sure, looks := DirectionOf(name, ""), Looks(name, "")
			if sure != "" && sure != want || looks != "" && looks != want {
				t.Errorf("%s: for sure %q, by a guess %q, is %q", name, sure, looks, want)
			}
			if looks == want && want != "" {
				known++
			}
		}
	}
	if known < 60 {
		t.Errorf("%d of %d names have a way", known, all)
	}
}
