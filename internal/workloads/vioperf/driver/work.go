package vioperf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
)

// Job says what Work is told: a disk, whose content is written over, and how. Every thread has a part of the disk,
// which it writes from its start to its end and round again.
type Job struct {
	Path                   string        `json:"path"`
	Bytes                  int64         `json:"bytes"` // of the disk
	Threads                int           `json:"threads"`
	BlockBytes             int           `json:"block_bytes"`
	QueueDepth             int           `json:"queue_depth"`
	Rate                   float64       `json:"rate_bytes_per_second,omitempty"`
	Checksum               bool          `json:"checksum"`
	CompressibilityPercent int           `json:"compressibility_percent,omitempty"`
	Seed                   uint64        `json:"seed"`
	Duration               time.Duration `json:"duration_ns"`
}

func (j Job) options() Options {
	return Options{Threads: j.Threads, Duration: j.Duration, BlockBytes: j.BlockBytes, QueueDepth: j.QueueDepth,
		Rate: j.Rate, Checksum: j.Checksum, WhenFull: Wrap, Seed: j.Seed,
		CompressibilityPercent: j.CompressibilityPercent}
}

// Part is how many bytes of the disk each thread has.
func (j Job) Part() int64 {
	return j.options().parts(j.Bytes)
}

// Check returns everything that is wrong with a job.
func (j Job) Check() error {
	if err := j.options().Check(); err != nil {
		return err
	}
	return j.options().room(j.Bytes)
}

// WorkCommand is the command line's word for Work; its argument is the file of the job.
const WorkCommand = "vioperf-worker"

// Work does the job that it is given as JSON, and prints a worker.State every second and at the end. It is
// what a load generator runs on a machine.
func Work(ctx context.Context, config io.Reader, out io.Writer) error {
	var j Job
	if err := json.NewDecoder(io.LimitReader(config, 1<<20)).Decode(&j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	return j.work(ctx, out, thisMachine())
}

func (j Job) work(ctx context.Context, out io.Writer, on *machine) error {
	if err := j.Check(); err != nil {
		return err
	}
	o := j.options()
	o.on = on
	r, err := newRun(o)
	if err != nil {
		return err
	}
	f, _, err := o.on.open(j.Path, true)
	if err != nil {
		return refusal(j.Path, err)
	}
	r.over(f, j.Path, j.Bytes)
	lines := json.NewEncoder(out)
	before := o.on.count(Place{})
	state := func(at time.Duration) worker.State {
		now := o.on.count(Place{})
		done := worker.Counts{Times: &hist.Histogram{}}
		for _, t := range r.threads {
			t.mu.Lock()
			times := &t.service
			if r.due > 0 {
				times = &t.response
			}
			done.Times.Merge(times)
			t.mu.Unlock()
		}
		done.Bytes = done.Times.Count() * uint64(j.BlockBytes)
		return worker.State{Elapsed: at, Began: r.begin, Operations: []worker.Counts{done},
			CPUSeconds: (now.user + now.system - before.user - before.system).Seconds()}
	}
	last := time.Duration(0)
	var unsaid error
	r.o.Progress = func(s Second) {
		last = time.Duration(s.Seconds * float64(time.Second))
		unsaid = errors.Join(unsaid, lines.Encode(state(last)))
	}
	var res Result
	err = r.measure(ctx, &res)
	s := state(max(last+1, time.Since(r.begin)))
	s.Final = true
	if res.Ended == Failed {
		err = errors.Join(err, fmt.Errorf("%s: %s", j.Path, res.Error))
	}
	return errors.Join(err, unsaid, lines.Encode(s), f.Close())
}
