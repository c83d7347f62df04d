package trust

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
)

var (
	long = flag.Bool("trust", false, "measure every claim with all of its sets")
	seed = flag.Uint64("seed", 0, "first of the seeds; 0 draws one from the clock")
	only = flag.String("only", "", "with -trust, only claims whose line contains this")
	some = flag.Float64("share", 1, "with -trust, the share of the sets: less for a first look")
	page = flag.Bool("page", false, "with -trust, write the page")
)

// pageFile is the table of all claims with what was measured last: make trust UPDATE=1 writes it.
const pageFile = "testdata/claims.md"

// TestTrust measures every claim with all of its sets and fresh seeds: make trust.
func TestTrust(t *testing.T) {
	if !*long {
		t.Skip("the long form runs with make trust; TestClaims has the short one")
	}
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	claims := All()
	if *only != "" {
		claims = claims[:0]
		for _, c := range All() {
			if strings.Contains(c.Family+": "+c.Name, *only) {
				claims = append(claims, c)
			}
		}
	}
	began := time.Now()
	fmt.Printf("%d claims, seed %d\n\n%s\n", len(claims), first, Head)
	lines := Head + "\n"
	for _, m := range Run(claims, first, *some, func(m Measured) { fmt.Println(m.Line()) }) {
		lines += m.Line() + "\n"
		if !m.Holds() {
			t.Errorf("%s: %s: claimed %s %%, measured %d of %d; %v", m.Family, m.Name, m.bounds(), m.Hits, m.Of, m.Err)
		}
	}
	fmt.Printf("\n%d claims in %v\n", len(claims), time.Since(began).Round(time.Second))
	if *page && *only == "" && !t.Failed() {
		if err := os.WriteFile(pageFile, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPage: the page shows every claim of the list as it is claimed, in its order, and no other.
func TestPage(t *testing.T) {
	t.Parallel()
	stated := func(line string) string { // without what was measured
		cells := strings.Split(line, "|")
		return strings.Join(cells[:min(4, len(cells))], "|")
	}
	var want, got []string
	for _, c := range All() {
		want = append(want, stated(Measured{Claim: c}.Line()))
	}
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[2:] {
		got = append(got, stated(line))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the page's table is not of these claims (-want +got; make trust UPDATE=1 writes it):\n%s", d)
	}
}

// TestClaims is the short form: few sets of each, always the same.
func TestClaims(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	if needs.Race {
		t.Skip("not under the race detector: statistics, ten times slower")
	}
	for _, m := range Run(All(), 20, 0.01, nil) {
		if !m.Holds() {
			t.Errorf("%s: %s: claimed %s %%, measured %d of %d; %v", m.Family, m.Name, m.bounds(), m.Hits, m.Of, m.Err)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		low, high float64
		of        Count
		want      bool
	}{
		"within":                      {0.93, 0.97, Count{950, 1000}, true},
		"below by chance":             {0.93, 0.97, Count{915, 1000}, true},
		"below":                       {0.93, 0.97, Count{890, 1000}, false},
		"above":                       {0, 0.05, Count{30, 200}, false},
		"above by chance":             {0, 0.05, Count{16, 200}, true},
		"one where none may be":       {0, 0, Count{1, 200}, false},
		"none where all should":       {1, 1, Count{0, 10}, false},
		"ten sets say little":         {0, 0.05, Count{2, 10}, true},
		"ten sets, but all are wrong": {0, 0.05, Count{10, 10}, false},
		"nothing counted":             {0, 1, Count{}, false},
	}
	for name, test := range tests {
		if got := (Measured{Claim: Claim{Low: test.low, High: test.high}, Count: test.of}).Holds(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Measured{Claim: Claim{High: 1}, Count: Count{1, 1}, Err: os.ErrInvalid}).Holds() {
		t.Error("an error holds")
	}
}

// TestRunIsAFunctionOfItsSeed: whatever the processors do, and each set is drawn once.
func TestRunIsAFunctionOfItsSeed(t *testing.T) {
	t.Parallel()
	claims := []Claim{
		{Sets: 130, Measure: func(seed uint64, n int) (Count, error) { return Count{int(seed % 7), n}, nil }},
	}
	claims = append(claims, claims[0])
	a, b := Run(claims, 5, 1, nil), Run(claims, 5, 1, nil)
	for i := range a {
		if a[i].Count != b[i].Count || a[i].Of != 130 {
			t.Errorf("%+v, %+v", a[i].Count, b[i].Count)
		}
	}
	if few := Run(claims, 5, 0.01, nil); few[0].Of != least {
		t.Errorf("%+v", few[0].Count)
	}
}
