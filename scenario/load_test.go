package scenario_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/workloads/fio"
	"plimsoll/scenario"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

const corpus = "../../shared/corpus/xray"

const testID = 1700000000000

// corpusDirs lists the published scenarios; the test is skipped, saying so, where they are not at hand.
func corpusDirs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, "*", "test.yml"))
	if err != nil || len(files) == 0 {
		t.Skipf("0 published scenarios found under %s: skipped", corpus)
	}
	for i, f := range files {
		files[i] = filepath.Dir(f)
	}
	return files
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleLoad() {
	dir := fstest.MapFS{
		"test.yml": {Data: []byte(`name: quiet
display_name: Quiet
summary: Waits a little.
description: ""
estimated_runtime: 60
vars:
  minutes: {default: 1, max: 10}
vms: []
workloads: []
results: []
setup:
  - cluster.CleanUp: {}
run:
  - test.Wait:
      duration_secs: {{ minutes * 60 / 2 }}
  - test.Wiat: {}
`)},
	}
	_, diags := loadAll(dir, scenario.LoadOptions{Nodes: 4})
	for _, d := range diags {
		fmt.Println(d)
	}
	// Output: test.yml:16:5: error: run: unknown step "test.Wiat": did you mean "test.Wait"?
}

// TestCorpus loads every published scenario: no error in tolerant mode, and the facts and remarks that the goldens
// hold.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dirs := corpusDirs(t)
	if len(dirs) != 18 {
		t.Errorf("%d published scenarios, want 18", len(dirs))
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			opts := scenario.LoadOptions{Nodes: 4, ID: testID}
			sc, diags := loadAll(root.FS(), opts)
			var b strings.Builder
			if sc == nil {
				t.Errorf("refused: %v", diags)
			} else {
				facts(&b, sc)
			}
			b.WriteString("tolerant:\n")
			codes(&b, diags)
			opts.Strict = true
			_, diags = loadAll(root.FS(), opts)
			b.WriteString("strict:\n")
			codes(&b, diags)
			golden.Compare(t, filepath.Join("testdata", "corpus", scenario.Sanitise(name)+".txt"), []byte(b.String()))
		})
	}
}

// facts writes what was read, in our own terms and without the authors' texts.
func facts(b *strings.Builder, sc *scenario.Scenario) {
	fmt.Fprintf(b, "name %s, estimated %s, %d tags, teardown %t\n", sc.Name, sc.EstimatedRuntime, len(sc.Tags),
		sc.HasTeardown)
	for _, v := range sc.Vars {
		fmt.Fprintf(b, "var %s = %v (%s)\n", v.Name, v.Value, v.From)
	}
	for _, g := range sc.Groups[:min(len(sc.Groups), 8)] {
		placed, _ := g.Place(4)
		fmt.Fprintf(b, "group %s: %d VMs, nodes %q, %d vCPUs, %d MiB, %d disks of %d GiB, first on %v\n", g.Name,
			len(placed), g.Nodes.Text,
			g.CPUs, g.MemoryBytes>>20, len(g.DiskBytes), g.DiskBytes[0]>>30, placed[:min(4, len(placed))])
	}
	fmt.Fprintf(b, "%d groups, %d workloads, %d results\n", len(sc.Groups), len(sc.Workloads), len(sc.Results))
	for _, w := range sc.Workloads[:min(len(sc.Workloads), 8)] {
		fmt.Fprintf(b, "workload %s on %s: %s, every %s\n", w.Name, w.Group, w.ConfigFile, w.ReportingInterval)
	}
	for _, r := range sc.Results {
		fmt.Fprintf(b, "result %s %s %s%s %q mask %q step %s metrics %v bands", r.Kind, r.Type, r.Group, r.Metric,
			r.Aggregate, r.Mask, r.Step, r.Metrics)
		for _, band := range r.Bands {
			fmt.Fprintf(b, " %.3f..%.3f", band.Lower, band.Upper)
		}
		b.WriteString("\n")
	}
	for _, phase := range []struct {
		name  string
		steps []scenario.Step
	}{{"setup", sc.Setup}, {"run", sc.Run}, {"teardown", sc.Teardown}} {
		fmt.Fprintf(b, "%s: %d steps\n", phase.name, len(phase.steps))
		for _, s := range phase.steps[:min(len(phase.steps), 16)] {
			fmt.Fprintf(b, "  %d %s", s.Pos.Line, s.Name)
			for _, k := range slices.Sorted(maps.Keys(s.Args)) {
				fmt.Fprintf(b, " %s=%v", k, s.Args[k])
			}
			b.WriteString("\n")
		}
	}
}

// codes writes where and what the objections are, without their texts.
func codes(b *strings.Builder, diags []scenario.Diagnostic) {
	for _, d := range diags {
		fmt.Fprintf(b, "  %s %s %s\n", d.Pos, d.Severity, d.Code)
	}
}

// TestAppendixGroups checks the group sizes that the language reference gives for 4 nodes.
func TestAppendixGroups(t *testing.T) {
	t.Parallel()
	corpusDirs(t)
	for dir, want := range map[string]map[string]int{
		"oltp_simulator_small":         {"OLTP": 3},
		"database_colocation_standard": {"OLTP": 1, "DSS": 2},
		"hci_workflow_default":         {"OLTP": 1, "VDI": 300},
		"75-VM-Server-Virt":            {"SERVA": 225},
	} {
		sc, diags := loadAll(os.DirFS(filepath.Join(corpus, dir)), scenario.LoadOptions{Nodes: 4})
		if sc == nil {
			t.Fatalf("%s: %v", dir, diags)
		}
		got := map[string]int{}
		for _, g := range sc.Groups {
			for _, s := range sc.Setup {
				if s.Name == "vm_group.Grow" && s.Args.String("vm_group_name") == g.Name {
					g = g.Grown(s.Args)
				}
			}
			placed, err := g.Place(4)
			if err != nil {
				t.Fatal(err)
			}
			got[g.Name] = len(placed)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
	sc, _ := loadAll(os.DirFS(filepath.Join(corpus, "single-vm-scale")), scenario.LoadOptions{})
	total := 0
	for _, g := range sc.Groups {
		placed, _ := g.Place(4)
		total += len(placed)
	}
	if total != 193 {
		t.Errorf("single-vm-scale: %d VMs on 4 nodes, want 193", total)
	}
}

// TestBad loads every directory of testdata that ends in .bad, in both modes, and compares the objections.
func TestBad(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/*.bad")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no testdata/*.bad: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			var b strings.Builder
			for _, strict := range []bool{false, true} {
				sc, diags := loadAll(root.FS(), scenario.LoadOptions{Nodes: 4, Strict: strict, ID: testID})
				fmt.Fprintf(&b, "strict %t, loaded %t\n", strict, sc != nil)
				for _, d := range diags {
					fmt.Fprintf(&b, "%s [%s]\n", d, d.Code)
				}
				if len(diags) == 0 && strict {
					t.Error("nothing is found wrong with it")
				}
			}
			golden.Compare(t, filepath.Join("testdata", filepath.Base(dir)+".want"), []byte(b.String()))
		})
	}
}

// minimal is a scenario that is right; edits put one thing into it that is looked at.
const minimal = `name: minimal
display_name: Minimal
summary: A small one.
description: ""
estimated_runtime: 600
vars:
  n: {default: 4}
vms:
  - G:
      template: ubuntu1604
      count_per_node: 1
      data_disks: {count: 1, size: 8}
workloads:
  - W:
      vm_group: G
      config_file: w.fio
results: []
setup:
  - vm_group.CloneFromTemplate: {vm_group_name: G}
  - vm_group.PowerOn: {vm_group_name: G}
run:
  - workload.Start: {workload_name: W, runtime_secs: 10}
teardown:
  - cluster.CleanUp: {}
`

const job = "[global]\ntime_based\n[j]\nfilename=/dev/sdb\nsize=1g\nrw=randread\n"

func minimalFS(yml string) fstest.MapFS {
	return fstest.MapFS{"test.yml": {Data: []byte(yml)}, "w.fio": {Data: []byte(job)}}
}

func edit(t *testing.T, pairs ...string) fstest.MapFS {
	t.Helper()
	yml := minimal
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(yml, pairs[i]) {
			t.Fatalf("%q is not in the scenario", pairs[i])
		}
		yml = strings.Replace(yml, pairs[i], pairs[i+1], 1)
	}
	return minimalFS(yml)
}

func TestMinimalIsClean(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{0, 4} {
		sc, diags := loadAll(minimalFS(minimal), scenario.LoadOptions{Nodes: nodes, Strict: true})
		want := []scenario.Diagnostic{{Pos: scenario.Pos{File: "test.yml", Line: 7, Col: 3}, Severity: scenario.Warning,
			Code: "unused-variable", What: `variable "n" is never used`, Hint: "remove it"}}
		if diff := cmp.Diff(want, diags); diff != "" || sc == nil {
			t.Errorf("nodes %d (-want +got):\n%s", nodes, diff)
		}
	}
}

// TestVariables checks the choice of values, bounds, presets and options.
func TestVariables(t *testing.T) {
	t.Parallel()
	withVars := func(vars string) fs.FS {
		return edit(t, "  n: {default: 4}\n", vars, "runtime_secs: 10", "runtime_secs: 10, seed: \"{{ n }}\"")
	}
	for _, c := range []struct {
		name   string
		vars   string
		set    map[string]any
		preset string
		want   any
		from   string
		error  string
	}{
		{"default", "  n: {default: 4}\n", nil, "", int64(4), "default", ""},
		{"set", "  n: {default: 4}\n", map[string]any{"n": 5}, "", int64(5), "set", ""},
		{"set text", "  n: {default: 4}\n", map[string]any{"n": "x"}, "", "x", "set", ""},
		{"inclusive ends", "  n: {default: 4, min: 4, max: 4}\n", nil, "", int64(4), "default", ""},
		{"zero is a bound", "  n: {default: -1, min: 0}\n", nil, "", nil, "",
			`variable "n": the number -1 is below its minimum 0`},
		{"above", "  n: {default: 4, max: 9}\n", map[string]any{"n": 10}, "", nil, "",
			`the number 10 is above its maximum 9`},
		{"text passes min", "  n: {default: '5', min: 9}\n", nil, "", "5", "default", ""},
		{"text fails max", "  n: {default: '5', max: 9}\n", nil, "", nil, "", `a text is above every number`},
		{"null bounds are none", "  n: {default: 4, min: null, max: ~}\n", nil, "", int64(4), "default", ""},
		{"literal values", "  n: {default: \"{{ other }}\"}\n", nil, "", nil, "", `undefined name "other"`},
		{"options take the first of a list", "  n:\n    options: [a, b]\n    default: [b]\n", nil, "", "b", "default",
			""},
		{"options refuse others", "  n: {options: [a, b], default: c}\n", nil, "", nil, "", `is not among its options`},
		{"a list without options prints as one", "  n: {default: [a]}\n", nil, "", []any{"a"}, "default", ""},
		{"no default", "  n: {min: 4}\n", nil, "", nil, "", `variable "n" has no default`},
		{"not a mapping", "  n: 4\n", nil, "", nil, "", `variable "n" must be a mapping`},
		{"preset", "  n: {default: 4}\npresets:\n  big: {vars: {n: 9}}\n", nil, "big", int64(9), "preset big", ""},
		{"set wins over preset", "  n: {default: 4}\npresets:\n  big: {vars: {n: 9}}\n", map[string]any{"n": 7}, "big",
			int64(7), "set", ""},
		{"unknown preset", "  n: {default: 4}\npresets:\n  big: {vars: {n: 9}}\n", nil, "bug", nil, "",
			`unknown preset "bug": did you mean "big"?`},
		{"no presets", "  n: {default: 4}\n", nil, "big", nil, "", `the file has no presets`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc, diags := loadAll(withVars(c.vars), scenario.LoadOptions{Set: c.set, Preset: c.preset})
			if c.error != "" {
				if sc != nil || !strings.Contains(fmt.Sprint(diags), c.error) {
					t.Fatalf("got %v, want %q", diags, c.error)
				}
				return
			}
			if sc == nil {
				t.Fatalf("refused: %v", diags)
			}
			if diff := cmp.Diff(c.want, sc.Vars[0].Value); diff != "" || sc.Vars[0].From != c.from {
				t.Errorf("from %q (-want +got):\n%s", sc.Vars[0].From, diff)
			}
		})
	}
}

// TestUnknownVariable checks values given for variables that the file does not have, and values no template can print.
func TestUnknownVariable(t *testing.T) {
	t.Parallel()
	dir := edit(t, "runtime_secs: 10", "runtime_secs: {{ n }}")
	for _, strict := range []bool{false, true} {
		sc, diags := loadAll(dir, scenario.LoadOptions{Set: map[string]any{"N": 5}, Strict: strict})
		want := []scenario.Diagnostic{{Pos: scenario.Pos{File: "test.yml", Line: 6, Col: 1}, Severity: scenario.Error,
			Code: "unknown-set",
			What: `a value is set for "N", which the scenario does not declare`, Hint: `did you mean "n"?`}}
		if diff := cmp.Diff(want, diags); diff != "" || sc != nil {
			t.Errorf("strict %t (-want +got):\n%s", strict, diff)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if sc, diags := loadAll(dir, scenario.LoadOptions{Set: map[string]any{"n": v}}); sc != nil ||
			!strings.Contains(fmt.Sprint(diags), "not a finite number") {
			t.Errorf("%g: %v", v, diags)
		}
	}
}

// TestTolerances checks readings of values that published files rely on.
func TestTolerances(t *testing.T) {
	t.Parallel()
	load := func(t *testing.T, pairs ...string) *scenario.Scenario {
		sc, diags := loadAll(edit(t, pairs...), scenario.LoadOptions{Nodes: 4, ID: 7})
		if sc == nil {
			t.Fatalf("refused: %v", diags)
		}
		return sc
	}
	t.Run("float seconds", func(t *testing.T) {
		sc := load(t, "runtime_secs: 10", "runtime_secs: {{ 7200 / n }}, stagger_secs: 1.5")
		if got := sc.Run[0].Args.Seconds("runtime_secs"); got != 1800*time.Second {
			t.Errorf("runtime %s", got)
		}
		if got := sc.Run[0].Args.Seconds("stagger_secs"); got != 1500*time.Millisecond {
			t.Errorf("stagger %s", got)
		}
	})
	t.Run("step without arguments", func(t *testing.T) {
		if sc := load(t, "cluster.CleanUp: {}", "cluster.CleanUp:"); sc.Teardown[0].Args.Bool("annotate") {
			t.Error("annotate is not False")
		}
	})
	t.Run("runtime of 0 is none", func(t *testing.T) {
		if sc := load(t, "runtime_secs: 10", "runtime_secs: 0"); sc.Run[0].Args.Has("runtime_secs") {
			t.Error("runtime_secs is there")
		}
	})
	t.Run("numbers in quotes", func(t *testing.T) {
		sc := load(t, "results: []", "results:\n  - R:\n      vm_group: G\n      result_type: IOPS\n      "+
			"result_expected_value: \"4200\"\n      result_value_bands:\n        - {name: 95%, upper: \"4327.02\", "+
			"lower: 4072}")
		want := 4200.0
		if diff := cmp.Diff([]scenario.Result{{Name: "R", Title: "R", Kind: scenario.GroupResult, Type: "iops",
			Group: "G", Expected: &want, Metrics: []string{"NoScore"},
			Bands: []scenario.Band{{Name: "95%", Lower: 4072, Upper: 4327.02}}, Step: 5 * time.Second,
			Pos: scenario.Pos{File: "test.yml", Line: 18, Col: 5}}}, sc.Results); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("selectors keep their source text", func(t *testing.T) {
		for text, want := range map[string]string{"0": "0", "1,2": "1,2", ":n-1": ":n-1", `"1:"`: "1:", "1:3": "1:3",
			"all": "all"} {
			sc := load(t, "count_per_node: 1", "count_per_node: 1\n      nodes: "+text)
			if sc.Groups[0].Nodes.Text != want {
				t.Errorf("%s: %q", text, sc.Groups[0].Nodes.Text)
			}
		}
	})
	t.Run("defaults of a group", func(t *testing.T) {
		sc := load(t, "      count_per_node: 1\n      data_disks: {count: 1, size: 8}\n", "      data_disks: [8, 8]\n")
		want := scenario.Group{Name: "G", Template: "ubuntu1604", CPUs: 2, MemoryBytes: 2 << 30,
			DiskBytes: []int64{8 << 30, 8 << 30}, Nodes: scenario.Selector{Text: ":"},
			ExporterPorts: []int{9100}, Pos: scenario.Pos{File: "test.yml", Line: 9, Col: 5}}
		if diff := cmp.Diff([]scenario.Group{want}, sc.Groups); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("id", func(t *testing.T) {
		if sc := load(t); sc.ID != 7 {
			t.Errorf("id %d", sc.ID)
		}
		sc, _ := loadAll(minimalFS(minimal), scenario.LoadOptions{Now: time.UnixMilli(1700000000000)})
		if sc.ID != 1700000000000 {
			t.Errorf("id %d", sc.ID)
		}
		sc, _ = loadAll(minimalFS("id: 5\n"+minimal), scenario.LoadOptions{Now: time.UnixMilli(1700000000000)})
		if sc.ID != 5 {
			t.Errorf("id %d", sc.ID)
		}
	})
	t.Run("CRLF", func(t *testing.T) {
		if sc, diags := loadAll(minimalFS(strings.ReplaceAll(minimal, "\n", "\r\n")),
			scenario.LoadOptions{}); sc == nil {
			t.Errorf("refused: %v", diags)
		}
	})
	t.Run("migrate takes numbers in quotes", func(t *testing.T) {
		sc := load(t, "teardown:\n", "  - vm_group.MigrateGroup: {vm_group_name: G, from_node: \"-1\", to_node: "+
			"0}\nteardown:\n")
		if got := sc.Run[1].Args.Int("from_node"); got != -1 {
			t.Errorf("from_node %d", got)
		}
	})
}

// TestRenderedIsNoTemplate: what a template has printed is read again as it stands, braces and all.
func TestRenderedIsNoTemplate(t *testing.T) {
	t.Parallel()
	const text = `{{ nobody }} {% raw %} {# x #}`
	source := strings.ReplaceAll(minimal, "A small one.", `"`+strings.ReplaceAll(text, "{", "{{ '{' }}")+`"`)
	first, diags := scenario.Load(minimalFS(source), scenario.LoadOptions{})
	if first == nil || first.Summary != text {
		t.Fatal("not as written", diags)
	}
	again, diags := scenario.Load(minimalFS(string(first.Rendered)), scenario.LoadOptions{Rendered: true})
	if again == nil || again.Summary != text {
		t.Error("read again as a template", diags)
	}
}

func TestFindFile(t *testing.T) {
	t.Parallel()
	file := &fstest.MapFile{Data: []byte(minimal)}
	work := &fstest.MapFile{Data: []byte(job)}
	for _, c := range []struct {
		name string
		fsys fstest.MapFS
		file string
		want string // file, or the objection
	}{
		{"at the root", fstest.MapFS{"test.yml": file, "w.fio": work}, "", "test.yml"},
		{"below", fstest.MapFS{"a/b/test.yml": file, "a/b/w.fio": work, "x.txt": work}, "", "a/b/test.yml"},
		{"named", fstest.MapFS{"s.YAML": file, "w.fio": work, "a/test.yml": file}, "s.YAML", "s.YAML"},
		{"none", fstest.MapFS{"test.yaml": file}, "", "rename test.yaml"},
		{"two", fstest.MapFS{"a/test.yml": file, "b/test.yml": file}, "", "2 files named test.yml"},
		{"wrong name", fstest.MapFS{"s.json": file}, "s.json", "ends in .yml or .yaml"},
		{"absent", fstest.MapFS{}, "s.yml", "file does not exist"},
		{"a directory", fstest.MapFS{"s.yml/x": file}, "s.yml", "it is a directory"},
		{"UTF-16", fstest.MapFS{"test.yml": {Data: []byte("\xff\xfen\x00a\x00")}}, "",
			"test.yml:1:1: error: load: the file is UTF-16 text: save it as UTF-8"},
		{"UTF-16 without a mark", fstest.MapFS{"test.yml": {Data: []byte("n\x00a\x00:\x00")}}, "",
			"test.yml:1:2: error: load: the file is UTF-16 text"},
		{"UTF-16, large end first", fstest.MapFS{"test.yml": {Data: []byte("\x00n\x00a\x00:")}}, "",
			"test.yml:1:1: error: load: the file is UTF-16 text"},
		{"Latin-1", fstest.MapFS{"test.yml": {Data: []byte("a: 1\nname: Gr\xf6\xdfe\n")}}, "",
			"test.yml:2:9: error: load: the file is not UTF-8 text: byte 0xf6"},
		{"NUL", fstest.MapFS{"test.yml": {Data: []byte("a: 1\r\nname: ü\x00\n")}}, "",
			"test.yml:2:8: error: load: the file has the control character 0x00"},
		{"escape", fstest.MapFS{"test.yml": {Data: []byte("a: 1\nb: \x1b[1m\n")}}, "",
			"test.yml:2:4: error: load: the file has the control character 0x1b"},
		{"a mark of UTF-8", fstest.MapFS{"test.yml": {Data: []byte("\ufeff" + minimal)}, "w.fio": work}, "",
			"test.yml"},
		{"too large", fstest.MapFS{"test.yml": {Data: make([]byte, 5<<20)}}, "", "larger than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc, diags := loadAll(c.fsys, scenario.LoadOptions{File: c.file})
			if sc != nil && sc.File == c.want {
				return
			}
			if sc != nil || !strings.Contains(fmt.Sprint(diags), c.want) {
				t.Errorf("got %v, want %q", diags, c.want)
			}
		})
	}
}

// TestZip loads a scenario from an archive.
func TestZip(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, data := range map[string]string{"my scenario/test.yml": minimal, "my scenario/w.fio": job} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	sc, diags := loadAll(r, scenario.LoadOptions{})
	if sc == nil || sc.Workloads[0].ConfigFile != "my scenario/w.fio" || string(sc.Workloads[0].Config) != job {
		t.Errorf("got %v", diags)
	}
}

// TestLinks checks that a link cannot lead out of the directory, nor a ring of links for ever around.
func TestLinks(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	for name, data := range map[string]string{filepath.Join(outside, "w.fio"): job,
		filepath.Join(dir, "test.yml"): minimal} {
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"w.fio": filepath.Join(outside, "w.fio"), "ring": "."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	sc, diags := loadAll(root.FS(), scenario.LoadOptions{})
	if sc != nil || !strings.Contains(fmt.Sprint(diags), `workload "W": config_file "w.fio"`) {
		t.Errorf("got %v", diags)
	}
}

// TestPasswords checks that a password is at hand for the step and nowhere else.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ vars, written, rendered string }{
		"plain":    {"", "remote_pass: hunter2/4u}", "remote_pass: (redacted)}"},
		"quoted":   {"", `remote_pass: "hunter2/4u"}`, "remote_pass: (redacted)}"},
		"escaped":  {"", `remote_pass: "hunter2\x2f4u"}`, "remote_pass: (redacted)\n"},
		"variable": {"vars:\n  pw: {default: hunter2/4u}\n", "remote_pass: {{ pw }}}", "remote_pass: (redacted)}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := edit(t, "vars:\n  n: {default: 4}\n", c.vars,
				"teardown:\n",
				"  - playbook.Run: {filename: p.yml, inventory: [G], remote_user: root, "+c.written+"\nteardown:\n")
			dir["p.yml"] = &fstest.MapFile{Data: []byte("- hosts: all\n")}
			sc, diags := loadAll(dir, scenario.LoadOptions{})
			if sc == nil {
				t.Fatal(diags)
			}
			args := sc.Run[1].Args
			if args.Secret("remote_pass") != "hunter2/4u" {
				t.Errorf("the step gets %q", args.Secret("remote_pass"))
			}
			asJSON, err := json.Marshal(sc)
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range map[string]string{"json": string(asJSON),
				"printed": fmt.Sprintf("%v %+v %#v %s", args, args, args, args), "rendered": string(sc.Rendered)} {
				if strings.Contains(text, "hunter2") {
					t.Errorf("%s shows the password", where)
				}
			}
			if !bytes.Contains(sc.Rendered, []byte(c.rendered)) {
				t.Errorf("rendered:\n%s", sc.Rendered)
			}
		})
	}
}

func TestDiagnosticJSON(t *testing.T) {
	t.Parallel()
	d := scenario.Diagnostic{Pos: scenario.Pos{File: "test.yml", Line: 3, Col: 7}, Severity: scenario.Warning,
		Code: "grow", What: "w", Hint: "h"}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"file":"test.yml","line":3,"col":7,"severity":"warning","code":"grow","what":"w","hint":"h"}`
	if string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
	var back scenario.Diagnostic
	if err := json.Unmarshal(data, &back); err != nil || back != d {
		t.Errorf("read back %v, %v", back, err)
	}
	for want, d := range map[string]scenario.Diagnostic{
		"test.yml:3:7: warning: w: h": d, "test.yml:3: error: w": {Pos: scenario.Pos{File: "test.yml", Line: 3},
			Severity: scenario.Error, What: "w"},
		"a: note: w": {Pos: scenario.Pos{File: "a"}, Severity: scenario.Note, What: "w"},
		"error: w":   {Severity: scenario.Error, What: "w"},
	} {
		if d.String() != want {
			t.Errorf("got %q, want %q", d, want)
		}
	}
}

// TestNumbersAreBounded checks that the schema, which is made from the option tables, bounds every number at both ends.
// What a chart or an assert is held against may be any number; a duration is at most a hundred years wherever it is.
func TestNumbersAreBounded(t *testing.T) {
	t.Parallel()
	free := []string{"at_least", "at_most", "lower", "upper", "result_expected_value"}
	for owner, rows := range scenario.Tables() {
		for _, r := range rows {
			switch r.Type {
			case scenario.Int, scenario.IntText, scenario.Number, scenario.NumberText, scenario.IntList:
				if (r.Min == nil && r.Above == nil || r.Max == nil) && !slices.Contains(free, r.Name) {
					t.Errorf("%s: %s has no bound at one end", owner, r.Name)
				}
			}
		}
	}
}

// TestMergeKeys checks <<, which puts the entries of other mappings into one.
func TestMergeKeys(t *testing.T) {
	t.Parallel()
	sc, diags := loadAll(edit(t,
		"      template: ubuntu1604\n      count_per_node: 1\n      data_disks: {count: 1, size: 8}\n",
		`      &g
      template: ubuntu1604
      vcpus: 4
      data_disks: &disks {count: 1, size: 8}
  - H:
      <<: *g
      vcpus: 8
  - I:
      ram_mb: 512
      <<: [{ram_mb: 1024, exporter_ports: [1]}, *g, {vcpus: 1, nodes: "0"}]
      data_disks: {<<: *disks, size: 16}
`), scenario.LoadOptions{})
	if sc == nil {
		t.Fatal(diags)
	}
	var got []string
	for _, g := range sc.Groups {
		got = append(got, fmt.Sprintf("%s: %s, %d CPUs, %d MiB, %v, %v on %s", g.Name, g.Template, g.CPUs,
			g.MemoryBytes>>20, g.DiskBytes, g.ExporterPorts, g.Nodes.Text))
	}
	want := []string{
		"G: ubuntu1604, 4 CPUs, 2048 MiB, [8589934592], [9100] on :",
		"H: ubuntu1604, 8 CPUs, 2048 MiB, [8589934592], [9100] on :",
		"I: ubuntu1604, 4 CPUs, 512 MiB, [17179869184], [1] on 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, diags = loadAll(edit(t, "vm_group_name: G}", "vm_group_name: G, <<: 5}"), scenario.LoadOptions{})
	const merge = "test.yml:19:56: error: yaml: the merge key << takes a mapping or a list of mappings, not the number 5"
	if len(diags) != 1 || !strings.HasPrefix(diags[0].String(), merge) {
		t.Errorf("got %v, want %s", diags, merge)
	}
}

// TestTemplateInTheFile checks what templates bring into a file beyond values, and where objections to it are.
func TestTemplateInTheFile(t *testing.T) {
	t.Parallel()
	source := `{# a comment -#}
{% set names = ['A', 'B'] %}
`
	sc, diags := loadAll(edit(t, "name: minimal\n", source+"name: minimal\n", "  - G:\n", "  - G:\n", "run:\n", `run:
  {%- for name in names if n > 3 %}
  - test.Wait: {duration_secs: {{ [10, 20][loop.index0] | round(1) }}} {# {{ name }} #}
  {%- else %}
  - test.Wait: {}
  {%- endfor %}
`), scenario.LoadOptions{})
	if sc == nil {
		t.Fatal(diags)
	}
	got := []time.Duration{sc.Run[0].Args.Seconds("duration_secs"), sc.Run[1].Args.Seconds("duration_secs")}
	if diff := cmp.Diff([]time.Duration{10 * time.Second, 20 * time.Second}, got); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if at := sc.Run[1].Pos; at.Line != 25 || at.Col != 5 {
		t.Errorf("the second wait is at %s", at)
	}
	for source, want := range map[string]string{
		"runtime_secs: {{ 10 | rond }}": `test.yml:22:62: error: template: the filter |rond: not part of the scenario language: did you mean "round"?`,
		"{% include 'x' %}": "test.yml:22:43: error: template: {% include %}: not part of the scenario " +
			"language: write the text into this file",
		"runtime_secs: {{ n.x }}": `test.yml:22:59: error: template: the number 4 has no attribute "x"`,
	} {
		_, diags := loadAll(edit(t, "runtime_secs: 10", source), scenario.LoadOptions{})
		if len(diags) != 1 || diags[0].String() != want {
			t.Errorf("%s: got %v, want %s", source, diags, want)
		}
	}
}

// TestTables checks the option tables themselves.
func TestTables(t *testing.T) {
	t.Parallel()
	all := scenario.Steps()
	if len(all) != 42 {
		t.Errorf("%d steps, want 42", len(all))
	}
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.Name] || s.Doc == "" || !strings.Contains(s.Name, ".") {
			t.Errorf("step %q: repeated, without help, or without namespace", s.Name)
		}
		seen[s.Name] = true
		ok := slices.ContainsFunc(s.Args, func(a scenario.ArgSpec) bool { return a.Name == "annotate" })
		if ok == (s.Name == "experimental.WaitOplogEmpty") {
			t.Errorf("%s: annotate is %t", s.Name, ok)
		}
		for _, a := range s.Args {
			if a.Doc == "" || a.Required && a.Default != nil {
				t.Errorf("%s %s: without help, or required with a default", s.Name, a.Name)
			}
		}
	}
	codes := map[string]bool{}
	for _, c := range append(scenario.Codes(), fio.Engine{}.Codes()...) {
		if codes[c.Name] || c.Doc == "" || c.Strict == 0 || c.Tolerant != 0 && c.Strict > c.Tolerant {
			t.Errorf("code %+v: repeated, without help, or milder when strict", c)
		}
		codes[c.Name] = true
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	data, err := scenario.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/schema.json", append(data, '\n'))
}

func FuzzLoad(f *testing.F) {
	f.Add(minimal, job)
	f.Add("vars:\n  a: {default: 1}\nname: {{ a }}\n", "[j]\nsize=1%\n")
	f.Add("a: &a [*a]\n", "")
	f.Add("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: [*a, *b], <<: {}}\n---\n...\n", "")
	bad, _ := filepath.Glob("testdata/*.bad/test.yml")
	for _, name := range bad {
		if data, err := os.ReadFile(name); err == nil && len(data) < 1<<16 {
			f.Add(string(data), job)
		}
	}
	f.Fuzz(func(t *testing.T, yml, job string) {
		if strings.Count(yml, "range") > 2 {
			return // nested loops only spend the time of the fuzzer
		}
		dir := fstest.MapFS{"test.yml": {Data: []byte(yml)}, "w.fio": {Data: []byte(job)}}
		for _, strict := range []bool{false, true} {
			sc, diags := loadAll(dir, scenario.LoadOptions{Nodes: 3, Strict: strict})
			failed := slices.ContainsFunc(diags, func(d scenario.Diagnostic) bool {
				return d.Severity == scenario.Error
			})
			if failed == (sc != nil) {
				t.Fatalf("scenario %v with %v", sc, diags)
			}
			lines := strings.Count(strings.ReplaceAll(yml, "\r", "\n"), "\n") + 1
			for _, d := range diags {
				if d.What == "" || d.Code == "" || d.File == "test.yml" && d.Line > lines ||
					strings.Contains(d.What, "reader failed") {
					t.Fatalf("diagnostic %+v in %d lines", d, lines)
				}
			}
			if sc != nil {
				if _, err := json.Marshal(sc); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestLoadAllocations keeps the cost of the largest published scenario in bounds that do not depend on the machine.
func TestLoadAllocations(t *testing.T) {
	corpusDirs(t)
	fsys := os.DirFS(filepath.Join(corpus, "single-vm-scale"))
	got := testing.AllocsPerRun(3, func() { loadAll(fsys, scenario.LoadOptions{Nodes: 4, ID: testID}) })
	if got > 60_000 {
		t.Errorf("%.0f allocations, want at most 60,000", got)
	}
}

// BenchmarkLoad loads the published scenario with the most steps.
func BenchmarkLoad(b *testing.B) {
	dir := filepath.Join(corpus, "single-vm-scale")
	if _, err := os.Stat(dir); err != nil {
		b.Skip("the published scenarios are not at hand: skipped")
	}
	fsys := os.DirFS(dir)
	b.ReportAllocs()
	for b.Loop() {
		if sc, diags := loadAll(fsys, scenario.LoadOptions{Nodes: 4, ID: testID}); sc == nil {
			b.Fatal(diags)
		}
	}
}
