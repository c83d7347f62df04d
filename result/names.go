package result

import (
	"regexp"
	"strings"
)

// marked are the marks by which the machines of a run, and their templates, are known for Plimsoll's own, at the
// beginning of a name that is no part of a path.
var marked = regexp.MustCompile(`(^|[^/\w.-])__curie_(?:test_|goldimage_)?[0-9]+_`)

// member is such a machine of a group, with its number.
var member = regexp.MustCompile(`(^|[^/\w.-])__curie_test_[0-9]+_([\w-]+)_0*([0-9]+)\b`)

// SpokenNames is a text as PlainNames has it in which a member of a group is "VM 0 of Load".
func SpokenNames(text string) string {
	return PlainNames(member.ReplaceAllString(text, "${1}VM $3 of $2"))
}

// PlainNames is a text for people, in which machines have their names without such marks: a member of a group is
// Load_0000.
func PlainNames(text string) string {
	if !strings.Contains(text, "__curie_") {
		return text
	}
	return marked.ReplaceAllString(text, "$1")
}
