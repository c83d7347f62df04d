// Package workload is the contract between Plimsoll and load generators. An engine declares what it counts: operations
// (reads, transactions, files) and further measures. The tool's own words stay inside its package: what crosses here is
// a Spec in, Reports out.
//
// An Engine's Command and Parse are pure, so nearly all of a driver is tested with no tool installed. Run executes a
// Job on a target.Host, follows its output while it goes on, hands every byte to the raw log first and every Report to
// the Sink, and says at the end how it went. Follow does that for every engine with a tool of its own. Replaying the
// raw log through Parse later must give the same Reports.
//
// Counters in a Report are cumulative since the job began; latency histograms hold service time (from the actual send
// of an operation to its completion) unless Description says otherwise.
package workload

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
	"plimsoll/result"
	"plimsoll/scenario"
)

// Description says what an engine can do.
type Description struct {
	Name       string
	OpenLoop   bool   // can offer arrivals on a schedule
	Latency    string // "service time" or "response time": what the histograms hold
	MinVersion string // oldest tool version accepted, "" when there is no tool
	// Blocks: its jobs do block I/O, and their streams say enough of it for a model of storage.
	Blocks bool
	// Prefills: with Spec.Prefill it writes everything that its streams read.
	Prefills bool
	// RunsPrograms: it runs programs that the scenario's author names. The plan asks that the place permits that.
	RunsPrograms bool
	// Prepares: it has long to do before its first operation, for which a start of it waits: steps that follow, such as
	// faults, come so long after that.
	Prepares bool
}

// Declared holds what the reports of a job count, and what Parse needs to read them again.
type Declared struct {
	Operations []result.Operation // what Report.Ops counts, in that order
	Measures   []result.Measure   // what Report.Values holds, in that order
	Format     json.RawMessage    // the engine's own; nil when the output needs no explanation
	Latency    string             // what the histograms hold where that is not what Description says
}

// Spec is one workload on one machine, fully resolved. Sizes inside the config are not yet scaled.
type Spec struct {
	Name       string // workload name of the scenario, or one made from it; no two jobs of a machine share it
	VM         string
	ConfigFile string             // for messages
	Config     []byte             // the author's file, unmodified
	Settings   []scenario.Setting // of the workload, on top of what the file says
	Disks      []target.Disk
	// Address is where this machine is reached from its peers, "" when none reaches it.
	Address string
	// Peers are the machines that the load goes to, by name, for engines that are Peering; Peer is the place in that
	// list of the one that is this machine's own, so that loads are spread evenly. Others may be used as well.
	Peers []Peer
	Peer  int
	// Turn is how many machines of the same start are before this one whose load goes to the same place.
	Turn      int
	Prefill   bool          // run the derived prefill job instead of the author's
	Whole     bool          // prefill only: every data disk from its beginning to its end, whatever the sections say
	Block     int64         // prefill only: bytes of a write; 0: 1 MiB
	Depth     int           // prefill only: outstanding writes per section
	Interval  time.Duration // between reports, as the author asked; live views may use a shorter one
	Runtime   time.Duration // 0: the author gave none
	Seed      uint64        // 0: do not fix the sequence
	SizeScale float64       // 1 leaves sizes alone
	TimeScale float64       // for durations inside the config
	// Sections is how many streams may be told apart in the reports of the machine; with more, and where it is below 2,
	// reports hold totals only.
	Sections int
}

// Job holds what Command made of a Spec: files to put on the host and a command to run there.
type Job struct {
	Declared
	Command target.Command
	Files   map[string][]byte
	Config  string          // which of Files the tool reads what to do from, for messages; "" for none
	Output  string          // file the reports appear in, relative to the host's working folder
	Limit   time.Duration   // 0 unknown; longest time the tool itself may run
	Streams []result.Stream // what the job will keep outstanding, for checks
	Apart   bool            // reports tell the streams apart
	Notes   []string        // what was changed or ignored, in words, e.g. "dropped exec_prerun"
}

// Counters are cumulative.
type Counters struct {
	Ops     uint64
	Bytes   uint64
	Seconds float64         // sum of the service times
	Hist    *hist.Histogram // nanoseconds; nil when the tool gave none
}

// Add counts o in. Histograms stay only while every part that has operations has one; c's own is not changed.
func (c *Counters) Add(o Counters) {
	if o.Ops == 0 && o.Bytes == 0 {
		return
	}
	switch {
	case c.Ops == 0:
		c.Hist = o.Hist
	case c.Hist != nil && o.Hist != nil:
		merged := c.Hist.Clone()
		merged.Merge(o.Hist)
		c.Hist = merged
	default:
		c.Hist = nil
	}
	c.Ops += o.Ops
	c.Bytes += o.Bytes
	c.Seconds += o.Seconds
}

// Counts are counters by operation, in the order of Declared.Operations.
type Counts []Counters

// Add counts o in, which is of the same operations.
func (c Counts) Add(o Counts) {
	for i := range c {
		c[i].Add(o[i])
	}
}

// Total is the number of all operations.
func (c Counts) Total() (n uint64) {
	for i := range c {
		n += c[i].Ops
	}
	return n
}

// MostSections bounds the streams that an engine tells apart, whatever a Spec allows.
const MostSections = 16

// Report is the state of a job at one moment.
type Report struct {
	Time time.Time // the tool's own clock; zero when its output has none: Elapsed tells then
	// since the job began; of the last one of a tool without a clock 0, when not even that is known
	Elapsed    time.Duration
	Ops        Counts
	Values     []float64 // by measure, in the order of Declared.Measures; NaN where the report has none
	Errors     uint64
	CPUSeconds float64 // of the generator, 0 when unknown
	Final      bool    // the last one, printed when the tool knew of nothing more to come
	// Sections are the same counters by stream, in the order of Job.Streams, when Job.Apart; they add up to the totals.
	// Of other jobs they mean nothing.
	Sections []Counts
}

// Sink receives reports in time order. An engine that gives histograms gives them with its first report and its last,
// those between may lack them; or with its last alone, and then of the job as a whole. It may be called from one
// goroutine per job.
type Sink interface {
	Report(Report)
	// Warn tells of output that was skipped or repaired.
	Warn(text string)
}

// Beginner is implemented by sinks that want to know when the command began, where the host can tell: what it prints
// without a time is that old, and not as old as the job, which had to be made ready first.
type Beginner interface {
	Begun(at time.Time)
}

// Point is the counters of a modelled job at a moment between two reports, by what its operations do with blocks:
// reads, writes, discards. They are cumulative, as in a Report.
type Point struct {
	Time    time.Time
	Ops     [3]uint64
	Bytes   [3]uint64
	Seconds [3]float64
}

// BlockOrder is the order of the counters of a Point.
var BlockOrder = [3]result.Block{result.BlockRead, result.BlockWrite, result.BlockDiscard}

// BlockIndexes are where in the operations those of BlockOrder are found, -1 for none.
func BlockIndexes(operations []result.Operation) (at [3]int) {
	for d, kind := range BlockOrder {
		at[d] = slices.IndexFunc(operations, func(o result.Operation) bool { return o.Block == kind })
	}
	return at
}

// Tracer is a Sink that takes Points, too. A modelled tool, whose counters are known at every moment, says how far
// apart its reports will be, and hands over the points since its last report just before the next one, in time order.
// They are in no raw output.
type Tracer interface {
	Cadence(time.Duration)
	// Points is followed by the Report up to which they lead, and may be changed after that.
	Points([]Point)
}

// Env holds what Run works with.
type Env struct {
	Run   string // what the run is called, for what claims things for it; "" outside of runs
	Host  target.Host
	Clock clock.Clock
	Raw   io.Writer // everything the tool printed, in order; written before it is parsed
	Sink  Sink
	// Earlier opens what the last start of another workload printed on this machine, as far as it was kept. That start
	// has ended; errors.Is(err, fs.ErrNotExist) when there was none. May be nil.
	Earlier func(workload string) (io.ReadCloser, error)
	// Started, where it is there, is called when the command of the job runs: its own time begins.
	Started func()
	// Together, where it is there, is waited for when the command is ready, so that the commands of many machines begin
	// together; see target.Stager. It gives the moment when they do. An engine that starts commands of its own accord
	// may leave it alone.
	Together func(context.Context) (at time.Time, err error)
}

// Start starts the command of a job, together with those of other machines where that is asked for and can be had. When
// it began is zero where the host cannot tell.
func (e Env) Start(ctx context.Context, c target.Command) (target.Process, target.Begun, error) {
	stager, can := e.Host.(target.Stager)
	if e.Together == nil || !can {
		p, err := e.Host.Start(ctx, c)
		return p, target.Begun{}, err
	}
	ready, err := stager.Stage(ctx, c)
	if err != nil {
		return nil, target.Begun{}, err
	}
	at, err := e.Together(ctx)
	if err != nil {
		return nil, target.Begun{}, errors.Join(err, ready.Drop(context.WithoutCancel(ctx)))
	}
	return ready.Release(ctx, at)
}

// Outcome says how a run of a job went.
type Outcome struct {
	Exit    target.Exit
	Stopped bool // ended because ctx was cancelled
	Reports int
	Errors  uint64 // operations that failed; they do not make the job fail
	Message string // the tool's own words when it refused or failed
	// Failure quotes its output on an error that ended its work, whatever its exit code: not on operations that
	// failed and were counted.
	Failure string
	Usage   target.Usage
	Began   target.Begun // its command; zero where the host cannot tell
}

// Tool holds what Check found on a host.
type Tool struct {
	Path    string
	Version string
}

// Engine drives one kind of load.
type Engine interface {
	Describe() Description
	// Check finds the tool on the host and refuses absent or too old ones with what to do about it.
	Check(context.Context, target.Host) (Tool, error)
	// Validate reads a config and returns all objections at once; it needs no host.
	Validate(Spec) error
	// Command is pure: same Spec, same Job.
	Command(Spec) (Job, error)
	// Run executes the job and returns when it has ended. Cancelling ctx kills it; that is no error. An error means
	// that the job could not be started or failed; what it reported until then has reached the Sink all the same.
	Run(context.Context, Env, Job) (Outcome, error)
	// Parse replays raw output of a job that declared this. It skips what cannot be read with a Warn and fails only
	// when nothing could be.
	Parse(Declared, io.Reader, Sink) (Outcome, error)
}

// Naming is implemented by engines whose tool is named by the author's file.
type Naming interface {
	// CheckTool is Check for the tool that the Spec names.
	CheckTool(context.Context, target.Host, Spec) (Tool, error)
}

// Simulating is implemented by clusters on which a tool does not run but is modelled: given a generator's name and its
// real engine, nil when there is none, they supply the engine to use. Validate, Command and Describe are the real
// one's, so any file of the author is read as it would be elsewhere.
type Simulating interface {
	Engine(generator string, real Engine) (Engine, bool)
}
