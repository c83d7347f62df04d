package integrity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"plimsoll/hist"
	"plimsoll/internal/contract/worker"
	"plimsoll/internal/kit/regular"
	"plimsoll/internal/storage/direct"
	"plimsoll/unit"
)

// Job holds what Work is told: a disk to write over, or the record of a write to hold it to.
type Job struct {
	Path   string `json:"path"`
	Device string `json:"device"` // what the machine calls it
	Bytes  int64  `json:"bytes"`  // from its beginning
	// Threads is how many blocks are written or read at once.
	Threads int `json:"threads"`

	// To write.
	BlockBytes             int           `json:"block_bytes,omitempty"`
	FlushBytes             int64         `json:"flush_bytes,omitempty"` // acknowledged together
	Order                  string        `json:"order,omitempty"`
	Passes                 int           `json:"passes,omitempty"` // 0: until the time is over
	CompressibilityPercent int           `json:"compressibility_percent,omitempty"`
	Duration               time.Duration `json:"duration_ns,omitempty"` // 0: until it is all written

	// To verify.
	WrittenBy string `json:"written_by,omitempty"` // the workload; "": this job writes
	Record    string `json:"record,omitempty"`     // file of a Record as JSON
}

// Manifest returns what the job writes, without the number that it will have.
func (j Job) Manifest() Manifest {
	return Manifest{Path: j.Device, Bytes: j.Bytes / int64(max(1, j.BlockBytes)) * int64(max(1, j.BlockBytes)),
		BlockBytes: j.BlockBytes, Passes: cmp.Or(j.Passes, mostPasses), Order: j.Order, FlushBytes: j.FlushBytes,
		CompressibilityPercent: j.CompressibilityPercent}
}

// Check returns everything that is wrong with a job.
func (j Job) Check() error {
	var err error
	if j.Threads < 1 || j.Threads > 1024 {
		err = fmt.Errorf("%d threads: want 1 to 1024", j.Threads)
	}
	if j.WrittenBy != "" {
		return err
	}
	m := j.Manifest()
	m.Version, m.Run = version, "0000000000000000"
	return errors.Join(err, m.check())
}

// What a worker's states hold besides its writes or reads. All of them count.
const (
	MeasureAcknowledged = "acknowledged" // blocks written that a flush has made safe, each as often as it was
	MeasureFlushes      = "flushes"
	MeasureChecked      = "checked"   // blocks that were acknowledged, and are held to that
	MeasureLost         = "lost"      // of those, the ones that are not as they were
	MeasureUnclaimed    = "unclaimed" // blocks that were never acknowledged
)

// WorkCommand is the command line's word for Work; its argument is the file of the job.
const WorkCommand = "integrity-worker"

// Work does the job that it is given as JSON, and prints a worker.State every second and at the end, and between them
// the record: what it writes, what was acknowledged, as it is, and what a verification found.
func Work(ctx context.Context, config io.Reader, out io.Writer) error {
	var j Job
	if err := json.NewDecoder(io.LimitReader(config, 1<<20)).Decode(&j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	if err := j.Check(); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	w := &work{j: j, out: out, begin: time.Now()}
	if j.WrittenBy == "" {
		return w.write(ctx)
	}
	return w.verify(ctx)
}

// work is a job under way.
type work struct {
	j     Job
	out   io.Writer
	begin time.Time

	mu     sync.Mutex
	times  hist.Histogram // of writes or reads
	bytes  uint64
	values []*float64
	last   time.Duration // of the last state
	said   time.Time     // when the last acknowledgement was
	unsaid error         // what could not be printed
}

// done counts one operation.
func (w *work) done(began time.Time, bytes int) {
	took := time.Since(began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times.Add(uint64(max(1, took)), 1)
	w.bytes += uint64(bytes)
}

// say prints a line of the record.
func (w *work) say(word string, what any) error {
	line, err := sayLine(word, what)
	if err == nil {
		_, err = w.out.Write(line)
	}
	w.unsaid = errors.Join(w.unsaid, err)
	return err
}

// state prints how far the job has come.
func (w *work) state(final bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = max(w.last+1, time.Since(w.begin))
	s := worker.State{Elapsed: w.last, Began: w.begin,
		Operations: []worker.Counts{{Bytes: w.bytes, Times: w.times.Clone()}},
		Values:     w.values, CPUSeconds: spent(), Final: final}
	w.unsaid = errors.Join(w.unsaid, json.NewEncoder(w.out).Encode(s))
}

// during prints states while do works, and one at the end.
func (w *work) during(do func() error) error {
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticks.C:
				w.state(false)
			}
		}
	})
	err := do()
	close(ended)
	telling.Wait()
	w.state(true)
	return errors.Join(err, w.unsaid)
}

// open opens the disk and sees that it has what is asked for.
func (j Job) open(flags int, bytes int64) (*direct.File, error) {
	f, err := openDisk(j.Path, flags)
	if err != nil {
		return nil, err
	}
	if f.Bytes < bytes {
		return nil, errors.Join(fmt.Errorf("%s has %s, and %s of it are to be written", j.Device, unit.Bytes(f.Bytes),
			unit.Bytes(bytes)), f.Close())
	}
	return f, nil
}

func openDisk(name string, flags int) (*direct.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	var f *os.File
	if info.Mode().IsRegular() {
		f, err = regular.Open(name, flags)
	} else {
		f, err = os.OpenFile(name, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	return direct.Of(f)
}

// errTimeUp ends a write whose time is over.
var errTimeUp = errors.New("the time is over")

// rarest is how far apart acknowledgements are told at the least. What a storage has acknowledged in between is told
// with the next; until then nobody holds it to that.
const rarest = 2 * time.Millisecond

func (w *work) write(ctx context.Context) (err error) {
	m, err := w.j.Manifest().begun(time.Now())
	if err != nil {
		return err
	}
	f, err := w.j.open(os.O_RDWR, m.Bytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	acknowledged, flushes := new(float64), new(float64)
	w.values = []*float64{acknowledged, flushes}
	if err := w.say(manifestWord, m); err != nil {
		return err
	}
	if w.j.Duration > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, w.j.Duration, errTimeUp)
		defer cancel()
	}
	var last, told Acknowledged
	tell := func() error { told = last; w.said = time.Now(); return w.say(acknowledgedWord, last) }
	return w.during(func() error {
		err := write(ctx, timed{f, w}, &m, func(pass int, blocks int64) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			last = Acknowledged{Sequence: last.Sequence + 1, Pass: pass, Blocks: blocks}
			*acknowledged, *flushes = float64(last.Writes(&m)), *flushes+1
			if time.Since(w.said) < rarest {
				return nil
			}
			return tell()
		}, Options{Workers: w.j.Threads, Now: time.Now})
		if errors.Is(err, errTimeUp) {
			err = nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if last != told {
			err = errors.Join(err, tell())
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", w.j.Device, err)
		}
		return err
	})
}

// timed is storage whose writes and reads are counted.
type timed struct {
	*direct.File
	w *work
}

// WriteAt implements Storage.
func (t timed) WriteAt(b []byte, at int64) (int, error) {
	began := time.Now()
	n, err := t.File.WriteAt(b, at)
	if err == nil {
		t.w.done(began, n)
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (t timed) ReadAt(b []byte, at int64) (int, error) {
	began := time.Now()
	n, err := t.File.ReadAt(b, at)
	if n > 0 {
		t.w.done(began, n)
	}
	return n, err
}

// mostTold bounds the damaged ranges that a worker names; the rest it counts.
const mostTold = 1000

func (w *work) verify(ctx context.Context) (err error) {
	data, err := regular.Read(w.j.Record, 0, largest)
	if err != nil {
		return fmt.Errorf("the record of %s: %w", w.j.WrittenBy, err)
	}
	rec, err := parseRecord(data)
	if err != nil {
		return fmt.Errorf("the record of %s: %w", w.j.WrittenBy, err)
	}
	f, err := openDisk(w.j.Path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !f.Direct {
		_ = f.Forget() // what is still in memory may answer then, which the page on it says
	}
	w.values = make([]*float64, len(Measures(true)))
	for i := range w.values {
		w.values[i] = new(float64)
	}
	return w.during(func() error {
		r, err := Verify(ctx, timed{f, w}, f.Bytes, &rec.Manifest, rec.Acknowledged,
			Options{Workers: w.j.Threads, Behind: true})
		if err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		*w.values[0] = float64(rec.Acknowledged.Claimed(&rec.Manifest))
		*w.values[1] = float64(r.Lost)
		*w.values[2] = float64(r.Unclaimed)
		for i, k := range Kinds() {
			*w.values[3+i] = float64(r.DamagedBlocks[k])
		}
		if more := len(r.Damages) - mostTold; more > 0 {
			r.Damages, r.Unlisted = r.Damages[:mostTold], r.Unlisted+int64(more)
		}
		return w.say(verifiedWord, r)
	})
}

// Measures are the names of the values in the states of a job that verifies, or that writes.
func Measures(verifies bool) []string {
	if !verifies {
		return []string{MeasureAcknowledged, MeasureFlushes}
	}
	names := []string{MeasureChecked, MeasureLost, MeasureUnclaimed}
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return names
}

// Verified reads the line of a worker's output that says what a verification found.
func Verified(line []byte) (r Report, ok bool) {
	_, ok = lineOf(string(line), verifiedWord, &r)
	return r, ok
}
