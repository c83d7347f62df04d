package lazyregexp_test

import (
	"regexp"
	"testing"

	"plimsoll/internal/kit/lazyregexp"
)

// TestWords: a text is searched, or found to hold no match, as by regexp itself.
func TestWords(t *testing.T) {
	texts := []string{"", "a", "fio", "FIO 3", "fio-3.33\n", "x fio version 3", "abab", "ababab", "one\ntwo", "two",
		"ſ", "threads: 4", "threads:", "clients = 8 threads = 2", "日本", "\xff\xfe", "a.b", "a\x00b"}
	for _, expr := range []string{"", "a", "fio", "(?i)fio", "(?i)s", "^fio-(\\d+)", "fio(-| version )\\d",
		"(ab){2,}", "(ab)*", "(ab)?c?", "(?m)^two$", "one|two", "one|", "(one|t.o)",
		"(clients|threads) ?[=:] ?(\\d+)", "日.", "[a-c]b",
		"a\\.b", "a\\x00b", "x{0}", "(?s)one.two", "(?:one\\s)+two", "\\bfio\\b", "fio|(?i)FIO", "fi(o|O)"} {
		want, got := regexp.MustCompile(expr), lazyregexp.New(expr)
		for _, text := range texts {
			if want.MatchString(text) != got.MatchString(text) || want.Match([]byte(text)) != got.Match([]byte(text)) {
				t.Errorf("%q: %q matches %v by regexp", expr, text, want.MatchString(text))
			}
			a, b := want.FindStringSubmatch(text), got.FindStringSubmatch(text)
			if len(a) != len(b) || len(a) > 0 && a[0] != b[0] {
				t.Errorf("%q: %q gives %q, and %q by regexp", expr, text, b, a)
			}
			if len(want.FindSubmatch([]byte(text))) != len(got.FindSubmatch([]byte(text))) {
				t.Errorf("%q: %q gives other groups than by regexp", expr, text)
			}
		}
	}
}
