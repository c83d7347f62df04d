package result

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll/internal/kit/regular"
)

const (
	rawSuffix = ".out.zst" // behind the engine's name
	rawJob    = "job.json"
	rawServer = "server" + rawSuffix // what a workload's server printed, in the folder of its own machine
	// flushEvery bounds what a kill of the process can lose of raw output.
	flushEvery = time.Second
)

// RawJob describes one start of one workload on one VM; it lies beside the raw output, so that it can be replayed with
// nothing else. It is written when the job starts and again, with End and Ended, when it has ended.
type RawJob struct {
	Version  int      `json:"version"`
	VM       string   `json:"vm"`
	Group    string   `json:"group"`
	Node     int      `json:"node"`
	Workload string   `json:"workload"`
	Attempt  int      `json:"attempt"` // counts from 1 over all starts of the workload on the VM, prefill included
	Prefill  bool     `json:"prefill,omitempty"`
	Rounds   bool     `json:"rounds,omitempty"` // of a preconditioning
	Phase    string   `json:"phase"`
	Engine   string   `json:"engine"`
	Tool     string   `json:"tool"`             // version
	Server   string   `json:"server,omitempty"` // version of the server that its load goes to, as far as known
	Latency  string   `json:"latency"`
	Command  []string `json:"command,omitempty"` // no secrets
	// Operations and Measures are what its reports count, in that order.
	Operations []Operation `json:"operations"`
	Measures   []Measure   `json:"measures,omitempty"`
	// Format tells the engine what it needs besides to read its output.
	Format  json.RawMessage `json:"format,omitempty"`
	Streams []Stream        `json:"lanes,omitempty"`
	Apart   bool            `json:"apart,omitempty"` // its reports tell the streams apart
	Notes   []string        `json:"notes,omitempty"`
	// FailuresUnknown: its output does not tell operations that failed.
	FailuresUnknown bool `json:"failures_unknown,omitempty"`
	// Again: what it did is counted in another workload as well.
	Again   bool      `json:"again,omitempty"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end,omitzero"`
	Ended   Ending    `json:"ended,omitempty"`
	Message string    `json:"message,omitempty"`
	// ClockSeconds is how far the tool's clock was ahead of plimsoll's when it first reported, negative when behind; 0
	// when that is within what is known of it, which is a second where nobody compares the clocks.
	ClockSeconds float64 `json:"clock_seconds,omitempty"`
	// ClockEndSeconds is the same of the job's end, where the clocks were compared and have drifted apart since.
	ClockEndSeconds *float64 `json:"clock_end_seconds,omitempty"`
	// ClockSet is when the tool's clock was set to another time meanwhile; ClockEndSeconds has that in it.
	ClockSet []ClockSet `json:"clock_set,omitempty"`
	// Began is when its command began, by plimsoll's clock, and BeganBoundSeconds by how much that may be wrong: of
	// jobs that were to begin together with those of other machines, where the target can tell.
	Began             time.Time `json:"began,omitzero"`
	BeganBoundSeconds float64   `json:"began_bound_seconds,omitempty"`
}

// ClockSet is a clock that was set.
type ClockSet struct {
	AtSeconds float64 `json:"at_seconds"` // the tool's own time in the first report after it
	Seconds   float64 `json:"seconds"`    // ahead; negative when back
}

// rawPath is the folder of one start: raw/<vm>/<workload> and, from the second start on, raw/<vm>/<workload>.<attempt>.
func (f *Folder) rawPath(vm, workload string, attempt int) string {
	name := escapeName(workload, "-_")
	if attempt > 1 {
		name += "." + strconv.Itoa(attempt)
	}
	return filepath.Join(f.dir, rawDir, escapeName(vm, "-_."), name)
}

// escapeName is the file name of a name of others: letters, digits and the given signs, but for a dot or a dash in
// front, stand for themselves, every other byte is %XX. What would be longer than a file system takes is cut and ends
// in = and a hash of the name. So different names never meet; who needs the name again finds it in the file's content.
func escapeName(name, signs string) string {
	const longest, kept = 200, 120 // bytes; ".N" of an attempt comes behind
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		sign := strings.IndexByte(signs, c) >= 0 && (i > 0 || c == '_')
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || sign {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 {
		return "%" // a NUL is %00
	}
	if b.Len() > longest {
		sum := sha256.Sum256([]byte(name))
		return b.String()[:kept] + "=" + hex.EncodeToString(sum[:16])
	}
	return b.String()
}

// output is the file that holds what the tool printed.
func (j RawJob) output() string {
	if j.Version == 1 {
		return version1Raw
	}
	return escapeName(j.Engine, "-_.") + rawSuffix
}

// WriteRawJob stores what is known about a start of a workload.
func (f *Folder) WriteRawJob(j RawJob) error {
	j.Version = FormatVersion
	dir := f.rawPath(j.VM, j.Workload, j.Attempt)
	if _, err := f.disk.folder(dir); err != nil {
		return fmt.Errorf("raw output: %w", err)
	}
	b, err := json.MarshalIndent(j, "", "  ")
	path := filepath.Join(dir, rawJob)
	if b = append(b, '\n'); err == nil && (f.timeless == nil || !overwrite(path, b)) {
		err = f.disk.write(path, b)
	}
	if err != nil {
		return fmt.Errorf("raw output: %s of %s: %w", j.Workload, j.VM, err)
	}
	f.rawSum(path, sumOf(b))
	return nil
}

// rawSum takes the sum of a file that was written.
func (f *Folder) rawSum(path, sum string) {
	if name, err := filepath.Rel(f.dir, path); err == nil {
		f.Hashed(filepath.ToSlash(name), sum)
	}
}

// RawJobs lists every start of every workload that left something, in order of start time, then VM and workload. A
// description that cannot be read is named in problems, and the start is left out.
func (f *Folder) RawJobs() (jobs []RawJob, problems []string) {
	names, err := fs.Glob(os.DirFS(f.dir), path.Join(rawDir, "*", "*", rawJob))
	if err != nil {
		return nil, []string{"raw output: " + err.Error()}
	}
	for _, name := range names {
		p, rel := filepath.Join(f.dir, name), filepath.FromSlash(name)
		b, err := readDocument(p)
		if err != nil {
			problems = append(problems, "raw output: "+err.Error())
			continue
		}
		var j RawJob
		if err := errors.Join(checkVersion(b), json.Unmarshal(b, &j)); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", rel, err))
			continue
		}
		j.upgrade()
		if f.rawPath(j.VM, j.Workload, j.Attempt) != filepath.Dir(p) {
			problems = append(problems,
				fmt.Sprintf("%s: describes workload %q of %q, start %d, which belongs elsewhere", rel, j.Workload, j.VM,
					j.Attempt))
			continue
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b RawJob) int {
		if c := a.Start.Compare(b.Start); c != 0 {
			return c
		}
		if c := strings.Compare(a.VM, b.VM); c != 0 {
			return c
		}
		return strings.Compare(a.Workload, b.Workload)
	})
	return jobs, problems
}

// WriteRawFile stores a small file (the job file, the command, the tool's errors) beside a start's output.
func (f *Folder) WriteRawFile(vm, workload string, attempt int, name string, data []byte) error {
	dir := f.rawPath(vm, workload, attempt)
	if _, err := f.disk.folder(dir); err != nil {
		return fmt.Errorf("raw output: %w", err)
	}
	path := filepath.Join(dir, escapeName(name, "-_."))
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("raw output: %w", err)
	}
	f.rawSum(path, sumOf(data))
	return nil
}

// RawWriter opens the stream that keeps everything a tool prints. It is compressed and reaches the file at the latest
// one second after it was written, so that a kill loses little. Close it to finish the stream. Each start has one
// writer.
func (f *Folder) RawWriter(j RawJob) (io.WriteCloser, error) {
	return f.rawWriter(filepath.Join(f.rawPath(j.VM, j.Workload, j.Attempt), j.output()))
}

// ServerWriter opens the stream that keeps what the server of a workload's start printed on a machine, and names its
// file within the folder.
func (f *Folder) ServerWriter(vm, workload string, attempt int) (w io.WriteCloser, name string, err error) {
	path := filepath.Join(f.rawPath(vm, workload, attempt), rawServer)
	if name, err = filepath.Rel(f.dir, path); err == nil {
		w, err = f.rawWriter(path)
	}
	return w, filepath.ToSlash(name), err
}

func (f *Folder) rawWriter(path string) (io.WriteCloser, error) {
	if _, err := f.disk.folder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("raw output: %w", err)
	}
	if f.timeless != nil {
		return newFrames(path, f)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("raw output: %w", err)
	}
	// One core, a small window and little memory: many of these are open at once.
	enc, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(128<<10))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("raw output: %w", err), file.Close())
	}
	return &rawWriter{disk: f.disk, file: file, enc: enc}, nil
}

type rawWriter struct {
	disk   disk
	mu     sync.Mutex
	file   *os.File
	enc    *zstd.Encoder
	timer  *time.Timer // pending flush
	err    error       // of a flush, reported by the next call
	closed bool
}

func (w *rawWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, fs.ErrClosed
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.enc.Write(p)
	if err != nil {
		w.err = fmt.Errorf("raw output: %w", err)
		return n, w.err
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(flushEvery, w.flush)
	}
	return n, nil
}

func (w *rawWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	if w.closed || w.err != nil {
		return
	}
	if err := w.enc.Flush(); err != nil {
		w.err = fmt.Errorf("raw output: %w", err)
	}
}

func (w *rawWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	err := errors.Join(w.enc.Close(), w.disk.sync(w.file), w.file.Close(),
		w.disk.syncFolder(filepath.Dir(w.file.Name())))
	if err != nil && w.err == nil {
		return fmt.Errorf("raw output: %w", err)
	}
	return w.err
}

// Timeless has the same output make the same bytes from now on: raw output reaches its file when there is enough of it,
// not after a while, and open writers are cheap: ten thousand of them cost some hundred megabytes. Journal and
// descriptions of jobs survive a kill of the process as always, but are not forced to the disk each time, which would
// take most of the run. It is for runs in virtual time.
func (f *Folder) Timeless() error {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
	if err != nil {
		return fmt.Errorf("raw output: %w", err)
	}
	f.timeless, f.disk = enc, nil
	return nil
}

// frameRoom is where frames are compressed.
var frameRoom = sync.Pool{New: func() any { return new([]byte) }}

// frameBytes is how much a frame of timeless output holds, but for longer writes.
const frameBytes = 16 << 10

// frames writes output as a row of compressed frames, which reads as one stream. It holds no file open.
type frames struct {
	mu     sync.Mutex
	folder *Folder
	path   string
	buf    []byte
	sum    hash.Hash // of what was written
	failed bool
	closed bool
}

func newFrames(path string, folder *Folder) (*frames, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("raw output: %w", err)
	}
	return &frames{folder: folder, path: path, sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (w *frames) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, fs.ErrClosed
	}
	if len(w.buf)+len(p) > frameBytes {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > frameBytes {
		return len(p), w.frame(p)
	}
	if w.buf == nil {
		w.buf = make([]byte, 0, frameBytes)
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *frames) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.frame(w.buf)
	w.buf = w.buf[:0]
	return err
}

// frame appends a frame to the file.
func (w *frames) frame(p []byte) error {
	room := frameRoom.Get().(*[]byte)
	defer frameRoom.Put(room)
	*room = w.folder.timeless.EncodeAll(p, (*room)[:0])
	w.sum.Write(*room)
	file, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = file.Write(*room)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		w.failed = true
		return fmt.Errorf("raw output: %w", err)
	}
	return nil
}

// Close implements io.Closer.
func (w *frames) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.flush()
	w.buf = nil
	if !w.failed {
		w.folder.rawSum(w.path, hex.EncodeToString(w.sum.Sum(nil)))
	}
	return err
}

// RawReader is the raw output of one start, decompressed. A stream cut short (the writer was killed, the disk was
// full) ends like a whole one; Truncated tells them apart after the end was reached. One that grows out of proportion
// is an error of Read.
type RawReader struct {
	file      *os.File
	dec       *zstd.Decoder
	left      int64 // bytes that may still be given
	most      int64 // in all
	truncated string
}

// What raw output may become when it is decompressed: so many bytes, or so many times the file, whichever is more.
// Output of tools becomes a tenth to a hundredth, so what goes beyond is damage, nonsense, or meant to keep a reader
// busy for hours.
const (
	fewestRaw   = 1 << 30
	rawExpanded = 1000
)

// OpenRaw opens the raw output of one start; errors.Is(err, fs.ErrNotExist) when there is none.
func (f *Folder) OpenRaw(j RawJob) (*RawReader, error) {
	file, err := regular.Open(filepath.Join(f.rawPath(j.VM, j.Workload, j.Attempt), j.output()),
		os.O_RDONLY|regular.NoLinks)
	if err != nil {
		return nil, fmt.Errorf("raw output: %w", err)
	}
	dec, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("raw output: %w", err), file.Close())
	}
	info, err := file.Stat()
	if err != nil {
		dec.Close()
		return nil, errors.Join(fmt.Errorf("raw output: %w", err), file.Close())
	}
	most := max(fewestRaw, rawExpanded*min(info.Size(), math.MaxInt64/rawExpanded))
	return &RawReader{file: file, dec: dec, left: most, most: most}, nil
}

// Read implements io.Reader.
func (r *RawReader) Read(p []byte) (int, error) {
	if r.truncated != "" {
		return 0, io.EOF
	}
	n, err := r.dec.Read(p)
	if r.left -= int64(n); r.left < 0 {
		const say = "raw output: more than %d MiB come out of it, out of proportion to the file; the rest was not read"
		return n, fmt.Errorf(say, r.most>>20)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.truncated = err.Error()
		if n > 0 {
			return n, nil
		}
		return 0, io.EOF
	}
	return n, err
}

// Truncated says why the stream ended early, "" when it did not.
func (r *RawReader) Truncated() string { return r.truncated }

// Close implements io.Closer.
func (r *RawReader) Close() error {
	r.dec.Close()
	return r.file.Close()
}
