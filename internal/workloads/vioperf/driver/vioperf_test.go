package vioperf

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		needs.Print(os.Stderr)
		os.Exit(code)
	}))
}

const block = BlockStep

// small is a run of two threads with two blocks outstanding each, on a fake machine with room for 1000 blocks.
func small(t *testing.T, f *fake) Options {
	if f.total == 0 {
		f.free, f.total = 1000*block, 1000*block
	}
	o := Defaults()
	o.Dir, o.Threads, o.QueueDepth, o.BlockBytes, o.Reserve = t.TempDir(), 2, 2, block, 0
	o.Duration, o.on = 10*time.Second, f.machine()
	return o
}

// write runs in made-up time, and demands that nothing is left behind.
func write(t *testing.T, o Options) (res *Result) {
	t.Helper()
	res, err := Write(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return res
}

// outcome holds what tests compare of a Result.
type outcome struct {
	Ended  Ending
	Error  string
	Blocks uint64
	Bytes  int64
	Good   uint64 // blocks that were read back as they were written
	Wrong  uint64
}

func outcomeOf(res *Result) outcome {
	o := outcome{Ended: res.Ended, Error: res.Error, Blocks: res.Blocks, Bytes: res.Bytes}
	if v := res.Verification; v != nil {
		o.Good, o.Wrong = v.Blocks-v.Wrong(), v.Wrong()
	}
	return o
}

// At a rate every block has its moment; in made-up time none is late.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small(t, &fake{})
		o.Rate, o.Verify = 16*block, true
		var seconds []Second
		o.Progress = func(s Second) { seconds = append(seconds, s) }
		res := write(t, o)
		if diff := cmp.Diff(outcome{Time, "", 160, 160 * block, 160, 0}, outcomeOf(res)); diff != "" {
			t.Error(diff)
		}
		zero := 0.0
		want := &Times{P50: &zero, P99: &zero}
		if diff := cmp.Diff(want, res.Response); diff != "" {
			t.Error(diff)
		}
		if len(seconds) < 9 || math.Abs(seconds[3].BytesPerSecond-16*block) > block ||
			cmp.Diff(seconds, res.Series) != "" {
			t.Errorf("%+v", seconds)
		}
		if res.Cores != 2 || res.PerCore != res.BytesPerSecond/2 {
			t.Errorf("%v per core of %d, %v in all", res.PerCore, res.Cores, res.BytesPerSecond)
		}
	})
}

// A run that is behind its rate says so by its response times: they count from when a block was due.
func TestResponseTimeCountsFromWhenABlockWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		o := small(t, f)
		o.Threads, o.QueueDepth, o.Rate = 1, 1, 2*block
		f.fault = func(*fakeFile, int64) error { time.Sleep(time.Second); return nil }
		res := write(t, o)
		if res.Service.Max != 1 || res.Service.Mean != 1 {
			t.Errorf("service time %+v, want 1 s", res.Service)
		}
		// Ten blocks, due every half second, done every second: the last is done at 10 s, and was due at 4.5 s.
		if res.Blocks != 10 || res.Response.Max != 5.5 {
			t.Errorf("%d blocks, response time %+v", res.Blocks, res.Response)
		}
	})
}

func TestFull(t *testing.T) {
	const reserve = 10 * block
	medium := func(at int64, err error) func(*fakeFile, int64) error {
		return func(_ *fakeFile, offset int64) error {
			if offset >= at {
				return err
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		fake     *fake
		whenFull string
		rate     float64
		want     outcome
		says     string
	}{
		"stops at the reserve": {fake: &fake{free: 50 * block, total: 100 * block}, whenFull: Stop,
			want: outcome{Full, "", 40, 40 * block, 40, 0}, says: "the reserve was reached"},
		"goes round at the reserve": {fake: &fake{free: 50 * block, total: 100 * block}, whenFull: Wrap,
			rate: 20 * block,
			want: outcome{Time, "", 200, 200 * block, 40, 0}, says: "overwrote older ones"},
		"no room before the reserve": {whenFull: Stop, rate: 20 * block, fake: &fake{free: 500 * block,
			total: 500 * block, fault: medium(30*block, syscall.ENOSPC)},
			says: "Cut short after 3.0 s of 10.0 s: no space",
			want: outcome{Full, "no space left on device", 60, 60 * block, 60, 0}},
		"a quota, gone round": {whenFull: Wrap, rate: 20 * block, fake: &fake{free: 500 * block, total: 500 * block,
			fault: medium(30*block, syscall.EDQUOT)}, says: "disk quota exceeded",
			want: outcome{Time, "disk quota exceeded", 198, 198 * block, 60, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := small(t, c.fake)
				o.Reserve, o.WhenFull, o.Rate, o.Verify = reserve, c.whenFull, c.rate, true
				res := write(t, o)
				if diff := cmp.Diff(c.want, outcomeOf(res)); diff != "" {
					t.Error(diff, res.Verification)
				}
				if text := res.Ending(); !strings.Contains(text, c.says) {
					t.Errorf("%q does not say %q", text, c.says)
				}
				if (res.Wrapped > 0) != (c.whenFull == Wrap) {
					t.Errorf("wrapped after %v", res.Wrapped)
				}
			})
		})
	}
}

// What others write counts, too: the reserve stays.
func TestOthersTakeTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.looked = func(n int) {
			if n == 10 {
				f.free -= 900 * block
			}
		}
		o := small(t, f)
		o.Reserve, o.Rate = 10*block, 20*block
		res := write(t, o)
		if res.Ended != Full || f.free < 10*block || res.Blocks > 100 {
			t.Errorf("%s after %d blocks, %d blocks free", res.Ended, res.Blocks, f.free/block)
		}
	})
}

func TestFailingMedium(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small(t, &fake{fault: func(f *fakeFile, offset int64) error {
			if f.name == "thread-0002" && offset == 7*block {
				return errMedium
			}
			return nil
		}})
		o.Rate, o.Verify = 20*block, true
		res := write(t, o)
		want := outcome{Failed, "block 7 of thread 2, at byte 28672: input/output error", 15, 15 * block, 15, 0}
		if diff := cmp.Diff(want, outcomeOf(res)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small(t, &fake{})
		o.Rate, o.Verify = 20*block, true
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second+time.Millisecond)
		defer stop()
		res, err := Write(ctx, o)
		if err != nil || res.Ended != Interrupted || res.Blocks != 41 || len(res.Notes) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// Damage of every kind is found where it is, and nothing else.
func TestVerifyFindsDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, checksum := range []bool{true, false} {
			f := &fake{}
			o := small(t, f)
			o.Rate, o.Verify, o.Checksum = 20*block, true, checksum
			f.damage = func(f *fakeFile) {
				if f.name != "thread-0001" {
					return
				}
				at := func(n int) []byte { return f.data[n*block : (n+1)*block] }
				at(3)[2000] ^= 1
				clear(at(5))
				copy(at(8), at(9))
				copy(at(11), "something else")
				at(13)[8]++
				f.bad = map[int64]error{20 * block: errMedium}
			}
			res := write(t, o)
			content := "its content is not what was written"
			if checksum {
				content = "its checksum is ..."
			}
			var got []string
			for _, b := range res.Verification.Found {
				what, _, cut := strings.Cut(b.What, "is ")
				if cut && strings.HasPrefix(b.What, "its checksum") {
					b.What = what + "is ..."
				}
				got = append(got, fmt.Sprintf("%d %d %s", b.Block, b.At, b.What))
			}
			want := []string{
				"3 12288 " + content, "5 20480 it is all zeros", "8 32768 block 9 of thread 1 stands there",
				"11 45056 no block of this tool's stands there",
				"13 53248 a block of another run (seed 2) stands there",
				"20 81920 it cannot be read: input/output error",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if v := res.Verification; v.Bad != 5 || v.Unreadable != 1 || v.Blocks != 200 {
				t.Errorf("%+v", v)
			}
		}
	})
}

// No change of a single bit goes unnoticed, with checksums or without; an unchanged block is never complained about.
func TestJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Seed: rapid.Uint64().Draw(t, "seed"), Checksum: rapid.Bool().Draw(t, "checksum"),
			CompressibilityPercent: rapid.SampledFrom([]int{0, 50}).Draw(t, "compressibility")}
		m, err := newMaker(o)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, BlockStep*rapid.IntRange(1, 20).Draw(t, "steps"))
		thread, n := rapid.IntRange(0, mostThread-1).Draw(t, "thread"), rapid.Int64Range(0, 1<<30).Draw(t, "number")
		m.prepare(b, 7)
		m.stamp(b, 7, thread, n)
		spare := make([]byte, len(b))
		if what := m.judge(b, spare, thread, n); what != "" {
			t.Fatal(what)
		}
		bit := rapid.IntRange(0, len(b)*8-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		if m.judge(b, spare, thread, n) == "" {
			t.Fatalf("bit %d changed, and nobody noticed", bit)
		}
	})
}

// Whatever is read back, judging it ends with words or with nothing.
func FuzzJudge(f *testing.F) {
	m, err := newMaker(Options{Seed: 1, Checksum: true})
	if err != nil {
		f.Fatal(err)
	}
	good := make([]byte, BlockStep)
	m.prepare(good, 0)
	m.stamp(good, 0, 0, 0)
	f.Add(good)
	f.Add([]byte("VIOPERF2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := make([]byte, BlockStep)
		copy(b, data)
		same := cmp.Equal(b, good)
		if what := m.judge(b, make([]byte, BlockStep), 0, 0); (what == "") != same {
			t.Errorf("%q of a block that is as written: %t", what, same)
		}
	})
}

func TestCheckTellsAllAtOnce(t *testing.T) {
	err := Options{BlockBytes: 1000, QueueDepth: 300, Rate: -1, WhenFull: "explode", CompressibilityPercent: 99}.Check()
	want := `thread count 0: want 1 to 1024
block size 1000: want a multiple of 4 KiB up to 64 MiB, as direct I/O needs
queue depth 300: want 1 to 256
duration 0s: want more than 0
rate -1: want bytes per second, 0 for as fast as it goes
when full "explode": there are stop and wrap
content: compressibility 99 %: want 0 to 95, or 100 for the pattern alone`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
	o := Defaults()
	o.Threads, o.BlockBytes = 1000, 64<<20
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "of buffers") {
		t.Errorf("%v", err)
	}
}

func TestTooLittleRoom(t *testing.T) {
	o := small(t, &fake{free: 20 * block, total: 100 * block})
	o.Reserve = 15 * block
	_, err := Write(t.Context(), o)
	want := o.Dir + ": 80 KiB of 400 KiB are free, and 60 KiB stay so (the reserve): that leaves less than the 24 KiB " +
		"that are written at once; free some space, or lower the reserve, the block size or the thread count"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultReserve(t *testing.T) {
	got := map[int64]int64{}
	for _, total := range []int64{1 << 20, 4 << 30, 100 << 30} {
		got[total] = DefaultReserve(total)
	}
	want := map[int64]int64{1 << 20: 1 << 19, 4 << 30: 1 << 30, 100 << 30: 5 << 30}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}
