// Package lazyregexp gives regular expressions that are compiled when they are first used, for packages with dozens of
// them: a hundred compiled at the start of every command cost three milliseconds of `plimsoll version`.
//
// It is a leaf: it imports nothing of ours. A wrong expression panics at its first use, so a package that uses this
// calls All in a test.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regexp.Regexp to be; it has of its methods those that are used.
type Regexp struct{ get func() *regexp.Regexp }

var (
	mu   sync.Mutex
	made []*Regexp
)

// New is regexp.MustCompile, later.
func New(expr string) *Regexp {
	r := &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
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

func (r *Regexp) Match(b []byte) bool                    { return r.get().Match(b) }
func (r *Regexp) MatchString(s string) bool              { return r.get().MatchString(s) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte         { return r.get().FindSubmatch(b) }
func (r *Regexp) FindStringSubmatch(s string) []string   { return r.get().FindStringSubmatch(s) }
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
