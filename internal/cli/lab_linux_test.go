package cli

import (
	"strings"
	"testing"

	"plimsoll/internal/exit"
)

// TestLabPowerWaitNegative: it is refused before the button is pressed, and not found to be over afterwards.
func TestLabPowerWaitNegative(t *testing.T) {
	a, _, errs := quiet(t)
	if got := a.main([]string{"lab", "power", "1", "off", "--wait", "-5s", "--dir", t.TempDir()}); got != exit.Usage ||
		!strings.Contains(errs.String(), "--wait -5s") {
		t.Errorf("exit code %d, %s", got, errs)
	}
}
