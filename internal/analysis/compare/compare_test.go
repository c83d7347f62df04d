package compare_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/analysis/compare"
	"plimsoll/internal/testkit/comparetest"
	"plimsoll/result"
)

var steady = comparetest.Law{Rate: 40, Mean: 0.002, Noise: 0.1, Dependence: 0.5, Seconds: 150}

func side(name string, r *rand.Rand, first, n int, law comparetest.Law) compare.Side {
	s := compare.Side{Name: name}
	for i := range n {
		s.Runs = append(s.Runs, compare.Run{Manifest: comparetest.Manifest(first + i), Data: comparetest.Data(r, law)})
	}
	return s
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func TestUnlikeSidesAreRefused(t *testing.T) {
	t.Parallel()
	fact := func(group, name, value string) func(*compare.Run) {
		return func(r *compare.Run) {
			r.Manifest.Environment = slices.Clone(r.Manifest.Environment)
			i := slices.IndexFunc(r.Manifest.Environment, func(f result.Fact) bool {
				return f.Group == group && f.Name == name
			})
			r.Manifest.Environment[i].Value = value
		}
	}
	stream := func(change func(*result.Stream)) func(*compare.Run) {
		return func(r *compare.Run) { change(&r.Data.Workloads[0].Streams[0]) }
	}
	for name, c := range map[string]struct {
		change  func(*compare.Run)
		refused string // part of the message; "" when it is only noted
		noted   string
	}{
		"alike": {change: func(*compare.Run) {}},
		"kernel": {change: fact("host", "kernel", "6.9.1"),
			refused: `host kernel: A has "6.1.0", B has "6.9.1"`},
		"firmware":         {change: fact("host", "firmware", "F8"), refused: `host firmware: A has "F7", B has "F8"`},
		"kernel not known": {change: fact("host", "kernel", ""), noted: "host kernel"},
		"governor":         {change: fact("cpu", "governor", "powersave"), noted: "cpu governor"},
		"fio": {change: func(r *compare.Run) {
			r.Data.Workloads[0].Tool = "fio-3.28"
		}, refused: `tool of OLTP: A has "fio-3.36", B has "fio-3.28"`},
		"scenario": {change: func(r *compare.Run) {
			r.Manifest.Scenario.Name = "other"
		}, refused: `scenario: A has "made", B has "other"`},
		"variable": {change: func(r *compare.Run) {
			r.Manifest.Scenario.Vars = []result.Var{{Name: "iops", Value: "800"}}
		},
			refused: `variable iops: A has "400", B has "800"`},
		"time scale": {change: func(r *compare.Run) {
			r.Manifest.TimeScale = 0.1
		}, refused: `time scale: A has "1", B has "0.1"`},
		"size scale": {change: func(r *compare.Run) {
			r.Manifest.SizeScale = 0.5
		}, refused: `size scale: A has "1", B has "0.5"`},
		"target option": {change: func(r *compare.Run) {
			r.Manifest.Options = map[string]string{"sockets": "2"}
		}, noted: "target option sockets"},
		"nodes": {change: func(r *compare.Run) { r.Manifest.Nodes = nil }, refused: `nodes: A has "1", B has "0"`},
		"depth": {change: stream(func(l *result.Stream) {
			l.Depth = 16
		}), refused: `jobs of OLTP: A has "depth 8 reads", B has "depth 16 reads"`},
		"content": {change: stream(func(l *result.Stream) {
			l.ZeroData = true
		}), refused: `content of OLTP: A has "data", B has "zeros"`},
		"working set": {change: func(r *compare.Run) { r.Data.VMs[0].MemoryBytes *= 4 },
			refused: `working set to memory of OLTP: A has "2", B has "0.5"`},
		"prefill": {change: func(r *compare.Run) {
			w := r.Data.Workloads[0]
			w.Prefill, w.Phase, w.Name = true, "setup", "OLTP_prefill"
			r.Data.Workloads = append(r.Data.Workloads, w)
		}, refused: `prefill of DB: A has "none", B has "8 GiB"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := random(1)
			a, b := side("A", r, 1, 1, steady), side("B", r, 2, 1, steady)
			c.change(&b.Runs[0])
			d, err := compare.Of([]compare.Side{a, b}, compare.Options{})
			var refusal *compare.Refusal
			switch refused := errors.As(err, &refusal); {
			case c.refused == "" && err != nil:
				t.Fatal(err)
			case c.refused != "" && (!refused || !strings.Contains(err.Error(), c.refused)):
				t.Fatalf("%v\nwant a refusal with %s", err, c.refused)
			}
			if c.noted != "" && !slices.ContainsFunc(d.Unlike, func(f compare.Fact) bool {
				return f.Name == c.noted && !f.Refuses
			}) {
				t.Errorf("%s is not noted: %+v", c.noted, d.Unlike)
			}
			if c.refused == "" {
				return
			}
			d, err = compare.Of([]compare.Side{a, b}, compare.Options{Anyway: true})
			if err != nil || !strings.HasPrefix(d.Marked, "COMPARED ANYWAY") || len(d.Measures) == 0 {
				t.Errorf("anyway: %v, marked %q", err, d.Marked)
			}
			fact, _, _ := strings.Cut(c.refused, ":")
			if d, err = compare.Of([]compare.Side{a, b}, compare.Options{Vary: []string{fact}}); err != nil ||
				d.Marked != "" {
				t.Errorf("varied on purpose: %v, marked %q", err, d.Marked)
			}
		})
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	a := side("A", random(1), 1, 1, steady)
	for want, c := range map[string]struct {
		sides []compare.Side
		o     compare.Options
	}{
		"two sides are needed":  {sides: []compare.Side{a}},
		`two sides are called`:  {sides: []compare.Side{a, a}},
		"no runs":               {sides: []compare.Side{a, {Name: "B"}}},
		"nothing was collected": {sides: []compare.Side{a, {Name: "B", Runs: []compare.Run{{}}}}},
		"confidence 2":          {sides: []compare.Side{a, a}, o: compare.Options{Confidence: 2}},
		"threshold 1":           {sides: []compare.Side{a, a}, o: compare.Options{Threshold: 1}},
		`no fact called "moon"`: {sides: []compare.Side{a, side("B", random(1), 2, 1, steady)},
			o: compare.Options{Vary: []string{"moon"}}},
	} {
		if _, err := compare.Of(c.sides, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func measure(t *testing.T, d *compare.Document, name string) compare.Measure {
	t.Helper()
	i := slices.IndexFunc(d.Measures, func(m compare.Measure) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("no measure %q", name)
	}
	return d.Measures[i]
}

// TestKnownEffect: a candidate that is 20 % quicker and does 10 % more, in five runs a side with 1 % between runs.
func TestKnownEffect(t *testing.T) {
	t.Parallel()
	law := steady
	law.Spread, law.Seconds = 0.01, 60
	better := law
	better.Rate, better.Mean = law.Rate*1.1, law.Mean*0.8
	r := random(3)
	d, err := compare.Of([]compare.Side{side("A", r, 1, 5, law), side("B", r, 6, 5, better)}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]float64{"read IOPS": 0.1, "read mean service time": -0.2,
		"read p50 service time": -0.2, "read p99 service time": -0.2} {
		m := measure(t, d, name)
		if !m.Adjusted.Contains(change) || m.Verdict != compare.Better || m.Scope != compare.BetweenRuns {
			t.Errorf("%s: %s, %s, %s; want better by %g", name, m.Adjusted, m.Verdict, m.Scope, change)
		}
		if m.Adjusted.High-m.Adjusted.Low < m.Interval.High-m.Interval.Low {
			t.Errorf("%s: the adjusted interval %s is narrower than %s", name, m.Adjusted, m.Interval)
		}
	}
	if d.Verdict != compare.Better {
		t.Errorf("verdict %s: %s", d.Verdict, d.Sentence)
	}
	if len(d.Order) != 1 || d.Order[0].Confounded < 0.5 || !slices.ContainsFunc(d.Notes, func(n string) bool {
		return strings.Contains(n, "Mix the order")
	}) {
		t.Errorf("all of A came before all of B, and nobody says so: %+v %v", d.Order, d.Notes)
	}
}

func TestHyperThreadsAreToldFromCores(t *testing.T) {
	t.Parallel()
	r := random(4)
	a, b := side("cloud", r, 1, 1, steady), side("own", r, 2, 1, steady)
	b.Runs[0].Manifest.Environment[2].Number = 1 // SMT off: a vCPU is a core
	d, err := compare.Of([]compare.Side{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		VCPU     string
		Physical float64
		Factor   float64 // per physical core over per vCPU
	}
	var got []row
	for _, n := range d.Normalised {
		got = append(got, row{n.VCPU, *n.PhysicalCores, *n.PerPhysicalCore / *n.PerVCPU})
	}
	if diff := cmp.Diff([]row{{"a hyper-thread", 2, 2}, {"a core", 4, 1}}, got); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(d.Notes, func(n string) bool {
		return strings.Contains(n, "hyper-thread on one side and a whole core on the other")
	}) {
		t.Errorf("not said: %q", d.Notes)
	}
}

// TestCoresAsDeclared: what the user says of servers goes before what runs know; a server that is known by its address
// has unknown processors, and that is said.
func TestCoresAsDeclared(t *testing.T) {
	t.Parallel()
	r := random(4)
	a, b := side("cloud", r, 1, 1, steady), side("own", r, 2, 1, steady)
	for _, s := range []compare.Side{a, b} {
		s.Runs[0].Data.Series = append(s.Runs[0].Data.Series, result.Series{Measure: result.DatabaseTransactions,
			Machine: "db.example:5432", Unit: "ops/s"})
	}
	read := func(text string) compare.Cores {
		c, err := compare.ReadCores(text)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	d, err := compare.Of([]compare.Side{a, b}, compare.Options{Cores: []compare.Cores{read("4/8"), read("8")}})
	if err != nil {
		t.Fatal(err)
	}
	var got [][3]any
	for _, n := range d.Normalised {
		got = append(got, [3]any{n.Of, n.VCPU, *n.PhysicalCores})
	}
	if diff := cmp.Diff([][3]any{{"declared", "a hyper-thread", 4.0}, {"declared", "a core", 8.0}}, got); diff != "" {
		t.Error(diff)
	}
	notes := strings.Join(d.Notes, "\n")
	if !strings.Contains(notes, "per vCPU 1.01 times (8 and 8), per physical core 0.506 times (8 and 4)") {
		t.Errorf("not said: %q", d.Notes)
	}
	if d, err = compare.Of([]compare.Side{a, b}, compare.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range d.Normalised {
		if n.Of != "" || n.VCPUs != 0 || n.PerVCPU != nil {
			t.Errorf("the server's processors are made up: %+v", n)
		}
	}
	if !strings.Contains(strings.Join(d.Notes, "\n"), "not known (db.example:5432)") {
		t.Errorf("not said: %q", d.Notes)
	}
	for _, bad := range []string{"", "0", "8/", "-1", "8/4", "a", "/", "1.5"} {
		if c, err := compare.ReadCores(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, c)
		}
	}
}

// TestPartsOfARunAreNoDependence: a step between windows, as a neighbour's start makes, must not widen the interval of
// a mean; nor must one that both runs have at the same time, without windows. A step of one run alone does.
func TestPartsOfARunAreNoDependence(t *testing.T) {
	t.Parallel()
	make := func(windows bool, stepped int) compare.Measure {
		r := random(5)
		sides := []compare.Side{side("A", r, 1, 1, steady), side("B", r, 2, 1, steady)}
		for _, s := range sides[:stepped] {
			d := s.Runs[0].Data
			half := len(d.Series[0].Values) / 2
			for i := half; i < 2*half; i++ {
				*d.Series[0].Values[i] *= 0.5
			}
			if windows {
				middle := comparetest.Start.Add(d.End.Sub(d.Start) / 2)
				d.Workloads[0].Windows = []result.Window{{Name: "alone", Start: d.Start, End: middle},
					{Name: "together", Start: middle, End: d.End}}
			}
		}
		d, err := compare.Of(sides, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return measure(t, d, "read IOPS")
	}
	with, without, one := make(true, 2), make(false, 2), make(false, 1)
	if !with.Interval.Valid() || with.Interval.High-with.Interval.Low > 0.12 {
		t.Errorf("with windows: %s", with.Interval)
	}
	if !without.Interval.Valid() || without.Interval.High-without.Interval.Low > 0.2 {
		t.Errorf("the same step on both sides: %s", without.Interval)
	}
	if one.Interval.Valid() && one.Interval.High-one.Interval.Low < 2*(with.Interval.High-with.Interval.Low) {
		t.Errorf("a step on one side counts as dependence, but %s is hardly wider than %s", one.Interval, with.Interval)
	}
}

func TestDamagedData(t *testing.T) {
	t.Parallel()
	r := random(6)
	nan := math.NaN()
	for name, change := range map[string]func(*result.Data){
		"nothing":      func(d *result.Data) { *d = result.Data{} },
		"gaps":         func(d *result.Data) { clear(d.Series[0].Values) },
		"not a number": func(d *result.Data) { d.Series[0].Values[3] = &nan },
		"no length":    func(d *result.Data) { d.Workloads[0].End = d.Workloads[0].Start },
		"no histogram": func(d *result.Data) { d.Workloads[0].Ops[0].Hist = nil },
		"no course":    func(d *result.Data) { d.Workloads[0].Ops[0].OverTime = nil },
		"short course": func(d *result.Data) { d.Workloads[0].Ops[0].OverTime.Slower[0].Counts = nil },
		"empty course": func(d *result.Data) { clear(d.Workloads[0].Ops[0].OverTime.Counts) },
		"more slower than all": func(d *result.Data) {
			for i := range d.Workloads[0].Ops[0].OverTime.Slower[0].Counts {
				d.Workloads[0].Ops[0].OverTime.Slower[0].Counts[i] = math.MaxUint64
			}
		},
		"zero step": func(d *result.Data) { d.Series[0].Step = 0 },
	} {
		a, b := side("A", r, 1, 1, steady), side("B", r, 2, 1, steady)
		change(b.Runs[0].Data)
		d, err := compare.Of([]compare.Side{a, b}, compare.Options{Anyway: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := json.Marshal(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkCompare compares two runs of 1,000 series of an hour at one second each.
func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		law := comparetest.Law{Rate: 20, Mean: 0.002, Noise: 0.1, Dependence: 0.5, Seconds: 3600, Series: n}
		r := random(7)
		sides := []compare.Side{side("A", r, 1, 1, law), side("B", r, 2, 1, law)}
		b.Run(map[int]string{10: "10", 100: "100", 1000: "1000"}[n]+"_series", func(b *testing.B) {
			for b.Loop() {
				d, err := compare.Of(sides, compare.Options{})
				if err != nil || len(d.Series) != n+2 {
					b.Fatalf("%v, %d series compared", err, len(d.Series))
				}
			}
		})
	}
}

// A run of a few seconds does not show how its operations depend on each other: a single one has no interval, and only
// what changed grossly is told, with what is certain of it and what is not.
func TestShortSingleRunsTellGrossChangesOnly(t *testing.T) {
	r := random(11)
	law := comparetest.Law{Rate: 400, Mean: 0.002, Noise: 0.1, Seconds: 6}
	for factor, want := range map[float64]compare.Verdict{1: compare.Inconclusive, 1.4: compare.Inconclusive,
		5: compare.Worse, 0.15: compare.Better} {
		other := law
		other.Mean *= factor
		d, err := compare.Of([]compare.Side{side("A", r, 1, 1, law), side("B", r, 2, 1, other)}, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, m := range d.Measures {
			want := want
			if m.Name == "read IOPS" {
				want = compare.Inconclusive
			}
			if strings.Contains(m.Name, "p99.9") || m.Result {
				continue // two operations lie beyond it
			}
			said := slices.ContainsFunc(m.Warnings,
				func(w string) bool { return strings.Contains(w, "Not certain: how much") })
			if m.Verdict != want || m.Interval.Valid() || said != (want != compare.Inconclusive) {
				t.Errorf("×%g: %s: %s, want %s, %+v, %q", factor, m.Name, m.Verdict, want, m.Interval, m.Warnings)
			}
			if strings.Contains(m.Name, " p") {
				seen++
			}
		}
		if seen == 0 {
			t.Error("no percentile was compared")
		}
	}
}

// A run collected before it was kept how slow operations lie in time gives no interval of a percentile, and says what
// to do; its rates have one.
func TestPercentilesWithoutOverTime(t *testing.T) {
	t.Parallel()
	r := random(12)
	a, b := side("A", r, 1, 1, steady), side("B", r, 2, 1, steady)
	b.Runs[0].Data.Workloads[0].Ops[0].OverTime = nil
	d, err := compare.Of([]compare.Side{a, b}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := measure(t, d, "read p99 service time"); m.Interval.Valid() || m.Verdict != compare.Inconclusive ||
		m.Change == nil ||
		!strings.Contains(m.Interval.Reason, "report RUN --again") {
		t.Errorf("%+v", m)
	}
	if m := measure(t, d, "read IOPS"); !m.Interval.Valid() {
		t.Errorf("%+v", m)
	}
}
