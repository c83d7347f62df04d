package blocktrace

import (
	"io"

	"plimsoll/internal/report"
	"plimsoll/internal/storage/trace"
	"plimsoll/unit"
)

// Page writes what trace prints as a page, with its charts.
func Page(w io.Writer, r *trace.Result) error {
	p := report.Page{Kind: "trace", Title: unit.List(r.Sources, 2), Headline: r.Verdict.Sentence,
		Notes: []string{title(r), sureWords(r.Verdict)}}
	if r.Partial {
		p.Notes = append([]string{partial}, p.Notes...)
	}
	for _, q := range r.Problems {
		p.Notes = append(p.Notes, q.What+" ("+unit.Thousands(int64(q.Count))+")")
	}
	for _, plot := range plots(r) {
		p.Parts = append(p.Parts, report.PagePart{Title: plot.Title, Plot: &plot})
	}
	for _, t := range tables(r) {
		p.Parts = append(p.Parts, report.PagePart{Title: t.Title, Head: t.Table.Head, Right: t.Table.Right,
			Rows: t.Table.Rows(), Notes: t.Notes})
	}
	return report.PageHTML(w, p)
}

// plots are the requests by size, what caches would miss, and what happened over time.
func plots(r *trace.Result) []report.Plot {
	plots := []report.Plot{sizesPlot(r)}
	if r.WorkingSet != nil {
		plots = append(plots, missPlot(r.WorkingSet))
	}
	over := func(title, label string, of map[string]func(trace.Moment) float64, names ...string) {
		p := report.Plot{Title: title, XLabel: "seconds", YLabel: label}
		for _, name := range names {
			s := report.PlotSeries{Name: name, Line: true}
			for _, m := range r.Series {
				s.Points = append(s.Points, report.PlotPoint{X: m.Seconds, Y: of[name](m)})
			}
			p.Series = append(p.Series, s)
		}
		plots = append(plots, p)
	}
	if len(r.Series) > 1 {
		over("Requests over time", "a second", map[string]func(trace.Moment) float64{
			"reads":  func(m trace.Moment) float64 { return float64(m.Reads) / r.Step },
			"writes": func(m trace.Moment) float64 { return float64(m.Writes) / r.Step }}, "reads", "writes")
		if r.Queue != nil {
			over("Queue depth over time", "requests", map[string]func(trace.Moment) float64{
				"mean": func(m trace.Moment) float64 { return m.QueueDepth }}, "mean")
		}
	}
	return plots
}

// sizesPlot counts requests by the power of two that their size fits in.
func sizesPlot(r *trace.Result) report.Plot {
	p := report.Plot{Title: "Requests by size", XLabel: "size up to", YLabel: "requests"}
	for bytes := uint64(512); bytes <= 4<<20; bytes *= 2 {
		p.Names = append(p.Names, unit.Bytes(bytes).String())
	}
	for _, o := range r.Operations {
		if len(o.Sizes) == 0 {
			continue
		}
		counts := make([]float64, len(p.Names))
		for _, s := range o.Sizes {
			i := 0
			for i < len(counts)-1 && uint64(512)<<i < s.Bytes {
				i++
			}
			counts[i] += float64(s.Requests)
		}
		s := report.PlotSeries{Name: o.Op, Bars: true}
		for i, n := range counts {
			s.Points = append(s.Points, report.PlotPoint{X: float64(i), Y: n})
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// missPlot is the working-set curve at sizes that double.
func missPlot(s *trace.WorkingSet) report.Plot {
	p := report.Plot{Title: "What an LRU cache would miss", XLabel: "size of the cache", YLabel: "misses", Unit: "%"}
	all := report.PlotSeries{Name: "all accesses", Line: true}
	reads := report.PlotSeries{Name: "reads", Line: true}
	for _, q := range s.Curve {
		if q.Blocks&(q.Blocks-1) != 0 {
			continue
		}
		name := ""
		if len(p.Names)%3 == 0 {
			name = unit.Bytes(q.Blocks * s.BlockBytes).String()
		}
		x := float64(len(p.Names))
		p.Names = append(p.Names, name)
		all.Points = append(all.Points, percentPoint(x, q.Miss, q.MissError))
		reads.Points = append(reads.Points, percentPoint(x, q.ReadMiss, q.ReadError))
	}
	p.Series = []report.PlotSeries{all, reads}
	return p
}

func percentPoint(x, share, off float64) report.PlotPoint {
	low, high := 100*max(share-off, 0), 100*min(share+off, 1)
	return report.PlotPoint{X: x, Y: 100 * share, Low: &low, High: &high}
}
