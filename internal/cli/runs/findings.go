package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"plimsoll/internal/analysis"
	"plimsoll/internal/analysis/assert"
	"plimsoll/internal/metrics/collect"
	"plimsoll/internal/metrics/series"
	"plimsoll/result"
)

// Findings analyses a run and judges the conditions of its author.
func Findings(ctx context.Context, folder *result.Folder, data *result.Data) []result.Finding {
	m := folder.Manifest()
	list := analysis.Run(m, data)
	if len(m.Scenario.Asserts) == 0 {
		return list
	}
	query, done := metricsOf(ctx, folder, data)
	defer done()
	judged := assert.Judge(m.Scenario.Asserts, data, list, query)
	// Within a severity the author's own conditions come first.
	list = append(judged, list...)
	rank := map[result.Severity]int{result.Invalid: 0, result.Warning: 1, result.Info: 2, result.Passed: 3}
	slices.SortStableFunc(list, func(a, b result.Finding) int {
		return cmp.Compare(rank[a.Severity], rank[b.Severity])
	})
	return list
}

// metricsOf answers queries from the metrics of a run, which are opened when the first one comes.
func metricsOf(ctx context.Context, folder *result.Folder, data *result.Data) (query assert.Query, done func()) {
	var store *series.Store
	done = func() {
		if store != nil {
			_ = store.Close() // a view for reading
		}
	}
	return func(promql string) ([]float64, error) {
		if store == nil {
			s, err := collect.OpenMetrics(folder, data.VMs)
			if err != nil {
				return nil, fmt.Errorf("the run's metrics: %w", err)
			}
			store = s
		}
		found, err := store.Instant(ctx, promql, data.End)
		if err != nil {
			return nil, err
		}
		var out []float64
		for _, s := range found {
			for _, p := range s.Points {
				out = append(out, p.Value)
			}
		}
		return out, nil
	}, done
}
