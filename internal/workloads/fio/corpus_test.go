package fio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/hist"
	"plimsoll/internal/contract/workload"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
	"plimsoll/internal/testkit/workloadtest"
)

// summary holds what a file comes to, in our own words.
type summary struct {
	File     string   `json:"file"`
	Refused  string   `json:"refused,omitempty"`
	Kind     string   `json:"kind"`
	Reports  int      `json:"reports,omitempty"`
	Elapsed  string   `json:"elapsed,omitempty"`
	Errors   uint64   `json:"errors,omitempty"`
	Read     string   `json:"read,omitempty"`
	Write    string   `json:"write,omitempty"`
	Lines    int      `json:"lines,omitempty"`
	Sum      int64    `json:"sum_of_values,omitempty"`
	Ops      uint64   `json:"operations,omitempty"`
	P50, P99 uint64   `json:",omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Every file of the folders is read by the parser its name asks for; a new one appears in the golden file by itself.
func TestCorpus(t *testing.T) {
	var all []summary
	for _, folder := range []string{"fio-json", "fio-logs"} {
		root := needs.Corpus(t, folder)
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".job") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(filepath.Dir(root), path)
			all = append(all, summarise(filepath.ToSlash(rel), data))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range all {
		if s.Refused == "" && s.Reports+s.Lines == 0 {
			t.Errorf("%s: neither read nor refused", s.File)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "corpus.json"), append(text, '\n'))
}

func summarise(name string, data []byte) summary {
	s := summary{File: name}
	var err error
	switch base := filepath.Base(name); {
	case strings.Contains(base, "_hist.") && strings.HasSuffix(base, ".log"):
		s.Kind = "histogram log"
		unit := Nanoseconds
		if strings.Contains(base, "fio-2") {
			unit = Microseconds
		}
		var points []HistPoint
		points, err = ParseHistLog(bytes.NewReader(data), unit)
		var total hist.Histogram
		for _, p := range points {
			total.Merge(p.Hist)
		}
		s.Lines, s.Ops = len(points), total.Count()
		s.P50, _ = total.Quantile(0.5)
		s.P99, _ = total.Quantile(0.99)
	case strings.HasPrefix(name, "fio-logs/"):
		s.Kind = "log"
		var points []LogPoint
		points, err = ParseLog(bytes.NewReader(data))
		s.Lines = len(points)
		for _, p := range points {
			s.Sum += p.Value
		}
	default:
		s.Kind = "output"
		var sink workloadtest.Recorder
		_, err = Engine{}.Parse(workload.Declared{}, bytes.NewReader(data), &sink)
		s.Reports, s.Warnings = len(sink.Reports), sink.Warnings
		if n := len(sink.Reports); n > 0 {
			last := sink.Reports[n-1]
			s.Elapsed, s.Errors = last.Elapsed.String(), last.Errors
			s.Read, s.Write = counted(last.Ops[0]), counted(last.Ops[1])
		}
	}
	if err != nil {
		s.Refused = err.Error()
	}
	return s
}

func counted(c workload.Counters) string {
	text := fmt.Sprintf("%d operations, %d bytes, %.6f s of service", c.Ops, c.Bytes, c.Seconds)
	if c.Hist != nil {
		p99, _ := c.Hist.Quantile(0.99)
		text += fmt.Sprintf(", p99 %v", time.Duration(p99))
	}
	return text
}

// The middles of microsecond bins lie between the values another reader of fio 2 logs gives to their edges.
func TestMicrosecondBinsAgreeWithPublishedValues(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(needs.Corpus(t, "fio-logs"), "pkb-fio-2.17_hist_bin_vals.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var values []float64
	for line := range strings.FieldsSeq(string(data)) {
		var v float64
		if _, err := fmt.Sscan(line, &v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	if len(values) != 19*64 {
		t.Fatalf("%d values", len(values))
	}
	for i, v := range values {
		var h hist.Histogram
		addBin(&h, i, 1, Microseconds, 1)
		if got := h.Mean() / 1000; got > v*1.0001 || got < v*(1-2.0/64)-1 {
			t.Fatalf("bin %d is counted at %v µs, its edge is %v", i, got, v)
		}
	}
}

// Rates, and means of completion, as a report of fio 2 states them.
func TestPublishedRates(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(needs.Corpus(t, "fio-json"), "fio-2.8-curie-single.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sink workloadtest.Recorder
	if _, err := (Engine{}).Parse(workload.Declared{}, bytes.NewReader(data), &sink); err != nil {
		t.Fatal(err)
	}
	got := sink.Reports
	want := []workload.Report{{
		Time:    time.UnixMilli(1460734491000).UTC(),
		Elapsed: 900 * time.Millisecond,
		Ops: workload.Counts{{Ops: 227, Bytes: 1992 * 1024, Seconds: 227 * 889.51e-6},
			{Ops: 232, Bytes: 2264 * 1024, Seconds: 232 * 1363.13e-6}, {}},
		Final: true,
	}}
	for i := range got {
		got[i].CPUSeconds = 0
	}
	opt := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, opt); diff != "" {
		t.Error(diff)
	}
}
