package guard

import (
	"testing"
	"time"
)

// SetPatience has looks take less time, or more, for one test.
func SetPatience(t *testing.T, d time.Duration) {
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}
