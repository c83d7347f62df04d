package perf

import (
	"errors"
	"fmt"
	"math"
	"time"

	"plimsoll/internal/targets/sim/model"
)

// Truth is every parameter of the model. What a test or an analysis finds is held against it. Names in files are the
// ones in the tags.
type Truth struct {
	// Seed decides every draw; two worlds with the same Truth and the same calls agree in every number.
	Seed uint64 `yaml:"seed"`

	// Servers is how many operations one node's storage serves at once.
	Servers int `yaml:"servers"`
	// Fast and Slow are the media of the two tiers. All of a node's data fits the fast one unless FastTierBytes is
	// given.
	Fast Medium `yaml:"fast"`
	Slow Medium `yaml:"slow"`
	// FastTierBytes is the size of a node's fast tier; 0 means that it holds everything.
	FastTierBytes int64 `yaml:"fast_tier_bytes"`
	// SequentialToSlow places sequential writes on the slow tier, as a container can be set up to do.
	SequentialToSlow bool      `yaml:"sequential_to_slow"`
	Promotion        Promotion `yaml:"promotion"`
	// CacheBytes is a node's read cache, CacheSeconds the service time of an operation served from it. PageCacheBytes
	// and PageSeconds are the same for each VM's own page cache, which serves reads that do not bypass it.
	CacheBytes     int64   `yaml:"cache_bytes"` // 0: there is none
	CacheSeconds   float64 `yaml:"cache_seconds"`
	PageCacheBytes int64   `yaml:"page_cache_bytes"`
	PageSeconds    float64 `yaml:"page_seconds"`
	// RemoteReadSeconds lengthens a read that no cache serves, while the VM runs on another node than that
	// on which its data were first used.
	RemoteReadSeconds float64 `yaml:"remote_read_seconds"`
	// WriteLog takes random writes at the speed of the fast medium until it is full.
	WriteLog WriteLog `yaml:"write_log"`
	// Fresh is how disks write that are as they left the factory, or were purged.
	Fresh Fresh `yaml:"fresh"`

	// Contention and Crosstalk are the Universal Scalability Law's alpha and beta over the operations outstanding in
	// the cluster.
	Contention float64 `yaml:"contention"`
	Crosstalk  float64 `yaml:"crosstalk"`

	// Background is the share of every node's storage, in [0, 1), that something outside the scenario always takes.
	Background float64    `yaml:"background"`
	Checkpoint Checkpoint `yaml:"checkpoint"`

	// Law is the shape of response times about the mean that the queueing model gives.
	Law Law `yaml:"law"`
	// NoiseCV is the coefficient of variation, from one Grain to the next, of throughput (closed loops) or response
	// (open ones) that is no sampling noise: firmware, neighbours, temperature.
	NoiseCV float64 `yaml:"noise_cv"`
	// Grain is the time for which one draw of noise holds.
	Grain time.Duration `yaml:"grain"`

	// Host gives what load costs a node besides storage.
	Host Host `yaml:"host"`
}

// Medium is one kind of device. An operation of b bytes takes its access time plus b/BytesPerSecond.
type Medium struct {
	ReadSeconds    float64 `yaml:"read_seconds"`  // access time of a random read
	WriteSeconds   float64 `yaml:"write_seconds"` // access time of a random write
	Sequential     float64 `yaml:"sequential"`    // share of the access time that a sequential operation takes
	BytesPerSecond float64 `yaml:"bytes_per_second"`
}

// Promotion moves an extent to the fast tier when an operation at a random offset touches it on the slow one.
type Promotion struct {
	ExtentBytes    int64   `yaml:"extent_bytes"`     // 0: nothing is promoted
	BytesPerSecond float64 `yaml:"bytes_per_second"` // the most a node moves; 0: no limit
}

// WriteLog is a node's log of random writes. When full it throttles them to the rate at which it is drained until it is
// four fifths full.
type WriteLog struct {
	Bytes          int64   `yaml:"bytes"` // 0: there is none to fill
	BytesPerSecond float64 `yaml:"bytes_per_second"`
}

// Fresh is flash with erased blocks in store: a write takes the share Factor of its time at first, and all of it when
// Until times the size of the disk has been written. In between the share grows evenly with what was written.
type Fresh struct {
	Factor float64 `yaml:"factor"` // 0, as 1: a disk writes alike all its life
	Until  float64 `yaml:"until"`  // sizes of the disk
}

// freshSteps is in how many steps a disk goes from fresh to worn in.
const freshSteps = 64

// share is the share of its time that a write takes on a disk of which so many sizes were written, and after how many
// that changes; 0 when it will not.
func (f Fresh) share(written float64) (share, changes float64) {
	if f.Factor == 0 || written >= f.Until {
		return 1, 0
	}
	const rounding = 1e-6
	step := math.Floor(written/f.Until*freshSteps + rounding)
	if step >= freshSteps {
		return 1, 0
	}
	return f.Factor + (1-f.Factor)*(step+0.5)/freshSteps, (step + 1) / freshSteps * f.Until
}

// Checkpoint is a load that comes back: from every whole multiple of Every since 1970 on, for Lasts, it takes the share
// Load of every node's storage.
type Checkpoint struct {
	Every time.Duration `yaml:"every"` // 0: none
	Lasts time.Duration `yaml:"lasts"`
	Load  float64       `yaml:"load"`
}

// Host holds what a node's processors and network do for the load.
type Host struct {
	Cores      int     `yaml:"cores"`
	IdleShare  float64 `yaml:"idle_share"`            // of all cores, with no load at all
	OpSeconds  float64 `yaml:"cpu_seconds_per_op"`    // of one core
	ByteSecond float64 `yaml:"cpu_seconds_per_byte"`  // of one core
	Copies     int     `yaml:"copies"`                // of what is written, the first on the node itself
	IdleBytes  float64 `yaml:"idle_bytes_per_second"` // of network traffic each way
}

// DefaultTruth is a mid-range all-flash node, busy with little else. It has one tier and no read cache, because what a
// cache serves shrinks with every VM that shares it, which bends a scale-out curve away from Contention and Crosstalk.
func DefaultTruth() Truth {
	return Truth{
		Seed: 1, Servers: 32,
		Fast:         Medium{ReadSeconds: 180e-6, WriteSeconds: 250e-6, Sequential: 0.5, BytesPerSecond: 200e6},
		Slow:         Medium{ReadSeconds: 7e-3, WriteSeconds: 5e-3, Sequential: 0.1, BytesPerSecond: 120e6},
		Promotion:    Promotion{ExtentBytes: 1 << 20},
		CacheSeconds: 60e-6, PageCacheBytes: 1 << 30, PageSeconds: 4e-6,
		WriteLog:   WriteLog{Bytes: 32 << 30, BytesPerSecond: 400e6},
		Contention: 2e-6, Crosstalk: 1e-12,
		Background: 0.03,
		Law:        Law{Kind: Lognormal, Sigma: 0.5},
		NoiseCV:    0.02, Grain: time.Second,
		Host: Host{Cores: 16, IdleShare: 0.04, OpSeconds: 40e-6, ByteSecond: 0.25e-9, Copies: 2, IdleBytes: 250e3},
	}
}

// Coefficients are the Universal Scalability Law's alpha and beta that a sweep over n nodes follows, when every node
// carries the same closed load of depth operations and has at least as many servers: the law over n·depth operations,
// written over n, has
//
//	A = 1 + alpha (d-1) + beta d (d-1)   alpha' = (alpha d - beta d + beta d²) / A   beta' = beta d² / A
func (t Truth) Coefficients(depth int) (alpha, beta float64) {
	d := float64(depth)
	a := model.Denominator(t.Contention, t.Crosstalk, d)
	beta = t.Crosstalk * d * d / a
	return (t.Contention*d-t.Crosstalk*d)/a + beta, beta
}

// Check returns all objections.
func (t Truth) Check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("performance model: "+format, args...))
	}
	atLeast := func(name string, v, least float64) {
		if !(v >= least) || math.IsInf(v, 0) {
			bad("%s %v: must be a finite number of at least %v", name, v, least)
		}
	}
	share := func(name string, v float64) {
		if !(v >= 0 && v < 1) {
			bad("%s %v: must be a share, at least 0 and below 1", name, v)
		}
	}
	if t.Servers < 1 || t.Host.Cores < 1 || t.Host.Copies < 1 {
		bad("servers %d, host.cores %d, host.copies %d: each must be at least 1", t.Servers, t.Host.Cores,
			t.Host.Copies)
	}
	for name, m := range map[string]Medium{"fast": t.Fast, "slow": t.Slow} {
		if !(m.ReadSeconds > 0 && m.WriteSeconds > 0 && m.BytesPerSecond > 0 && m.Sequential > 0 &&
			m.Sequential <= 1) ||
			math.IsInf(m.ReadSeconds+m.WriteSeconds+m.BytesPerSecond, 0) {
			bad("%s %+v: times and speed must be finite and above 0, sequential above 0 and at most 1", name, m)
		}
	}
	if !(t.CacheSeconds > 0 && t.PageSeconds > 0) || math.IsInf(t.CacheSeconds+t.PageSeconds, 0) {
		bad("cache_seconds %v, page_seconds %v: must be finite and above 0", t.CacheSeconds, t.PageSeconds)
	}
	for name, v := range map[string]float64{
		"fast_tier_bytes": float64(t.FastTierBytes), "cache_bytes": float64(t.CacheBytes),
		"page_cache_bytes":           float64(t.PageCacheBytes),
		"promotion.extent_bytes":     float64(t.Promotion.ExtentBytes),
		"promotion.bytes_per_second": t.Promotion.BytesPerSecond,
		"write_log.bytes":            float64(t.WriteLog.Bytes), "contention": t.Contention, "crosstalk": t.Crosstalk,
		"host.cpu_seconds_per_op": t.Host.OpSeconds, "host.cpu_seconds_per_byte": t.Host.ByteSecond,
		"host.idle_bytes_per_second": t.Host.IdleBytes, "remote_read_seconds": t.RemoteReadSeconds,
	} {
		atLeast(name, v, 0)
	}
	if t.WriteLog.Bytes > 0 {
		atLeast("write_log.bytes_per_second", t.WriteLog.BytesPerSecond, 1)
	}
	if f := t.Fresh; f != (Fresh{}) && !(f.Factor > 0 && f.Factor <= 1 && f.Until > 0 && f.Until <= 100) {
		bad("fresh: factor %v must be above 0 and at most 1, until %v sizes of a disk above 0 and at most 100", f.Factor,
			f.Until)
	}
	share("host.idle_share", t.Host.IdleShare)
	share("noise_cv", t.NoiseCV)
	share("background plus checkpoint.load", t.Background+t.Checkpoint.Load)
	share("background", t.Background)
	share("checkpoint.load", t.Checkpoint.Load)
	if c := t.Checkpoint; c.Every < 0 || c.Every > 0 && !(c.Lasts >= 0 && c.Lasts < c.Every && c.Every >= time.Second) {
		bad("checkpoint: every %v must be at least 1 s and longer than lasts %v", c.Every, c.Lasts)
	}
	if t.Grain < 100*time.Millisecond || t.Grain > time.Hour {
		bad("grain %v: must be from 100 ms to 1 h", t.Grain)
	}
	return errors.Join(append(errs, t.Law.check())...)
}
