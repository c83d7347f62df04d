package console

import (
	"io"
	"sync"
	"time"

	"plimsoll/internal/kit/visible"
	"plimsoll/unit"
)

// amount tells how far something with a known number of bytes is, now and then, and how long the rest will take.
type amount struct {
	mu    sync.Mutex
	w     io.Writer
	now   func() time.Time
	phase string
	began time.Time
	told  time.Time
}

// calm is how often an amount is told.
const calm = 5 * time.Second

func (c *Console) Amount(phase string) *amount {
	return &amount{w: c.Notes(), now: c.Now, phase: phase, began: c.Now(), told: c.Now()}
}

// Tell may be called at any rate, from several goroutines.
func (p *amount) Tell(done, of int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.told) < calm || done >= of || done <= 0 {
		return
	}
	p.told = now
	took := now.Sub(p.began)
	left := time.Duration(float64(took) / float64(done) * float64(of-done))
	visible.Fprintf(p.w, "%s: %s of %s, %s, %s left\n", p.phase, unit.Bytes(done), unit.Bytes(of),
		unit.Bandwidth(float64(done)/took.Seconds()).Decimal(), left.Round(time.Second))
}
