package content

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"plimsoll/internal/testkit/needs"
	"plimsoll/unit"
)

// short: compressors under the race detector take minutes for what else takes seconds.
var short = needs.Race

func TestMain(m *testing.M) {
	flag.Parse()
	short = short || testing.Short()
	os.Exit(m.Run())
}

// virtual holds what a generator would have written, as something to read.
type virtual struct{ *Generator }

func (v virtual) ReadAt(b []byte, at int64) (int, error) {
	v.Fill(b, at)
	return len(b), nil
}

func make1(t testing.TB, o Options) *Generator {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestFillAnywhere: whatever is asked for, at whatever offset, is the same part of the same whole.
func TestFillAnywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Seed:                   rapid.Uint64().Draw(t, "seed"),
			CompressibilityPercent: rapid.SampledFrom([]int{0, 1, 30, 50, 95, 100}).Draw(t, "compressibility"),
			DedupePercent:          rapid.SampledFrom([]int{0, 1, 50, 99}).Draw(t, "dedupe"),
			DedupeBlockBytes:       rapid.SampledFrom([]int{0, 512, 4096, 65536}).Draw(t, "block"),
		}
		if o.CompressibilityPercent > 0 && rapid.Bool().Draw(t, "patterned") || o.CompressibilityPercent == 100 {
			o.Pattern = append(rapid.SliceOfN(rapid.Byte(), 0, 63).Draw(t, "pattern"), 1)
		}
		if o.CompressibilityPercent == 100 {
			o.DedupePercent = 0
		}
		g, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		base := rapid.Int64Range(0, 1<<50).Draw(t, "base")
		whole := make([]byte, rapid.IntRange(1, 200_000).Draw(t, "length"))
		g.Fill(whole, base)
		parts := make([]byte, len(whole))
		for at := 0; at < len(parts); {
			n := min(rapid.IntRange(1, 70_000).Draw(t, "part"), len(parts)-at)
			g.Fill(parts[at:at+n], base+int64(at))
			at += n
		}
		if !bytes.Equal(whole, parts) {
			t.Fatal("parts are not those of the whole")
		}
	})
}

// TestIncompressible: neither compressor finds anything in 80 MiB, one of them remembering all of it; no two sectors of
// 512 bytes are alike; and no bit is set more often than others.
func TestIncompressible(t *testing.T) {
	t.Parallel()
	size := int64(80 << 20)
	if short {
		size = 8 << 20
	}
	g := make1(t, Options{Seed: 1})
	all := make([]byte, size)
	g.Fill(all, 3<<40)
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(128<<20),
		zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(z.EncodeAll(all, nil)); n < len(all) {
		t.Errorf("zstd with a window of 128 MiB makes %d bytes of %d", n, len(all))
	}
	r, err := Check(t.Context(), bytes.NewReader(all), size, CheckOptions{DedupeBlockBytes: []int{512, 4096},
		ChunkBytes: []int{4096, piece}})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Duplicates {
		if d.Distinct != size/int64(d.BlockBytes) && d.Error95 == 0 {
			t.Errorf("of %d blocks of %d bytes %d differ", size/int64(d.BlockBytes), d.BlockBytes, d.Distinct)
		}
	}
	for _, c := range r.Compression {
		if c.Share > 0 {
			t.Errorf("%s saves %v of chunks of %d", c.Codec, c.Share, c.ChunkBytes)
		}
	}
	var counts [256]float64
	for _, b := range all {
		counts[b]++
	}
	want, chi := float64(size)/256, 0.0
	for _, n := range counts {
		chi += (n - want) * (n - want) / want
	}
	if math.Abs(chi-255) > 5*math.Sqrt(2*255) {
		t.Errorf("bytes are not equally frequent: chi squared %v with 255 degrees of freedom", chi)
	}
}

// tolerance is how far, in percentage points, what compressors save may be from what was asked, for any of them at any
// size of chunk. docs/how-to/data-content.md states it.
const tolerance = 1.5

// TestCompressibility: both compressors save what was asked, at every size of chunk; and what is asked never makes
// blocks alike, nor zeros.
func TestCompressibility(t *testing.T) {
	t.Parallel()
	step, size := 5, int64(4<<20)
	if short {
		step, size = 45, 1<<20
	}
	chunks := []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20}
	for _, pattern := range []string{"", "\xde\xad\xbe\xef"} {
		worst := 0.0
		for percent := step; percent <= 95; percent += step {
			g := make1(t, Options{Seed: uint64(percent), CompressibilityPercent: percent, Pattern: []byte(pattern)})
			r, err := Check(t.Context(), virtual{g}, size, CheckOptions{DedupeBlockBytes: []int{512, 4096},
				ChunkBytes: chunks})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Compression {
				off := 100*c.Share - float64(percent)
				worst = max(worst, math.Abs(off))
				if math.Abs(off) > tolerance {
					t.Errorf("pattern %x, %d %%: %s saves %.2f %% of chunks of %v", pattern, percent, c.Codec,
						100*c.Share, unit.Bytes(c.ChunkBytes))
				}
			}
			for _, d := range r.Duplicates {
				if d.Distinct != size/int64(d.BlockBytes) {
					t.Errorf("pattern %x, %d %%: of %d blocks of %d bytes %d differ", pattern, percent,
						size/int64(d.BlockBytes), d.BlockBytes, d.Distinct)
				}
			}
			if r.ZeroLineBytes > 0 {
				t.Errorf("pattern %x, %d %%: %d zeros", pattern, percent, r.ZeroLineBytes)
			}
		}
		t.Logf("pattern %x: at worst %.2f points from what was asked", pattern, worst)
	}
}

// TestDedupe: of whole groups exactly the share asked for repeats, at the size asked for, with and without
// compressibility; smaller blocks repeat alike, and blocks larger than that do not.
func TestDedupe(t *testing.T) {
	t.Parallel()
	blocks := []int{512, 4096, 32768}
	if short {
		blocks = blocks[:1]
	}
	for _, block := range blocks {
		for _, percent := range []int{1, 30, 50, 99} {
			for _, compressibility := range []int{0, 50} {
				g := make1(t, Options{Seed: 7, DedupePercent: percent, DedupeBlockBytes: block,
					CompressibilityPercent: compressibility})
				size := int64(20 * group * block)
				r, err := Check(t.Context(), virtual{g}, size, CheckOptions{DedupeBlockBytes: []int{block, 16 * block}})
				if err != nil {
					t.Fatal(err)
				}
				want := Duplicates{BlockBytes: block, Blocks: 20 * group, Distinct: int64(20 * (group - percent))}
				want.Share = 1 - float64(want.Distinct)/float64(want.Blocks)
				if diff := cmp.Diff(want, r.Duplicates[0]); diff != "" {
					t.Errorf("%d %% of %d bytes (-want +got):\n%s", percent, block, diff)
				}
				if d := r.Duplicates[1]; percent <= 50 && d.Share > 0 {
					t.Errorf("%d %% of %d bytes: %v of %d bytes repeat", percent, block, d.Share, d.BlockBytes)
				}
			}
		}
	}
}

// TestSeedsDiffer: contents of two seeds have no sector in common.
func TestSeedsDiffer(t *testing.T) {
	t.Parallel()
	for _, percent := range []int{0, 95} {
		seen := map[string]bool{}
		for seed := range uint64(4) {
			buf := make([]byte, 1<<20)
			make1(t, Options{Seed: seed, CompressibilityPercent: percent}).Fill(buf, 0)
			for ; len(buf) > 0; buf = buf[512:] {
				if seen[string(buf[:512])] {
					t.Fatalf("%d %%: seed %d has a sector of another", percent, seed)
				}
				seen[string(buf[:512])] = true
			}
		}
	}
}

// TestObjections: all that is wrong is said at once.
func TestObjections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{CompressibilityPercent: 96, DedupePercent: 100, DedupeBlockBytes: 1000},
			"content: compressibility 96 %: want 0 to 95, or 100 for the pattern alone\n" +
				"content: dedupe 100 %: want 0 to 99\n" +
				"content: dedupe block of 1000 bytes: want a power of two, 512 to 1 MiB"},
		{Options{CompressibilityPercent: 100, DedupePercent: 5},
			"content: a pattern alone is one block over and over: leave out dedupe 5 %"},
		{Options{CompressibilityPercent: 100},
			"content: compressibility 100 % is a pattern alone, and none is given"},
		{Options{Pattern: []byte("x")}, "content: a pattern is what the compressible share consists of, and that is " +
			"0 %: give a compressibility, 100 for the pattern alone"},
		{Options{Pattern: make([]byte, 65), CompressibilityPercent: 5},
			"content: a pattern of 65 bytes is too long: at most 64\n" +
				"content: a pattern of zeros is not stored by storage that looks for them, so it would measure nothing"},
	} {
		if _, err := New(c.o); err == nil || err.Error() != c.want {
			t.Errorf("%+v:\n%v\nwant:\n%s", c.o, err, c.want)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, o := range []Options{{}, {CompressibilityPercent: 50}, {DedupePercent: 50},
		{CompressibilityPercent: 100, Pattern: []byte("\xde\xad\xbe\xef")}} {
		for _, size := range []int{4 << 10, 1 << 20} {
			name := fmt.Sprintf("c%d/d%d/%v", o.CompressibilityPercent, o.DedupePercent, unit.Bytes(size))
			b.Run(name, func(b *testing.B) {
				g := make1(b, o)
				buf := make([]byte, size)
				b.SetBytes(int64(size))
				at := int64(0)
				for b.Loop() {
					g.Fill(buf, at)
					at += int64(size)
				}
			})
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	g := make1(b, Options{CompressibilityPercent: 50})
	buf := make([]byte, 64<<20)
	g.Fill(buf, 0)
	for name, o := range map[string]CheckOptions{"all": {Workers: 1}, "hashes": {Workers: 1, CompressBytes: 1}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				if _, err := Check(context.Background(), bytes.NewReader(buf), int64(len(buf)), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
