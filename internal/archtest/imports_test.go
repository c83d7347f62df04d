package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// testsOnly are packages for tests, which nothing that ships may import.
var testsOnly = []string{
	"internal/golden", "internal/needs", "internal/browsertest", "internal/mutants", "internal/trust",
	"internal/archtest", "internal/*/*test",
}

func matches(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, dir); return ok })
}

func TestImportsPointAsTheArchitectureSays(t *testing.T) {
	for _, p := range packages(t) {
		allowed, ok := row(t, p.dir)
		if !ok {
			t.Errorf("%s has no row in the import table: add one in docs/architecture.md, so that its place is decided",
				p.dir)
			continue
		}
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				ours, ok := strings.CutPrefix(imported, module)
				if !ok {
					continue
				}
				if !matches(allowed, ours) {
					t.Errorf("%s imports %s: %s may import only %v, so that effects stay left of the run folder and "+
						"contracts never know their implementations", f.name, ours, p.dir, allowed)
				}
				if matches(testsOnly, ours) && !matches(testsOnly, p.dir) {
					t.Errorf("%s imports %s, which is for tests only", f.name, ours)
				}
			}
		}
	}
}

// contracts are the folders whose subfolders are drivers.
var contracts = []string{"internal/target", "internal/workload", "internal/exporter"}

func TestLeafDriversKnowNothingOfEachOther(t *testing.T) {
	for _, p := range packages(t) {
		contract := path.Dir(p.dir)
		if !slices.Contains(contracts, contract) || strings.HasSuffix(p.dir, "test") {
			continue
		}
		named, _ := row(t, p.dir) // by its own name, not by a pattern: a decision
		for _, f := range p.shipped() {
			for _, imported := range f.imports {
				ours := strings.TrimPrefix(imported, module)
				if slices.Contains(contracts, path.Dir(ours)) && !slices.Contains(named, ours) {
					t.Errorf("%s imports %s: drivers stand alone, what they share belongs to the contract", f.name,
						ours)
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
				if strings.HasPrefix(imported, "github.com/prometheus/") && p.dir != "internal/series" {
					t.Errorf("%s imports %s: only internal/series may, because it brings more than 400 packages and "+
						"an API without promises", f.name, imported)
				}
			}
		}
	}
}

// pure are the packages whose answers depend on their arguments alone.
var pure = []string{"unit", "hist", "scenario", "internal/fiofile", "scenario/jinja", "internal/plan",
	"internal/analysis", "internal/analysis/*", "internal/compare"}

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
var scenarioTime = []string{"internal/step", "internal/loads", "internal/target", "internal/target/sim",
	"internal/target/sim/*", "internal/workload", "internal/workload/*", "internal/run"}

func TestScenarioTimeComesFromTheClock(t *testing.T) {
	for _, p := range packages(t) {
		if !matches(scenarioTime, p.dir) || strings.HasSuffix(p.dir, "test") {
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
var printers = []string{"internal/cli", "internal/plan", "internal/run", "internal/terminal", "internal/progress"}

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
var ownSequences = []string{"internal/progress/screen.go"}

func TestNobodyExitsOrRegistersItself(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.shipped() {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s has func init: nothing registers itself, internal/drivers names what there is", f.name)
				}
			}
			eachCall(f, func(from, name string) {
				exits := from == "os" && name == "Exit" || from == "log" && strings.HasPrefix(name, "Fatal")
				if exits && p.dir != "cmd/plimsoll" && p.dir != "cmd/plimsoll-agent" {
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
