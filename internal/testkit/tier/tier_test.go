package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A test is long when needs.Long is reached from it, through helpers and methods of its package.
func TestLongTestsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package p\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("p.go", "func f() { go f() }")
	write("p_test.go", `
func TestDirect(t *testing.T) { needs.Long(t, "hours") }
func TestHelped(t *testing.T) { t.Run("x", func(t *testing.T) { s.sweep(t) }) }
func (s suite) sweep(t *testing.T) { sizes() }
func sizes() bool { return needs.All() }
func TestSuite(t *testing.T) { targettest.Run(t, nil) }
func TestQuick(t *testing.T) { needs.Fio(t) }
func TestMain(m *testing.M) { needs.Long(nil, "") }
func FuzzX(f *testing.F) {}`)
	p := &pkg{Dir: dir, GoFiles: []string{"p.go"}, TestGoFiles: []string{"p_test.go"}}
	if err := p.read(); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(p.goroutines, p.tests, p.long, p.fuzz)
	if want := "true [TestDirect TestHelped TestSuite TestQuick] [TestDirect TestHelped TestSuite] [FuzzX]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ten seeds in a row begin at ten places, so that slices of a tenth each reach every unit.
func TestTenSeedsReachAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 9, 10, 97, 250} {
		for _, seed := range []int{0, 7, 1234} {
			reached := map[int]bool{}
			for s := seed; s < seed+parts; s++ {
				for i := range (n + parts - 1) / parts {
					reached[(first(s, n)+i)%n] = true
				}
			}
			if len(reached) != n {
				t.Errorf("%d units, seeds from %d: %d reached", n, seed, len(reached))
			}
		}
	}
}

// A package that takes long under the race detector is drawn in parts, which together hold each of its tests once.
func TestRacedParts(t *testing.T) {
	t.Parallel()
	p := &pkg{ImportPath: unraced[0], tests: []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestF"}}
	var got []string
	for _, u := range units([]*pkg{p}, 1) {
		got = append(got, fmt.Sprint(u.name, " ", u.args[1], " ", u.race))
	}
	slices.Sort(got)
	want := []string{
		"cmd/plimsoll under the race detector, 1 of 4 ^(TestA|TestE)$ true",
		"cmd/plimsoll under the race detector, 2 of 4 ^(TestB|TestF)$ true",
		"cmd/plimsoll under the race detector, 3 of 4 ^(TestC)$ true",
		"cmd/plimsoll under the race detector, 4 of 4 ^(TestD)$ true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

const events = `{"Action":"run","Package":"plimsoll/unit","Test":"TestA"}
{"Action":"pass","Package":"plimsoll/unit","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"plimsoll/unit","Test":"TestB","Output":"    b_test.go:7: got 1, want 2\n"}
{"Action":"fail","Package":"plimsoll/unit","Test":"TestB","Elapsed":0.5}
{"Action":"output","Package":"plimsoll/unit","Test":"TestC","Output":"    c_test.go:9: long (hours): make test-all runs it\n"}
{"Action":"skip","Package":"plimsoll/unit","Test":"TestC"}
{"Action":"fail","Package":"plimsoll/unit","Elapsed":2.5}
# plimsoll/hist: not JSON
{"Action":"output","Package":"plimsoll/hist","Output":"panic: in TestMain\n"}
{"Action":"fail","Package":"plimsoll/hist","Elapsed":0.25}
`

func TestRecord(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	file := filepath.Join(t.TempDir(), "sub", "tests.json")
	rec, err := newRecorder(file, &out)
	if err != nil {
		t.Fatal(err)
	}
	rec.read(strings.NewReader(events), true)
	if err := rec.summary(90 * time.Second); err == nil {
		t.Error("failures are no error")
	}
	rec.close()
	for _, want := range []string{
		"--- FAIL: plimsoll/unit TestB (0.5 s)\n    b_test.go:7: got 1, want 2\n",
		"# plimsoll/hist: not JSON\n", "panic: in TestMain\n",
		"skipped    1: long, for make test-all",
		"failed: plimsoll/unit TestB\nfailed: plimsoll/hist\ntook 1m30s", "\n1 passed, 2 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed:\n%s\nwant in it: %q", &out, want)
		}
	}
	out.Reset()
	if err := times(&out, file); err != nil {
		t.Fatal(err)
	}
	const want = "packages: 2, 3 s one after the other\n     2.5 s  unit  race\n     0.2 s  hist  race\n" +
		"tests and subtests: 2, 2 s one after the other\n     1.5 s  unit  race TestA\n     0.5 s  unit  race TestB\n" +
		"compiling, seconds of processor time:\n"
	if out.String() != want {
		t.Errorf("times printed:\n%s\nwant:\n%s", &out, want)
	}
}

// A test that fails and then passes alone is printed as a flake; one that fails twice fails the run, and what did not
// fail in a test is not tried again.
func TestAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.26\n",
		"m_test.go": `package m

import (
	"os"
	"testing"
)

func TestFlaky(t *testing.T) {
	if f, err := os.OpenFile("ran", os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		f.Close()
		t.Run("sub", func(t *testing.T) { t.Error("the first time") })
	}
}

func TestBroken(t *testing.T) { t.Error("each time") }

func TestFine(t *testing.T) {}
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	rec, err := newRecorder("tests.json", &out)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.close()
	if err := goTest(t.Context(), rec, false, nil, []string{"example.org/m"}); err != nil {
		t.Fatal(err)
	}
	if err := again(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(rec.failed, rec.failures, rec.flakes)
	if want := "1 [example.org/m TestBroken] [example.org/m TestFlaky]"; got != want {
		t.Errorf("got %s, want %s; it printed:\n%s", got, want, &out)
	}
	err = rec.summary(time.Second)
	if err == nil || !strings.Contains(out.String(), "FLAKE: example.org/m TestFlaky") {
		t.Errorf("summary: %v:\n%s", err, &out)
	}
	rec.failed, rec.failures = 2, []string{"example.org/m", "example.org/m TestBroken"}
	if err := again(t.Context(), rec); err != nil || rec.failed != 2 {
		t.Errorf("tried a package again: %v, %d failed", err, rec.failed)
	}
}
