package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"plimsoll/internal/testkit/needs"
)

// refused finds the words that the glossary has us not say, in "(not kept or missed)" and "; not stream)".
var refused = regexp.MustCompile(`(?:\(|; )not ([a-z, ]+)\)`)

// everyday are those of them that are words of everyday language too, and wrong only where they name what the glossary
// names. No test can tell.
var everyday = []string{"reached", "kept", "missed", "fine", "notice", "unclear", "promise", "window"}

// glossaryWords are the words that no identifier, JSON key or message has.
func glossaryWords(t *testing.T) (words []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(needs.Root(), "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range refused.FindAllStringSubmatch(string(page), -1) {
		for _, word := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if word != "or" && !slices.Contains(everyday, word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// wordsOf are the words of an identifier, a key or a message, in small letters and in the singular.
func wordsOf(text string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.TrimSuffix(strings.ToLower(string(word)), "s"))
		}
		word = nil
	}
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && len(word) > 0 && unicode.IsLower(word[len(word)-1]):
			end()
		}
		word = append(word, r)
	}
	end()
	return words
}

// saidIn are the identifiers that a file declares, the JSON keys of its structs and its texts.
func saidIn(f *ast.File) (said []string) {
	paths := map[*ast.BasicLit]bool{}
	name := func(list ...*ast.Ident) {
		for _, id := range list {
			said = append(said, id.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			paths[n.Path] = true
		case *ast.FuncDecl:
			name(n.Name)
		case *ast.TypeSpec:
			name(n.Name)
		case *ast.ValueSpec:
			name(n.Names...)
		case *ast.Field:
			name(n.Names...)
			if n.Tag != nil {
				paths[n.Tag] = true
				tag, _ := strconv.Unquote(n.Tag.Value)
				key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				said = append(said, key)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !paths[n] {
				text, _ := strconv.Unquote(n.Value)
				said = append(said, text)
			}
		}
		return true
	})
	return said
}

// exceptions are what has such a word all the same, each with what keeps it.
var exceptions = []struct{ word, file, texts, why string }{
	{"lane", "result/", "lanes", "a key of run folders"},
	{"lane", "internal/report/doc.go", "lanes", "a key of reports"},
	{"lane", "internal/targets/sim/line.go", `{"lane": lane`, "raw output in run folders of before"},
	{"lane", "internal/storage/device/", "lanes pciLane", "those of PCI Express and SAS"},
	{"blocker", "result/model.go", "blocker", "read in files of before"},
	{"caution", "result/model.go", "caution", "read in files of before"},
	{"blocker", "scenario/extensions.go", "blocker", "read in scenarios of before"},
	{"caution", "scenario/extensions.go", "caution", "read in scenarios of before"},
	{"neighbour", "internal/targets/sim/", "Neighbour NoisyNeighbour noisy_neighbour", "an option of the simulator"},
	{"standstill", "internal/analysis/machines/machines.go", "longest standstill of a VM that moved",
		"a machine stands still, which is no stall of a load"},
	{"standstill", "internal/analysis/machines/machines.go", "longest standstill", "the same"},
	{"standstill", "internal/analysis/machines/machines.go", "median standstill", "the same"},
}

// One word per thing: what the glossary says not to say is in no identifier, no name of a package, no JSON key
// and no message of what ships.
func TestWordsOfTheGlossary(t *testing.T) {
	words := glossaryWords(t)
	for _, want := range []string{"lane", "neighbour", "blocker", "caution", "undecided", "standstill"} {
		if !slices.Contains(words, want) {
			t.Errorf("the glossary is read wrongly: %q is not among the words that it refuses: %q", want, words)
		}
	}
	used := make([]bool, len(exceptions))
	excepted := func(word, file, text string) (yes bool) {
		for i, e := range exceptions {
			if e.word == word && strings.HasPrefix(file, e.file) &&
				(text == e.texts || slices.Contains(strings.Fields(e.texts), text)) {
				used[i], yes = true, true
			}
		}
		return yes
	}
	for _, p := range packages(t) {
		for _, f := range p.shipped() {
			if strings.HasPrefix(f.name, "internal/testkit/") {
				continue
			}
			for _, text := range append(saidIn(f.syntax), f.syntax.Name.Name) {
				for _, w := range wordsOf(text) {
					if slices.Contains(words, w) && !excepted(w, f.name, text) {
						t.Errorf("%s: %.80q: docs/glossary.md says what to say in place of %q", f.name, text, w)
					}
				}
			}
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("nothing says %q any more: remove it from the exceptions", e.texts)
		}
	}
}

// Verbs that say nothing of what is done, and words that are no verbs.
var emptyVerbs = []string{"take", "own", "some", "known", "numbered", "manage", "perform"}

func TestFunctionsSayWhatTheyDo(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.shipped() {
			for _, d := range f.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if ok && slices.Contains(emptyVerbs, strings.ToLower(fn.Name.Name)) {
					t.Errorf("%s: func %s says nothing of what it does", f.name, fn.Name.Name)
				}
			}
		}
	}
}

func TestWordsOf(t *testing.T) {
	for text, want := range map[string]string{"pciLane": "pci lane", "lanes": "lane",
		"noisy_neighbour": "noisy neighbour", `{"lane":`: "lane", "Two lanes, HTTP": "two lane http"} {
		if got := strings.Join(wordsOf(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
