package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/needs"
	"plimsoll/result"
)

var (
	drawnRuns = flag.Int("drawn", 0, "TestDrawn: this many runs, each printed with its truth, to be read")
	drawnSeed = flag.Uint64("drawn-seed", 30, "TestDrawn: the seed that its runs are drawn from")
)

// drawnTruth holds what was set up in a run that chance drew.
type drawnTruth struct {
	scenario string
	args     []string
	file     string   // of the target's options, with faults
	kinds    []string // of faults and of what the model has besides
}

func (d drawnTruth) has(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(d.kinds, k) })
}

// ofTheLibrary are the scenarios of the library that the simulated cluster runs, which are those with an answer, and
// the one that it runs when asked for disks instead of a database.
func ofTheLibrary(t *testing.T) (names []string) {
	t.Helper()
	answers, err := filepath.Glob("testdata/answers/*.txt")
	if err != nil || len(answers) < 16 {
		t.Fatal(len(answers), err)
	}
	for _, f := range answers {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txt"))
	}
	return append(names, "db-numa")
}

// drawTruth draws a scenario, its scales, and none to three things that disturb it, while its loads run as a rule.
func drawTruth(r *rand.Rand, scenarios []string) drawnTruth {
	among := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	d := drawnTruth{scenario: scenarios[r.IntN(len(scenarios))]}
	nodes := 3 + r.IntN(4)
	option := func(format string, a ...any) {
		d.args = append(d.args, "--target-opt", fmt.Sprintf(format, a...))
	}
	if d.scenario == "db-numa" {
		d.args = append(d.args, "--set", "load=fio")
	}
	scale := among(0.1, 0.5)
	d.args = append(d.args, "--time-scale", fmt.Sprintf("%.2f", scale), "--size-scale",
		fmt.Sprintf("%.3f", among(0.01, 0.1)), "--nodes", fmt.Sprint(nodes))
	option("seed=%d", 1+r.IntN(1e6))
	option("model.noise_cv=%.3f", among(0.01, 0.06))
	var faults []string
	for range r.IntN(4) {
		kind := []string{"slow_disk", "hung_io", "noisy_neighbour", "node_crash", "clock_skew", "agent_lost", "quota",
			"steal", "fresh", "checkpoint", "promotion", "cache", "background"}[r.IntN(13)]
		if slices.Contains(d.kinds, kind) {
			continue
		}
		d.kinds = append(d.kinds, kind)
		fault := func(format string, a ...any) {
			faults = append(faults, fmt.Sprintf(`{kind: %s, nodes: %d, step: "workload.Start#%d", at: %.0fs, for: %.0fs%s}`,
				kind, r.IntN(nodes), 1+r.IntN(2), among(5, 20+300*scale), among(5, 20+150*scale),
				fmt.Sprintf(format, a...)))
		}
		switch kind {
		case "slow_disk":
			fault(", factor: %.1f", among(1.5, 8))
		case "noisy_neighbour":
			fault(", factor: %.2f", among(0.1, 0.8))
		case "clock_skew":
			fault(", skew: %.0fs", among(2, 40))
		case "hung_io", "node_crash", "agent_lost":
			fault("")
		case "quota":
			option("starved.quota=%.2f", among(0.1, 0.9))
		case "steal":
			option("starved.steal=%.2f", among(0.06, 0.5))
		case "fresh":
			option("model.fresh.factor=%.2f", among(0.2, 0.7))
			option("model.fresh.until=%.1f", among(0.5, 4))
		case "checkpoint":
			every := among(20, 60)
			option("model.checkpoint={every: %.0fs, lasts: %.0fs, load: %.2f}", every, every*among(0.1, 0.4),
				among(0.1, 0.34))
		case "promotion":
			option("model.sequential_to_slow=true")
			option("model.promotion.bytes_per_second=%.0f", among(2e7, 3e8))
		case "cache":
			option("model.cache_bytes=%.0f", among(2e8, 4e9))
		case "background":
			option("model.background=%.2f", among(0.2, 0.65))
		}
	}
	if len(faults) > 0 {
		d.file = "faults:\n  - " + strings.Join(faults, "\n  - ") + "\n"
	}
	return d
}

// faultsOf are the faults of the only run of a folder, and when its loads ran, as the journal has them.
func faultsOf(t *testing.T, dir string) (said []string) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "*", "data.json"))
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var data result.Data
		if err := json.Unmarshal(text, &data); err != nil {
			t.Fatal(err)
		}
		at := func(of time.Time) string { return of.Sub(data.Start).Round(time.Second).String() }
		for _, e := range data.Events {
			said = append(said, strings.Join([]string{at(e.Time), e.Kind, e.State, e.Node, e.Text}, " "))
		}
		for _, w := range data.Workloads {
			if !w.Prefill {
				said = append(said, fmt.Sprintf("%s to %s: %s on %s, node %d, %s", at(w.Start), at(w.End), w.Name, w.VM,
					w.Node,
					w.Ended))
			}
		}
	}
	return said
}

// needsCause are the checks that name a cause, and what must have been set up for them to speak up of a cluster of
// which all is known. Scenarios that switch nodes off are faults themselves.
var needsCause = map[string][]string{
	"cpu-starved": {"quota", "steal"},
	"clocks":      {"clock_skew"},
	"residency":   {"promotion", "cache"},
	"stalls": {"hung_io", "node_crash", "slow_disk", "noisy_neighbour", "agent_lost", "checkpoint", "fresh",
		"promotion"},
	"lost": {"node_crash", "agent_lost"},
	"baseline": {"hung_io", "node_crash", "slow_disk", "noisy_neighbour", "agent_lost", "checkpoint", "fresh",
		"promotion", "cache", "clock_skew"},
}

// takesNone finds sentences that charge a fault with what it cannot do: a clock that goes ahead takes nothing, and
// storage that is slow, or used by others, no VM.
var takesNone = regexp.MustCompile(`^After "clocks of|(lost .*|VMs?|lost by then,) at "(clocks|storage|somebody)`)

// TestDrawn runs scenarios of the library with faults that chance draws, and looks for findings that name a cause that
// was not set up. With -drawn N -drawn-seed S it prints what was set up, and every sentence, to be read.
func TestDrawn(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	scenarios := ofTheLibrary(t)
	runs := max(*drawnRuns, needs.Draws(4, 50))
	r := rand.New(rand.NewPCG(*drawnSeed, 30))
	for i := range runs {
		d := drawTruth(r, scenarios)
		dir := t.TempDir()
		s := session{t: t, runs: dir}
		args := append([]string{"run", d.scenario, "--target", "sim", "--once", "-q"}, d.args...)
		if d.file != "" {
			name := filepath.Join(dir, "sim.yaml")
			place(t, name, d.file)
			args = append(args, "--target-opt", "file="+name)
		}
		began := time.Now()
		var out, problems bytes.Buffer
		cmd := s.command(t.Context(), args...)
		cmd.Stdout, cmd.Stderr = &out, &problems
		err := cmd.Run()
		took := time.Since(began)
		var doc struct{ Findings []result.Finding }
		found, _ := filepath.Glob(filepath.Join(dir, "*", "findings.json"))
		for _, name := range found {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
		}
		if *drawnRuns > 0 {
			fmt.Printf("\n#### %d: %s, set up: %s (%v, %v)\nplimsoll %s\n%s%s%s", i, d.scenario,
				strings.Join(d.kinds, ", "), err,
				took.Round(time.Millisecond), strings.Join(args, " "), d.file, &problems, &out)
			for _, e := range faultsOf(t, dir) {
				fmt.Println("  journal:", e)
			}
		}
		for _, f := range doc.Findings {
			if *drawnRuns > 0 && f.Severity != result.Passed {
				fmt.Printf("  [%s] %s: %s\n", f.Severity, f.Check, f.Sentence)
			}
			if says := takesNone.FindString(f.Sentence); says != "" && f.Severity != result.Passed &&
				!strings.Contains(f.Sentence, "cannot be told") &&
				!strings.Contains(f.Sentence, "stood still in part") {
				t.Errorf("run %d, seed %d: charged to what takes no VM and no time: %s\nplimsoll %s\n%s", i,
					*drawnSeed, f.Sentence, strings.Join(args, " "), d.file)
			}
			causes := needsCause[f.Check]
			if strings.HasSuffix(f.Sentence, " is not told.") {
				causes = nil
			}
			ofItself := slices.Contains([]string{"node-loss", "power-loss", "storage-integrity", "ilm"}, d.scenario)
			if causes != nil && f.Severity != result.Passed && !d.has(causes...) && !ofItself {
				t.Errorf("run %d of seed %d, %s with %v: nothing was set up that %s can be about: %s\nplimsoll %s", i, *drawnSeed,
					d.scenario, d.kinds, f.Check, f.Sentence, strings.Join(args, " "))
			}
		}
	}
}
