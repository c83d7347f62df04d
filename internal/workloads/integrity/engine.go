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
// It refuses to prefill: what it writes is no data set that others read.
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
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	integrity "plimsoll/internal/workloads/integrity/driver"
	"plimsoll/result"
	"plimsoll/unit"
)

// Name is the engine's name in scenarios.
const Name = "integrity"

// Engine is the generator. The zero value is ready for use.
type Engine struct{ workload.Self[own, *config] }

var _ workload.Engine = Engine{}

type own struct{}

var _ workload.Maker[*config] = own{}

// Describe implements workload.Maker.
func (own) Describe() workload.Description {
	return workload.Description{Name: Name, Latency: "service time", Blocks: true}
}

// config is a file that is read.
type config struct {
	workload.Reading
	job  integrity.Job
	disk target.Disk
}

// New implements workload.Maker.
func (own) New(spec workload.Spec) *config {
	return &config{Reading: workload.Reading{Spec: spec}, job: integrity.Job{Threads: 4, BlockBytes: 4 << 10,
		FlushBytes: 64 << 10, Order: integrity.Random, Duration: spec.Runtime}}
}

// Options implements workload.Config.
func (c *config) Options() []workload.Option {
	j := &c.job
	return []workload.Option{
		{Name: "block_size", Type: target.Bytes, To: &j.BlockBytes, Help: "a power of two, 512 to 1MiB"},
		{Name: "flush_every", Type: target.Bytes, To: &j.FlushBytes, Range: "1",
			Help: "written, then made safe (fsync) and acknowledged together"},
		{Name: "order", To: &j.Order, Choices: []string{integrity.Sequential, integrity.Random}},
		{Name: "size", Type: target.Bytes, To: &j.Bytes, Range: "1",
			Help: "of the disk, from its beginning; without it all"},
		{Name: "passes", To: &j.Passes, Range: "1",
			Help: "without it until runtime_secs are over, and without those 1"},
		{Name: "threads", To: &j.Threads, Help: "blocks written or read at once"},
		{Name: "compressibility", To: &j.CompressibilityPercent, Unit: "percent", Help: "that a compressor saves"},
		c.Disk(&c.disk),
		{Name: "written_by", Help: "verify what the workload of that name wrote on the same machine, with threads and " +
			"disk alone", To: func(name string) error {
			if j.WrittenBy = name; name == "" {
				return errors.New("want the name of the workload that wrote")
			}
			return nil
		}},
	}
}

// Settle implements workload.Config. Without disks in the Spec it judges the form.
func (c *config) Settle() {
	j := &c.job
	if j.WrittenBy != "" {
		var writes []string
		for _, o := range c.Options() {
			if c.Given[o.Name] != nil && !slices.Contains([]string{"threads", "written_by", "disk"}, o.Name) {
				writes = append(writes, o.Name)
			}
		}
		if len(writes) > 0 {
			c.Object(nil, "written_by: what verifies has no %s: the record of the write says that; leave it out",
				strings.Join(writes, ", no "))
		}
		c.job = integrity.Job{Threads: j.Threads, WrittenBy: j.WrittenBy}
	} else if j.Passes == 0 && c.Spec.Runtime == 0 {
		j.Passes = 1
	}
	j.Path, j.Device = c.disk.Path, c.disk.Device
	if size := j.Bytes; size == 0 {
		j.Bytes = c.disk.Bytes
	} else if len(c.Spec.Disks) > 0 && size > c.disk.Bytes {
		c.Object(nil, "size: %s has %s, and %s are to be written", c.disk.Device, unit.Bytes(c.disk.Bytes),
			unit.Bytes(size))
	}
	judged := *j
	if len(c.Spec.Disks) == 0 {
		judged.Bytes = cmp.Or(judged.Bytes, 1<<40) // a file is judged before its disk is known
	}
	c.Judge(judged.Check)
}

// recordFile is in the folder of a job that verifies.
const recordFile = "/record.json"

// Job implements workload.Config.
func (c *config) Job(job *workload.Job) (any, error) {
	j, spec := c.job, c.Spec
	switch {
	case spec.Prefill:
		return nil, errors.New("integrity has no prefill; leave it out, it writes what it reads")
	case j.Path == "":
		return nil, errors.New("the VM has no data disk; give it one")
	}
	stream := result.Stream{Name: "blocks", Device: j.Device, Depth: j.Threads, Direct: true}
	job.Operations = []result.Operation{{Name: "write", Noun: "writes", Bytes: true, Block: result.BlockWrite}}
	if j.WrittenBy != "" {
		j.Record = workload.FolderName(spec.Name) + recordFile
		job.Operations = []result.Operation{{Name: "read", Noun: "reads", Bytes: true, Block: result.BlockRead}}
		stream.Reads, stream.Verifies, stream.ReadBytes, stream.Bytes = true, true, 1<<20, j.Bytes
		stream.Work = j.Bytes // of the disk; what was written may be less of it
		job.Limit = 0
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
	job.Streams = []result.Stream{stream}
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
		job.Measures = append(job.Measures, m)
	}
	return j, nil
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
