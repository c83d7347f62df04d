package vioperf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"plimsoll/unit"
)

// Ending is why a run ended.
type Ending string

// The endings.
const (
	Time        Ending = "time"        // its duration was over
	Full        Ending = "full"        // files could not grow any more, and WhenFull is Stop
	Interrupted Ending = "interrupted" // its context was done
	Failed      Ending = "failed"      // a write failed
)

// sampling is how often the counters are read, and looking how often free space is looked at.
const (
	sampling = time.Second
	looking  = 100 * time.Millisecond
)

// FolderPrefix is how the folders begin that runs make.
const FolderPrefix = "plimsoll-vioperf-"

// Write writes into a new folder below o.Dir and removes it. A run that was cut short, by ctx, a full disk or an error
// of the storage, has a Result that says so, and no error; errors are of what could not begin, and of files that could
// not be removed, where there is a Result too.
func Write(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.on == nil {
		o.on = thisMachine()
	}
	if o.Disk != nil {
		return writeOver(ctx, o)
	}
	place, err := o.on.look(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Reserve < 0 {
		o.Reserve = DefaultReserve(place.TotalBytes)
	}
	fewest := int64(o.Threads) * int64(o.BlockBytes) * int64(o.QueueDepth+1)
	if room := place.FreeBytes - o.Reserve; room < fewest {
		return nil, fmt.Errorf("%s: %s of %s are free, and %s stay so (the reserve): that leaves less than the %s that "+
			"are written at once; free some space, or lower the reserve, the block size or the thread count", o.Dir,
			unit.Bytes(place.FreeBytes), unit.Bytes(place.TotalBytes), unit.Bytes(o.Reserve), unit.Bytes(fewest))
	}
	if o.Begin != nil {
		o.Begin(place, o.Reserve)
	}
	folder, err := os.MkdirTemp(o.Dir, FolderPrefix)
	if err != nil {
		return nil, refusal(o.Dir, err)
	}
	res, err := writeIn(ctx, o, place, folder)
	if res != nil && o.Keep {
		res.Folder = folder
		return res, err
	}
	if gone := os.RemoveAll(folder); gone != nil {
		err = errors.Join(err, &LeftError{Folder: folder, Err: gone})
	}
	return res, err
}

// LeftError says that files could not be removed.
type LeftError struct {
	Folder string
	Err    error
}

// Error implements error.
func (e *LeftError) Error() string {
	return fmt.Sprintf("%s could not be removed: %v: remove it by hand", e.Folder, e.Err)
}

// Unwrap gives the cause.
func (e *LeftError) Unwrap() error { return e.Err }

// parts are the threads of a run that writes a disk over: the bytes of it that each has.
func (o Options) parts(bytes int64) int64 {
	return bytes / int64(o.Threads) / int64(o.BlockBytes) * int64(o.BlockBytes)
}

// room says why a disk of that many bytes is too small; nil when it is not.
func (o Options) room(bytes int64) error {
	if least := int64(o.QueueDepth+1) * int64(o.BlockBytes); o.parts(bytes) < least {
		return fmt.Errorf("the disk has %s, a part of %s for each of %s: want at least %s each, for blocks that are "+
			"outstanding together", unit.Bytes(bytes), unit.Bytes(o.parts(bytes)), unit.Plural(o.Threads, "thread"),
			unit.Bytes(least))
	}
	return nil
}

// over gives every thread its part of a disk that is open.
func (r *run) over(f file, name string, bytes int64) {
	for i := range r.o.Threads {
		part := r.o.parts(bytes)
		r.threads = append(r.threads, newThread(r, i, name, f, int64(i)*part, part))
	}
}

// writeOver is Write for a disk.
func writeOver(ctx context.Context, o Options) (*Result, error) {
	d := o.Disk
	if err := o.room(d.Bytes); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Dir, err)
	}
	if o.Keep {
		return nil, fmt.Errorf("%s: it is no folder, so there are no files to keep", o.Dir)
	}
	r, err := newRun(o)
	if err != nil {
		return nil, err
	}
	r.o.Reserve = 0 // all of it may be written
	f, why, err := o.on.open(d.Path, !o.Buffered)
	if err != nil {
		return nil, refusal(o.Dir, err)
	}
	r.over(f, o.Dir, d.Bytes)
	res := &Result{Version: ResultVersion, Direct: why == "", WhyBuffered: why,
		Place: o.on.disk(Place{Path: o.Dir, Device: d.Name, TotalBytes: d.Bytes, FreeBytes: d.Bytes})}
	if err := d.Recheck(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return res, errors.Join(r.measure(ctx, res), f.Close())
}

func writeIn(ctx context.Context, o Options, place Place, folder string) (res *Result, err error) {
	r, err := newRun(o)
	if err != nil {
		return nil, err
	}
	res = &Result{Version: ResultVersion, Place: place}
	defer func() {
		for _, t := range r.threads {
			err = errors.Join(err, t.file.Close())
		}
	}()
	for i := range o.Threads {
		name := filepath.Join(folder, fmt.Sprintf("thread-%04d", i+1))
		f, why, err := o.on.create(name, !o.Buffered)
		if err != nil {
			return nil, refusal(name, err)
		}
		res.Direct, res.WhyBuffered = why == "", why
		r.threads = append(r.threads, newThread(r, i, name, f, 0, 0))
	}
	if !res.Direct || place.Memory() {
		// Such writes to one file wait for each other in the kernel, and spin there: a second one costs and gains
		// nothing.
		r.o.QueueDepth = 1
		if o.QueueDepth > 1 {
			res.Notes = append(res.Notes, "One block of a file is outstanding at a time: without a device behind it, or "+
				"through the page cache, the kernel takes no more.")
		}
	}
	r.room.Store(place.FreeBytes - o.Reserve)
	return res, r.measure(ctx, res)
}

func newRun(o Options) (*run, error) {
	m, err := newMaker(o)
	if err != nil {
		return nil, err
	}
	r := &run{o: o, maker: m, ending: make(chan struct{})}
	if o.Rate > 0 {
		r.due = time.Duration(float64(o.BlockBytes) * float64(o.Threads) / o.Rate * float64(time.Second))
	}
	return r, nil
}

// measure runs all threads to their end and fills in what was measured.
func (r *run) measure(ctx context.Context, res *Result) error {
	memory, free, err := r.o.on.buffers(int(r.o.buffers()))
	if err != nil {
		return fmt.Errorf("buffers of %s: %w", unit.Bytes(r.o.buffers()), err)
	}
	defer free()
	restore := r.o.on.waiting(r.o.Threads*(r.o.QueueDepth+1) + 4)
	defer restore()
	var buffers []buffer
	for size := r.o.BlockBytes; len(memory) > 0; memory = memory[size:] {
		buffers = append(buffers, buffer{memory[:size:size], uint32(len(buffers))})
	}
	for _, b := range buffers {
		r.maker.prepare(b.memory, b.number)
	}
	stopping := context.AfterFunc(ctx, func() { r.end(Interrupted, nil) })
	defer stopping()
	seen := r.o.on.count(res.Place)
	res.Began = time.Now().UTC()
	r.begin = time.Now()
	r.deadline = r.begin.Add(r.o.Duration)
	var workers sync.WaitGroup
	for i, t := range r.threads {
		for j := range r.o.QueueDepth + 1 {
			workers.Go(func() { t.work(ctx, buffers[i*(r.o.QueueDepth+1)+j]) })
		}
	}
	all := make(chan struct{})
	go func() { workers.Wait(); close(all) }()
	watch := &watcher{r: r, res: res, first: seen, last: seen}
	watch.until(ctx, all)
	res.finish(r, watch)
	r.sync(res)
	if r.o.Verify {
		r.verify(ctx, res, buffers)
	}
	return nil
}

// watcher reads the counters while the threads work.
type watcher struct {
	r           *run
	res         *Result
	first, last counters
	bytes       int64
	at          time.Duration
}

// until watches until all workers have ended.
func (w *watcher) until(ctx context.Context, all <-chan struct{}) {
	look := time.NewTicker(looking)
	defer look.Stop()
	over := w.r.ending
	for {
		select {
		case <-all:
			w.last = w.r.o.on.count(w.res.Place)
			if ctx.Err() != nil && time.Now().Before(w.r.deadline) { // workers may see it before stopping is called
				w.r.end(Interrupted, nil)
			}
			w.r.end(Time, nil)
			return
		case <-over:
			over = nil
			w.r.wake()
		case <-look.C:
			w.look()
			if at := time.Since(w.r.begin); at-w.at >= sampling-looking/2 {
				w.sample(at)
			}
		}
	}
}

// look takes room away where others have used it: it never gives any.
func (w *watcher) look() {
	if w.res.Place.Type == "" { // a disk has its size
		return
	}
	place, err := w.r.o.on.look(w.r.o.Dir)
	if err != nil {
		return // a write will say it
	}
	for {
		room := w.r.room.Load()
		if left := place.FreeBytes - w.r.o.Reserve; left >= room || w.r.room.CompareAndSwap(room, left) {
			return
		}
	}
}

// sample takes what was done since the last one.
func (w *watcher) sample(at time.Duration) {
	now, done := w.r.o.on.count(w.res.Place), w.r.bytes.Load()
	s := Second{Seconds: at.Seconds(), BytesPerSecond: float64(done-w.bytes) / (at - w.at).Seconds()}
	if now.device != nil && w.last.device != nil {
		s.Device = w.last.device.until(*now.device)
	}
	w.last, w.bytes, w.at = now, done, at
	w.res.Series = append(w.res.Series, s)
	if w.r.o.Progress != nil {
		w.r.o.Progress(s)
	}
}

// sync has everything reach the device, which is timed apart.
func (r *run) sync(res *Result) {
	began := time.Now()
	var syncs sync.WaitGroup
	errs := make([]error, len(r.threads))
	for i, t := range r.threads {
		syncs.Go(func() { errs[i] = t.file.Sync() })
	}
	syncs.Wait()
	res.SyncSeconds = time.Since(began).Seconds()
	if err := errors.Join(errs...); err != nil && res.Ended != Failed {
		res.Ended, res.Error = Failed, fmt.Sprintf("sync after the last write: %v", err)
	}
}
