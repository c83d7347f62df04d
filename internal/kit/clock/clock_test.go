package clock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"plimsoll/internal/kit/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// program is run on both clocks: what it logs must not depend on which one it is.
func program(c clock.Clock) []string {
	var mu sync.Mutex
	var log []string
	begin := c.Now()
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, c.Now().Sub(begin).String()+" "+fmt.Sprintf(format, args...))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := c.Group()
	for i := range 3 {
		g.Go(func() {
			for k := range 2 {
				if err := c.Sleep(ctx, time.Duration(i+1)*time.Minute+time.Duration(k)*time.Second); err != nil {
					note("worker %d: %v", i, err)
					return
				}
				note("worker %d woke", i)
			}
		})
	}
	inner := c.Group()
	g.Go(func() {
		inner.Go(func() {
			_ = c.Sleep(ctx, 90*time.Second)
			note("inner")
		})
		inner.Wait()
		note("inner group done")
	})
	if err := c.Sleep(ctx, 3*time.Minute+500*time.Millisecond); err != nil {
		note("main: %v", err)
	}
	note("cancel")
	cancel()
	g.Wait()
	note("all done")
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		note("sleep on a cancelled context: %v", err)
	}
	if err := c.Sleep(context.Background(), -1); err != nil {
		note("negative sleep: %v", err)
	}
	return log
}

func TestClocksAgree(t *testing.T) {
	want := []string{
		"1m0s worker 0 woke", "1m30s inner", "1m30s inner group done", "2m0s worker 1 woke", "2m1s worker 0 woke",
		"3m0s worker 2 woke",
		"3m0.5s cancel", "3m0.5s worker 1: context canceled", "3m0.5s worker 2: context canceled", "3m0.5s all done",
	}
	t.Run("virtual", func(t *testing.T) {
		for range 50 {
			if diff := cmp.Diff(want, program(clock.NewVirtual(start))); diff != "" {
				t.Fatal(diff)
			}
		}
	})
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got := program(clock.Real{})
			// The real clock promises no order between goroutines woken at the same moment.
			if got[7] > got[8] {
				got[7], got[8] = got[8], got[7]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	})
}

func TestVirtualSameMomentKeepsOrder(t *testing.T) {
	c := clock.NewVirtual(start)
	var got []int
	g := c.Group()
	for i := range 100 {
		g.Go(func() {
			_ = c.Sleep(t.Context(), time.Second)
			got = append(got, i)
		})
	}
	g.Wait()
	for i, v := range got {
		if i != v {
			t.Fatalf("wake-up %d was goroutine %d", i, v)
		}
	}
	if now := c.Now(); !now.Equal(start.Add(time.Second)) {
		t.Fatalf("now is %v", now)
	}
}

func ExampleVirtual() {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	_ = c.Sleep(context.Background(), 12*time.Hour) // returns at once
	fmt.Println(c.Now().Format(time.TimeOnly))
	// Output: 12:00:00
}

func BenchmarkVirtualSleep(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			c := clock.NewVirtual(start)
			ctx, cancel := context.WithCancel(context.Background())
			g := c.Group()
			for i := range n {
				g.Go(func() {
					for c.Sleep(ctx, time.Duration(1+i%7)*time.Second) == nil {
					}
				})
			}
			for b.Loop() {
				_ = c.Sleep(ctx, time.Second)
			}
			cancel()
			g.Wait()
		})
	}
}

// Sleepers under a context each: those of the cancelled contexts wake in the order of their sleeps, all others sleep
// on.
func TestVirtualManyContexts(t *testing.T) {
	c := clock.NewVirtual(start)
	const n = 50
	var contexts [n]context.Context
	var cancels [n]context.CancelFunc
	var got, want []string
	g := c.Group()
	for i := range n {
		contexts[i], cancels[i] = context.WithCancel(t.Context())
		defer cancels[i]()
		g.Go(func() {
			err := c.Sleep(contexts[i], time.Hour)
			got = append(got, fmt.Sprintf("%d %v %v", i, c.Now().Sub(start), err))
		})
	}
	for round := range 3 {
		_ = c.Sleep(t.Context(), time.Minute)
		for i := n - 1; i >= 0; i-- {
			if i%5 == round {
				cancels[i]()
			}
		}
		for i := round; i < n; i += 5 {
			want = append(want, fmt.Sprintf("%d %v %v", i, time.Duration(round+1)*time.Minute, context.Canceled))
		}
	}
	g.Wait()
	for i := range n {
		if i%5 > 2 {
			want = append(want, fmt.Sprintf("%d %v <nil>", i, time.Hour))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
