package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// unraced are packages that make test runs without the race detector although they start goroutines: they drive whole
// commands, or sweep over all the published scenarios, five times as fast without it, and their parts run under it in
// their own packages. Draw and make test-all run these under it, too.
var unraced = []string{"plimsoll/cmd/plimsoll", "plimsoll/internal/cli", "plimsoll/internal/run"}

// slowFirst are the packages that take longest: they are begun first, so that none of them is what the others wait for.
var slowFirst = []string{
	"plimsoll/cmd/plimsoll",
	"plimsoll/internal/targets/lab/guest",
	"plimsoll/internal/targets/lab",
	"plimsoll/internal/targets/ssh",
	"plimsoll/internal/targets/local",
	"plimsoll/internal/run",
	"plimsoll/internal/cli",
	"plimsoll/internal/workloads/integrity/driver",
	"plimsoll/internal/report",
	"plimsoll/internal/workloads/fio",
	"plimsoll/internal/targets/lab/cluster",
	"plimsoll/internal/workloads/tproch/driver",
}

// pkg is one package as `go list` tells it.
type pkg struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	goroutines                         bool // its shipped code starts some
	tests, benchmarks, long, fuzz      []string
}

// packages lists what the patterns name, the slow ones first.
func packages(ctx context.Context, patterns []string) ([]*pkg, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	args := append([]string{"list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)
	c := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var all []*pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if err := p.read(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b *pkg) int { return rank(a) - rank(b) })
	return all, nil
}

func rank(p *pkg) int {
	if i := slices.Index(slowFirst, p.ImportPath); i >= 0 {
		return i
	}
	return len(slowFirst)
}

// read looks through the package's files for what tiers go by.
func (p *pkg) read() error {
	files := token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			_, starts := n.(*ast.GoStmt)
			p.goroutines = p.goroutines || starts
			return true
		})
	}
	calls := map[string][]string{} // of each function of the tests: what it calls
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				calls[fn.Name.Name] = append(calls[fn.Name.Name], called(fn)...)
				p.function(fn)
			}
		}
	}
	// The conformance suite of places is longer there, too.
	reached := map[string]bool{"needs.Long": true, "needs.All": true, "needs.Draws": true, "targettest.Run": true}
	for again := true; again; {
		again = false
		for fn, of := range calls {
			if !reached[fn] && slices.ContainsFunc(of, func(c string) bool { return reached[c] }) {
				reached[fn], again = true, true
			}
		}
	}
	for _, test := range p.tests {
		if reached[test] {
			p.long = append(p.long, test)
		}
	}
	return nil
}

func (p *pkg) function(fn *ast.FuncDecl) {
	name := fn.Name.Name
	switch {
	case fn.Recv != nil || name == "TestMain":
	case strings.HasPrefix(name, "Test"):
		p.tests = append(p.tests, name)
	case strings.HasPrefix(name, "Fuzz"):
		p.fuzz = append(p.fuzz, name)
	case strings.HasPrefix(name, "Benchmark"):
		p.benchmarks = append(p.benchmarks, name)
	}
}

// called names the functions that are called in fn, or handed on by name: those of the package and its methods by their
// names, those of other packages with theirs in front, too.
func called(fn *ast.FuncDecl) []string {
	var names []string
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				names = append(names, x.Name+"."+n.Sel.Name)
			}
			names = append(names, n.Sel.Name)
		case *ast.Ident:
			names = append(names, n.Name)
		}
		return true
	})
	return names
}
