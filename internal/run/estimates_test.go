package run_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/targets/sim"
	"plimsoll/internal/targets/sim/perf"
	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
	"plimsoll/unit"
)

// -estimates=400 makes the table of docs/simulated-cluster.md; what is tested otherwise is its short form.
var estimates = flag.Int("estimates", 25, "how many random scenarios TestEstimates plans and runs")

// dice are what random scenarios are made from.
type dice struct{ *rand.Rand }

func (d dice) chance(p float64) bool { return d.Float64() < p }

func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// jobFile has sections of any pattern, block size, depth and rate. Few of them end by time.
func (d dice) jobFile(disks int) string {
	var b strings.Builder
	b.WriteString("[global]\nioengine=libaio\n")
	if d.chance(0.8) {
		b.WriteString("direct=1\n")
	}
	for i := range d.between(1, 4) {
		rw := pick(d, "read", "write", "rw", "randread", "randwrite", "randrw")
		blocks := pick(d, 4, 8, 16, 64, 256, 1024, 4096)
		fmt.Fprintf(&b, "[s%d]\nfilename=/dev/sd%c\nrw=%s\niodepth=%d\n", i, 'b'+d.IntN(disks), rw, 1<<d.IntN(7))
		if d.chance(0.15) {
			fmt.Fprintf(&b, "bssplit=%dk/60:%dk/40\n", blocks, 2*blocks)
		} else {
			fmt.Fprintf(&b, "bs=%dk\n", blocks)
		}
		// So that no run takes weeks: a small share of what one operation after the other would do in an hour.
		mib := d.between(64, 40*min(blocks, 1024))
		fmt.Fprintf(&b, "size=%dm\n", mib)
		if d.chance(0.25) {
			iops := max(1, mib*1024/blocks/d.between(30, 3000))
			fmt.Fprintf(&b, "rate_iops=%d,%d\n", iops, iops)
		}
		for _, line := range []string{
			"stonewall", "numjobs=2", "startdelay=20", "rwmixread=80", "random_distribution=zipf:1.1", "runtime=90",
			"runtime=120\ntime_based", "ramp_time=10",
		} {
			if d.chance(0.1) {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.String()
}

// scenario has one or two groups and workloads, which follow each other or run at once, with or without a prefill.
func (d dice) scenario() fstest.MapFS {
	files := fstest.MapFS{}
	var vms, loads, setup, run, waits strings.Builder
	for i := range d.between(1, 2) {
		disks := d.between(1, 3)
		place := pick(d, "count_per_node: 1", "count_per_node: 3", "count_per_cluster: 1", "count_per_cluster: 5",
			`nodes: "1"`)
		fmt.Fprintf(&vms, "  - G%d: {template: ubuntu1604, vcpus: 2, ram_mb: 1024, data_disks: {count: %d, size: "+
			"40}, %s}\n", i, disks, place)
		fmt.Fprintf(&loads, "  - W%d: {vm_group: G%d, config_file: w%d.fio}\n", i, i, i)
		files[fmt.Sprintf("w%d.fio", i)] = &fstest.MapFile{Data: []byte(d.jobFile(disks))}
		fmt.Fprintf(&setup, "  - vm_group.CloneFromTemplate: {vm_group_name: G%d, power_on: True}\n", i)
		switch d.IntN(4) {
		case 0:
			fmt.Fprintf(&setup, "  - workload.PrefillRun: {workload_name: W%d, max_concurrent: %d, timeout_secs: "+
				"1000000}\n", i, d.between(1, 8))
		case 1:
			fmt.Fprintf(&setup, "  - workload.PrefillStart: {workload_name: W%d, async: True}\n", i)
			fmt.Fprintf(&setup, "  - workload.PrefillWait: {workload_name: W%d, timeout_secs: 1000000}\n", i)
		}
		more := pick(d, "", "", "", ", stagger_secs: 60", ", runtime_secs: 300")
		if d.chance(0.5) {
			fmt.Fprintf(&run, "  - workload.Start: {workload_name: W%d, timeout_secs: 1000000%s}\n", i, more)
			continue
		}
		fmt.Fprintf(&run, "  - workload.Start: {workload_name: W%d, async: True%s}\n", i, more)
		if d.chance(0.3) {
			run.WriteString("  - test.Wait: {duration_secs: 45}\n")
		}
		fmt.Fprintf(&waits, "  - workload.Wait: {workload_name: W%d, timeout_secs: 1000000}\n", i)
	}
	files["test.yml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "name: random\ndisplay_name: Random\nsummary: "+
		"s\ndescription: \"\"\n"+
		"estimated_runtime: 3600\nvms:\n%sworkloads:\n%sresults:\n  - r: {vm_group: G0, result_type: iops, "+
		"aggregate: sum}\n"+
		"setup:\n%srun:\n%s%s", &vms, &loads, &setup, &run, &waits)}
	return files
}

// cluster is one of any speed, half of the time the default one.
func (d dice) cluster() sim.Options {
	o := sim.Options{Seed: d.Uint64()}
	if d.chance(0.5) {
		return o
	}
	t := perf.DefaultTruth()
	t.Servers = pick(d, 1, 4, 32, 128)
	t.Fast.BytesPerSecond = pick(d, 50e6, 200e6, 2e9)
	t.WriteLog.Bytes = pick[int64](d, 0, 1<<30, 32<<30)
	t.CacheBytes = pick[int64](d, 0, 4<<30)
	if d.chance(0.3) {
		t.FastTierBytes, t.SequentialToSlow = 10<<30, d.chance(0.5)
	}
	if d.chance(0.3) {
		t.Checkpoint = perf.Checkpoint{Every: 2 * time.Minute, Lasts: 20 * time.Second, Load: 0.5}
	}
	o.Truth = &t
	return o
}

// Plans of random scenarios on the simulated cluster tell how long every step of load takes, and the whole, within a
// fifth, or say that they cannot.
func TestEstimates(t *testing.T) {
	needs.Time(t)
	type tally struct {
		of, unknown, right int
		worst              float64
		where              string
	}
	var steps, wholes tally
	count := func(into *tally, what string, told, took time.Duration, unknown bool) {
		if max(told, took) < 10*time.Second {
			return
		}
		into.of++
		if unknown {
			into.unknown++
			return
		}
		ratio := math.Exp(math.Abs(math.Log(max(told, time.Second).Seconds() / max(took, time.Second).Seconds())))
		if ratio > into.worst {
			into.worst, into.where = ratio, fmt.Sprintf("%s: told %v, took %v", what, told, took)
		}
		if (told - took).Abs() <= took/5 {
			into.right++
			return
		}
		t.Errorf("%s: the plan said %s, and it took %s", what, unit.Duration(told), unit.Duration(took))
	}
	for i := range *estimates {
		d := dice{rand.New(rand.NewPCG(uint64(i), 20261))}
		files := d.scenario()
		h := modelled(t, files, d.cluster())
		h.req.Interval = time.Minute
		begun := h.clock.Now()
		if _, err := h.execute(t.Context()); err != nil {
			t.Errorf("scenario %d: %v\n%s", i, err, files["test.yml"].Data)
			continue
		}
		p := h.req.Plan
		count(&wholes, fmt.Sprintf("scenario %d", i), p.Estimated(), h.clock.Now().Sub(begun), p.EstimateUnknown)
		for _, s := range p.Steps {
			if !strings.HasPrefix(s.Name, "workload.") {
				continue
			}
			at := func(kind string) time.Time {
				k := slices.IndexFunc(h.events, func(e result.Event) bool {
					return e.Kind == kind && e.Step == s.Number
				})
				return h.events[k].Time
			}
			took := at(result.KindStepEnd).Sub(at(result.KindStepStart))
			told := time.Duration(s.EstimateSeconds * float64(time.Second))
			count(&steps, fmt.Sprintf("scenario %d, step %d (%s)", i, s.Number, s.Text), told, took, s.EstimateUnknown)
		}
	}
	share := func(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of)) }
	for _, c := range []struct {
		name string
		tally
	}{{"steps that start or wait for load", steps}, {"whole scenarios", wholes}} {
		t.Logf("| %s | %d | %s | %s | x %.3f |", c.name, c.of, share(c.right, c.of), share(c.unknown, c.of), c.worst)
		t.Logf("the worst of them: %s", c.where)
	}
}
