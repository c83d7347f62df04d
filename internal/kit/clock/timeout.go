package clock

import (
	"context"
	"errors"
	"time"
)

// ErrTimeout is the context.Cause of a context whose time, given to WithTimeout, is over.
var ErrTimeout = errors.New("time limit reached")

// WithTimeout is context.WithTimeout in the time of c. The returned context ends with context.Canceled and the cause
// ErrTimeout. The cancel function must be called; it returns when the goroutine behind the limit has ended.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	g := c.Group()
	g.Go(func() {
		if c.Sleep(limited, d) == nil {
			cancel(ErrTimeout)
		}
	})
	return limited, func() {
		cancel(context.Canceled)
		g.Wait()
	}
}
