package compare

import (
	"testing"

	"plimsoll/internal/analysis/effect"
)

func TestDirectionOf(t *testing.T) {
	low, high := effect.LowerIsBetter, effect.HigherIsBetter
	for name, want := range map[[2]string][2]effect.Direction{ // for sure, and by a guess
		{"p99_ms"}: {low, low}, {"p99.99 (us)"}: {low, low}, {"p50"}: {low, low}, {"P99.9"}: {low, low},
		{"p999"}: {low, low}, {"99th"}: {low, low}, {"latency"}: {low, low}, {"read clat mean"}: {low, low},
		{"avgLatency"}: {low, low}, {"mean_latency_us"}: {low, low}, {"response time"}: {low, low},
		{"commit_ms"}: {low, low}, {"write [ms]"}: {low, low}, {"fsync", "s"}: {low, low}, {"errors"}: {low, low},
		{"errors/s"}: {low, low}, {"failed requests"}: {low, low}, {"retries"}: {low, low},
		{"io_errors_per_second"}: {low, low}, {"Deadlocks"}: {low, low}, {"error_ratio"}: {low, low},
		{"failed_pct"}: {low, low}, {"iops"}: {high, high}, {"Read IOPS"}: {high, high}, {"tps"}: {high, high},
		{"TPM"}: {high, high}, {"NOPM"}: {high, high}, {"qps"}: {high, high}, {"throughput"}: {high, high},
		{"randread_4k_qd32_iops"}: {high, high}, {"MB/s"}: {high, high}, {"read_MB/s"}: {high, high},
		{"write (MiB/s)"}: {high, high}, {"bw_mbps"}: {high, high}, {"net", "bytes/s"}: {high, high},
		{"requests_per_second"}: {high, high}, {"reads", "ops/s"}: {high, high},
		{"x", "us"}: {"", low}, {"orders/s"}: {}, {"iops p99"}: {"", high}, {"shed_rps"}: {},
		{"wasted_ops"}: {}, {"ops_per_error"}: {}, {"seconds_per_error"}: {}, {"time_to_failure_s"}: {},
		{"errors per retry"}: {}, {"latency_gain_ms"}: {}, {"rejected_qps"}: {"", low},
		{"throttled_ops_per_second"}: {"", low}, {"iops_stddev"}: {"", low}, {"tps cv"}: {"", low},
		{"latencySpread"}: {"", low}, {"mtbf_ms"}: {"", high}, {"MTTF (s)"}: {"", high},
		{"evicted_MB/s"}: {"", low}, {"keepalive_ms"}: {}, {"checkout_latency_ms"}: {"", low},
		{"spills"}: {}, {"cpu"}: {}, {"temperature"}: {}, {"column 1"}: {}, {""}: {}, {"runtime_s"}: {},
		{"uptime", "s"}: {}, {"p99_slo_met_pct"}: {}, {"slo_met_pct"}: {}, {"errors_avoided"}: {},
		{"offered_iops"}: {}, {"latency_budget_ms"}: {}, {"iops_within_target"}: {}, {"zero_error_runs"}: {},
		{"p99_headroom_ms"}: {}, {"throughput_pct"}: {}, {"host"}: {}, {"cache_ratio"}: {}, {"size_bytes"}: {},
		{"read_latency_count"}: {}, {"request_latency_seconds_count"}: {}, {"latency_seconds_sum"}: {},
		{"response_bytes"}: {}, {"service_rate"}: {}, {"p99_count"}: {}, {"ms_per_iops"}: {}, {"throughput_ms"}: {},
		{"count_s"}: {}, {"timeout_ms"}: {"", low}, {"kb_read_per_s"}: {high, high}, {"wait_per_s"}: {},
		{"process"}: {}, {"p"}: {}, {"score"}: {},
	} {
		got := [2]effect.Direction{DirectionOf(name[0], name[1]), Looks(name[0], name[1])}
		if got != want {
			t.Errorf("%q: for sure and by a guess %q, want %q", name, got, want)
		}
	}
}
