// Package lazyregexp gives regular expressions that are compiled when they are first used, for packages with dozens of
// them: a hundred compiled at the start of every command cost three milliseconds of `plimsoll version`. A text that has
// none of the words that every match of an expression holds is not searched: a file of 64 KiB that is no output of any
// known tool is told from all of them ten times as fast.
//
// It is a leaf: it imports nothing of ours. A wrong expression panics at its first use, so a package that uses this
// calls All in a test.
package lazyregexp

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
)

// A Regexp is a regexp.Regexp to be; it has of its methods those that are used.
type Regexp struct {
	get   func() *regexp.Regexp
	words func() []string // of these every match holds one; nil: nothing is known
}

var (
	mu   sync.Mutex
	made []*Regexp
)

// New is regexp.MustCompile, later.
func New(expr string) *Regexp {
	r := &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) }),
		sync.OnceValue(func() []string {
			tree, err := syntax.Parse(expr, syntax.Perl)
			if err != nil {
				return nil
			}
			return words(tree)
		})}
	mu.Lock()
	defer mu.Unlock()
	made = append(made, r)
	return r
}

// All compiles every expression of the program and says how many there are. It panics with the first wrong one.
func All() int {
	mu.Lock()
	defer mu.Unlock()
	for _, r := range made {
		r.get()
	}
	return len(made)
}

// words are texts of which every match of an expression holds at least one, as long as can be had; nil where there is
// no such text.
func words(tree *syntax.Regexp) []string {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			return []string{string(tree.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return words(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return words(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, part := range tree.Sub {
			if found := words(part); shortest(found) > shortest(best) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, part := range tree.Sub {
			found := words(part)
			if found == nil {
				return nil
			}
			all = append(all, found...)
		}
		return all
	}
	return nil
}

func shortest(words []string) int {
	n := 0
	for i, w := range words {
		if i == 0 || len(w) < n {
			n = len(w)
		}
	}
	return n
}

// cannot says that nothing in a text can match.
func (r *Regexp) cannot(holds func(word string) bool) bool {
	words := r.words()
	return words != nil && !slices.ContainsFunc(words, holds)
}

func (r *Regexp) cannotMatch(b []byte) bool {
	return r.cannot(func(word string) bool { return bytes.Contains(b, []byte(word)) })
}

func (r *Regexp) cannotMatchString(s string) bool {
	return r.cannot(func(word string) bool { return strings.Contains(s, word) })
}

func (r *Regexp) Match(b []byte) bool       { return !r.cannotMatch(b) && r.get().Match(b) }
func (r *Regexp) MatchString(s string) bool { return !r.cannotMatchString(s) && r.get().MatchString(s) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte {
	if r.cannotMatch(b) {
		return nil
	}
	return r.get().FindSubmatch(b)
}
func (r *Regexp) FindStringSubmatch(s string) []string {
	if r.cannotMatchString(s) {
		return nil
	}
	return r.get().FindStringSubmatch(s)
}
func (r *Regexp) ReplaceAllString(s, with string) string { return r.get().ReplaceAllString(s, with) }
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}
func (r *Regexp) FindAllIndex(b []byte, n int) [][]int   { return r.get().FindAllIndex(b, n) }
func (r *Regexp) FindString(s string) string             { return r.get().FindString(s) }
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, with)
}
func (r *Regexp) NumSubexp() int { return r.get().NumSubexp() }
