package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"plimsoll/internal/testkit/needs"
)

// module is the prefix of our own import paths.
const module = "plimsoll/"

// file is one Go file of the repository.
type file struct {
	name    string // relative to the repository, with slashes
	syntax  *ast.File
	imports []string
	lines   int
	test    bool
}

// pkg is one folder of Go files.
type pkg struct {
	dir   string // "internal/run/plan"
	name  string // as declared by its non-test files
	files []file
}

// positions are those of all files that sources parses.
var positions = token.NewFileSet()

// sources parses every Go file of the repository once.
var sources = sync.OnceValues(func() (map[string]*pkg, error) {
	root := needs.Root()
	pkgs := map[string]*pkg{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() != "." &&
			strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(positions, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		f := file{name: rel, syntax: syntax, lines: positions.File(syntax.Pos()).LineCount(),
			test: strings.HasSuffix(rel, "_test.go")}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		dir := path.Dir(rel)
		if pkgs[dir] == nil {
			pkgs[dir] = &pkg{dir: dir}
		}
		p := pkgs[dir]
		p.files = append(p.files, f)
		if !f.test {
			p.name = syntax.Name.Name
		}
		return nil
	})
	return pkgs, err
})

// packages are the folders that have Go files other than tests, in order.
func packages(t *testing.T) []*pkg {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	var out []*pkg
	for _, p := range all {
		if p.name != "" {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	if len(out) < 10 {
		t.Fatalf("found only %d packages: the walk is broken", len(out))
	}
	return out
}

// shipped are the files of a package other than its tests.
func (p *pkg) shipped() []file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f file) bool { return f.test })
}
