package needs

import (
	"os"
	"testing"
)

// LongVariable is the environment variable that runs what needs Long when it is "1", as `make test-all` does.
const LongVariable = "PLIMSOLL_LONG"

// Long marks a test, or a subtest, of the tier `make test-all`: it runs where PLIMSOLL_LONG=1 and is skipped elsewhere,
// also where PLIMSOLL_CI=1 lets no other test be skipped. Each run of CI draws some of these tests. Why says what the
// shorter tiers have in its place, or why nothing there can be.
func Long(t testing.TB, why string) {
	t.Helper()
	if !All() {
		t.Skipf("long (%s): make test-all runs it", why)
	}
}

// All says whether tests with a short and a long form take the long one. The draw of CI finds the tests that reach it
// by reading the source.
func All() bool { return os.Getenv(LongVariable) == "1" }

// Draws is how many draws a simulation makes, or cases a sweep takes: the full number where All, else the short one.
func Draws(short, full int) int {
	if All() {
		return full
	}
	return short
}

// Time marks a test that takes more than a second or two though it needs no program: -short, the tier `make check`,
// skips it, as it skips what needs one.
func Time(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than seconds: make test runs it")
	}
}
