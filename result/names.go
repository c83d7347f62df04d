package result

import (
	"regexp"
	"strings"
)

// marked are the marks by which the machines of a run, and their templates, are known for Plimsoll's own, at the
// beginning of a name that is no part of a path.
var marked = regexp.MustCompile(`(^|[^/\w.-])__curie_(?:test_|goldimage_)?[0-9]+_`)

// PlainNames is a text for people, in which machines have their names without such marks: a member of a group is
// Load_0000.
func PlainNames(text string) string {
	if !strings.Contains(text, "__curie_") {
		return text
	}
	return marked.ReplaceAllString(text, "$1")
}
