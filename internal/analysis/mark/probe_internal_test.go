package mark

import (
	"testing"

	"plimsoll/result"
)

// A generator that gave way is told with its machine's plain name.
func TestGaveWay(t *testing.T) {
	t.Parallel()
	got := gaveWay([]result.Finding{{Check: "generator-cpu", Subject: "w", Severity: result.Invalid,
		Sentence: "The load generator of w used 100 % of the CPUs of __curie_test_17_Load_0000: it was the limit."}}, "w")
	if want := "the load generator of w used 100 % of the CPUs of Load_0000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
