// Package vioperf is the load generator `vioperf`: plimsoll itself, put on the machine, writes one of its disks as a
// column store loads. Every thread has a part of the disk, which it writes from its start to its end with large blocks,
// each with a checksum, and round again; see package plimsoll/internal/vioperf, which does the work there.
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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/nearest"
	"plimsoll/internal/target"
	"plimsoll/internal/vioperf"
	"plimsoll/internal/workload"
	"plimsoll/result"
	"plimsoll/scenario"
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
	if err := host.Accessible(ctx); err != nil {
		return workload.Tool{}, fmt.Errorf("check: %s on %s: %w", Name, host.Name(), err)
	}
	return workload.Tool{Path: "plimsoll", Version: runtime.GOOS + "/" + runtime.GOARCH}, nil
}

// parse reads the file, then the settings of the workload on top of it. Without disks in the Spec it judges the form.
func parse(spec workload.Spec) (vioperf.Job, target.Disk, error) {
	d := vioperf.Defaults()
	c := &config{spec: spec, bad: &workload.ConfigError{File: spec.ConfigFile}, job: vioperf.Job{Threads: 2,
		BlockBytes: d.BlockBytes, QueueDepth: d.QueueDepth, Checksum: true, Seed: spec.Seed, Duration: spec.Runtime}}
	if len(spec.Disks) > 0 {
		c.disk = spec.Disks[0]
	}
	c.file()
	for _, s := range spec.Settings {
		c.set(s.Key, s.Value, scenario.Objection{Setting: true})
	}
	c.job.Path, c.job.Bytes = c.disk.Path, c.disk.Bytes
	if len(c.bad.Objections) == 0 {
		judged := c.job
		judged.Duration = max(judged.Duration, time.Second) // a file is judged before its time is known
		if len(spec.Disks) == 0 {
			judged.Bytes = 1 << 60 // and before its disk is
		}
		if err := judged.Check(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				c.bad.Objections = append(c.bad.Objections, scenario.Objection{What: line})
			}
		}
	}
	if len(c.bad.Objections) > 0 {
		return c.job, c.disk, c.bad
	}
	return c.job, c.disk, nil
}

// config is a file while it is read.
type config struct {
	spec workload.Spec
	job  vioperf.Job
	disk target.Disk
	bad  *workload.ConfigError
}

// file reads the pairs of the file.
func (c *config) file() {
	var root yaml.Node
	object := func(n *yaml.Node, format string, args ...any) {
		c.bad.Objections = append(c.bad.Objections, scenario.Objection{Line: n.Line, Col: n.Column,
			What: fmt.Sprintf(format, args...)})
	}
	if err := yaml.Unmarshal(c.spec.Config, &root); err != nil {
		object(&yaml.Node{Line: 1, Column: 1}, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if len(root.Content) == 0 {
		return // an empty file leaves everything as it is
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode {
		object(top, `want pairs such as "threads: 2"`)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		switch {
		case value.Kind != yaml.ScalarNode:
			object(value, "%s: want one value", key.Value)
		case seen[key.Value]:
			object(key, "%s is there twice", key.Value)
		default:
			c.set(key.Value, value.Value, scenario.Objection{Line: key.Line, Col: key.Column})
		}
		seen[key.Value] = true
	}
}

var keys = []string{"block_size", "checksum", "compressibility", "disk", "queue_depth", "rate", "threads"}

// set takes one pair, or objects to it at its place.
func (c *config) set(key, value string, at scenario.Objection) {
	var err error
	whole := func(to *int) { *to, err = strconv.Atoi(value) }
	switch key {
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
		i := slices.IndexFunc(c.spec.Disks, func(d target.Disk) bool { return d.Device == value })
		if i >= 0 {
			c.disk = c.spec.Disks[i]
		} else if len(c.spec.Disks) > 0 {
			err = fmt.Errorf("the VM has no %q", value)
		}
	default:
		at.What = fmt.Sprintf("unknown key %q; known are %s", key, strings.Join(keys, ", "))
		if near := nearest.Of(key, keys); near != "" {
			at.What = fmt.Sprintf("unknown key %q; did you mean %q?", key, near)
		}
		c.bad.Objections = append(c.bad.Objections, at)
		return
	}
	if numeric := (*strconv.NumError)(nil); errors.As(err, &numeric) {
		err = fmt.Errorf("%q is no whole number", value)
		if key == "checksum" {
			err = fmt.Errorf("%q is neither true nor false", value)
		}
	}
	if err != nil {
		at.What = key + ": " + err.Error()
		c.bad.Objections = append(c.bad.Objections, at)
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
	lane := workload.Lane{Name: "writers", Device: disk.Device, Depth: j.Threads * j.QueueDepth, Writes: true,
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
		Config: folder + jobFile,
		Output: folder + outputFile,
		Limit:  spec.Runtime,
		Lanes:  []workload.Lane{lane},
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
