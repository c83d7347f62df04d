package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"plimsoll/internal/testkit/needs"
)

// A scale-out run on a simulated cluster whose contention and crosstalk are chosen gives them back, from the scenario
// to the fit: with neither, with contention alone, with a peak beyond the data and with one inside. The limit is one
// and a half times the fit's own 95 % interval, which is 99.3 % for one coefficient at ten degrees of freedom.
func TestScaleOutGivesTheLawBack(t *testing.T) {
	t.Parallel()
	needs.Time(t)
	const service = 180e-6 + 8192/200e6 // of a read of 8 KiB, seconds
	type coefficient struct {
		Value   float64
		AtBound bool                         `json:"at_bound"`
		T       *struct{ Low, High float64 } `json:"t_interval"`
	}
	for _, c := range []struct{ contention, crosstalk float64 }{{0, 0}, {0.05, 0}, {0.01, 1e-5}, {0.3, 1e-4},
		{0.02, 1e-3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			s := session{t: t, runs: filepath.Join(t.TempDir(), "runs")}
			s.must("run", "scale-out", "--target", "sim", "--set", "steps=12", "--target-opt", "model.servers=256",
				"--target-opt", fmt.Sprintf("model.contention=%g", c.contention), "--target-opt",
				fmt.Sprintf("model.crosstalk=%g", c.crosstalk))
			var fit struct {
				N                  int
				Gamma, Alpha, Beta coefficient
				Peak               struct {
					Concurrency float64
					InRange     bool `json:"in_range"`
				}
			}
			if err := json.Unmarshal([]byte(s.must("usl", "latest", "--json")), &fit); err != nil {
				t.Fatal(err)
			}
			if fit.N != 13 {
				t.Errorf("%d stages, want 13", fit.N)
			}
			for _, p := range []struct {
				name string
				got  coefficient
				want float64
			}{{"gamma", fit.Gamma, 1 / service}, {"alpha", fit.Alpha, c.contention}, {"beta", fit.Beta, c.crosstalk}} {
				switch {
				case p.got.AtBound:
					if p.want != 0 {
						t.Errorf("%s is at its bound, want %g", p.name, p.want)
					}
				case p.got.T == nil:
					t.Errorf("%s has no interval", p.name)
				case math.Abs(p.got.Value-p.want) > 1.5*max(p.got.T.High-p.got.Value, p.got.Value-p.got.T.Low):
					t.Errorf("%s is %g (%g to %g), want %g", p.name, p.got.Value, p.got.T.Low, p.got.T.High, p.want)
				}
			}
			peak := math.Sqrt((1 - c.contention) / c.crosstalk)
			if inside := peak < 193; inside != fit.Peak.InRange || inside &&
				math.Abs(fit.Peak.Concurrency-peak) > 0.02*peak {
				t.Errorf("peak %+v, want %.1f", fit.Peak, peak)
			}
		})
	}
}
