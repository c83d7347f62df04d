// Package integrity is the load generator `integrity`: plimsoll itself, put on the machine, writes blocks that say what
// they are and has them made safe, batch by batch; and later, as another workload, reads them back and says which of
// those that the storage had acknowledged are not there. See package plimsoll/internal/workloads/integrity/driver,
// which does the work there.
//
// It stands among the engines. What was acknowledged is told in the output of the write, line by line. Output reaches
// the run folder as it grows, so a machine that loses power takes no claim with it; what a verification needs is read
// from that folder and put on the machine that verifies, as a file. A claim that was still on its way when the power
// went is held against nobody.
//
// Its config is YAML. To write, every key may be left out:
//
//	block_size: 4KiB      # a power of two, 512 to 1MiB
//	flush_every: 64KiB    # written, then made safe and acknowledged together
//	order: random         # or sequential
//	size: 1GiB            # of the disk, from its beginning; default: all
//	passes: 1             # default: until runtime_secs are over; without runtime_secs 1
//	threads: 4            # blocks written at once
//	compressibility: 0    # percent that a compressor saves
//	disk: /dev/sdb        # default: the first one
//
// To verify: `written_by: Ledger write`, the name of the workload that wrote, on the same machine; and threads, disk.
//
// It refuses unknown keys with the nearest known one, and to prefill: what it writes is no data set that others read.
package integrity

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	integrity "plimsoll/internal/workloads/integrity/driver"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is what scenarios call the engine.
const Name = "integrity"

// Engine is the generator. The zero value is ready for use.
type Engine struct{}

var _ workload.Engine = Engine{}

// Describe implements workload.Engine.
func (Engine) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Blocks: true}
}

// Check implements workload.Engine: the tool is this program, which Run brings along.
func (Engine) Check(ctx context.Context, host target.Host) (workload.Tool, error) {
	return workload.CheckSelf(ctx, host, Name)
}

// parse reads the file, then the settings of the workload on top of it. Without disks in the Spec it judges the form.
func parse(spec workload.Spec) (integrity.Job, target.Disk, error) {
	c := &config{Pairs: workload.Pairs{Example: "block_size: 4KiB", Bad: &workload.ConfigError{File: spec.ConfigFile}},
		disks: spec.Disks, job: integrity.Job{Threads: 4, BlockBytes: 4 << 10, FlushBytes: 64 << 10,
			Order: integrity.Random, Duration: spec.Runtime}}
	if len(spec.Disks) > 0 {
		c.disk = spec.Disks[0]
	}
	c.Read(spec, c.take)
	j := &c.job
	if j.WrittenBy != "" {
		if len(c.writes) > 0 {
			c.Object(nil, "written_by: what verifies has no %s: the record of the write says that; leave it out",
				strings.Join(c.writes, ", no "))
		}
		c.job = integrity.Job{Threads: j.Threads, WrittenBy: j.WrittenBy}
	} else if j.Passes == 0 && spec.Runtime == 0 {
		j.Passes = 1
	}
	j.Path, j.Device = c.disk.Path, c.disk.Device
	if size := j.Bytes; size == 0 {
		j.Bytes = c.disk.Bytes
	} else if len(spec.Disks) > 0 && size > c.disk.Bytes {
		c.Object(nil, "size: %s has %s, and %s are to be written", c.disk.Device, unit.Bytes(c.disk.Bytes),
			unit.Bytes(size))
	}
	if len(c.Bad.Objections) == 0 {
		judged := c.job
		if len(spec.Disks) == 0 {
			judged.Bytes = cmp.Or(judged.Bytes, 1<<40) // a file is judged before its disk is known
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
	disks  []target.Disk
	job    integrity.Job
	disk   target.Disk
	writes []string // keys of a write that are there
}

var keys = []string{"block_size", "compressibility", "disk", "flush_every", "order", "passes", "size", "threads",
	"written_by"}

// take takes one pair, or objects to it at its place.
func (c *config) take(key, node *yaml.Node) {
	if node.Kind != yaml.ScalarNode {
		c.Object(node, "%s: want one value", key.Value)
		return
	}
	var err error
	value := node.Value
	size := func() int64 {
		var n unit.Bytes
		n, err = unit.ParseBytes(value)
		if err == nil && n < 1 {
			err = fmt.Errorf("size %q: want more than nothing", value)
		}
		return int64(n)
	}
	switch key.Value {
	case "threads":
		c.job.Threads, err = strconv.Atoi(value)
	case "passes":
		if c.job.Passes, err = strconv.Atoi(value); err == nil && c.job.Passes < 1 {
			err = fmt.Errorf("%d passes: want 1 or more", c.job.Passes)
		}
	case "compressibility":
		c.job.CompressibilityPercent, err = strconv.Atoi(value)
	case "block_size":
		c.job.BlockBytes = int(min(size(), 1<<40))
	case "flush_every":
		c.job.FlushBytes = size()
	case "size":
		c.job.Bytes = size()
	case "order":
		if c.job.Order = value; value != integrity.Random && value != integrity.Sequential {
			err = fmt.Errorf("%q: want %s or %s", value, integrity.Sequential, integrity.Random)
		}
	case "written_by":
		if c.job.WrittenBy = value; value == "" {
			err = errors.New("want the name of the workload that wrote")
		}
	case "disk":
		i := slices.IndexFunc(c.disks, func(d target.Disk) bool { return d.Device == value })
		if i >= 0 {
			c.disk = c.disks[i]
		} else if len(c.disks) > 0 {
			err = fmt.Errorf("the VM has no %q", value)
		}
	default:
		c.Unknown(key, "", keys)
		return
	}
	if !slices.Contains([]string{"threads", "written_by", "disk"}, key.Value) {
		c.writes = append(c.writes, key.Value)
	}
	if numeric := (*strconv.NumError)(nil); errors.As(err, &numeric) {
		err = fmt.Errorf("%q is no whole number", value)
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
	jobFile     = "/integrity.json"
	recordFile  = "/record.json"
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
		err = errors.New("integrity has no prefill; leave it out, it writes what it reads")
	case disk.Path == "":
		err = errors.New("the VM has no data disk; give it one")
	}
	if err != nil {
		return workload.Job{}, fmt.Errorf("prepare: workload %q: %w", spec.Name, err)
	}
	folder := workload.FolderName(spec.Name)
	stream := result.Stream{Name: "blocks", Device: disk.Device, Depth: j.Threads, Direct: true}
	declared := workload.Declared{Operations: []result.Operation{{Name: "write", Noun: "writes", Bytes: true,
		Block: result.BlockWrite}}}
	if verifies := j.WrittenBy != ""; verifies {
		j.Record = folder + recordFile
		declared.Operations = []result.Operation{{Name: "read", Noun: "reads", Bytes: true, Block: result.BlockRead}}
		stream.Reads, stream.Verifies, stream.ReadBytes, stream.Bytes = true, true, 1<<20, j.Bytes
		stream.Work = j.Bytes // of the disk; what was written may be less of it
	} else {
		m := j.Manifest()
		stream.Pauses = true // between batches there is a flush
		stream.Writes, stream.WriteBytes, stream.Bytes = true, float64(j.BlockBytes), m.Bytes
		stream.Reducible = float64(j.CompressibilityPercent) / 100
		if stream.Random = 1; j.Order == integrity.Sequential {
			stream.Random, stream.WriteBytes = 0, 1<<20
		}
		if stream.Runtime, stream.TimeBased = spec.Runtime, j.Passes == 0; j.Passes > 0 {
			stream.Work = m.Bytes * int64(j.Passes)
		}
	}
	for _, name := range integrity.Measures(j.WrittenBy != "") {
		m := result.Measure{Name: name, Unit: "blocks", Kind: result.Count, Better: result.Lower}
		switch name {
		case integrity.MeasureAcknowledged, integrity.MeasureChecked:
			m.Better = result.Higher
		case integrity.MeasureFlushes:
			m.Unit, m.Better = "flushes", result.Higher
		case integrity.MeasureUnclaimed:
			m.Better = ""
		}
		declared.Measures = append(declared.Measures, m)
	}
	text, err := json.Marshal(j)
	return workload.Job{
		Declared: declared,
		Files:    map[string][]byte{folder + jobFile: text},
		Command: target.Command{Label: spec.Name, Stdout: folder + outputFile, Stderr: folder + stderrFile,
			Argv: []string{"./" + folder + programFile, integrity.WorkCommand, folder + jobFile}},
		Config:  folder + jobFile,
		Output:  folder + outputFile,
		Limit:   j.Duration,
		Streams: []result.Stream{stream},
	}, err
}

// Run implements workload.Engine.
func (Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.RunSelfWith(ctx, env, job, newParser(job.Declared, env.Sink), workload.Words{Name: Name},
		func(ctx context.Context, host target.Host, job workload.Job) error {
			return putRecord(ctx, env, host, job)
		})
}

// putRecord puts what the write has told on the machine that is to verify.
func putRecord(ctx context.Context, env workload.Env, host target.Host, job workload.Job) error {
	var j integrity.Job
	if err := json.Unmarshal(job.Files[job.Config], &j); err != nil || j.WrittenBy == "" {
		return err
	}
	rec, err := recordOf(env, j.WrittenBy)
	if err != nil {
		return fmt.Errorf("what %q acknowledged: %w", j.WrittenBy, err)
	}
	if rec.Manifest.Path != j.Device {
		return fmt.Errorf("%q wrote %s, and this reads %s: say disk: %s", j.WrittenBy, rec.Manifest.Path, j.Device,
			rec.Manifest.Path)
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return host.Put(ctx, j.Record, target.PlainFile, bytes.NewReader(data))
}

func recordOf(env workload.Env, writer string) (*integrity.Record, error) {
	if env.Earlier == nil {
		return nil, errors.New("nothing is kept of earlier workloads here")
	}
	out, err := env.Earlier(writer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("that workload has left no output on this machine; start it first")
	}
	if err != nil {
		return nil, err
	}
	rec, err := integrity.ReadRecord(out)
	return rec, errors.Join(err, out.Close())
}

// Parse implements workload.Engine.
func (Engine) Parse(d workload.Declared, raw io.Reader, sink workload.Sink) (workload.Outcome, error) {
	return workload.Replay(raw, newParser(d, sink), Name)
}

// parser reads states, and passes by the lines of the record; what a verification found it says as warnings.
type parser struct {
	*workload.StateParser
	sink  workload.Sink
	lines workload.Lines
}

func newParser(d workload.Declared, sink workload.Sink) workload.Parser {
	return &parser{StateParser: workload.NewStateParser(d, sink, Name), sink: sink,
		lines: workload.Lines{Longest: 8 << 20}}
}

// Feed implements workload.Parser.
func (p *parser) Feed(data []byte) {
	p.lines.Feed(data, func(line []byte) {
		for _, word := range integrity.Words() {
			if bytes.HasPrefix(line, []byte(word+" ")) {
				if r, ok := integrity.Verified(line); ok {
					p.tell(r)
				}
				return
			}
		}
		p.StateParser.Feed(append(slices.Clone(line), '\n'))
	})
}

// mostNamed is how many damaged ranges are named by their addresses; the raw output has more of them.
const mostNamed = 20

// tell names what is damaged.
func (p *parser) tell(r integrity.Report) {
	if foreign := r.DamagedBlocks[integrity.Foreign]; foreign > 0 && r.Intact == 0 {
		p.sink.Warn("not one block is of that write, and there are blocks of another: is this the disk that was written?")
	}
	for _, d := range r.Damages[:min(mostNamed, len(r.Damages))] {
		p.sink.Warn(d.String())
	}
	listed := int64(max(0, len(r.Damages)-mostNamed))
	if more := listed + r.Unlisted; more > 0 {
		p.sink.Warn(fmt.Sprintf("and %s more damaged ranges; the raw output names %s of them", unit.Thousands(more),
			unit.Thousands(listed)))
	}
}
