package vioperf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"plimsoll/unit"
)

// Leg is one run of a comparison.
type Leg struct {
	What           string  `json:"what"` // one of Legs
	Bytes          int64   `json:"bytes"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	CPUPerGB       float64 `json:"cpu_seconds_per_gb"`
	SystemPerGB    float64 `json:"system_cpu_seconds_per_gb"` // the part of it in the kernel
	DeviceSaw      *Device `json:"device_saw,omitempty"`
}

// What runs in a comparison: the tool and plain fio by turns, and once a round what shows where a difference comes
// from.
const (
	Ours       = "vioperf"
	Plain      = "fio"
	NoChecksum = "vioperf without checksums"
	NoMaking   = "vioperf with the same data over and over"
	Refilled   = "fio with refill_buffers"
	Summed     = "fio with refill_buffers and verify=crc32c"
)

// Ratio is a median over rounds with the lowest and the highest of them.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// String is the ratio as it is printed.
func (r Ratio) String() string { return fmt.Sprintf("%.3f (%.3f to %.3f)", r.Median, r.Low, r.High) }

// Comparison holds what the same pattern gives with the tool and with fio, in the same folder by turns.
type Comparison struct {
	FioVersion string   `json:"fio_version"`
	FioCommand []string `json:"fio_command"` // plain
	Rounds     int      `json:"rounds"`
	Legs       []Leg    `json:"legs"` // in the order in which they ran
	Throughput Ratio    `json:"throughput_ratio"`
	CPU        Ratio    `json:"cpu_per_gb_ratio"`
	// The same against fio when it makes new data for every block too, and when it also sums them up.
	CPURefilled Ratio `json:"cpu_per_gb_ratio_refilled"`
	CPUSummed   Ratio `json:"cpu_per_gb_ratio_summed"`
	// Of the tool with checksums against itself without.
	Checksum  Ratio    `json:"checksum_throughput_ratio"`
	Diagnosis []string `json:"diagnosis"`
	Stopped   bool     `json:"stopped,omitempty"` // before all rounds were over
}

// Compare runs the tool and fio by turns: ours, fio, fio, ours in one round, fio, ours, ours, fio in the next. The
// result is that of the tool's last run.
func Compare(ctx context.Context, o Options, rounds int, say func(Leg)) (*Result, *Comparison, error) {
	if rounds < 1 {
		return nil, nil, fmt.Errorf("rounds %d: want at least 1", rounds)
	}
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	if o.Rate > 0 || o.CompressibilityPercent > 0 || o.WhenFull == Wrap || o.Keep {
		return nil, nil, errors.New("fio is compared with at full speed, with incompressible data, in files that only " +
			"grow and are removed: leave out the rate, the compressibility, wrapping and keeping")
	}
	program, err := exec.LookPath("fio")
	if err != nil {
		return nil, nil, errors.New("fio is not installed; install it, or leave the comparison out")
	}
	if o.on == nil {
		o.on = thisMachine()
	}
	c := &Comparison{FioVersion: fioVersion(ctx, program)}
	var res *Result
	mine := func(what string, change func(*Options)) error {
		with := o
		change(&with)
		r, err := Write(ctx, with)
		if err != nil || r.Ended == Interrupted {
			return errors.Join(err, ctx.Err())
		}
		if r.Ended == Failed || r.Bytes == 0 {
			return fmt.Errorf("%s: %s", what, r.Error)
		}
		if what == Ours {
			res = r
		}
		c.add(say, Leg{what, r.Bytes, r.BytesPerSecond, r.CPUPerGB, r.System / float64(r.Bytes) * 1e9, r.DeviceSaw})
		return nil
	}
	theirs := func(what string, options ...string) error {
		leg, argv, err := runFio(ctx, o, program, options...)
		if err != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		}
		if leg.What = what; what == Plain {
			c.FioCommand = argv
		}
		c.add(say, leg)
		return nil
	}
	ours := func() error { return mine(Ours, func(*Options) {}) }
	plain := func() error { return theirs(Plain) }
	for round := range rounds {
		legs := []func() error{ours, plain, plain, ours}
		if round%2 == 1 {
			legs = []func() error{plain, ours, ours, plain}
		}
		legs = append(legs,
			func() error { return mine(NoChecksum, func(o *Options) { o.Checksum, o.Verify = false, false }) },
			func() error { return mine(NoMaking, func(o *Options) { o.Same, o.Verify = true, false }) },
			func() error { return theirs(Refilled, "--refill_buffers=1") },
			func() error {
				return theirs(Summed, "--refill_buffers=1", "--verify=crc32c", "--do_verify=0",
					"--verify_state_save=0", "--verify_interval="+strconv.Itoa(o.BlockBytes))
			})
		for _, leg := range legs {
			if err := leg(); err != nil {
				if ctx.Err() == nil {
					return res, nil, err
				}
				c.Stopped = true
				break
			}
		}
		if c.Stopped {
			break
		}
		c.Rounds++
	}
	c.judge(o)
	return res, c, nil
}

func (c *Comparison) add(say func(Leg), l Leg) {
	c.Legs = append(c.Legs, l)
	if say != nil {
		say(l)
	}
}

// of are the values of a kind of leg, summed by whole rounds.
func (c *Comparison) of(what string, value func(Leg) float64) (rounds []float64) {
	each := 1
	if what == Ours || what == Plain {
		each = 2
	}
	n, sum := 0, 0.0
	for _, l := range c.Legs {
		if l.What != what {
			continue
		}
		sum += value(l) / float64(each)
		if n++; n%each == 0 {
			rounds, sum = append(rounds, sum), 0
		}
	}
	return rounds[:min(len(rounds), c.Rounds)]
}

// ratio is of one kind of leg over another, round by round. Zero when no round is whole.
func (c *Comparison) ratio(this, that string, value func(Leg) float64) Ratio {
	a, b := c.of(this, value), c.of(that, value)
	var all []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			all = append(all, a[i]/b[i])
		}
	}
	if len(all) == 0 {
		return Ratio{}
	}
	slices.Sort(all)
	return Ratio{middle(all), all[0], all[len(all)-1]}
}

func middle(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// typical is the median of a kind of leg.
func (c *Comparison) typical(what string, value func(Leg) float64) float64 {
	all := c.of(what, value)
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return middle(all)
}

func rateOf(l Leg) float64   { return l.BytesPerSecond }
func cpuOf(l Leg) float64    { return l.CPUPerGB }
func systemOf(l Leg) float64 { return l.SystemPerGB }

// judge fills in the ratios, and says where a difference comes from.
func (c *Comparison) judge(o Options) {
	c.Throughput = c.ratio(Ours, Plain, rateOf)
	c.CPU = c.ratio(Ours, Plain, cpuOf)
	c.CPURefilled = c.ratio(Ours, Refilled, cpuOf)
	c.CPUSummed = c.ratio(Ours, Summed, cpuOf)
	c.Checksum = c.ratio(Ours, NoChecksum, rateOf)
	if c.Rounds == 0 {
		return
	}
	say := func(format string, args ...any) { c.Diagnosis = append(c.Diagnosis, fmt.Sprintf(format, args...)) }
	switch t := c.Throughput; {
	case t.Low > 1:
		say("vioperf wrote faster than fio in every round, %.2f times as fast in the middle one.", t.Median)
	case t.High < 1:
		say("vioperf wrote slower than fio in every round, %.2f times as fast in the middle one.", t.Median)
	default:
		say("Neither was faster in every round: the ratio is %s.", t)
	}
	cpu := c.typical(Ours, cpuOf)
	say("Processor time per GB: vioperf %.3f s, fio %.3f s. Of vioperf's, checksums take %.3f s, the stamps that make "+
		"every sector differ %.3f s, the kernel %.3f s; fio's kernel part is %.3f s. fio neither sums up nor makes data anew unless "+
		"told: then it takes %.3f s.", cpu, c.typical(Plain, cpuOf), max(0, cpu-c.typical(NoChecksum, cpuOf)),
		max(0, cpu-c.typical(NoMaking, cpuOf)), c.typical(Ours, systemOf), c.typical(Plain, systemOf),
		c.typical(Summed, cpuOf))
	same := c.ratio(NoMaking, Ours, rateOf)
	switch {
	case c.Checksum.High < 0.97:
		say("Checksums cost throughput: with them it is %s of that without.", c.Checksum)
	case c.Checksum.Median < 0.97:
		say("Whether checksums cost throughput cannot be told: with them it is %s of that without.", c.Checksum)
	default:
		say("Checksums are not the limit: with them throughput is %s of that without.", c.Checksum)
	}
	if same.Low > 1.03 {
		say("Making data costs throughput: without that it would be %s times as much.", same)
	}
	c.deviceSays(o, say)
}

// deviceSays compares what the device saw of both.
func (c *Comparison) deviceSays(o Options, say func(string, ...any)) {
	for _, l := range c.Legs {
		if l.DeviceSaw == nil || l.DeviceSaw.Bytes == 0 {
			say("What a device saw of either is not known.")
			return
		}
	}
	seen := func(what string, f func(Device) float64) float64 {
		return c.typical(what, func(l Leg) float64 { return f(*l.DeviceSaw) })
	}
	more := func(what string) float64 {
		return 100 * (c.typical(what, func(l Leg) float64 { return float64(l.DeviceSaw.Bytes) / float64(l.Bytes) }) - 1)
	}
	request := func(d Device) float64 { return d.RequestBytes }
	queue := func(d Device) float64 { return d.Queue * d.RequestBytes / float64(o.BlockBytes) }
	busy := func(d Device) float64 { return 100 * d.Utilization }
	a, b := seen(Ours, request), seen(Plain, request)
	say("The device saw requests of %s from vioperf and %s from fio (avgrq-sz %.0f and %.0f sectors), %.1f and %.1f "+
		"blocks' worth outstanding, and was busy %.0f %% and %.0f %% of the time.", unit.Bytes(a), unit.Bytes(b), a/512,
		b/512, seen(Ours, queue), seen(Plain, queue), seen(Ours, busy), seen(Plain, busy))
	if max(a, b) > 1.1*min(a, b) {
		say("Request sizes differ, so part of the difference is how blocks reach the device.")
	}
	if q, p := seen(Ours, queue), seen(Plain, queue); max(q, p) > 1.3*min(q, p) {
		say("Queues differ: whichever keeps more at the device leaves it idle less.")
	}
	say("Besides the data the device was written %.1f %% more under vioperf and %.1f %% under fio: metadata, the journal "+
		"and others.", more(Ours), more(Plain))
}

func fioVersion(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	return strings.TrimSpace(string(out))
}

// runFio runs fio with the same pattern in a folder of its own. Its files grow too: without fallocate=none it would
// set them aside as a whole beforehand.
func runFio(ctx context.Context, o Options, program string, options ...string) (Leg, []string, error) {
	fail := func(err error) (Leg, []string, error) { return Leg{}, nil, err }
	place, err := o.on.look(o.Dir)
	if err != nil {
		return fail(err)
	}
	reserve := o.Reserve
	if reserve < 0 {
		reserve = DefaultReserve(place.TotalBytes)
	}
	each := (place.FreeBytes - reserve) / int64(o.Threads) / int64(o.BlockBytes) * int64(o.BlockBytes)
	if each <= 0 {
		return fail(fmt.Errorf("%s: no room above the reserve of %s", o.Dir, unit.Bytes(reserve)))
	}
	folder, err := os.MkdirTemp(o.Dir, FolderPrefix)
	if err != nil {
		return fail(refusal(o.Dir, err))
	}
	engine, direct := "libaio", 1
	if o.Buffered {
		engine, direct = "psync", 0
	}
	argv := append([]string{program, "--name=beside", "--output-format=json", "--rw=write", "--thread",
		"--group_reporting", "--fallocate=none", "--directory=.", "--ioengine=" + engine,
		fmt.Sprintf("--direct=%d", direct), fmt.Sprintf("--bs=%d", o.BlockBytes),
		fmt.Sprintf("--iodepth=%d", o.QueueDepth), fmt.Sprintf("--numjobs=%d", o.Threads),
		fmt.Sprintf("--size=%d", each),
		fmt.Sprintf("--runtime=%dms", o.Duration.Milliseconds())}, options...)
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, words bytes.Buffer
	command.Stdout, command.Stderr, command.Dir = &out, &words, folder
	before := o.on.count(place)
	err = command.Run()
	after := o.on.count(place)
	if gone := os.RemoveAll(folder); gone != nil {
		err = errors.Join(err, &LeftError{folder, gone})
	}
	if err != nil {
		return fail(fmt.Errorf("%w; fio says: %.300s", err, strings.TrimSpace(words.String())))
	}
	leg, err := readFio(out.Bytes())
	if before.device != nil && after.device != nil {
		leg.DeviceSaw = before.device.until(*after.device)
	}
	return leg, argv, err
}

// readFio reads what fio says of its only group.
func readFio(out []byte) (Leg, error) {
	var doc struct {
		Jobs []struct {
			Error        int     `json:"error"`
			Milliseconds float64 `json:"job_runtime"` // of all its threads together, as the CPU shares are
			User         float64 `json:"usr_cpu"`
			System       float64 `json:"sys_cpu"`
			Write        struct {
				Bytes int64   `json:"io_bytes"`
				Rate  float64 `json:"bw_bytes"`
			} `json:"write"`
		} `json:"jobs"`
	}
	at := bytes.IndexByte(out, '{') // behind what it says first
	if at < 0 {
		return Leg{}, errors.New("fio printed no report")
	}
	err := json.Unmarshal(out[at:], &doc)
	if err != nil || len(doc.Jobs) != 1 || doc.Jobs[0].Error != 0 || doc.Jobs[0].Write.Bytes <= 0 {
		//nolint:errorlint // it may be nil
		return Leg{}, fmt.Errorf("fio's report is not of one job that wrote: %d jobs, %v", len(doc.Jobs), err)
	}
	j := doc.Jobs[0]
	gb := float64(j.Write.Bytes) / 1e9
	return Leg{Bytes: j.Write.Bytes, BytesPerSecond: j.Write.Rate, SystemPerGB: j.System * j.Milliseconds / 1e5 / gb,
		CPUPerGB: (j.User + j.System) * j.Milliseconds / 1e5 / gb}, nil
}
