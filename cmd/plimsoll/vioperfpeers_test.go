package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"plimsoll/internal/testkit/needs"
)

var (
	vioperfRounds  = flag.Int("vioperf-rounds", 6, "rounds of vioperf beside fio, eight runs each")
	vioperfSeconds = flag.Int("vioperf-seconds", 3, "length of each run of vioperf and fio")
)

// TestVioperfBesideFio has vioperf compare itself with fio, with one thread and with two, and prints the ratios as a
// table. Like TestBesidePlainFio it judges nothing: a busy machine decides by chance.
func TestVioperfBesideFio(t *testing.T) {
	if !*peers {
		t.Skip("make bench-peers runs it")
	}
	needs.Fio(t)
	dir, err := os.MkdirTemp(*peersDir, "vioperf-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
	fmt.Println("| threads | throughput against fio | with checksums against without | processor time per GB against fio | " +
		"against fio with refill_buffers | against that and verify=crc32c |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, threads := range []string{"1", "2"} {
		type ratio struct{ Median, Low, High float64 }
		var doc struct {
			Fio struct {
				Throughput ratio    `json:"throughput_ratio"`
				Checksum   ratio    `json:"checksum_throughput_ratio"`
				CPU        ratio    `json:"cpu_per_gb_ratio"`
				Refilled   ratio    `json:"cpu_per_gb_ratio_refilled"`
				Summed     ratio    `json:"cpu_per_gb_ratio_summed"`
				Diagnosis  []string `json:"diagnosis"`
			} `json:"beside_fio"`
		}
		out := s.must("vioperf", dir, "--compare-fio", "--json", "--quiet", "--thread-count", threads, "--rounds",
			strconv.Itoa(*vioperfRounds), "--duration", strconv.Itoa(*vioperfSeconds)+"s")
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		text := "| " + threads
		for _, r := range []ratio{doc.Fio.Throughput, doc.Fio.Checksum, doc.Fio.CPU, doc.Fio.Refilled, doc.Fio.Summed} {
			text += fmt.Sprintf(" | %.3f (%.3f to %.3f)", r.Median, r.Low, r.High)
		}
		fmt.Println(text + " |")
		for _, sentence := range doc.Fio.Diagnosis {
			t.Log(sentence)
		}
	}
}
