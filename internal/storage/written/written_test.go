package written

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// disk is a disk in memory that knows which of its bytes were written.
type disk struct {
	*bytes.Reader
	mapped  []Range
	unknown bool
	fail    error
	reads   []int64
}

func (d *disk) Written(from, to int64) (int64, bool, error) {
	return to - from - Bytes(Lacks([]Range{{from, to}}, d.mapped)), !d.unknown, d.fail
}

func (d *disk) ReadAt(p []byte, at int64) (int, error) {
	d.reads = append(d.reads, at)
	return d.Reader.ReadAt(p, at)
}

// half is a disk whose second half was never written.
func half(bytesOf int) *disk {
	data := make([]byte, bytesOf)
	for i := range bytesOf / 2 {
		data[i] = 1
	}
	return &disk{Reader: bytes.NewReader(data), mapped: []Range{{0, int64(bytesOf / 2)}}}
}

func TestSample(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, c := range map[string]struct {
		ranges []Range
		blocks int
		want   Look
	}{
		"the written half":       {[]Range{{0, size / 2}}, 64, Look{size / 2, size / 2, true, 64, 0}},
		"all of it":              {[]Range{{0, size}}, 128, Look{size, size / 2, true, 128, 64}},
		"more blocks than there": {[]Range{{0, 8192}, {4096, 16384}}, 100, Look{16384, 16384, true, 4, 0}},
		"the half never written": {[]Range{{size / 2, size}}, 16, Look{size / 2, 0, true, 16, 16}},
		"no range":               {nil, 16, Look{}},
		"less than a block":      {[]Range{{0, 100}}, 16, Look{100, 100, true, 0, 0}},
		"no blocks wanted":       {[]Range{{0, size}}, 0, Look{size, size / 2, true, 0, 0}},
		"two ranges, one unwritten": {[]Range{{0, 65536}, {size - 65536, size}}, 32,
			Look{131072, 65536, true, 32, 16}},
	} {
		d := half(size)
		got, err := Sample(t.Context(), d, c.ranges, c.blocks, 7)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
		for i := range d.reads[min(1, len(d.reads)):] {
			if d.reads[i+1] <= d.reads[i] {
				t.Errorf("%s: reads go back: %d after %d", name, d.reads[i+1], d.reads[i])
			}
		}
	}
	d := half(size)
	d.unknown = true
	got, err := Sample(t.Context(), d, []Range{{0, size}}, 4, 1)
	if err != nil || got.Known || got.Mapped != 0 || got.Blocks != 4 {
		t.Errorf("of a place that does not know: %+v, %v", got, err)
	}
}

func TestSampleFails(t *testing.T) {
	t.Parallel()
	d := half(1 << 16)
	d.fail = errors.New("gone")
	_, err := Sample(t.Context(), d, []Range{{0, 1 << 16}}, 4, 1)
	if err == nil || err.Error() != "bytes 0 to 65536: gone" {
		t.Errorf("%v", err)
	}
	l, err := Sample(t.Context(), half(1<<16), []Range{{0, 1 << 20}}, 64, 1)
	if !errors.Is(err, io.EOF) || l.Blocks == 0 {
		t.Errorf("beyond the end: %+v, %v", l, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Sample(ctx, half(1<<16), []Range{{0, 1 << 16}}, 4, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBound(t *testing.T) {
	t.Parallel()
	// With none of n it is 1 - 0.05^(1/n); the others are tables of the binomial distribution.
	for l, want := range map[Look]float64{
		{Blocks: 2048}: 1 - math.Pow(0.05, 1./2048), {Blocks: 1}: 0.95, {Blocks: 10, Zero: 1}: 0.3942, {}: 1,
		{Blocks: 20, Zero: 10}: 0.6980, {Blocks: 5, Zero: 5}: 1,
	} {
		if got := l.Bound(); math.Abs(got-want) > 1e-4 {
			t.Errorf("%+v: %v, want %v", l, got, want)
		}
	}
}

// Lacks and Merge against bits.
func TestRanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []Range {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Range {
				from := rapid.Int64Range(0, 60).Draw(t, "from")
				return Range{from, from + rapid.Int64Range(0, 20).Draw(t, "length")}
			}), 0, 6).Draw(t, name)
		}
		bits := func(ranges []Range) (b [100]bool) {
			for _, r := range ranges {
				for i := r.From; i < r.To; i++ {
					b[i] = true
				}
			}
			return b
		}
		wanted, covered := draw("wanted"), draw("covered")
		want := bits(wanted)
		if diff := cmp.Diff(want, bits(Merge(wanted))); diff != "" {
			t.Fatal(diff)
		}
		for i, c := range bits(covered) {
			want[i] = want[i] && !c
		}
		lacks := Lacks(wanted, covered)
		if diff := cmp.Diff(want, bits(lacks)); diff != "" {
			t.Fatalf("%v without %v: %v: %s", wanted, covered, lacks, diff)
		}
		if n := Bytes(lacks); n != int64(count(want)) {
			t.Fatalf("%d bytes, want %d", n, count(want))
		}
	})
}

func count(b [100]bool) (n int) {
	for _, is := range b {
		if is {
			n++
		}
	}
	return n
}

func ExampleSample() {
	d := half(8 << 20) // its second half was never written
	l, err := Sample(context.Background(), d, []Range{{0, 6 << 20}}, 300, 1)
	fmt.Println(l.Mapped, "of", l.Bytes, "bytes written;", l.Zero, "of", l.Blocks, "blocks zero", err)
	// Output: 4194304 of 6291456 bytes written; 100 of 300 blocks zero <nil>
}
