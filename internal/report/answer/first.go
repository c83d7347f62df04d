package answer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"plimsoll/result"
)

// First is the sentence of a finding up to the first full stop that a new sentence follows. Stops within the
// names that it tells of, such as "Avg. Disk sec/Read", end none.
func First(f result.Finding) string {
	s := f.Sentence
	names := []string{f.Subject, f.Metric}
	for _, e := range f.Evidence {
		names = append(names, e.Name)
	}
	within := func(at int) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			for in := range len(name) - 1 {
				if name[in:in+2] == ". " && at >= in && strings.HasPrefix(s[at-in:], name) {
					return true
				}
			}
			return false
		})
	}
	for i := 0; ; {
		at := strings.Index(s[i:], ". ")
		if at < 0 {
			return s
		}
		stop := i + at
		i = stop + 2
		if r, _ := utf8.DecodeRuneInString(s[i:]); unicode.IsUpper(r) && !within(stop) {
			return s[:stop+1]
		}
	}
}
