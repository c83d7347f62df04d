package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"plimsoll/result"
)

// TestReduceKeepsExtremes: whatever is drawn, no peak, no dip and no gap is lost and nothing new appears.
func TestReduceKeepsExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Just(math.NaN())), 1, 3000).Draw(t,
			"values")
		c := &chart{Step: 1, Names: []string{"a"}, Values: [][]float64{values}, Reduced: 1}
		r := c.reduce(rapid.IntRange(1, 500).Draw(t, "budget"))
		seen := map[float64]bool{}
		gap := false
		for _, v := range values {
			seen[v] = true
			gap = gap || math.IsNaN(v)
		}
		gapKept := false
		for _, v := range r.Values[0] {
			if math.IsNaN(v) {
				gapKept = true
			} else if !seen[v] {
				t.Fatalf("%g was not there", v)
			}
		}
		if gap != gapKept {
			t.Fatalf("gap before %t, after %t", gap, gapKept)
		}
		low, high, ok := c.span()
		low2, high2, ok2 := r.span()
		if ok != ok2 || ok && (low != low2 || high != high2) {
			t.Fatalf("from [%g, %g] to [%g, %g]", low, high, low2, high2)
		}
		if r.Reduced > 1 {
			length, reduced := c.Step*float64(len(values)), r.Step*float64(len(r.Values[0]))
			if reduced < length-1e-6 || reduced > length+r.Step*slots+1e-6 {
				t.Fatalf("%g s became %g s", length, reduced)
			}
		}
	})
}

func TestExtremes(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		in   []float64
		want [slots]float64
	}{
		{[]float64{3, 1, 2, 9, 4}, [slots]float64{1, 9, 4}},
		{[]float64{9, 2, 1}, [slots]float64{9, 1, 1}},
		{[]float64{nan, 5, 7}, [slots]float64{nan, 5, 7}},
		{[]float64{5, nan, 7}, [slots]float64{5, nan, 7}},
		{[]float64{5, 7, nan}, [slots]float64{5, 7, nan}},
		{[]float64{nan, nan}, [slots]float64{nan, nan, nan}},
		{[]float64{4}, [slots]float64{4, 4, 4}},
	} {
		got := extremes(c.in)
		for i := range got {
			if got[i] != c.want[i] && !(math.IsNaN(got[i]) && math.IsNaN(c.want[i])) {
				t.Errorf("extremes(%v) = %v, want %v", c.in, got, c.want)
				break
			}
		}
	}
}

// TestGrid: series of other starts and steps meet on one grid, coarser ones hold their value.
func TestGrid(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one, two, three := 1.0, 2.0, 3.0
	c := newChart("", "", "", at, []result.Series{
		{Name: "fine", Start: at.Add(2 * time.Second), Step: 1, Values: []*float64{&one, nil, &two}},
		{Name: "coarse", Start: at, Step: 2, Values: []*float64{&three, nil, &one}},
	})
	want := "NaN NaN 1 NaN 2 NaN; 3 3 NaN NaN 1 1"
	if got := strings.Join([]string{printed(c.Values[0]), printed(c.Values[1])}, "; "); got != want {
		t.Errorf("grid %s, want %s", got, want)
	}
}

func printed(values []float64) string {
	var out []string
	for _, v := range values {
		if math.IsNaN(v) {
			out = append(out, "NaN")
		} else {
			out = append(out, string(appendValue(nil, v)))
		}
	}
	return strings.Join(out, " ")
}

func TestAppendValue(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234.56: "1235", 1468006400: "1.468e9", 0.000123456: "0.0001235",
		1.5e-7: "1.5e-07", -42: "-42"} {
		if got := string(appendValue(nil, v)); got != want {
			t.Errorf("appendValue(%g) = %s, want %s", v, got, want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{4000, "ops/s", "4,000 IOPS"}, {1468006400, "bytes/s", "1.37 GiB/s"}, {520, "us", "520 µs"},
		{5730, "us", "5.73 ms"}, {36519, "µs", "36.5 ms"}, {2.5e6, "us", "2.5 s"},
		{12.34, "%", "12.3 %"}, {1, "bool", "yes"}, {0, "bool", "no"}, {2.4e9, "Hz", "2.4 GHz"}, {7, "count", "7"},
		{3, "widgets", "3 widgets"},
		{math.NaN(), "ops/s", none}, {math.Inf(1), "us", none}, {1e300, "bytes", none},
	} {
		if got := quantity(c.v, c.unit); got != c.want {
			t.Errorf("quantity(%g, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

// A metric of many series says once that it is the middle one, and no bracket says it again.
func TestSayMetric(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Median": "Median", "Median (median)": "Median",
		"Variability (worst)": "Variability, worst", "AnyFail": "any failure",
		"AnyFail (worst)": "any failure, worst"} {
		if got := sayMetric(result.Metric{Name: name}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for value, want := range map[float64]string{0: "no failure", 1: "there were failures"} {
		if got := sayValue(result.Metric{Name: "AnyFail", Unit: "bool", Value: value}); got != want {
			t.Errorf("%g: %q", value, got)
		}
	}
	for name, want := range map[string]string{"Median": "of 4 series", "Mean": "median of 4 series"} {
		if got := sayOf(result.Metric{Name: name + " (median)", Series: "median of 4 series"}); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestElapsed(t *testing.T) {
	for s, want := range map[float64]string{0: "0:00", 61: "1:01", 3600: "1:00:00", -90: "-1:30", 86399: "23:59:59"} {
		if got := elapsed(s); got != want {
			t.Errorf("elapsed(%g) = %q, want %q", s, got, want)
		}
	}
}

// Of very many lines the script gets the lowest, the highest and some between, in their old order.
func TestSomeLines(t *testing.T) {
	c := &chart{Step: 1, Reduced: 1}
	for i := range 3000 {
		level := float64(i * 7919 % 3000)
		c.Names, c.Values = append(c.Names, fmt.Sprint("vm-", level)), append(c.Values,
			[]float64{math.NaN(), level, level + 0.5, level})
	}
	c.Names, c.Values = append(c.Names, "nothing"), append(c.Values,
		[]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()})
	got := c.thinned()
	var levels []float64
	for _, v := range got.Values {
		levels = append(levels, v[1])
	}
	if !slices.IsSortedFunc(got.Names, func(a, b string) int {
		return cmp.Compare(slices.Index(c.Names, a), slices.Index(c.Names, b))
	}) {
		t.Errorf("out of their order: %q", got.Names)
	}
	slices.SortFunc(levels, cmp.Compare)
	want := []float64{math.NaN(), 0, 1, 2, 3, 4, 5, 6, 7, 8, 158, 456, 754, 1052, 1350, 1648, 1946, 2244, 2542, 2840,
		2990, 2991, 2992, 2993, 2994, 2995, 2996, 2997, 2998, 2999}
	if diff := gocmp.Diff(want, levels, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if few := (&chart{Names: c.Names[:100], Values: c.Values[:100]}); few.thinned() != few {
		t.Error("a hundred lines were thinned out")
	}
}
