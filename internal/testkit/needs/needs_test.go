package needs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// verdict is a testing.TB that keeps how a need ended.
type verdict struct {
	testing.TB
	how string
}

func (v *verdict) Helper()                      {}
func (v *verdict) Skip(...any)                  { v.how = "skipped"; panic(v) }
func (v *verdict) Skipf(string, ...any)         { v.how = "skipped"; panic(v) }
func (v *verdict) Fatalf(f string, args ...any) { v.how = "failed"; panic(v) }

func how(t *testing.T, f func(testing.TB)) (text string) {
	v := &verdict{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(v) {
			panic(p)
		}
		text = v.how
	}()
	f(v)
	return "there"
}

func TestAbsentProgram(t *testing.T) {
	Time(t) // -short skips before it looks
	missing := func(tb testing.TB) { program(tb, "nothing", "make it", "no-program-of-this-name") }
	for ci, want := range map[string]string{"": "skipped", "1": "failed"} {
		t.Setenv(CIVariable, ci)
		if got := how(t, missing); got != want {
			t.Errorf("%s=%q: %s, want %s", CIVariable, ci, got, want)
		}
		if got := how(t, func(tb testing.TB) { Corpus(tb, "no-such-part") }); got != "skipped" {
			t.Errorf("%s=%q: absent corpus %s, want skipped", CIVariable, ci, got)
		}
	}
	var out strings.Builder
	Print(&out)
	if want := "needs: nothing: there for 0 tests, missing for 2\n"; !strings.Contains(out.String(), want) {
		t.Errorf("printed %q, want a line %q", out.String(), want)
	}
}

func TestRoot(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Root(), "go.mod")); err != nil {
		t.Error(err)
	}
}
