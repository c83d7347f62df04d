package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"plimsoll/internal/needs"
	"plimsoll/unit"
)

var peers = flag.Bool("peers", false, "measure fio alone beside fio under plimsoll; takes three minutes")

const (
	peerRepeats = 5
	peerSeconds = 12
	peerJob     = `[global]
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
// judges nothing: on a busy machine the two differ by chance, which the spread of the repeats shows.
func TestBesidePlainFio(t *testing.T) {
	if !*peers {
		t.Skip("make bench-peers runs it")
	}
	fio := needs.Fio(t)
	dir, err := os.MkdirTemp(".", "peers-") // on the file system of the checkout, as the demo's runs are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(dir, "sc", "test.yml"), fmt.Sprintf(peerScenario, peerSeconds))
	place(t, filepath.Join(dir, "sc", "load.fio"), fmt.Sprintf(peerJob, "/dev/sdb", "1G"))
	disk := filepath.Join(dir, "disk")
	place(t, filepath.Join(dir, "alone.fio"), fmt.Sprintf(peerJob, disk, "256m"))
	prefill := exec.CommandContext(t.Context(), fio, "--name=fill", "--filename="+disk, "--size=256m", "--rw=write",
		"--bs=1m", "--direct=1", "--ioengine=libaio", "--iodepth=4")
	if out, err := prefill.CombinedOutput(); err != nil {
		t.Fatalf("prefill: %v\n%s", err, out)
	}
	var alone, under []reading
	for range peerRepeats {
		alone = append(alone, plain(t, fio, filepath.Join(dir, "alone.fio")))
		under = append(under, ours(t, dir))
	}
	fmt.Println("| | IOPS, median | lowest | highest | mean service time | p99 |")
	fmt.Println("|---|---|---|---|---|---|")
	row("fio alone", alone)
	row("fio under plimsoll", under)
	ratio := median(under, func(r reading) float64 {
		return r.iops
	}) / median(alone, func(r reading) float64 { return r.iops })
	fmt.Printf("\nthroughput under plimsoll / alone: %.3f (%d repeats of %d s by turns, random reads of 8 KiB, 8 "+
		"outstanding, 256 MiB)\n", ratio, peerRepeats, peerSeconds)
	fmt.Printf("plimsoll's own cost: %.2f %% of one core, %s resident\n", median(under, func(r reading) float64 {
		return r.core
	}),
		unit.Bytes(median(under, func(r reading) float64 { return r.resident })))
}

// reading is one repeat.
type reading struct{ iops, mean, p99, core, resident float64 }

func row(name string, rs []reading) {
	rate := func(r reading) float64 { return r.iops }
	at := func(f func(reading) float64) string { return unit.Duration(median(rs, f) * 1e9).String() }
	byRate := slices.SortedFunc(slices.Values(rs), func(a, b reading) int { return int(a.iops - b.iops) })
	fmt.Printf("| %s | %s | %s | %s | %s | %s |\n", name, unit.Rate(median(rs, rate)), unit.Rate(byRate[0].iops),
		unit.Rate(byRate[len(rs)-1].iops),
		at(func(r reading) float64 { return r.mean }), at(func(r reading) float64 { return r.p99 }))
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
func plain(t *testing.T, fio, job string) reading {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), fio, "--output-format=json", fmt.Sprintf("--runtime=%d", peerSeconds),
		job).Output()
	if err != nil {
		t.Fatalf("fio: %v", err)
	}
	var doc struct {
		Jobs []struct {
			Read struct {
				IOPS float64 `json:"iops"`
				Lat  struct {
					Mean float64 `json:"mean"`
				} `json:"lat_ns"`
				Clat struct {
					Percentile map[string]float64 `json:"percentile"`
				} `json:"clat_ns"`
			} `json:"read"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Jobs) != 1 {
		t.Fatalf("fio printed %d jobs, %v", len(doc.Jobs), err)
	}
	r := doc.Jobs[0].Read
	return reading{iops: r.IOPS, mean: r.Lat.Mean / 1e9, p99: r.Clat.Percentile["99.000000"] / 1e9}
}

// ours runs the job under plimsoll.
func ours(t *testing.T, dir string) reading {
	t.Helper()
	s := session{t, filepath.Join(dir, "runs")}
	var doc struct {
		Latencies []struct {
			Windows []struct {
				Operations []struct {
					Rate float64 `json:"ops_per_second"`
					Mean float64 `json:"mean_seconds"`
					P99  float64 `json:"p99_seconds"`
				} `json:"operations"`
			} `json:"windows"`
		} `json:"latencies"`
	}
	if err := json.Unmarshal([]byte(s.must("run", filepath.Join(dir, "sc"), "--nodes", "1", "--size-scale", "0.25",
		"--json")), &doc); err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Manifest struct {
			Overhead struct {
				Core     float64 `json:"core_percent"`
				Resident float64 `json:"max_resident_bytes"`
			} `json:"overhead"`
		} `json:"manifest"`
	}
	if err := json.Unmarshal([]byte(s.must("runs", "show", "latest", "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	op := doc.Latencies[0].Windows[0].Operations[0]
	return reading{op.Rate, op.Mean, op.P99, shown.Manifest.Overhead.Core, shown.Manifest.Overhead.Resident}
}
