package step

import (
	"context"
	"fmt"
	"time"

	"plimsoll/scenario"
	"plimsoll/unit"
)

func testSteps() Registry { return Registry{"test.Wait": single(wait)} }

func wait(a scenario.Args, v View) (*action, error) {
	d := v.Scaled(a.Seconds("duration_secs"))
	words := unit.Duration(d).String()
	return &action{
		text:     "wait " + words,
		estimate: func(*Forecast) time.Duration { return d },
		check: func(View) error {
			if d <= 0 {
				return fmt.Errorf("duration_secs %v: must be above 0", a["duration_secs"])
			}
			return nil
		},
		do: func(ctx context.Context, e *Env) error {
			e.annotate(a.Bool("annotate"), "Waiting %s", words)
			if err := e.Clock.Sleep(ctx, d); err != nil {
				return err
			}
			e.annotate(a.Bool("annotate"), "Waited %s", words)
			return nil
		},
	}, nil
}
