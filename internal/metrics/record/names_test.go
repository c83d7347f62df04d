package record

import (
	"testing"
	"time"
)

// A step of the wall clock, seen through a monotonic reading, moves no point.
func TestWallClockStep(t *testing.T) {
	base := time.Now()
	now := base
	r := NewRecorder(RecorderOptions{Now: func() time.Time { return now }, Base: base})
	now = base.Add(time.Second)
	if got := r.now(); !got.Equal(base.Add(time.Second)) || got.Location() != time.UTC {
		t.Error(got)
	}
}

func TestClusterSeries(t *testing.T) {
	for _, c := range [][2]string{
		{"CpuUsage.Avg.Percent", "plimsoll_cluster_cpu_usage_avg_percent"},
		{"NetReceived.Avg.KilobytesPerSecond", "plimsoll_cluster_net_received_avg_kilobytes_per_second"},
		{"x-y.Z", "plimsoll_cluster_x_y_z"},
	} {
		if got := ClusterSeries(c[0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}
