// Package vioperf is the load generator `vioperf`: plimsoll itself, put on the machine, writes one of its disks as a
// column store loads. Every thread has a part of the disk, which it writes from its start to its end with large blocks,
// each with a checksum, and round again; see package plimsoll/internal/workloads/vioperf/driver, which does the work
// there.
//
// It stands among the engines. Its config is YAML, every key of which may be left out:
//
//	threads: 2            # each writes a part of the disk
//	block_size: 1MiB      # a multiple of 4KiB
//	queue_depth: 2        # blocks outstanding of each thread
//	rate: 200MB/s         # of all threads together; without it as fast as it goes
//	checksum: true        # CRC-64/NVME in every block
//	compressibility: 0    # percent that a compressor saves
//	disk: /dev/sdb        # default: the first one
//
// It refuses unknown keys with the nearest known one, and to prefill: what it writes is no data set that others read.
package vioperf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	vioperf "plimsoll/internal/workloads/vioperf/driver"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is what scenarios call the engine.
const Name = "vioperf"

// Engine is the generator. The zero value is ready for use.
type Engine struct{}

var _ workload.Engine = Engine{}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, OpenLoop: true, Latency: "service time", Blocks: true}
}

// Check implements workload.Engine: the tool is this program, which Run brings along.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	return workload.CheckSelf(ctx, host, Name)
}

// parse reads the file, then the settings of the workload on top of it. Without disks in the Spec it judges the form.
func parse(spec workload.Spec) (vioperf.Job, target.Disk, error) {
	d := vioperf.Defaults()
	c := &config{Pairs: workload.Pairs{Example: "threads: 2", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		disks: spec.Disks, job: vioperf.Job{Threads: 2, BlockBytes: d.BlockBytes, QueueDepth: d.QueueDepth,
			Checksum: true, Seed: spec.Seed, Duration: spec.Runtime}}
	if len(spec.Disks) > 0 {
		c.disk = spec.Disks[0]
	}
	c.Read(spec, c.take)
	c.job.Path, c.job.Bytes = c.disk.Path, c.disk.Bytes
	if len(c.Bad.Objections) == 0 {
		judged := c.job
		judged.Duration = max(judged.Duration, time.Second) // a file is judged before its time is known
		if len(spec.Disks) == 0 {
			judged.Bytes = 1 << 60 // and before its disk is
		}
		if err := judged.Check(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				c.Object(nil, "%s", line)
			}
		}
	}
	if len(c.Bad.Objections) > 0 {
		return c.job, c.disk, c.Bad
	}
	return c.job, c.disk, nil
}

// config is a file while it is read.
type config struct {
	workload.Pairs
	disks []target.Disk
	job   vioperf.Job
	disk  target.Disk
}

var keys = []string{"block_size", "checksum", "compressibility", "disk", "queue_depth", "rate", "threads"}

// take takes one pair, or objects to it at its place.
func (c *config) take(key, node *yaml.Node) {
	if node.Kind != yaml.ScalarNode {
		c.Object(node, "%s: want one value", key.Value)
		return
	}
	var err error
	value := node.Value
	whole := func(to *int) { *to, err = strconv.Atoi(value) }
	switch key.Value {
	case "threads":
		whole(&c.job.Threads)
	case "queue_depth":
		whole(&c.job.QueueDepth)
	case "compressibility":
		whole(&c.job.CompressibilityPercent)
	case "checksum":
		c.job.Checksum, err = strconv.ParseBool(value)
	case "block_size":
		var n unit.Bytes
		n, err = unit.ParseBytes(value)
		c.job.BlockBytes = int(min(n, 1<<40))
	case "rate":
		var rate unit.Bandwidth
		rate, err = unit.ParseBandwidth(value)
		c.job.Rate = float64(rate)
	case "disk":
		i := slices.IndexFunc(c.disks, func(d target.Disk) bool { return d.Device == value })
		if i >= 0 {
			c.disk = c.disks[i]
		} else if len(c.disks) > 0 {
			err = fmt.Errorf("the VM has no %q", value)
		}
	default:
		c.Unknown(key, "", keys)
	}
	if numeric := (*strconv.NumError)(nil); errors.As(err, &numeric) {
		err = fmt.Errorf("%q is no whole number", value)
		if key.Value == "checksum" {
			err = fmt.Errorf("%q is neither true nor false", value)
		}
	}
	if err != nil {
		c.Object(key, "%s: %v", key.Value, err)
	}
}

// Validate implements workload.Engine.
func (Engine) Validate(spec workload.Spec) error {
	_, _, err := parse(spec)
	return err
}

// Files of a job in its folder.
const (
	jobFile     = "/vioperf.json"
	outputFile  = "/output"
	stderrFile  = "/stderr"
	programFile = "/plimsoll"
)

// Command implements workload.Engine.
func (Engine) Command(spec workload.Spec) (workload.Job, error) {
	j, disk, err := parse(spec)
	switch {
	case err != nil:
		return workload.Job{}, err
	case spec.Prefill:
		err = errors.New("vioperf has no prefill; leave it out, it only writes")
	case spec.Runtime <= 0:
		err = errors.New("vioperf ends with its time: give runtime_secs")
	case disk.Path == "":
		err = errors.New("the VM has no data disk; give it one")
	}
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	text, err := json.Marshal(j)
	folder := workload.FolderName(spec.Name)
	stream := result.Stream{Name: "writers", Device: disk.Device, Depth: j.Threads * j.QueueDepth, Writes: true,
		Rate: j.Rate / float64(j.BlockBytes), OpenLoop: j.Rate > 0, Bytes: j.Part() * int64(j.Threads), Direct: true,
		Reducible: float64(j.CompressibilityPercent) / 100, TimeBased: true, Runtime: spec.Runtime,
		WriteBytes: float64(j.BlockBytes)}
	declared := workload.Declared{Operations: []result.Operation{{Name: "write", Noun: "writes", Bytes: true,
		Block: result.BlockWrite}}}
	if j.Rate > 0 {
		declared.Latency = "response time"
	}
	return workload.Job{
		Declared: declared,
		Files:    map[string][]byte{folder + jobFile: text},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, vioperf.WorkCommand, folder + jobFile}},
		Config:  folder + jobFile,
		Output:  folder + outputFile,
		Limit:   spec.Runtime,
		Streams: []result.Stream{stream},
	}, err
}

// Run implements workload.Engine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.RunSelf(ctx, env, job, Name)
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	return workload.ReplaySelf(d, raw, sink, Name)
}
