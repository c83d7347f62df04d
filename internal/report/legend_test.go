package report

import (
	"strings"
	"testing"
)

// The legend of the percentiles claims nothing of generators that gave no distribution.
func TestPercentilesLegend(t *testing.T) {
	t.Parallel()
	ms := 0.001
	table := func(name string, rows ...OpRow) Latency {
		return Latency{Workload: name, Kind: "service time", Error: 0.0079, Windows: []WindowTotals{{Rows: rows}}}
	}
	spread := table("fio", OpRow{Op: "read", Mean: &ms, P50: &ms, Max: &ms})
	spread.distributed = true
	means := table("pgbench", OpRow{Op: "transaction", Mean: &ms})
	stated := table("hammerdb")
	for name, c := range map[string]struct {
		tables        []Latency
		want, without string
		titles        string
	}{
		"all": {[]Latency{spread}, "merged histograms", "no distribution", "fio: service time"},
		"some": {[]Latency{means, spread}, "no distribution of times was given: of pgbench", "of fio",
			"pgbench: service time, fio: service time"},
		"means":  {[]Latency{means}, "not given, only means", "histograms", "pgbench: service time"},
		"stated": {[]Latency{stated}, "as it gave it", "histograms", "hammerdb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := &Document{Latencies: c.tables}
			got := doc.PercentilesLegend()
			if !strings.Contains(got, c.want) || strings.Contains(got, c.without) {
				t.Errorf("%q, want %q and not %q", got, c.want, c.without)
			}
			var titles []string
			for _, l := range c.tables {
				titles = append(titles, l.Title())
			}
			if s := strings.Join(titles, ", "); s != c.titles {
				t.Errorf("titles %q, want %q", s, c.titles)
			}
		})
	}
}
