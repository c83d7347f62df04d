package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/kit/clock"
)

func TestWithTimeout(t *testing.T) {
	check := func(t *testing.T, c clock.Clock) {
		began := c.Now()
		ctx, cancel := clock.WithTimeout(t.Context(), c, time.Minute)
		defer cancel()
		err := c.Sleep(ctx, time.Hour)
		if !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(ctx), clock.ErrTimeout) {
			t.Errorf("error %v, cause %v", err, context.Cause(ctx))
		}
		if d := c.Now().Sub(began); d != time.Minute {
			t.Errorf("ended after %v", d)
		}
		early, stop := clock.WithTimeout(t.Context(), c, time.Minute)
		stop()
		stop()
		if errors.Is(context.Cause(early), clock.ErrTimeout) || early.Err() == nil {
			t.Errorf("cancelled early: %v, cause %v", early.Err(), context.Cause(early))
		}
		if d := c.Now().Sub(began); d != time.Minute {
			t.Errorf("cancelling took until %v", d)
		}
	}
	t.Run("virtual", func(t *testing.T) { check(t, clock.NewVirtual(time.Unix(0, 0))) })
	t.Run("real", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { check(t, clock.Real{}) }) })
}
