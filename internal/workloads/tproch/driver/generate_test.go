package tproch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plimsoll/internal/testkit/needs"
)

// pool is the text of all generators of the tests.
var pool = sync.OnceValue(textPool)

func generator(scale Scale) *Generator { return &Generator{scale: scale, text: pool()} }

// At scale 1 every table is what go-tpc's dbgen v1.0.12, a port of TPC's own, writes, with tabs for its bars and
// without the quotes that it puts around comments: that was compared byte for byte when these digests were taken.
func TestDataSetOfScaleOne(t *testing.T) {
	t.Parallel()
	needs.Long(t, "a gigabyte is made; portions of it, and all of a hundredth, are made in every run of tests")
	if needs.Race {
		t.Skip("it starts nothing that could race")
	}
	g := generator(1)
	var digests, lines [tables]any
	for _, source := range sources {
		one, two := sha256.New(), sha256.New()
		var rows, more []byte
		ones, twos := 0, 0
		for first := int64(0); first < g.scale.Rows(source.table); first += source.portion {
			var err error
			n := min(source.portion, g.scale.Rows(source.table)-first)
			if rows, more, err = g.Append(source.table, rows[:0], more[:0], first, n); err != nil {
				t.Fatal(err)
			}
			one.Write(rows)
			two.Write(more)
			ones += bytes.Count(rows, []byte("\n"))
			twos += bytes.Count(more, []byte("\n"))
		}
		digests[source.table], lines[source.table] = hex.EncodeToString(one.Sum(nil))[:16], ones
		if twos > 0 {
			digests[source.table+1], lines[source.table+1] = hex.EncodeToString(two.Sum(nil))[:16], twos
		}
	}
	want := [tables]any{"e0855c3d9ad6bf7e", "02184578b98209bd", "adf540bdc2d6dcf4", "9b64db05eb722407",
		"772d13976b2fa4b6", "c110932f6db6bb13", "95a2d8ac40c779a7", "a669352908f2c95e"}
	if d := cmp.Diff(want, digests); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([tables]any{5, 25, 10_000, 150_000, 200_000, 800_000, 1_500_000, 6_001_215}, lines); d != "" {
		t.Error(d)
	}
}

// Rows are the same in whatever portions they are made.
func TestPortions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := generator(Scale(rapid.SampledFrom([]float64{0.01, 0.02, 3, 100, MaxScale}).Draw(t, "scale")))
		table := rapid.SampledFrom([]Table{Region, Nation, Supplier, Customer, Part, Order}).Draw(t, "table")
		rows := g.scale.Rows(table)
		first := rapid.Int64Range(0, rows).Draw(t, "first")
		n := rapid.Int64Range(0, min(50, rows-first)).Draw(t, "n")
		cut := rapid.Int64Range(0, n).Draw(t, "cut")
		whole, brought, err := g.Append(table, nil, nil, first, n)
		if err != nil {
			t.Fatal(err)
		}
		one, two, err := g.Append(table, nil, nil, first, cut)
		if err == nil {
			one, two, err = g.Append(table, one, two, first+cut, n-cut)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(whole, one) || !bytes.Equal(brought, two) {
			t.Errorf("%s\n%s", whole, one)
		}
	})
}

func TestScale(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range []float64{0.01, 0.07, 1, 3, 10_000, 0, -1, 1.5, 0.015, 10_001, math.NaN(), math.Inf(1)} {
		if err := Scale(s).Check(); err != nil {
			got = append(got, err.Error())
		}
	}
	want := []string{"scale: 0 is not from 0.01 to 10000", "scale: -1 is not from 0.01 to 10000",
		"scale: 1.5 is not a whole number, as scales beyond 1 are; take 2",
		"scale: 0.015 is not in hundredths, as scales below 1 are; take 0.02",
		"scale: 10001 is not from 0.01 to 10000", "scale: NaN is not from 0.01 to 10000",
		"scale: +Inf is not from 0.01 to 10000"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := NewGenerator(0); err == nil {
		t.Error("it made a generator of nothing")
	}
}

func TestNoSuchRows(t *testing.T) {
	t.Parallel()
	g := generator(0.01)
	for _, bad := range []struct {
		table    Table
		first, n int64
		want     string
	}{
		{Line, 0, 1, "generate: rows of lineitem come with those of orders"},
		{PartSupplier, 0, 1, "generate: rows of partsupp come with those of part"},
		{Nation, 20, 6, "generate: rows 20 to 25 of nation: it has 25"},
		{Order, -1, 1, "generate: rows -1 to -1 of orders: it has 15000"},
		{Order, 1, math.MaxInt64, "generate: rows 1 to 9223372036854775807 of orders: it has 15000"},
	} {
		if _, _, err := g.Append(bad.table, nil, nil, bad.first, bad.n); err == nil || err.Error() != bad.want {
			t.Errorf("%v instead of %s", err, bad.want)
		}
	}
	for _, ordinal := range []int64{0, Refreshes + 1} {
		if _, _, err := g.AppendRefresh(ordinal, nil, nil); err == nil {
			t.Error(ordinal)
		}
	}
}

// What refreshes add has keys that no other order has, and what they remove are orders of the load, each once.
func TestRefreshKeys(t *testing.T) {
	t.Parallel()
	scale := Scale(0.01)
	g := generator(scale)
	seen := map[string]bool{}
	keysOf := func(rows []byte) (keys []string) {
		for line := range strings.Lines(string(rows)) {
			key, _, _ := strings.Cut(line, "\t")
			keys = append(keys, key)
			if seen[key] {
				t.Fatalf("%s twice", key)
			}
			seen[key] = true
		}
		return keys
	}
	rows, _, err := g.Append(Order, nil, nil, 0, scale.Rows(Order))
	if err != nil {
		t.Fatal(err)
	}
	loaded := keysOf(rows)
	for ordinal := int64(1); ordinal <= Refreshes; ordinal++ {
		rows, _, err := g.AppendRefresh(ordinal, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if keys := keysOf(rows); len(keys) != 15 {
			t.Fatal(keys)
		}
		least, greatest := scale.Refreshed(ordinal)
		if d := cmp.Diff([]string{fmt.Sprint(least), fmt.Sprint(greatest)},
			[]string{loaded[15*ordinal-15], loaded[15*ordinal-1]}); d != "" {
			t.Fatalf("refresh %d: %s", ordinal, d)
		}
	}
}

func BenchmarkTextPool(b *testing.B) {
	for b.Loop() {
		textPool()
	}
}

func BenchmarkScaleOne(b *testing.B) {
	g := generator(1)
	var rows, more []byte
	for b.Loop() {
		for _, source := range sources {
			for first := int64(0); first < g.scale.Rows(source.table); first += source.portion {
				n := min(source.portion, g.scale.Rows(source.table)-first)
				rows, more, _ = g.Append(source.table, rows[:0], more[:0], first, n) // there are such rows
			}
		}
	}
}
