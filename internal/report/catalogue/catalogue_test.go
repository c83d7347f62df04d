package catalogue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/result"
)

// The published records are as many as are claimed, each from a source that is named, and none is there twice.
func TestPublished(t *testing.T) {
	from := map[string]bool{}
	for _, s := range Sources() {
		from[s.Name] = false
	}
	systems, ids := map[string]bool{}, map[string]bool{}
	for _, r := range Published() {
		if _, known := from[r.Source]; !known || r.System == "" || len(r.Done) == 0 || ids[r.Source+r.ID] {
			t.Errorf("record %q of %q, source %q", r.ID, r.System, r.Source)
		}
		from[r.Source], systems[r.System], ids[r.Source+r.ID] = true, true, true
		for _, d := range r.Done {
			if len(d.Loads) == 0 || len(d.Figures) == 0 {
				t.Errorf("%s: a load without conditions or figures: %+v", r.ID, d)
			}
			for _, l := range d.Loads {
				for name, v := range l {
					if v == "" {
						t.Errorf("%s: condition %q is not known", r.ID, name)
					}
				}
			}
			for _, f := range d.Figures {
				if !(f.Value > 0) || f.Unit == "" {
					t.Errorf("%s: %+v", r.ID, f)
				}
			}
		}
	}
	if n := len(Published()); n < 200 || len(systems) < 40 || len(from) < 5 {
		t.Errorf("%d records of %d systems from %d sources", n, len(systems), len(from))
	}
	for s, used := range from {
		if !used {
			t.Errorf("source %q has no record", s)
		}
	}
}

// block is a workload of one stream, as fast as it can.
func block(change func(*result.Stream)) result.Workload {
	l := result.Stream{Name: "job", Depth: 8, Reads: true, Direct: true, Random: 1, ReadShare: 1, ReadBytes: 4096,
		Bytes: 1 << 30}
	if change != nil {
		change(&l)
	}
	return result.Workload{Name: "job", Engine: "fio", Tool: "fio-3.33", Streams: []result.Stream{l},
		Operations: []result.Operation{{Name: "read"}}, Ops: []result.OpTotals{{Op: "read"}}}
}

var manifest = result.Manifest{Target: "local", TimeScale: 1, SizeScale: 1, Nodes: make([]result.Node, 1),
	Scenario: result.ScenarioInfo{Name: "own_job"}}

// A load matches none that differs from it in any condition, drawn at random, nor one of which a condition is unknown.
func TestUnlikeIsNeverMatched(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 10))
	changes := []func(*result.Stream){
		func(l *result.Stream) { l.Depth *= 2 },
		func(l *result.Stream) { l.ReadBytes = 8192 },
		func(l *result.Stream) { l.Random = 0 },
		func(l *result.Stream) { l.Random = .5 },
		func(l *result.Stream) { l.Direct = false },
		func(l *result.Stream) { l.Bytes *= 16 },
		func(l *result.Stream) { l.Bytes = 0 },
		func(l *result.Stream) { l.Rate = 500 },
		func(l *result.Stream) { l.OpenLoop = true },
		func(l *result.Stream) { l.ZeroData = true },
		func(l *result.Stream) { l.Pauses = true },
		func(l *result.Stream) { l.Writes, l.ReadShare, l.WriteBytes = true, .7, 4096 },
		func(l *result.Stream) { l.Reads, l.Writes, l.WriteBytes = false, true, 4096 },
		func(l *result.Stream) { l.Skew = result.Skew{Kind: "zipf"} },
	}
	scenario := []func(*result.Manifest){
		func(m *result.Manifest) { m.TimeScale = .5 },
		func(m *result.Manifest) { m.SizeScale = .5 },
		func(m *result.Manifest) { m.Scenario.Name = "other" },
		func(m *result.Manifest) { m.Nodes = make([]result.Node, 4) },
		func(m *result.Manifest) { m.Scenario.Vars = []result.Var{{Name: "runtime_secs", Value: "7"}} },
	}
	made := func(m result.Manifest, w result.Workload, machines int, version string) Record {
		return Record{ID: fmt.Sprint(random.Uint64()), System: "another", Simulated: m.Simulated,
			Done: []Done{{LoadsOf(m, w, machines, version), []Figure{{Name: "read", Unit: "ops/s", Value: 100}}}}}
	}
	own := made(manifest, block(nil), 1, "v")
	if b := Set(own, []string{"job"}, []Record{made(manifest, block(nil), 1, "v")}); len(b) != 1 || b[0].Systems != 1 {
		t.Fatalf("what is alike is not found: %+v", b)
	}
	for i := range 200 {
		m, machines, version := manifest, 1, "v"
		scenario[random.IntN(len(scenario))](&m) // else the text of the scenario would be alike
		what := random.IntN(len(changes) + 2)
		w := block(nil)
		switch what {
		case len(changes):
			machines = 3
		case len(changes) + 1:
			m.Simulated = true
		default:
			w = block(changes[what])
		}
		if b := Set(own, []string{"job"}, []Record{made(m, w, machines, version)}); len(b) != 0 {
			t.Errorf("try %d, change %d: matched by %s", i, what, b[0].Alike)
		}
	}
}

// The mark of a search stands beside those that asked the same of the same, and beside no other.
func TestMarkOfUnlikeSearches(t *testing.T) {
	type search struct {
		m                                    result.Manifest
		workload, varied, condition, version string
		limits                               []string
	}
	made := func(change func(*search)) Record {
		s := search{manifest, "OLTP", "rate", "", "v", []string{"OLTP read p99 < 5ms", "OLTP errors = 0"}}
		change(&s)
		r := Record{ID: "id", System: "another", Simulated: s.m.Simulated}
		if l := MarkOf(s.m, s.workload, s.varied, s.limits, s.condition, s.version); l != nil {
			r.Done = []Done{{[]Load{l}, []Figure{{Name: Mark, Unit: "IOPS", Value: 100}}}}
		}
		return r
	}
	own := made(func(*search) {})
	own.ID = "own"
	for name, c := range map[string]struct {
		like   int
		change func(*search)
	}{
		"nothing":         {1, func(*search) {}},
		"order of limits": {1, func(s *search) { slices.Reverse(s.limits) }},
		"a limit":         {0, func(s *search) { s.limits[0] = "OLTP read p99 < 6ms" }},
		"fewer limits":    {0, func(s *search) { s.limits = s.limits[:1] }},
		"condition":       {0, func(s *search) { s.condition = "node-lost" }},
		"workload":        {0, func(s *search) { s.workload = "DSS" }},
		"what is varied":  {0, func(s *search) { s.varied = "vms" }},
		"scenario":        {0, func(s *search) { s.m.Scenario.Name = "other" }},
		"its text":        {0, func(s *search) { s.version = "w" }},
		"text not known":  {0, func(s *search) { s.version = "" }},
		"a variable":      {0, func(s *search) { s.m.Scenario.Vars = []result.Var{{Name: "depth", Value: "7"}} }},
		"nodes":           {0, func(s *search) { s.m.Nodes = make([]result.Node, 4) }},
		"time scale":      {0, func(s *search) { s.m.TimeScale = .5 }},
		"size scale":      {0, func(s *search) { s.m.SizeScale = .5 }},
		"simulation":      {0, func(s *search) { s.m.Simulated = true }},
		"an import":       {0, func(s *search) { s.m.Target = result.ImportTarget }},
	} {
		if b := Set(own, []string{"OLTP"}, []Record{made(c.change)}); len(b) != c.like {
			t.Errorf("%s: matched by %d, want %d", name, len(b), c.like)
		}
	}
	run := Record{ID: "run", System: "another", Done: []Done{{LoadsOf(manifest, block(nil), 1, "v"),
		[]Figure{{Name: Mark, Unit: "IOPS", Value: 1}}}}}
	if b := Set(own, []string{"OLTP"}, []Record{run}); len(b) != 0 {
		t.Errorf("a run is beside a mark: %+v", b)
	}
}

// Where a run stands: against values that were sorted and counted by hand.
func TestStanding(t *testing.T) {
	load := Load{"load": "x"}
	of := func(system, id string, day int, iops, p99 float64) Record {
		return Record{
			ID:     id,
			System: system,
			Date:   time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC),
			Done: []Done{{[]Load{load},
				[]Figure{{Name: "read", Unit: "ops/s", Value: iops, Better: result.Higher},
					{Name: "p99", Unit: "s", Value: p99, Better: result.Lower}}}},
		}
	}
	own := of("ours", "0", 9, 250, .002)
	b := Set(own, []string{"job"}, []Record{own, of("a", "1", 1, 100, .001), of("b", "2", 1, 999, .009),
		of("b", "3", 2, 300, .003), of("c", "4", 1, 200, .004), of("d", "5", 1, 400, .005)})
	if len(b) != 1 || b[0].Systems != 4 {
		t.Fatalf("%+v", b)
	}
	want := []Standing{
		{Figure: own.Done[0].Figures[0], Least: 100, Median: 250, Most: 400, N: 4, Above: 2, Rank: 3},
		{Figure: own.Done[0].Figures[1], Least: .001, Median: .0035, Most: .005, N: 4, Above: 3, Rank: 2},
	}
	if !slices.Equal(b[0].Figures, want) {
		t.Errorf("%+v", b[0].Figures)
	}
	for name, kept := range map[string]int{OfferedShare: 2, "windows rate": 0} { // changes are ratios, too
		s := standing(Figure{Name: name, Unit: "ratio", Value: 1}, []float64{.5, .995, 1})
		if s.Kept != kept {
			t.Errorf("%s: %d kept it, want %d", name, s.Kept, kept)
		}
	}
	said := b[0].Say(2, func(v float64, unit string) string { return fmt.Sprint(v, " ", unit) })
	if want := "job beside 4 recorded systems that did the same: read 250 ops/s, the others 100 ops/s to 400 ops/s, median " +
		"250 ops/s (place 3 of 5); p99 0.002 s, the others 0.001 s to 0.005 s, median 0.0035 s (place 2 of 5)."; said != want {
		t.Errorf("%s", said)
	}
}

// What is added is read again; another's file that is damaged is named and hides no other.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", result.CatalogueDir)
	if list, problems := Read(dir); list != nil || problems != nil {
		t.Errorf("of no folder: %v, %v", list, problems)
	}
	r := Record{ID: "20261127-000000-x-0001", System: "ours", Source: "root", Date: time.Unix(1, 0).UTC(),
		Done: []Done{{[]Load{{"load": "x", "a": "b"}}, []Figure{{Name: "n", Unit: "s", Value: 2}}}}}
	path, err := Add(dir, r, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut.json": `{"id": "1"`, "new.json": `{"version": 9, "id": "1", "system": "s"}`,
		"other.json": `[]`, "notes.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, problems := Read(dir)
	if len(list) != 1 || list[0].System != r.System || !maps.Equal(list[0].Done[0].Loads[0], r.Done[0].Loads[0]) {
		t.Errorf("%+v", list)
	}
	var text []string
	for _, p := range problems {
		text = append(text, p.Error())
	}
	all := strings.Join(text, "\n")
	if len(problems) != 3 || !strings.Contains(all, "cut.json") || !strings.Contains(all, "use a newer plimsoll") {
		t.Errorf("%s", all)
	}
	if filepath.Base(path) != r.ID+".json" || filepath.Base(fileName("../../etc/x")) != fileName("../../etc/x") {
		t.Errorf("files %s, %s", path, fileName("../../etc/x"))
	}
}

// A link that is named as a record would be is not followed out of the folder; a record of the same run is replaced.
func TestLinkInThePlaceOfARecord(t *testing.T) {
	dir, r := t.TempDir(), Record{ID: "1", System: "ours"}
	outside := filepath.Join(t.TempDir(), "precious")
	for text, write := range map[string]bool{"kept": true, "": false} { // to a file, and to none yet
		if err := os.RemoveAll(outside); err != nil {
			t.Fatal(err)
		}
		if write {
			if err := os.WriteFile(outside, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, fileName(r.ID))
		if err := os.Symlink(outside, link); err != nil {
			t.Fatal(err)
		}
		_, err := Add(dir, r, false)
		got, _ := os.ReadFile(outside)
		if err == nil || !strings.Contains(err.Error(), "is a link") || string(got) != text {
			t.Errorf("%v; it holds %q", err, got)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := Add(dir, r, false); err != nil {
			t.Error(err)
		}
	}
}

// Sizes of an extent: the ranges meet, and each has the sizes within a factor of two of its middle.
func TestExtent(t *testing.T) {
	for bytes, want := range map[int64]string{0: "", 1 << 30: "512 MiB to 2 GiB", 700 << 20: "512 MiB to 2 GiB",
		3 << 30: "2 GiB to 8 GiB", 100 << 20: "32 MiB to 128 MiB", 7500e9: "2 TiB to 8 TiB"} {
		if got := Extent(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}
