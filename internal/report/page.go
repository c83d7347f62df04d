package report

import (
	"fmt"
	"html/template"
	"io"
	"io/fs"
)

// Page is an answer that is of no run: a sentence, tables and plots.
type Page struct {
	Kind     string // what it is: trace
	Title    string
	Headline string
	Notes    []string
	Parts    []PagePart
}

// PagePart is a table, a plot, or both.
type PagePart struct {
	Title string
	Head  []string
	Right []bool // columns that are numbers
	Rows  [][]string
	Notes []string
	Plot  *Plot
}

// Number reports whether a column holds numbers.
func (p PagePart) Number(i int) bool { return i < len(p.Right) && p.Right[i] }

type partView struct {
	PagePart
	SVG template.HTML
}

// PageHTML writes a page as one file that opens from disk and loads nothing.
func PageHTML(w io.Writer, p Page) error {
	p = shown(p)
	view := struct {
		Page
		Policy string
		Style  template.CSS
		Parts  []partView
	}{Page: p, Policy: Policy}
	for _, name := range []string{"report.css", "compare.css"} {
		b, err := fs.ReadFile(embedded, "assets/"+name)
		if err != nil {
			return fmt.Errorf("report: page: asset %q: %w", name, err)
		}
		view.Style += template.CSS(b)
	}
	for _, part := range p.Parts {
		v := partView{PagePart: part}
		if part.Plot != nil {
			v.SVG = part.Plot.svg()
		}
		view.Parts = append(view.Parts, v)
	}
	t, err := template.ParseFS(embedded, "assets/page.html.tmpl")
	if err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	return t.Execute(w, view)
}
