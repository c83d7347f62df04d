package experiment_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/run/experiment"
	"plimsoll/scenario"
)

var grid = &scenario.Experiment{Repeats: 2, Order: scenario.OrderRandomised, Seed: 3, Factors: []scenario.Factor{
	{Name: "size", Levels: []any{"4k", "64k"}}, {Name: "depth", Levels: []any{int64(1), int64(8), 0.5}}}}

func TestCells(t *testing.T) {
	t.Parallel()
	var got []string
	for _, c := range experiment.Cells(grid) {
		got = append(got, fmt.Sprint(c.Number, " ", c.Label()))
	}
	want := []string{"1 size 4k, depth 1", "2 size 4k, depth 8", "3 size 4k, depth 0.5", "4 size 64k, depth 1",
		"5 size 64k, depth 8", "6 size 64k, depth 0.5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	label, fits := experiment.Cells(grid)[1].Without(map[string]string{"depth": "8"})
	if label != "size 4k" || !fits {
		t.Errorf("%q, %t", label, fits)
	}
	if _, fits := experiment.Cells(grid)[1].Without(map[string]string{"depth": "1"}); fits {
		t.Error("a cell fits another level")
	}
}

// TestSequence: every cell once in every repeat, in order or mixed, the same for the same seed.
func TestSequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := &scenario.Experiment{Repeats: rapid.IntRange(1, 5).Draw(t, "repeats"),
			Seed:  int64(rapid.IntRange(0, 99).Draw(t, "seed")),
			Order: rapid.SampledFrom([]string{scenario.OrderRandomised, scenario.OrderInterleaved}).Draw(t, "order")}
		for i := range rapid.IntRange(1, 3).Draw(t, "factors") {
			f := scenario.Factor{Name: fmt.Sprint("f", i)}
			for l := range rapid.IntRange(2, 4).Draw(t, "levels") {
				f.Levels = append(f.Levels, int64(l))
			}
			x.Factors = append(x.Factors, f)
		}
		n := len(experiment.Cells(x))
		all := experiment.Sequence(x)
		if len(all) != x.Runs() || !cmp.Equal(all, experiment.Sequence(x)) {
			t.Fatalf("%d of %d runs, or another order the second time", len(all), x.Runs())
		}
		for i, p := range all {
			if p.Sequence != i+1 || p.Repeat != i/n+1 {
				t.Fatalf("run %d is %+v", i, p)
			}
			if x.Order == scenario.OrderInterleaved && p.Cell != i%n+1 {
				t.Fatalf("interleaved: run %d is of cell %d", i, p.Cell)
			}
		}
		for first := 0; first < len(all); first += n {
			seen := map[int]bool{}
			for _, p := range all[first : first+n] {
				seen[p.Cell] = true
			}
			if len(seen) != n {
				t.Fatalf("a repeat has %d of %d cells", len(seen), n)
			}
		}
	})
}

func record() experiment.Record {
	r := experiment.NewRecord("20260301-120000-made-0001", &scenario.Scenario{Name: "made", DisplayName: "Made",
		Experiment: grid})
	r.Settings = experiment.Settings{Target: "sim", TimeScale: 1, SizeScale: 1,
		Set: map[string]any{"iops": int64(400), "share": 0.5, "list": []any{int64(1), "a"}}}
	return r
}

func TestFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	f, err := experiment.Create(root, record(), fstest.MapFS{"test.yml": {Data: []byte("name: made\n")},
		"sub/a.fio": {Data: []byte("[a]\n")}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := experiment.Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Record(), again.Record()); diff != "" {
		t.Errorf("read back it differs: %s", diff)
	}
	if err := again.Lock(); !errors.Is(err, experiment.ErrBusy) {
		t.Errorf("locked twice: %v", err)
	}
	if _, err := os.ReadFile(filepath.Join(f.ScenarioDir(), "sub", "a.fio")); err != nil {
		t.Error(err)
	}
	for _, e := range []experiment.Event{
		{Sequence: 1, State: experiment.Started, RunID: "a"}, {Sequence: 1, State: experiment.Done, RunID: "a"},
		{Sequence: 2, State: experiment.Started, RunID: "b"}, {Sequence: 2, State: experiment.Failed, RunID: "b",
			Error: "no space"},
		{Sequence: 3, State: experiment.Started, RunID: "c"},
	} {
		if err := f.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	// The process dies while it writes, and the next one goes on.
	cells := filepath.Join(f.Dir(), "cells.jsonl")
	file, err := os.OpenFile(cells, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(`{"sequence":3,"sta`)
	}
	if err := errors.Join(err, file.Close(), f.Close(), again.Lock()); err != nil {
		t.Fatal(err)
	}
	check := func(f *experiment.Folder, done map[int]string, interrupted []string, failed map[int]string, left int) {
		t.Helper()
		p, err := f.Progress()
		if err != nil || !cmp.Equal(p.Done, done) || !cmp.Equal(p.Interrupted, interrupted) ||
			!cmp.Equal(p.Failed, failed) || len(p.Left) != left {
			t.Errorf("%v, %+v", err, p)
		}
	}
	check(again, map[int]string{1: "a"}, []string{"c"}, map[int]string{2: "no space"}, 11)
	for _, e := range []experiment.Event{
		{Sequence: 2, State: experiment.Started, RunID: "d"}, {Sequence: 2, State: experiment.Done, RunID: "d"},
		{Sequence: 3, State: experiment.Started, RunID: "e"}, {Sequence: 3, State: experiment.Done, RunID: "e"},
	} {
		if err := again.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	check(again, map[int]string{1: "a", 2: "d", 3: "e"}, []string{"c"}, map[int]string{}, 9)
	list, err := experiment.List(root)
	if err != nil || !cmp.Equal(list, []string{f.Dir()}) {
		t.Errorf("%v, %v", list, err)
	}
}

func TestFoldersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := experiment.Open(dir); err == nil {
		t.Error("an empty folder is an experiment")
	}
	for text, want := range map[string]string{"{": "damaged", `{"version":9}`: "format version 9"} {
		if err := os.WriteFile(filepath.Join(dir, "experiment.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := experiment.Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if list, err := experiment.List(filepath.Join(dir, "none")); err != nil || list != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestOfOlderBuild goes on with an experiment whose record does not say by how many turns it compares.
func TestOfOlderBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"version":%d,"settings":{"compare_plain":true}}`, experiment.FormatVersion)
	if err := os.WriteFile(filepath.Join(dir, "experiment.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := experiment.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Record().Settings; s.ComparePlain != 6 || s.OfOldPlain {
		t.Errorf("it compares by %d turns", s.ComparePlain)
	}
}

func ExampleSequence() {
	x := &scenario.Experiment{Repeats: 2, Order: scenario.OrderInterleaved,
		Factors: []scenario.Factor{{Name: "pages", Levels: []any{"none", "2M", "1G"}}}}
	cells := experiment.Cells(x)
	for _, p := range experiment.Sequence(x) {
		fmt.Println(p.Sequence, cells[p.Cell-1].Label(), "repeat", p.Repeat)
	}
	// Output:
	// 1 pages none repeat 1
	// 2 pages 2M repeat 1
	// 3 pages 1G repeat 1
	// 4 pages none repeat 2
	// 5 pages 2M repeat 2
	// 6 pages 1G repeat 2
}
