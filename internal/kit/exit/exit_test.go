package exit_test

import (
	"errors"
	"fmt"
	"testing"

	"plimsoll/internal/kit/exit"
)

type coded int

func (c coded) Error() string { return fmt.Sprintf("error of code %d", int(c)) }
func (c coded) ExitCode() int { return int(c) }

func TestCode(t *testing.T) {
	plain, usage := errors.New("x"), exit.Usagef("read the manual", "run: no %s", "scenario")
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"none":                          {nil, exit.Done},
		"no code":                       {plain, exit.Failed},
		"wrong command line":            {usage, exit.Usage},
		"wrapped":                       {fmt.Errorf("a: %w", errors.Join(plain, coded(exit.Refused))), exit.Refused},
		"left behind, and a code given": {errors.Join(usage, coded(exit.Uncleaned)), exit.Uncleaned},
		"left behind inside": {exit.Errorf(exit.Threshold, "", "t: %w", coded(exit.Uncleaned)),
			exit.Uncleaned},
		"a given code before another": {errors.Join(coded(exit.Interrupted), usage), exit.Usage},
		"the first given":             {errors.Join(exit.Errorf(exit.Threshold, "", "t"), usage), exit.Threshold},
		"a stop before a refusal":     {errors.Join(coded(exit.Refused), coded(exit.Interrupted)), exit.Interrupted},
	} {
		if got := exit.Code(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if usage.Error() != "run: no scenario" {
		t.Error(usage)
	}
}
