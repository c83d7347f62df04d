package clock

import (
	"errors"
	"sync"
)

// Parallel calls f for 0 … n-1, at most width at a time, and joins the errors in order of i.
func Parallel(c Clock, n, width int, f func(int) error) error {
	errs := make([]error, n)
	var mu sync.Mutex
	next := 0
	g := c.Group()
	for range min(n, max(width, 1)) {
		g.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				errs[i] = f(i)
			}
		})
	}
	g.Wait()
	return errors.Join(errs...)
}
