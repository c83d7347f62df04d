package command

import (
	"context"
	"io"
	"io/fs"
	"path"
	"testing"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/clock"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
	"plimsoll/scenarios"
)

// The files of the shipped scenarios do with the real programs what they say, and leave nothing unread.
func TestShippedFiles(t *testing.T) {
	needs.Sysbench(t)
	needs.StressNg(t)
	for _, name := range []string{"cpu-and-memory", "busy-neighbour"} {
		dir, ok := scenarios.Open(name)
		if !ok {
			t.Fatalf("no scenario %s", name)
		}
		files, err := fs.Glob(dir, "*.yml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if file == "test.yml" {
				continue
			}
			t.Run(path.Join(name, file), func(t *testing.T) {
				t.Parallel()
				config, err := fs.ReadFile(dir, file)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				host := workloadtest.NewHost(t)
				spec := specOf(file, config)
				spec.Runtime, spec.SizeScale = 3*time.Second, 0.05
				if tool, err := (Engine{}).CheckTool(ctx, host, spec); err != nil || tool.Version == "" {
					t.Errorf("%+v, %v", tool, err)
				}
				job, err := Engine{}.Command(spec)
				if err != nil {
					t.Fatal(err)
				}
				var r workloadtest.Recorder
				outcome, err := Engine{}.Run(ctx, workload.Env{Host: host, Clock: clock.Real{}, Raw: io.Discard,
					Sink: &r}, job)
				if err != nil || len(r.Reports) == 0 || len(r.Warnings) > 0 {
					t.Fatalf("%d reports, outcome %+v, warnings %q, %v", len(r.Reports), outcome, r.Warnings, err)
				}
				last := r.Reports[len(r.Reports)-1]
				if !last.Final || last.Elapsed < time.Second {
					t.Errorf("the last report: %+v", last)
				}
				for i, o := range job.Operations {
					if c := last.Ops[i]; c.Ops == 0 || o.Bytes && c.Bytes == 0 || o.Name == "event" &&
						(c.Hist == nil || c.Seconds == 0) {
						t.Errorf("%s: %+v", o.Name, c)
					}
				}
				holds(t, job.Declared, r.Reports)
			})
		}
	}
}
