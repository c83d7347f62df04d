package view

import (
	"maps"
	"slices"

	"plimsoll/result"
)

// Depths are the fewest and the most operations that streams hold outstanding: those with a rate may hold none, and
// those of different stages take turns.
func Depths(streams []result.Stream) (least, most float64) {
	low, high := map[int]float64{}, map[int]float64{}
	for _, l := range streams {
		d := float64(max(l.Depth, 0))
		high[l.Stage] += d
		if l.Rate != 0 || l.OpenLoop {
			d = 0
		}
		low[l.Stage] += d
	}
	if len(streams) == 0 {
		return 0, 0
	}
	return slices.Min(slices.Collect(maps.Values(low))), slices.Max(slices.Collect(maps.Values(high)))
}

// RateTolerance is how far below the offered rate still counts as reached.
const RateTolerance = 0.01

// Offered is the sum of the streams' rates; limited and unlimited count the streams with and without one.
func Offered(streams []result.Stream) (rate float64, limited, unlimited int) {
	for _, l := range streams {
		if l.Rate > 0 && IsFinite(l.Rate) {
			rate += l.Rate
			limited++
		} else {
			unlimited++
		}
	}
	return rate, limited, unlimited
}

// Offered is the rate offered by all parts together, and how many streams have one and have none.
func (l *Load) Offered() (rate float64, limited, unlimited int) {
	for _, p := range l.Parts {
		r, a, b := Offered(p.Streams)
		rate, limited, unlimited = rate+r, limited+a, unlimited+b
	}
	return rate, limited, unlimited
}
