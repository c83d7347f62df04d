package host_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/exporters/host"
)

// TestGroups has control groups with a quota, with a limit of memory, with both and with none, in either version.
func TestGroups(t *testing.T) {
	t.Parallel()
	system := fstest.MapFS{}
	for name, text := range map[string]string{
		"proc/1/mounts": "none /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n" +
			"none /sys/fs/cgroup/memory cgroup rw,memory 0 0\nnone /sys/fs/cgroup/two cgroup2 rw 0 0\n",
		"proc/76/comm": "su\n",
		"proc/77/comm": "postgres\n",
		"proc/79/comm": "postgres\n",
		"proc/78/comm": "mariadbd\n",

		"sys/fs/cgroup/cpu/cpu.stat":             "nr_periods 0\nnr_throttled 0\n",
		"sys/fs/cgroup/cpu/db/cpu.stat":          "nr_periods 2025\nnr_throttled 182\nthrottled_time 9\n",
		"sys/fs/cgroup/cpu/db/cgroup.procs":      "76\n77\n79\n",
		"sys/fs/cgroup/memory/x/cpu.stat":        "nr_periods 9\nnr_throttled 9\n",
		"sys/fs/cgroup/two/cpu.stat":             "usage_usec 5\n",
		"sys/fs/cgroup/two/a/cpu.max":            "max 100000\n",
		"sys/fs/cgroup/two/a/memory.max":         "max\n",
		"sys/fs/cgroup/two/a/memory.pressure":    "some avg10=0.00 total=5\n",
		"sys/fs/cgroup/two/b/memory.max":         "1073741824\n",
		"sys/fs/cgroup/two/b/memory.pressure":    "some avg10=0.00 avg60=0.00 total=2500000\nfull avg10=0 total=1\n",
		"sys/fs/cgroup/two/b/cpu.stat":           "usage_usec 5\nnr_periods x\n",
		"sys/fs/cgroup/two/b/leaf/cgroup.procs":  "78\n",
		"sys/fs/cgroup/two/c/cpu.max":            "10000 100000\n",
		"sys/fs/cgroup/two/c/cpu.stat":           "nr_periods 3\nnr_throttled 1\n",
		"sys/fs/cgroup/two/c/cpu.pressure":       "some avg10=0.00 total=1000000\n",
		"sys/fs/cgroup/two/c/io.pressure":        "nonsense\n",
		"sys/fs/cgroup/two/c/cgroup.procs":       "99\n", // of another name space
		"sys/fs/cgroup/two/c/inner/cpu.stat":     "nr_periods 0\nnr_throttled 0\n",
		"sys/fs/cgroup/two/c/inner/cgroup.procs": "",
	} {
		system[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := page(t, host.New(system, nil, host.Groups))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "#") {
			values = append(values, strings.TrimSpace(line))
		}
	}
	want := []string{
		`container_cpu_cfs_periods_total{id="/c"} 3`,
		`container_cpu_cfs_periods_total{id="/db",process="postgres"} 2025`,
		`container_cpu_cfs_throttled_periods_total{id="/c"} 1`,
		`container_cpu_cfs_throttled_periods_total{id="/db",process="postgres"} 182`,
		`container_pressure_cpu_waiting_seconds_total{id="/c"} 1`,
		`container_pressure_memory_waiting_seconds_total{id="/b",process="mariadbd"} 2.5`,
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}
