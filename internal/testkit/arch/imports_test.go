package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

func matches(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, dir); return ok })
}

func TestImportsPointAsTheArchitectureSays(t *testing.T) {
	rooms := house(t)
	for _, p := range packages(t) {
		from := room(p.dir)
		allowed, ok := rooms[from]
		if !ok {
			t.Errorf("%s is in no room of docs/architecture.md: move it into one, or give %s a row", p.dir, from)
			continue
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				ours, ok := strings.CutPrefix(imported, module)
				if to := room(ours); ok && to != from && !slices.Contains(allowed, to) {
					t.Errorf("%s imports %s: %s may import only %v, so that effects stay left of the run folder, "+
						"contracts never know their implementations and nothing ships what is for tests", f.name, ours,
						from, allowed)
				}
			}
		}
	}
}

// leaves are the rooms with a folder for each driver, and what several drivers of a room share.
var (
	leaves = []string{"internal/targets", "internal/workloads", "internal/exporters"}
	shared = []string{
		"internal/targets/underneath",
		"internal/targets/fleet",      // machines that are made for a run
		"internal/targets/ssh/remote", // guests of the lab are reached as hosts are
		"internal/workloads/postgres",
		"internal/kit/pgwire",
	}
)

// leaf is the folder of a driver: the first below its room.
func leaf(dir string) string {
	parts := strings.Split(dir, "/")
	return strings.Join(parts[:min(3, len(parts))], "/")
}

func TestLeafDriversKnowNothingOfEachOther(t *testing.T) {
	for _, p := range packages(t) {
		in := room(p.dir)
		if !slices.Contains(leaves, in) {
			continue
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				ours := strings.TrimPrefix(imported, module)
				if room(ours) == in && leaf(ours) != leaf(p.dir) && !slices.Contains(shared, ours) {
					t.Errorf("%s imports %s: drivers stand alone, what they share belongs to the contract", f.name,
						ours)
				}
			}
		}
	}
}

// byName are drivers that the commands know beside the registry.
var byName = []string{
	"internal/exporters/nutanix", // it serves itself: pages of its size are not made of collectors
}

func TestCommandsReachDriversThroughTheRegistry(t *testing.T) {
	registered := map[string]bool{}
	for _, p := range packages(t) {
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				ours := strings.TrimPrefix(imported, module)
				if p.dir == "internal/cli/drivers" && slices.Contains(leaves, room(ours)) {
					registered[ours] = !slices.Contains(byName, ours)
				}
			}
		}
	}
	if len(registered) < 10 {
		t.Fatalf("internal/cli/drivers names only %d drivers: the walk is broken", len(registered))
	}
	for _, p := range packages(t) {
		if room(p.dir) != "internal/cli" || p.dir == "internal/cli/drivers" {
			continue
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				if ours := strings.TrimPrefix(imported, module); registered[ours] {
					t.Errorf("%s imports %s: drivers come through internal/cli/drivers", f.name, ours)
				}
			}
		}
	}
}

// Rooms of analysis see a run through view, and what they share is in view: none of them knows another.
func TestRoomsOfAnalysisKnowNothingOfEachOther(t *testing.T) {
	const view = "internal/analysis/view"
	rooms := map[string]*pkg{}
	for _, p := range packages(t) {
		for _, f := range p.shipped() {
			if path.Dir(p.dir) == "internal/analysis" && slices.Contains(f.imports, module+view) {
				rooms[p.dir] = p
			}
		}
	}
	if len(rooms) == 0 {
		t.Fatalf("no package of internal/analysis imports %s", view)
	}
	for dir, p := range rooms {
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				if ours := strings.TrimPrefix(imported, module); rooms[ours] != nil && ours != dir {
					t.Errorf("%s imports %s: what rooms share belongs to %s", f.name, ours, view)
				}
			}
		}
	}
}

func TestPrometheusStaysBehindSeries(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.files {
			for _, imported := range f.imports {
				if strings.HasPrefix(imported, "github.com/prometheus/") && p.dir != "internal/metrics/series" {
					t.Errorf("%s imports %s: only internal/metrics/series may, because it brings more than 400 packages and "+
						"an API without promises", f.name, imported)
				}
			}
		}
	}
}

// pure are the packages whose answers depend on their arguments alone.
var pure = []string{"unit", "hist", "scenario", "internal/workloads/fio/fiofile", "scenario/jinja", "internal/run/plan",
	"internal/analysis", "internal/analysis/*", "internal/analysis/compare"}

var (
	impureImports = []string{"os", "os/*", "net", "net/*", "syscall", "golang.org/x/sys/*", "io/ioutil", "log",
		"log/slog"}
	// The functions of package time that read or wait for the machine's clock.
	clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	// The functions of math/rand/v2 that do not draw from the global source.
	seededRandom = []string{"New", "NewPCG", "NewChaCha8", "NewZipf"}
)

func TestPurePackagesTouchNothing(t *testing.T) {
	for _, p := range packages(t) {
		if !matches(pure, p.dir) {
			continue
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				if matches(impureImports, imported) {
					t.Errorf("%s imports %s: %s is pure, its callers do the I/O", f.name, imported, p.dir)
				}
			}
			eachCall(f, func(from, name string) {
				switch {
				case from == "time" && slices.Contains(clockCalls, name):
					t.Errorf("%s uses time.%s: %s is pure, take the time as an argument", f.name, name, p.dir)
				case strings.HasPrefix(from, "math/rand") && strings.ToUpper(name[:1]) == name[:1] &&
					!slices.Contains(seededRandom, name) && !isRandType(name):
					t.Errorf("%s uses rand.%s: global randomness cannot be repeated, make a generator from a seed",
						f.name, name)
				}
			})
		}
	}
}

func isRandType(name string) bool {
	return slices.Contains([]string{"Rand", "Source", "PCG", "ChaCha8", "Zipf"}, name)
}

// eachCall visits every use of a name of an imported package, by import path.
func eachCall(f file, visit func(importPath, name string)) {
	byName := map[string]string{}
	for i, spec := range f.syntax.Imports {
		name := path.Base(f.imports[i])
		if name == "v2" || name == "v3" {
			name = path.Base(path.Dir(f.imports[i]))
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		byName[name] = f.imports[i]
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && byName[x.Name] != "" {
				visit(byName[x.Name], sel.Sel.Name)
			}
		}
		return true
	})
}

// scenarioTime are the packages in which time passes only through a clock.Clock, so that simulations are exact.
var scenarioTime = []string{"internal/run", "internal/run/step", "internal/run/loads", "internal/contract/*",
	"internal/targets/sim", "internal/targets/sim/*", "internal/workloads/*"}

// ownTime are packages beside them that run outside scenarios or on the machine of the load.
var ownTime = []string{"internal/contract/worker", "internal/contract/exporter", "internal/kit/pgwire",
	"internal/workloads/postgres", "internal/workloads/probe"}

func TestScenarioTimeComesFromTheClock(t *testing.T) {
	for _, p := range packages(t) {
		if !matches(scenarioTime, p.dir) || slices.Contains(ownTime, p.dir) {
			continue
		}
		for _, f := range p.shipped() {
			eachCall(f, func(from, name string) {
				if from == "time" && slices.Contains(clockCalls, name) {
					t.Errorf("%s uses time.%s: whatever runs a scenario asks its clock.Clock, or virtual time breaks",
						f.name, name)
				}
			})
		}
	}
}

// printers are the packages whose words reach a terminal. What they print is of authors, tools and files as well.
var printers = []string{"internal/cli", "internal/cli/console", "internal/cli/judge", "internal/cli/machines",
	"internal/cli/progress", "internal/cli/runs", "internal/cli/storage", "internal/run/plan", "internal/run",
	"internal/report/terminal", "internal/report/blocktrace"}

// TestPrintingGoesThroughVisible: fmt would print an author's control characters and line ends as they stand.
func TestPrintingGoesThroughVisible(t *testing.T) {
	for _, p := range packages(t) {
		if !matches(printers, p.dir) {
			continue
		}
		for _, f := range p.shipped() {
			eachCall(f, func(from, name string) {
				prints := from == "fmt" && (strings.HasPrefix(name, "Fprint") || strings.HasPrefix(name, "Print")) ||
					from == "io" && name == "WriteString" || from == "os" && (name == "Stdout" || name == "Stderr")
				if prints && !slices.Contains(ownSequences, f.name) {
					t.Errorf("%s uses %s.%s: visible.Fprintf keeps what others wrote on its line and visible", f.name,
						from, name)
				}
			})
		}
	}
}

// ownSequences are the files that write control sequences of our own.
var ownSequences = []string{"internal/cli/progress/screen.go"}

func TestNobodyExitsOrRegistersItself(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.shipped() {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s has func init: nothing registers itself, internal/cli/drivers names what there is", f.name)
				}
			}
			eachCall(f, func(from, name string) {
				exits := from == "os" && name == "Exit" || from == "log" && strings.HasPrefix(name, "Fatal")
				if exits && p.name != "main" {
					t.Errorf("%s uses %s.%s: only main ends the process, others return errors", f.name, from, name)
				}
			})
			for _, spec := range f.syntax.Imports {
				if spec.Name != nil && spec.Name.Name == "_" && spec.Path.Value != `"embed"` {
					t.Errorf("%s imports %s for its side effects", f.name, spec.Path.Value)
				}
			}
		}
	}
}
