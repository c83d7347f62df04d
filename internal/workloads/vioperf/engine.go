// Package vioperf is the load generator `vioperf`: plimsoll itself, put on the machine, writes one of its disks as a
// column store loads. Every thread has a part of the disk, which it writes from its start to its end with large blocks,
// each with a checksum, and round again; see package plimsoll/internal/workloads/vioperf/driver, which does the work
// there.
//
// It stands among the engines, and refuses to prefill: what it writes is no data set that others read.
package vioperf

import (
	"errors"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
	"plimsoll/result"
)

// Name is the engine's name in scenarios.
const Name = "vioperf"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ workload.Self[own, *config] }

var _ workload.Engine = Engine{}

type own struct{}

var _ workload.Maker[*config] = own{}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, OpenLoop: true, Latency: "service time", Blocks: true}
}

// config is a file that is read.
type config struct {
	workload.Reading
	job  vioperf.Job
	disk target.Disk
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	d := vioperf.Defaults()
	return &config{Reading: workload.Reading{Spec: spec}, job: vioperf.Job{Threads: 2, BlockBytes: d.BlockBytes,
		QueueDepth: d.QueueDepth, Checksum: true, Seed: spec.Seed, Duration: spec.Runtime}}
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	return []workload.Option{
		{Name: "threads", To: &c.job.Threads, Help: "each writes a part of the disk"},
		{Name: "block_size", Type: target.Bytes, To: &c.job.BlockBytes, Help: "a multiple of 4KiB"},
		{Name: "queue_depth", To: &c.job.QueueDepth, Help: "blocks outstanding of each thread"},
		{Name: "rate", Type: target.Bandwidth, To: &c.job.Rate,
			Help: "of all threads together, such as 200MB/s; without it as fast as it goes"},
		{Name: "checksum", To: &c.job.Checksum, Help: "CRC-64/NVME in every block"},
		{Name: "compressibility", To: &c.job.CompressibilityPercent, Unit: "percent", Help: "that a compressor saves"},
		c.Disk(&c.disk),
	}
}

// Settle implements workload.Config. Without disks in the Spec it judges the form.
func (c *config) Settle() {
	c.job.Path, c.job.Bytes = c.disk.Path, c.disk.Bytes
	judged := c.job
	judged.Duration = max(judged.Duration, time.Second) // a file is judged before its time is known
	if len(c.Spec.Disks) == 0 {
		judged.Bytes = 1 << 60 // and before its disk is
	}
	c.Judge(judged.Check)
}

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	switch {
	case c.Spec.Prefill:
		return nil, errors.New("vioperf has no prefill; leave it out, it only writes")
	case c.Spec.Runtime <= 0:
		return nil, errors.New("vioperf ends with its time: give runtime_secs")
	case c.disk.Path == "":
		return nil, errors.New("the VM has no data disk; give it one")
	}
	j := c.job
	job.Streams = []result.Stream{
		{
			Name:   "writers",
			Device: c.disk.Device,
			Depth:  j.Threads * j.QueueDepth,
			Writes: true,
			Rate: j.Rate / float64(
				j.BlockBytes,
			),
			OpenLoop:   j.Rate > 0,
			Bytes:      j.Part() * int64(j.Threads),
			Direct:     true,
			Reducible:  float64(j.CompressibilityPercent) / 100,
			Checksums:  j.Checksum,
			TimeBased:  true,
			Runtime:    c.Spec.Runtime,
			WriteBytes: float64(j.BlockBytes),
		},
	}
	job.Operations = []result.Operation{{Name: "write", Noun: "writes", Bytes: true, Block: result.BlockWrite}}
	if j.Rate > 0 {
		job.Streams[0].Arrivals = result.ArrivalsEven // each thread has its turns
		job.Latency = "response time"
	}
	return j, nil
}
