// Package vioperf writes as a column store loads: every thread extends a file of its own with large blocks, one after
// the other, each with a checksum, as fast as the storage takes them or at a rate.
//
// It is the tool behind `plimsoll vioperf` and, through Work, behind the load generator of that name. It stands beside
// the engines, not above them: it is given a folder or a disk, and gives a Result. Making the data and the checksums
// goes on while other blocks are being written, so that the storage is the limit and not they.
//
// It never fills a file system: a reserve is left, by a rule that the Result names. It makes files in a folder of its
// own making only, and removes them again. It refuses devices that nobody holds for it (Disk), folders that cannot be
// written, and block sizes that direct I/O cannot do. What was measured until a disk is full, fails or goes away is
// kept, and marked as cut short.
package vioperf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"plimsoll/unit"
)

// What is done when a thread may not extend its file any more.
const (
	Stop = "stop" // the run ends, before its time
	Wrap = "wrap" // every thread goes on at the start of its own file
)

// Disk is a block device that somebody holds for us: that it may be written over was asked before.
type Disk struct {
	Path    string // to open it by
	Name    string // the kernel's
	Bytes   int64
	Recheck func(context.Context) error // looks again just before the first write
}

// Options say what is written. See Defaults.
type Options struct {
	Dir        string // folder in which a folder of its own is made; of a disk, how it was given
	Disk       *Disk  // written over in place of a folder's files, a part of it by each thread
	Threads    int    // files, each extended by itself
	Duration   time.Duration
	BlockBytes int     // bytes of one write, a multiple of BlockStep
	QueueDepth int     // most writes of a thread outstanding at once
	Rate       float64 // offered by all threads together, in bytes per second; 0: as fast as it goes
	Checksum   bool    // CRC-64/NVME in every block's header
	Buffered   bool    // through the page cache even where direct I/O is possible
	Verify     bool    // read all back and hold it against what was written
	Keep       bool    // leave the files
	// Reserve stays free of the file system, in bytes; below 0: DefaultReserve of it.
	Reserve  int64
	WhenFull string // Stop or Wrap
	Seed     uint64 // of the data; two runs of one seed write the same
	// Same has every buffer made once and written over and over. It shows what making data costs.
	Same bool
	// CompressibilityPercent is the share that a compressor saves, 0 to 95.
	CompressibilityPercent int
	// Begin is told where files are about to be written, with how much stays free there; may be nil.
	Begin func(Place, int64)
	// Progress is told of every second, from a goroutine of the run's; may be nil.
	Progress func(Second)

	on *machine // nil: this one
}

// Bounds of Options.
const (
	BlockStep  = 4096 // what direct I/O can do on every device there is
	mostBlock  = 64 << 20
	mostThread = 1024
	mostDepth  = 256
	mostMemory = 4 << 30 // of buffers
)

// Defaults are what the command does when nothing is said: a thread for every core, 1 MiB, two outstanding (one of them
// waits above a file system that lets a file grow by one write at a time), with checksums, for a minute.
func Defaults() Options {
	return Options{Threads: runtime.NumCPU(), Duration: time.Minute, BlockBytes: 1 << 20, QueueDepth: 2, Checksum: true,
		Reserve: -1, WhenFull: Stop, Seed: 1}
}

// DefaultReserve returns what is left free of a file system of that many bytes: a twentieth, and 1 GiB at least. It
// ends at half of the file system, so that small ones can be used at all.
func DefaultReserve(total int64) int64 { return min(max(total/20, int64(unit.GiB)), total/2) }

// Check returns everything that is wrong with the options.
func (o Options) Check() error {
	var wrong []error
	object := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if o.Threads < 1 || o.Threads > mostThread {
		object("thread count %d: want 1 to %d", o.Threads, mostThread)
	}
	if o.BlockBytes < BlockStep || o.BlockBytes > mostBlock || o.BlockBytes%BlockStep != 0 {
		object("block size %s: want a multiple of %s up to %s, as direct I/O needs", unit.Bytes(o.BlockBytes).Exact(),
			unit.Bytes(BlockStep), unit.Bytes(mostBlock))
	}
	if o.QueueDepth < 1 || o.QueueDepth > mostDepth {
		object("queue depth %d: want 1 to %d", o.QueueDepth, mostDepth)
	}
	if len(wrong) == 0 && o.buffers() > mostMemory {
		object("%d threads with %d blocks of %s each need %s of buffers: want at most %s", o.Threads, o.QueueDepth+1,
			unit.Bytes(o.BlockBytes), unit.Bytes(o.buffers()), unit.Bytes(mostMemory))
	}
	if o.Duration <= 0 {
		object("duration %v: want more than 0", o.Duration)
	}
	if o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0) {
		object("rate %v: want bytes per second, 0 for as fast as it goes", o.Rate)
	}
	if o.WhenFull != Stop && o.WhenFull != Wrap {
		object("when full %q: there are %s and %s", o.WhenFull, Stop, Wrap)
	}
	if o.Same && o.Verify && !o.Checksum {
		object("the same data over and over, without checksums, cannot be verified: leave one of the three out")
	}
	if _, err := newMaker(o); err != nil {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

func (o Options) buffers() int64 {
	return int64(o.Threads) * int64(o.QueueDepth+1) * int64(o.BlockBytes)
}
