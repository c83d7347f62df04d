package hist

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func filled(values ...uint64) *Histogram {
	h := &Histogram{}
	for _, v := range values {
		h.Add(v, 1)
	}
	return h
}

// drawn makes a histogram whose sum is a whole number well below 2^53, so that merging is exact.
func drawn(t *rapid.T, label string) *Histogram {
	h := &Histogram{}
	for range rapid.IntRange(0, 20).Draw(t, label+" values") {
		h.Add(rapid.Uint64Range(0, 1<<40).Draw(t, label), rapid.Uint64Range(1, 50).Draw(t, label+" times"))
	}
	return h
}

func TestBucketEdges(t *testing.T) {
	t.Parallel()
	if got := Index(math.MaxUint64); got != lastBucket {
		t.Errorf("Index(max) = %d, want %d", got, lastBucket)
	}
	for i := range lastBucket + 1 {
		low, high := Bounds(i)
		if Index(low) != i || Index(high) != i || Index(Middle(i)) != i {
			t.Fatalf("bucket %d: bounds [%d, %d], middle %d are not in it", i, low, high, Middle(i))
		}
		if i < lastBucket {
			if next, _ := Bounds(i + 1); next != high+1 {
				t.Fatalf("bucket %d ends at %d, the next begins at %d", i, high, next)
			}
		}
		if d := float64(high-Middle(i)) / float64(max(high, 1)); d > RelativeError {
			t.Fatalf("bucket %d: middle is %.4f away from the edge, want at most %.4f", i, d, RelativeError)
		}
		if d := float64(Middle(i)-low) / float64(max(low, 1)); d > RelativeError {
			t.Fatalf("bucket %d: middle is %.4f away from the edge, want at most %.4f", i, d, RelativeError)
		}
	}
}

// Keys that fio 3.33 wrote for its bins are the middles of the buckets they fall into.
func TestMiddleIsFiosKey(t *testing.T) {
	t.Parallel()
	for _, key := range []uint64{15040, 16064, 16192, 16512, 33024, 65280, 68096, 138240, 148480, 230400} {
		if got := Middle(Index(key)); got != key {
			t.Errorf("Middle(Index(%d)) = %d", key, got)
		}
	}
}

func TestQuantileAgainstSortedValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 1<<62), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got, ok := filled(values...).Quantile(q)
		slices.Sort(values)
		want := values[min(max(int(math.Ceil(q*float64(len(values)))), 1), len(values))-1]
		if !ok || math.Abs(float64(got)-float64(want)) > RelativeError*float64(want)+1e-9 {
			t.Fatalf("Quantile(%v) = %d, %v; the value is %d", q, got, ok, want)
		}
	})
}

func TestQuantileRefuses(t *testing.T) {
	t.Parallel()
	for _, q := range []float64{-0.1, 1.1, math.NaN()} {
		if _, ok := filled(1, 2).Quantile(q); ok {
			t.Errorf("Quantile(%v) gave a value", q)
		}
	}
	if _, ok := (&Histogram{}).Quantile(0.5); ok {
		t.Error("an empty histogram gave a quantile")
	}
}

// A percentile takes so many values that one can be expected beyond it; no histogram has none.
func TestPercentileNeedsValues(t *testing.T) {
	t.Parallel()
	for q, fewest := range map[float64]int{0.5: 2, 0.9: 10, 0.95: 20, 0.99: 100, 0.999: 1000, 0.9999: 10000} {
		for n, want := range map[int]bool{0: false, 1: false, fewest - 1: false, fewest: true, fewest + 1: true} {
			h := &Histogram{}
			h.Add(7, uint64(n))
			if v, ok := h.Percentile(q); ok != want || ok && v != 7 {
				t.Errorf("Percentile(%v) of %d values = %d, %v; want %v", q, n, v, ok, want)
			}
		}
	}
	if v, ok := (*Histogram)(nil).Percentile(0.5); ok {
		t.Errorf("no histogram has the percentile %d", v)
	}
}

func TestQuantilesAreMonotonic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t, "h")
		var last uint64
		for q := 0.0; q <= 1; q += 1.0 / 64 {
			v, _ := h.Quantile(q)
			if v < last {
				t.Fatalf("Quantile(%v) = %d, below %d", q, v, last)
			}
			last = v
		}
	})
}

func TestMergeIsCommutativeAndAssociative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawn(t, "a"), drawn(t, "b"), drawn(t, "c")
		ab := a.Clone()
		ab.Merge(b)
		ba := b.Clone()
		ba.Merge(a)
		if !ab.Equal(ba) {
			t.Fatal("a+b differs from b+a")
		}
		ab.Merge(c)
		bc := b.Clone()
		bc.Merge(c)
		abc := a.Clone()
		abc.Merge(bc)
		if !ab.Equal(abc) {
			t.Fatal("(a+b)+c differs from a+(b+c)")
		}
	})
}

func TestSubUndoesMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		earlier, added := drawn(t, "earlier"), drawn(t, "added")
		now := earlier.Clone()
		now.Merge(added)
		got, err := now.Sub(earlier)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(added.Buckets(), got.Buckets()); diff != "" {
			t.Fatal(diff)
		}
		if got.Sum() != added.Sum() || got.Count() != added.Count() {
			t.Fatalf("sum %v count %d, want %v %d", got.Sum(), got.Count(), added.Sum(), added.Count())
		}
		if got.Min() > added.Min() || got.Max() < added.Max() {
			t.Fatalf("bounds [%d, %d] do not hold [%d, %d]", got.Min(), got.Max(), added.Min(), added.Max())
		}
	})
}

func TestSubRefusesARestart(t *testing.T) {
	t.Parallel()
	_, err := filled(10).Sub(filled(10, 10))
	if err == nil {
		t.Fatal("no error")
	}
	if want := "histogram went backwards in bucket [10, 10]: 1, earlier 2"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestSetExact(t *testing.T) {
	t.Parallel()
	h := &Histogram{}
	h.AddBucket(Index(10_000), 2)
	h.AddBucket(Index(20_000), 1)
	h.SetExact(10_001, 20_002, 40_004)
	if h.Min() != 10_001 || h.Max() != 20_002 || h.Sum() != 40_004 {
		t.Errorf("min %d max %d sum %v", h.Min(), h.Max(), h.Sum())
	}
	h.SetExact(1, math.MaxUint64, math.NaN())
	if h.Min() != 10_001 || h.Max() != 20_002 || h.Sum() != 40_004 {
		t.Errorf("contradicting values were taken: min %d max %d sum %v", h.Min(), h.Max(), h.Sum())
	}
	(&Histogram{}).SetExact(1, 2, 3)
}

// fio's last bucket begins at 17,045,651,456 ns: 127 << 27. The one before it holds what it says.
func TestSaturatedBeginsWithFiosLastBucket(t *testing.T) {
	t.Parallel()
	const last = 1<<34 - 1<<27
	for v, want := range map[uint64]uint64{last - 1: 0, last: 3, last + 1<<27: 3, math.MaxUint64: 3} {
		h := &Histogram{}
		h.Add(v, 3)
		if got := h.Saturated(); got != want {
			t.Errorf("of three values of %d, %d are saturated; want %d", v, got, want)
		}
	}
}

func TestCountAboveAndSaturated(t *testing.T) {
	t.Parallel()
	h := filled(1, 2, 3, 1000, uint64(60e9))
	if got := h.CountAbove(3); got != 2 {
		t.Errorf("CountAbove(3) = %d", got)
	}
	if got := h.Saturated(); got != 1 {
		t.Errorf("Saturated() = %d", got)
	}
	if got := filled(5).Saturated(); got != 0 {
		t.Errorf("Saturated() = %d", got)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(filled(5, 9))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"min":5,"max":9,"sum":14,"buckets":[5,1,4,1]}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, _ := json.Marshal(&Histogram{}); string(got) != "{}" {
		t.Errorf("empty: %s", got)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := drawn(t, "h")
		h.AddBucket(rapid.IntRange(0, lastBucket).Draw(t, "bucket"), rapid.Uint64Range(0, 1<<62).Draw(t, "count"))
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var back Histogram
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if !h.Equal(&back) {
			t.Fatalf("%s came back different", data)
		}
		_, ok := quick(data, nil)
		if short := h.Count() < 1e18 && h.Max() < 1e18; short && h.Count() > 0 && !ok {
			t.Fatalf("%s is not read the quick way", data)
		}
	})
}

func TestJSONRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not an object":     `[1]`,
		"odd":               `{"min":5,"max":5,"sum":5,"buckets":[5]}`,
		"sum is no number":  `{"min":5,"max":5,"sum":x,"buckets":[5,1]}`,
		"zero between":      `{"min":5,"max":9,"sum":14,"buckets":[5,1,2,0,2,1]}`,
		"zero count":        `{"min":5,"max":5,"sum":5,"buckets":[5,0]}`,
		"same bucket twice": `{"min":5,"max":5,"sum":5,"buckets":[5,1,0,1]}`,
		"beyond the end":    `{"min":5,"max":5,"sum":5,"buckets":[3776,1]}`,
		"wraps round":       `{"min":5,"max":5,"sum":5,"buckets":[5,1,18446744073709551615,1]}`,
		"too many":          `{"min":5,"max":6,"sum":5,"buckets":[5,18446744073709551615,1,1]}`,
		"min elsewhere":     `{"min":4,"max":5,"sum":5,"buckets":[5,1]}`,
		"max elsewhere":     `{"min":5,"max":500,"sum":5,"buckets":[5,1]}`,
		"min above max":     `{"min":1001,"max":1000,"sum":1000,"buckets":[317,1]}`,
		"negative sum":      `{"min":5,"max":5,"sum":-5,"buckets":[5,1]}`,
		"sum alone":         `{"sum":5}`,
		"negative count":    `{"min":5,"max":5,"sum":5,"buckets":[5,-1]}`,
	} {
		h := filled(7)
		if err := h.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if !h.Equal(filled(7)) {
			t.Errorf("%s: the receiver was changed", name)
		}
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	a := filled(1, 100, 10_000)
	for name, b := range map[string]*Histogram{
		"nil": nil, "empty": {}, "other count": filled(1, 100, 10_000, 100), "other bucket": filled(1, 200, 9_900),
	} {
		if a.Equal(b) || b.Equal(a) {
			t.Errorf("%s: equal", name)
		}
	}
	if !a.Equal(a.Clone()) || !(*Histogram)(nil).Equal(&Histogram{}) {
		t.Error("equal histograms differ")
	}
}

func FuzzUnmarshalJSON(f *testing.F) {
	f.Add([]byte(`{"min":5,"max":9,"sum":14,"buckets":[5,1,4,1]}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"min":0,"max":18446744073709551615,"sum":1e300,"buckets":[0,1,3775,9]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Histogram
		if json.Unmarshal(data, &h) != nil {
			return
		}
		var total uint64
		for _, b := range h.Buckets() {
			total += b.Count
		}
		if total != h.Count() || h.Min() > h.Max() {
			t.Fatalf("counts sum to %d of %d, min %d max %d", total, h.Count(), h.Min(), h.Max())
		}
		again, err := json.Marshal(&h)
		if err != nil {
			t.Fatal(err)
		}
		var back Histogram
		if err := json.Unmarshal(again, &back); err != nil || !back.Equal(&h) {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func latencies() *Histogram {
	h := &Histogram{}
	for i := range uint64(2000) {
		h.Add(50_000+i*i*37%5_000_000, 1+i%7)
	}
	return h
}

func BenchmarkAdd(b *testing.B) {
	h := &Histogram{}
	v := uint64(1)
	for b.Loop() {
		v = v*6364136223846793005 + 1442695040888963407
		h.Add(v>>36, 1)
	}
}

func BenchmarkMerge(b *testing.B) {
	h, o := latencies(), latencies()
	for b.Loop() {
		h.Merge(o)
	}
}

func BenchmarkQuantile(b *testing.B) {
	h := latencies()
	for b.Loop() {
		h.Quantile(0.999)
	}
}

func BenchmarkMarshalJSON(b *testing.B) {
	h := latencies()
	for b.Loop() {
		if _, err := h.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalJSON(b *testing.B) {
	data, _ := latencies().MarshalJSON()
	b.SetBytes(int64(len(data)))
	var h Histogram
	for b.Loop() {
		if err := h.UnmarshalJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}
