package agent

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/kit/procfs"
)

// generators counts what the threads of the run's commands do, under the names that sandboxes have for it.
type generators struct {
	keeper
	watch procfs.ThreadWatch
}

// Describe implements exporter.Collector.
func (*generators) Describe() exporter.Description {
	families := []exporter.Family{
		{Name: "plimsoll_generator_thread_busy_ratio", Type: exporter.Gauge, Unit: "ratio",
			Help: "Share of the time for which a command's busiest thread ran on a CPU, since the page before."},
		{Name: "plimsoll_generator_thread_waiting_ratio", Type: exporter.Gauge, Unit: "ratio",
			Help: "Share of the time for which the same thread was ready and had no CPU."},
	}
	return exporter.Description{Name: "generators", Help: "What the commands of the run do.", Families: families}
}

// Collect implements exporter.Collector. Services are none of a load's generators.
func (g *generators) Collect(_ context.Context, emit exporter.Emit) error {
	entries, err := os.ReadDir(filepath.Join(g.folder, units))
	if err != nil {
		return err
	}
	of := map[string]int{} // processes by what their commands are called
	for _, e := range entries {
		label, err := os.Readlink(filepath.Join(g.dir(e.Name()), labelLink))
		if err != nil || strings.HasPrefix(e.Name(), "service-") {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(g.dir(e.Name()), beganFile))
		pid, err := strconv.Atoi(string(data))
		if held, _ := g.held(e.Name()); held && err == nil {
			of[label] = pid
		}
	}
	uses := g.watch.Look(os.DirFS("/"), time.Now(), slices.Collect(maps.Values(of)))
	for label, pid := range of {
		if use, ok := uses[pid]; ok {
			emit("plimsoll_generator_thread_busy_ratio", use.Busy, "workload", label)
			emit("plimsoll_generator_thread_waiting_ratio", use.Waiting, "workload", label)
		}
	}
	return nil
}
