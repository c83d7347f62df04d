package compare

import (
	"testing"

	"plimsoll/internal/analysis/effect"
)

func TestDirectionOf(t *testing.T) {
	low, high := effect.LowerIsBetter, effect.HigherIsBetter
	for name, want := range map[[2]string]effect.Direction{
		{"p99_ms"}: low, {"p99.99 (us)"}: low, {"p50"}: low, {"P99.9"}: low, {"p999"}: low, {"99th"}: low,
		{"latency"}:        low,
		{"read clat mean"}: low, {"avgLatency"}: low, {"mean_latency_us"}: low, {"response time"}: low,
		{"commit_ms"}:  low,
		{"write [ms]"}: low, {"x", "us"}: low, {"fsync", "s"}: low, {"errors"}: low, {"errors/s"}: low,
		{"failed requests"}: low,
		{"retries"}:         low, {"io_errors_per_second"}: low, {"Deadlocks"}: low, {"timeouts_s"}: low,
		{"iops"}: high, {"Read IOPS"}: high, {"tps"}: high, {"TPM"}: high, {"NOPM"}: high, {"qps"}: high,
		{"throughput"}: high,
		{"MB/s"}:       high, {"read_MB/s"}: high, {"write (MiB/s)"}: high, {"bw_mbps"}: high, {"net", "bytes/s"}: high,
		{"requests_per_second"}: high, {"orders/s"}: high, {"iops p99"}: high, {"reads", "ops/s"}: high,
		{"spills"}: "", {"cpu"}: "", {"temperature"}: "", {"column 1"}: "", {""}: "", {"runtime_s"}: "", {"uptime",
			"s"}: "",
		{"host"}: "", {"cache_ratio"}: "", {"size_bytes"}: "", {"process"}: "", {"p"}: "", {"score"}: "",
	} {
		if got := DirectionOf(name[0], name[1]); got != want {
			t.Errorf("DirectionOf(%q, %q) = %q, want %q", name[0], name[1], got, want)
		}
	}
}
