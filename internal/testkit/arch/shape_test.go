package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"plimsoll/internal/testkit/needs"
)

// The budgets of a file, in lines: past the first the test says so, past the second it fails.
const (
	wideFile    = 500
	tooWideFile = 700
	fullPackage = 25 // files
)

// vague are names that say nothing about what a package gives.
var vague = []string{"util", "utils", "common", "helper", "helpers", "base", "manager", "types", "misc", "lib",
	"shared", "core", "pkg"}

// roles are folders whose package is called as the folder above them: what works for an engine or a place of that name.
var roles = []string{"driver", "tool", "cluster"}

// public are the folders that programs of others may import.
func public(dir string) bool {
	return !strings.HasPrefix(dir, "internal/") && !strings.HasPrefix(dir, "cmd/")
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range packages(t) {
		var comments []string
		example := false
		for _, f := range p.files {
			if !f.test && f.syntax.Doc != nil {
				comments = append(comments, f.syntax.Doc.Text())
			}
			example = example || f.test && hasExample(f.syntax)
		}
		switch {
		case len(comments) == 0:
			t.Errorf("%s has no package comment: say what it gives, where it sits and what it refuses", p.dir)
		case len(comments) > 1:
			t.Errorf("%s has %d package comments: keep one", p.dir, len(comments))
		case p.name != "main" && !strings.HasPrefix(comments[0], "Package "+p.name+" "):
			t.Errorf("%s: its comment must begin with %q", p.dir, "Package "+p.name)
		}
		if public(p.dir) && !example && p.dir != "scenarios" {
			t.Errorf("%s is public and has no runnable Example", p.dir)
		}
		if slices.Contains(vague, p.name) || strings.ContainsAny(p.name, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			t.Errorf("%s is called %q: take one short noun for what it gives", p.dir, p.name)
		}
		if p.name != "main" && p.name != path.Base(p.dir) && !(slices.Contains(roles, path.Base(p.dir)) &&
			p.name == path.Base(path.Dir(p.dir))) {
			t.Errorf("%s declares package %s: the path must say the name", p.dir, p.name)
		}
	}
}

func hasExample(f *ast.File) bool {
	return slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Example")
	})
}

func TestPublicNamesAreDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if !public(p.dir) {
			continue
		}
		for _, f := range p.shipped() {
			for _, d := range f.syntax.Decls {
				for _, name := range undocumented(d) {
					t.Errorf("%s: %s is public and has no comment", f.name, name)
				}
			}
		}
	}
}

// undocumented lists the exported names of a declaration that no comment covers. A comment on a group of constants or
// variables covers the group.
func undocumented(d ast.Decl) []string {
	var out []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !interfaceMethod(d.Name.Name) {
			out = append(out, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Doc != nil || d.Tok == token.IMPORT {
			return nil
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil {
					out = append(out, s.Name.Name)
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil {
					out = append(out, s.Names[0].Name)
				}
			}
		}
	}
	return out
}

// interfaceMethod are methods whose meaning the standard library gives.
func interfaceMethod(name string) bool {
	return slices.Contains([]string{"String", "Error", "Unwrap", "MarshalJSON", "UnmarshalJSON", "MarshalText",
		"UnmarshalText"}, name)
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	exported := true
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported && id.IsExported()
		}
		return true
	})
	return exported
}

// fullPackages are budgets of their own.
var fullPackages = map[string]int{
	"internal/cli":              30, // commands that make runs: one file or two for each
	"internal/report":           33, // one file per part of the documents
	"internal/formats/importer": 33, // a file or two for each family of tools
	"internal/targets/local":    30, // one machine in all its parts
	"scenario":                  30, // the language is one thing: its sections share one decoder
}

func TestBudgets(t *testing.T) {
	for _, p := range packages(t) {
		budget := max(fullPackage, fullPackages[p.dir])
		if n := len(p.shipped()); n > budget {
			t.Errorf("%s has %d files (budget %d): split it, or raise its budget here and say why", p.dir, n, budget)
		}
		for _, f := range p.shipped() {
			switch {
			case f.lines > tooWideFile:
				t.Errorf("%s has %d lines (budget about %d): split it", f.name, f.lines, wideFile)
			case f.lines > wideFile:
				t.Logf("%s has %d lines (budget about %d)", f.name, f.lines, wideFile)
			}
		}
		if p.dir == "cmd/plimsoll" {
			for _, f := range p.shipped() {
				if f.lines > 30 {
					t.Errorf("%s has %d lines: main is one call, under 30", f.name, f.lines)
				}
			}
		}
	}
}

// widest is how many columns a line of a Go file may have, a tab being tabColumns.
const (
	widest     = 120
	tabColumns = 4
	// wholeString is from where on a string may stay on one line: contents of files, a page's words.
	wholeString = 60
)

// TestLinesFitThePage: a reader has two files side by side. Lines with long strings are as their contents are.
func TestLinesFitThePage(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.files {
			raw := rawLines(f.syntax)
			data, err := os.ReadFile(filepath.Join(needs.Root(), f.name))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(data), "\n") {
				columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
				if columns > widest && !raw[i+1] {
					t.Errorf("%s:%d has %d columns: want at most %d", f.name, i+1, columns, widest)
				}
			}
		}
	}
}

// TestCommentsHaveVerbs: "X is what ..." says nothing that a verb does not say better.
func TestCommentsHaveVerbs(t *testing.T) {
	riddle := regexp.MustCompile(`(?m)^\w+ is what\b`)
	for _, p := range packages(t) {
		for _, f := range p.files {
			for _, c := range f.syntax.Comments {
				if m := riddle.FindString(c.Text()); m != "" {
					t.Errorf("%s: a comment begins with %q: say what it holds, does or tells", positions.Position(c.Pos()), m)
				}
			}
		}
	}
}

// rawLines are the lines of a file that a raw string stands on, or one too long to be torn well, and what an Example
// prints.
func rawLines(f *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		if text := group.Text(); strings.HasPrefix(text, "Output:") {
			for i := positions.Position(group.Pos()).Line; i <= positions.Position(group.End()).Line; i++ {
				lines[i] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if ok && lit.Kind == token.STRING && (lit.Value[0] == '`' || len(lit.Value) > wholeString) {
			for i := positions.Position(lit.Pos()).Line; i <= positions.Position(lit.End()).Line; i++ {
				lines[i] = true
			}
		}
		return true
	})
	return lines
}
