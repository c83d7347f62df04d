package vioperf

import (
	"fmt"
	"time"

	"plimsoll/hist"
	"plimsoll/unit"
)

// ResultVersion is that of the JSON of a Result. Members are only added to a version.
const ResultVersion = 1

// Place holds what lies under a folder.
type Place struct {
	Path       string `json:"path"`
	Type       string `json:"file_system"` // as the kernel names it
	TotalBytes int64  `json:"total_bytes"`
	FreeBytes  int64  `json:"free_bytes"` // before the run
	// Device is the kernel's name of the block device whose counters see the files; without one NoDevice says why.
	Device      string `json:"device,omitempty"`
	NoDevice    string `json:"no_device,omitempty"`
	MostRequest int64  `json:"largest_request_bytes,omitempty"` // that the device is sent; 0 unknown
	number      string // of the device, major:minor
}

// Memory reports whether the files are in memory and on no device.
func (p Place) Memory() bool { return p.Type == "tmpfs" || p.Type == "ramfs" }

// Result holds what a run measured. Bytes are bytes, bandwidths bytes per second, times seconds.
type Result struct {
	Version int `json:"vioperf_version"`
	Place
	Folder string `json:"folder,omitempty"` // of files that were kept

	Direct      bool   `json:"direct"`
	WhyBuffered string `json:"why_buffered,omitempty"`

	Threads         int     `json:"threads"`
	QueueDepth      int     `json:"queue_depth"` // of each thread
	BlockBytes      int     `json:"block_bytes"`
	Checksum        bool    `json:"checksum"`
	Compressibility int     `json:"compressibility_percent"`
	Seed            uint64  `json:"seed"`
	Offered         float64 `json:"offered_bytes_per_second,omitempty"`
	ReserveBytes    int64   `json:"reserve_bytes"`
	WhenFull        string  `json:"when_full"`

	Began   time.Time `json:"began"`
	Asked   float64   `json:"asked_seconds"`
	Ended   Ending    `json:"ended"`
	Error   string    `json:"error,omitempty"`
	Wrapped float64   `json:"wrapped_after_seconds,omitempty"` // when files were first begun anew

	Seconds float64 `json:"seconds"` // from the first block made to the last one written
	Bytes   int64   `json:"bytes"`
	Blocks  uint64  `json:"blocks"`
	// BytesPerSecond sums up all threads, PerCore divides it by Cores: the processors that this process may use.
	BytesPerSecond float64 `json:"bytes_per_second"`
	Cores          int     `json:"cores"`
	PerCore        float64 `json:"bytes_per_second_per_core"`
	SyncSeconds    float64 `json:"sync_seconds"` // after the last write, until all was on the device

	// CPU seconds, user and system, for every 1e9 bytes written: of this process, and of the whole machine.
	User         float64       `json:"user_cpu_seconds"`
	System       float64       `json:"system_cpu_seconds"`
	CPUPerGB     float64       `json:"cpu_seconds_per_gb"`
	MachinePerGB float64       `json:"machine_cpu_seconds_per_gb,omitempty"`
	Service      Times         `json:"service_time"`
	Response     *Times        `json:"response_time,omitempty"` // with a rate: from when the block was due
	DeviceSaw    *Device       `json:"device_saw,omitempty"`
	Relation     []string      `json:"relation"` // what the device saw against what the tool did, in sentences
	Series       []Second      `json:"series"`
	Verification *Verification `json:"verification,omitempty"`
	Notes        []string      `json:"notes,omitempty"`
}

// Times are of the writing of single blocks, in seconds. Percentiles are read from a histogram with an error of at most
// 0.8 %; those of which there were too few blocks to speak are absent.
type Times struct {
	Mean float64  `json:"mean_seconds"`
	P50  *float64 `json:"p50_seconds,omitempty"`
	P99  *float64 `json:"p99_seconds,omitempty"`
	P999 *float64 `json:"p999_seconds,omitempty"`
	Max  float64  `json:"max_seconds"`
}

// Second holds what was done in about a second.
type Second struct {
	Seconds        float64 `json:"seconds"` // since the begin, at its end
	BytesPerSecond float64 `json:"bytes_per_second"`
	Device         *Device `json:"device,omitempty"`
}

// finish fills in what is known when the last block was written.
func (res *Result) finish(r *run, w *watcher) {
	o := r.o
	res.Threads, res.QueueDepth, res.BlockBytes, res.Checksum = o.Threads, o.QueueDepth, o.BlockBytes, o.Checksum
	res.Compressibility, res.Seed, res.Offered = o.CompressibilityPercent, o.Seed, o.Rate
	res.ReserveBytes, res.WhenFull, res.Asked = o.Reserve, o.WhenFull, o.Duration.Seconds()
	r.mu.Lock()
	res.Ended = r.ended
	if r.err != nil {
		res.Error = r.err.Error()
	}
	r.mu.Unlock()
	if err := r.refused.Load(); err != nil && res.Error == "" {
		res.Error = (*err).Error()
	}
	res.Wrapped = time.Duration(r.wrapped.Load()).Seconds()
	res.Bytes = r.bytes.Load()
	res.Seconds = time.Duration(r.last.Load()).Seconds()
	var service, response hist.Histogram
	for _, t := range r.threads {
		res.Blocks += t.blocks
		service.Merge(&t.service)
		response.Merge(&t.response)
	}
	res.Service = timesOf(&service)
	if response.Count() > 0 {
		times := timesOf(&response)
		res.Response = &times
	}
	res.Cores = o.on.cores()
	if res.Bytes == 0 || res.Seconds == 0 {
		return
	}
	res.BytesPerSecond = float64(res.Bytes) / res.Seconds
	res.PerCore = res.BytesPerSecond / float64(res.Cores)
	gb := float64(res.Bytes) / 1e9
	res.User = (w.last.user - w.first.user).Seconds()
	res.System = (w.last.system - w.first.system).Seconds()
	res.CPUPerGB = (res.User + res.System) / gb
	res.MachinePerGB = (w.last.busy - w.first.busy).Seconds() / gb
	if w.first.device != nil && w.last.device != nil {
		res.DeviceSaw = w.first.device.until(*w.last.device)
	}
	res.Relation = relation(res)
}

func timesOf(h *hist.Histogram) (t Times) {
	if h.Count() == 0 {
		return t
	}
	t.Mean, t.Max = h.Mean()/1e9, float64(h.Max())/1e9
	for q, to := range map[float64]**float64{0.5: &t.P50, 0.99: &t.P99, 0.999: &t.P999} {
		if v, ok := h.Percentile(q); ok {
			s := float64(v) / 1e9
			*to = &s
		}
	}
	return t
}

// Rule says in a sentence what is done about space.
func (res *Result) Rule() string {
	then := "the run stops there"
	if res.WhenFull == Wrap {
		then = "each thread then goes on at the start of its file"
	}
	if res.Type == "" {
		if res.WhenFull == Wrap {
			return fmt.Sprintf("Its %s are written over, a part by each thread, from the start to the end and round again.",
				unit.Bytes(res.TotalBytes))
		}
		return fmt.Sprintf("Its %s are written over, a part by each thread: the run stops at the end of one.",
			unit.Bytes(res.TotalBytes))
	}
	return fmt.Sprintf("%s of %s are free and %s stay so (the reserve): %s.", unit.Bytes(res.FreeBytes),
		unit.Bytes(res.TotalBytes), unit.Bytes(res.ReserveBytes), then)
}

// Ending says in a sentence how the run ended.
func (res *Result) Ending() string {
	because := ""
	if res.Error != "" {
		because = ": " + res.Error
	}
	text := ""
	switch res.Ended {
	case Full:
		text = fmt.Sprintf("Cut short after %.1f s of %.1f s: the reserve was reached%s.", res.Seconds, res.Asked, because)
		switch {
		case res.Type == "":
			text = fmt.Sprintf("Cut short after %.1f s of %.1f s: a thread's part of the device was written to its end.",
				res.Seconds, res.Asked)
		case because != "":
			text = fmt.Sprintf("Cut short after %.1f s of %.1f s%s.", res.Seconds, res.Asked, because)
		}
	case Interrupted:
		text = fmt.Sprintf("Interrupted after %.1f s of %.1f s: the figures are of what was written until then.",
			res.Seconds, res.Asked)
	case Failed:
		text = fmt.Sprintf("Failed after %.1f s of %.1f s%s. The figures are of what was written until then.", res.Seconds,
			res.Asked, because)
	default:
		text = "It ended with its time."
	}
	if res.Wrapped > 0 {
		if res.Ended != Time { // said already
			because = ""
		}
		grew := "Files could not grow any more"
		if res.Type == "" {
			grew = "A thread was at the end of its part"
		}
		text += fmt.Sprintf(" %s after %.1f s%s: blocks from then on overwrote older ones.",
			grew, res.Wrapped, because)
	}
	if res.Folder != "" {
		text += " Its files are in " + res.Folder + "."
	}
	return text
}
