package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/testkit/needs"
	"plimsoll/unit"
)

var (
	peers = flag.Bool("peers", false, "measure fio alone beside fio under plimsoll; takes ten minutes")
	// On a file system in memory the job is bound by the processor, however slow the device is.
	peersDir     = flag.String("peers-dir", ".", "folder whose file system is read, such as /dev/shm")
	peersOptions = flag.Bool("peers-options", false, "fio alone, with and without what plimsoll tells it")
	peersRounds  = flag.Int("peers-rounds", 12, "rounds: alone, under, under, alone; the next one the other way round")
	peersSeconds = flag.Int("peers-seconds", 5, "how long each of a round's four runs takes, in seconds")
)

const (
	peerJob = `[global]
ioengine=libaio
direct=1
time_based
norandommap
group_reporting
[readers]
filename=%s
size=%s
rw=randread
bs=8k
iodepth=8
`
	peerScenario = `name: beside_plain_fio
display_name: Beside plain fio
summary: the same job that fio runs alone
description: ""
estimated_runtime: 30
vms:
  - One:
      template: ubuntu1604
      vcpus: 2
      ram_mb: 1024
      data_disks:
        count: 1
        size: 1
      count_per_cluster: 1
workloads:
  - Load:
      vm_group: One
      config_file: load.fio
      iogen_params:
        reporting_interval: 1
results: []
setup:
  - cluster.CleanUp: {}
  - vm_group.CloneFromTemplate:
      vm_group_name: One
  - vm_group.PowerOn:
      vm_group_name: One
  - workload.PrefillRun:
      workload_name: Load
run:
  - workload.Start:
      workload_name: Load
      runtime_secs: %d
teardown:
  - cluster.CleanUp: {}
`
)

// TestBesidePlainFio runs the same job by turns with fio alone and under plimsoll and prints both side by side. It
// judges nothing: on a busy machine the two differ by chance, which the interval shows. What an operation costs the
// processor says more there than how many there were.
func TestBesidePlainFio(t *testing.T) {
	if !*peers {
		t.Skip("make bench-peers runs it")
	}
	fio := needs.Fio(t)
	dir, err := os.MkdirTemp(*peersDir, "peers-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "sc", "test.yml"), fmt.Sprintf(peerScenario, *peersSeconds))
	place(t, filepath.Join(dir, "sc", "load.fio"), fmt.Sprintf(peerJob, "/dev/sdb", "1G"))
	disk := filepath.Join(dir, "disk")
	place(t, filepath.Join(dir, "alone.fio"), fmt.Sprintf(peerJob, disk, "256m"))
	prefill := exec.CommandContext(t.Context(), fio, "--name=fill", "--filename="+disk, "--size=256m", "--rw=write",
		"--bs=1m", "--direct=1", "--ioengine=libaio", "--iodepth=4")
	if out, err := prefill.CombinedOutput(); err != nil {
		t.Fatalf("prefill: %v\n%s", err, out)
	}
	alone := func(options ...string) func() reading {
		return func() reading { return plain(t, fio, filepath.Join(dir, "alone.fio"), options...) }
	}
	if *peersOptions {
		for _, options := range append([][]string{{}, slices.Concat(ourOptions...)}, ourOptions...) {
			rounds, _, _ := byTurns(alone(), alone(options...))
			tell(rounds, "with "+strings.Join(options, " "), "without")
		}
		return
	}
	rounds, allAlone, allUnder := byTurns(alone(), func() reading { return ours(t, dir) })
	fmt.Println("| | IOPS, median | lowest | highest | mean service time | p99 | processor time of an operation |")
	fmt.Println("|---|---|---|---|---|---|---|")
	row("fio alone", allAlone)
	row("fio under plimsoll", allUnder)
	fmt.Println()
	tell(rounds, "under plimsoll", "alone")
	fmt.Printf("plimsoll's own cost: %.2f %% of one core, %s resident\n",
		median(allUnder, func(r reading) float64 { return r.core }),
		unit.Bytes(median(allUnder, func(r reading) float64 { return r.resident })))
}

// ourOptions are those that plimsoll gives fio and that could cost something.
var ourOptions = [][]string{
	{"--output-format=json+", "--status-interval=1"}, {"--lat_percentiles=1", "--clat_percentiles=0"}, {"--thread"},
	{"--randrepeat=0", "--randseed=1"}, {"--eta=never"},
}

// byTurns takes readings of two by turns.
func byTurns(alone, under func() reading) (rounds []round, allAlone, allUnder []reading) {
	for i := range *peersRounds {
		var r round
		if i%2 == 0 {
			r.alone[0], r.under[0], r.under[1], r.alone[1] = alone(), under(), under(), alone()
		} else {
			r.under[0], r.alone[0], r.alone[1], r.under[1] = under(), alone(), alone(), under()
		}
		rounds = append(rounds, r)
		allAlone, allUnder = append(allAlone, r.alone[:]...), append(allUnder, r.under[:]...)
	}
	return rounds, allAlone, allUnder
}

// tell prints how two compare.
func tell(rounds []round, this, that string) {
	for _, c := range []struct {
		what string
		of   func(reading) float64
	}{
		{"throughput", func(r reading) float64 { return r.iops }},
		{"processor time of an operation", func(r reading) float64 { return r.cost }},
	} {
		low, middle, high := ratios(rounds, c.of)
		fmt.Printf("%s %s / %s: %.3f (95 %%: %.3f to %.3f; %d rounds of four times %d s)\n", c.what, this, that,
			middle, low, high, len(rounds), *peersSeconds)
	}
}

// round is two repeats of each, near each other in time.
type round struct{ alone, under [2]reading }

// ratios is the median over the rounds of what is under plimsoll over what is alone, with an interval of ranks around
// it that holds the true median 95 times of 100, as far as there are rounds enough for that.
func ratios(rounds []round, of func(reading) float64) (low, middle, high float64) {
	var v []float64
	for _, r := range rounds {
		v = append(v, (of(r.under[0])+of(r.under[1]))/(of(r.alone[0])+of(r.alone[1])))
	}
	slices.Sort(v)
	n, rank := len(v), 0
	// One rank further in as long as so many values or fewer lie below the median with a chance of 2.5 % at most.
	for term, chance := math.Pow(0.5, float64(n)), 0.0; rank < n/2; rank++ {
		if chance += term; chance > 0.025 {
			break
		}
		term *= float64(n-rank) / float64(rank+1)
	}
	rank = max(rank-1, 0)
	return v[rank], (v[(n-1)/2] + v[n/2]) / 2, v[n-1-rank]
}

// reading is one repeat.
type reading struct {
	iops, mean, p99 float64
	cost            float64 // processor seconds of fio for an operation
	core, resident  float64 // of plimsoll
}

func row(name string, rs []reading) {
	rate := func(r reading) float64 { return r.iops }
	at := func(f func(reading) float64) string { return unit.Duration(median(rs, f) * 1e9).String() }
	byRate := slices.SortedFunc(slices.Values(rs), func(a, b reading) int { return int(a.iops - b.iops) })
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s |\n", name, unit.Rate(median(rs, rate)), unit.Rate(byRate[0].iops),
		unit.Rate(byRate[len(rs)-1].iops),
		at(func(r reading) float64 { return r.mean }), at(func(r reading) float64 { return r.p99 }),
		at(func(r reading) float64 { return r.cost }))
}

func median(rs []reading, f func(reading) float64) float64 {
	var v []float64
	for _, r := range rs {
		v = append(v, f(r))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// plain runs the job with fio alone.
func plain(t *testing.T, fio, job string, options ...string) reading {
	t.Helper()
	argv := append([]string{"--output-format=json", fmt.Sprintf("--runtime=%d", *peersSeconds)}, options...)
	out, err := exec.CommandContext(t.Context(), fio, append(argv, job)...).Output()
	if err != nil {
		t.Fatalf("fio: %v", err)
	}
	var doc struct {
		Jobs []struct {
			Milliseconds float64 `json:"job_runtime"`
			User         float64 `json:"usr_cpu"`
			System       float64 `json:"sys_cpu"`
			Read         struct {
				Count float64 `json:"total_ios"`
				IOPS  float64 `json:"iops"`
				Lat   struct {
					Mean float64 `json:"mean"`
				} `json:"lat_ns"`
				Clat struct {
					Percentile map[string]float64 `json:"percentile"`
				} `json:"clat_ns"`
			} `json:"read"`
		} `json:"jobs"`
	}
	last := bytes.LastIndex(out, []byte("\n{\n")) + 1 // behind what it says of itself meanwhile
	if err := json.Unmarshal(out[last:], &doc); err != nil || len(doc.Jobs) != 1 {
		t.Fatalf("fio printed %d jobs, %v", len(doc.Jobs), err)
	}
	j := doc.Jobs[0]
	r := j.Read
	return reading{iops: r.IOPS, mean: r.Lat.Mean / 1e9, p99: r.Clat.Percentile["99.000000"] / 1e9,
		cost: (j.User + j.System) / 100 * j.Milliseconds / 1e3 / r.Count}
}

// ours runs the job under plimsoll.
func ours(t *testing.T, dir string) reading {
	t.Helper()
	s := session{t: t, runs: filepath.Join(dir, "runs")}
	var doc struct {
		Manifest struct {
			Overhead struct {
				Core     float64 `json:"core_percent"`
				Resident float64 `json:"max_resident_bytes"`
			} `json:"overhead"`
		} `json:"manifest"`
		Workloads []struct {
			VM      string  `json:"vm"`
			Prefill bool    `json:"prefill"`
			CPU     float64 `json:"generator_cpu_seconds"`
		} `json:"workloads"`
		Latencies []struct {
			Windows []struct {
				Operations []struct {
					Count float64 `json:"count"`
					Rate  float64 `json:"ops_per_second"`
					Mean  float64 `json:"mean_seconds"`
					P99   float64 `json:"p99_seconds"`
				} `json:"operations"`
			} `json:"windows"`
		} `json:"latencies"`
	}
	s.must("run", filepath.Join(dir, "sc"), "--nodes", "1", "--size-scale", "0.25")
	if err := json.Unmarshal([]byte(s.must("report", "latest", "-o", "json")), &doc); err != nil {
		t.Fatal(err)
	}
	op, own := doc.Latencies[0].Windows[0].Operations[0], doc.Manifest.Overhead
	r := reading{iops: op.Rate, mean: op.Mean, p99: op.P99, core: own.Core, resident: own.Resident}
	for _, w := range doc.Workloads {
		if w.VM == "" && !w.Prefill {
			r.cost = w.CPU / op.Count
		}
	}
	return r
}
