package tproch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Every stream has a text for every query, the same for the same seed.
func TestStreamQueries(t *testing.T) {
	t.Parallel()
	forms := [Queries + 1]*regexp.Regexp{}
	for n, form := range [Queries + 1]string{1: `^\d+$`, 2: `^\d+\|[A-Z]+\|[A-Z ]+$`, 3: `^[A-Z]+\|1995-03-\d\d$`, 4: `^199[3-7]-\d\d-01$`,
		5: `^[A-Z ]+\|199[3-7]-01-01$`, 6: `^199[3-7]-01-01\|0.0[2-9]\|2[45]$`, 7: `^[A-Z ]+\|[A-Z ]+$`,
		8: `^[A-Z ]+\|[A-Z ]+\|[A-Z]+ [A-Z]+ [A-Z]+$`, 9: `^[a-z]+$`, 10: `^199[3-5]-\d\d-01$`, 11: `^[A-Z ]+\|0\.0*[1-9]\d*$`,
		12: `^[A-Z ]+\|[A-Z ]+\|199[3-7]-01-01$`, 13: `^[a-z]+\|[a-z]+$`, 14: `^199[3-7]-\d\d-01$`, 15: `^199[3-7]-\d\d-01$`,
		16: `^Brand#[1-5][1-5]\|[A-Z]+ [A-Z]+(\|\d+){8}$`, 17: `^Brand#[1-5][1-5]\|[A-Z]+ [A-Z]+$`, 18: `^31[2-5]$`,
		19: `^(Brand#[1-5][1-5]\|){3}\d+\|\d+\|\d+$`, 20: `^[a-z]+\|199[3-7]-01-01\|[A-Z ]+$`, 21: `^[A-Z ]+$`,
		22: `^\d\d(\|\d\d){6}$`} {
		forms[n] = regexp.MustCompile(form)
	}
	rapid.Check(t, func(t *rapid.T) {
		scale := Scale(rapid.SampledFrom([]float64{0.01, 1, 300, MaxScale}).Draw(t, "scale"))
		seed, stream := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, MaxStreams).Draw(t, "stream")
		for n := 1; n <= Queries; n++ {
			sql, err := StreamQuery(n, scale, seed, stream)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := StreamQuery(n, scale, seed, stream)
			other, _ := ValidationQuery(n, scale)
			if sql != again || strings.Count(sql, "\n") != strings.Count(other, "\n") {
				t.Fatal(sql)
			}
			d := draw{rand.New(rand.NewPCG(seed, uint64(stream)))}
			if p := strings.Join(d.parameters(n, scale), "|"); !forms[n].MatchString(p) {
				t.Errorf("query %d: %s", n, p)
			}
			if p := strings.TrimSuffix(validation[n], "|"); n != 11 && n != 18 && !forms[n].MatchString(p) {
				t.Errorf("query %d: %s", n, p)
			}
		}
	})
}

func TestQueryOrders(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for stream := range 41 {
		order := QueryOrder(stream)
		text := fmt.Sprint(order)
		if seen[text] {
			t.Errorf("stream %d asks as another does", stream)
		}
		seen[text] = true
		slices.Sort(order)
		for i, n := range order {
			if n != i+1 || len(order) != Queries {
				t.Fatalf("stream %d: %v", stream, order)
			}
		}
	}
	if d := cmp.Diff(QueryOrder(1), QueryOrder(41)); d != "" {
		t.Error(d)
	}
	if got := QueryOrder(0)[:4]; !slices.Equal(got, []int{14, 2, 9, 20}) {
		t.Error(got)
	}
}

func TestNoSuchQuery(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 23} {
		_, one := ValidationQuery(n, 1)
		_, two := StreamQuery(n, 1, 1, 1)
		if one == nil || two == nil {
			t.Error(n)
		}
	}
	if _, err := Query(2, []string{"1"}); err == nil || err.Error() != "query 2: 1 parameters are too few" {
		t.Error(err)
	}
	if sql, err := Query(9, []string{"o'neill"}); err != nil || !strings.Contains(sql, "'%o''neill%'") {
		t.Error(sql, err)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	type answer struct{ Mean, Power float64 }
	nan := math.NaN()
	for name, c := range map[string]struct {
		queries, refreshes []float64
		want               answer
	}{
		"no refreshes":         {[]float64{1, 4}, nil, answer{2, 18_000}},
		"refreshes":            {[]float64{1, 4}, []float64{2, 8}, answer{2, 36_000 / math.Pow(64, 0.25)}},
		"a query failed":       {[]float64{1, 0}, nil, answer{nan, nan}},
		"a refresh failed":     {[]float64{1, 4}, []float64{0, 1}, answer{2, nan}},
		"less than the lowest": {[]float64{4000, 1}, nil, answer{math.Sqrt(4000), 36_000 / math.Sqrt(16_000)}},
	} {
		var got answer
		got.Mean, got.Power = figures(c.queries, c.refreshes, 10)
		if !near(got.Mean, c.want.Mean) || !near(got.Power, c.want.Power) {
			t.Errorf("%s: %v instead of %v", name, got, c.want)
		}
	}
}

func near(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(b)
}

// An answer is wrong when it has another number of rows, another of the published ones, or one that is not published.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	right := [][]string{{"MAIL      ", "6202", "9324"}, {"SHIP", "6200", "9262.0"}}
	a := answers[12]
	a.known = map[int]string{0: a.known[0]}
	got := []string{}
	for _, rows := range [][][]string{right, right[:1], {right[1], right[0]}, {right[0], {"SHIP", "6200", "9262"}},
		{right[0], {"SHIP", "6200", "9263"}}} {
		text := "right"
		if err := a.wrong(rows); err != nil {
			text, _, _ = strings.Cut(err.Error(), " is ")
		}
		got = append(got, text)
	}
	want := []string{"2 rows whose SHA-256", "1 row instead of 2", "row 1", "right", "2 rows whose SHA-256"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for n := 1; n <= Queries; n++ {
		if a := answers[n]; a.rows == 0 || len(a.known) < min(a.rows, 3) || len(a.hash) != 64 {
			t.Errorf("query %d: %+v", n, a)
		}
	}
}
