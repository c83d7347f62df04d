package vioperf

import (
	"fmt"
	"time"

	"plimsoll/internal/kit/procfs"
	"plimsoll/unit"
)

// Device holds what a block device saw of writes in a stretch of time, of whomever: with iostat's names and formulas
// (iostat(1), w/s, wkB/s, wareq-sz, w_await, %util), in base units.
type Device struct {
	Writes         float64 `json:"writes_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	RequestBytes   float64 `json:"request_bytes"`       // mean; in sectors of 512 bytes it is avgrq-sz
	Await          float64 `json:"write_await_seconds"` // mean, queueing in the kernel included
	// Queue is how many writes were outstanding on average: aqu-sz without reads, flushes and discards.
	Queue       float64 `json:"queue"`
	Utilization float64 `json:"utilization"`          // share of the time with at least one outstanding, 0 to 1
	Merged      float64 `json:"merged_per_second"`    // requests that were joined to others before they were sent
	Bytes       int64   `json:"bytes"`                // in all
	ReadBytes   int64   `json:"read_bytes,omitempty"` // in all, which are of nothing that a writer does
	seconds     float64
}

// tally holds what a device has counted up to a moment.
type tally struct {
	at     time.Time
	counts []uint64
}

// Places in procfs.Disk.Counts beside those that procfs names.
const (
	writesMerged   = 5
	millisWriting  = 7
	countersWanted = 11
)

// until returns what happened between two moments; nil when the counters do not tell.
func (t tally) until(now tally) *Device {
	seconds := now.at.Sub(t.at).Seconds()
	if seconds <= 0 || len(t.counts) < countersWanted || len(now.counts) < countersWanted {
		return nil
	}
	// The kernel's counters wrap at 32 bits on some machines: the difference then is right all the same below that.
	rise := func(i int) float64 {
		if d := now.counts[i] - t.counts[i]; now.counts[i] >= t.counts[i] {
			return float64(d)
		}
		return float64(uint32(now.counts[i]) - uint32(t.counts[i]))
	}
	writes, bytes := rise(procfs.WritesCompleted), rise(procfs.SectorsWritten)*procfs.SectorBytes
	d := &Device{
		Writes: writes / seconds, BytesPerSecond: bytes / seconds, Merged: rise(writesMerged) / seconds,
		Queue: rise(millisWriting) / 1000 / seconds, Utilization: min(1, rise(procfs.MillisBusy)/1000/seconds),
		Bytes: int64(bytes), ReadBytes: int64(rise(procfs.SectorsRead) * procfs.SectorBytes), seconds: seconds,
	}
	if writes > 0 {
		d.RequestBytes, d.Await = bytes/writes, rise(millisWriting)/1000/writes
	}
	return d
}

// relation says in sentences how what the device saw goes with what the tool did.
func relation(res *Result) (said []string) {
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	d := res.DeviceSaw
	if d == nil {
		why := res.NoDevice
		if why == "" {
			why = "its counters could not be read"
		}
		say("What a device saw is not known: %s.", why)
		return said
	}
	if d.Bytes == 0 {
		say("%s saw no write while %s were written: they are in memory still.", res.Device, unit.Bytes(res.Bytes))
		return said
	}
	switch ratio := float64(d.Bytes) / float64(res.Bytes); {
	case ratio > 1.05:
		say("%s was written %.0f %% more than the tool wrote: others, or the file system's own writes (journal, "+
			"metadata, replicas).", res.Device, 100*(ratio-1))
	case ratio < 0.95:
		say("%s was written %.0f %% less than the tool wrote while that went on: the rest was still in memory, or was "+
			"compressed.", res.Device, 100*(1-ratio))
	default:
		say("%s was written what the tool wrote, to within %.1f %%.", res.Device, 100*max(ratio-1, 1-ratio))
	}
	block := float64(res.BlockBytes)
	switch request := unit.Bytes(d.RequestBytes); {
	case d.RequestBytes < 0.9*block && res.MostRequest > 0 && float64(res.MostRequest) < block:
		say("It saw requests of %s on average: blocks of %s are split, for it takes no more than %s at once.", request,
			unit.Bytes(res.BlockBytes), unit.Bytes(res.MostRequest))
	case d.RequestBytes < 0.9*block:
		say("It saw requests of %s on average, smaller than the blocks of %s: the file system's extents, its metadata "+
			"or others' writes cut them.", request, unit.Bytes(res.BlockBytes))
	case d.RequestBytes > 1.1*block:
		say("It saw requests of %s on average: blocks of %s were merged.", request, unit.Bytes(res.BlockBytes))
	default:
		say("It saw requests of %s on average, the blocks as they were written.", request)
	}
	// Little's law: what the tool kept outstanding is its rate times its mean service time.
	kept := float64(res.Blocks) / res.Seconds * res.Service.Mean
	sent := d.Queue * d.RequestBytes / block // in blocks
	say("The tool kept %.1f blocks outstanding on average of the %d that it may; the device had %.1f requests, %.1f "+
		"blocks' worth, and was busy %.0f %% of the time.", kept, res.Threads*res.QueueDepth, d.Queue, sent,
		100*d.Utilization)
	if res.Direct && kept > 2 && sent < kept/2 {
		say("So most of the outstanding blocks waited above the device: file systems such as ext4 let one direct " +
			"write at a time extend a file. More threads, each with a file, keep the device busier than a deeper queue.")
	}
	if res.Direct && res.Service.Mean > 0 && d.Await > 0 {
		say("A block took the tool %s, a request the device %s.", unit.Duration(res.Service.Mean*1e9),
			unit.Duration(d.Await*1e9))
	}
	return said
}
