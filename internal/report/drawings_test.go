package report

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/testkit/visibletest"
	"plimsoll/result"
)

func values(list ...float64) (out []*float64) {
	for _, v := range list {
		out = append(out, &v)
	}
	return out
}

func TestDrawings(t *testing.T) {
	origin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	s := func(name string, list ...float64) result.Series {
		return result.Series{Name: name, Start: origin, Step: 1, Values: values(list...)}
	}
	got := Drawings([]result.Panel{
		{
			Title: "Rate",
			Unit:  "ops/s",
			Series: []result.Series{s("a", 1, 2, 3), {Name: "to come", Start: origin, Step: 1, Values: []*float64{nil}},
				s("b", 3, 2, 1)},
			Notes: []string{"a note"},
		},
		{Title: "One", Unit: "new orders/s", Series: []result.Series{s("a", 1, 2, 3)}},
		{Title: "None", Unit: "s", Problem: "the query found nothing"},
		{
			Title:  "Empty",
			Unit:   "s",
			Series: []result.Series{{Name: "a", Start: origin, Step: 1, Values: []*float64{nil, nil}}},
		},
	}, []result.Mark{{Time: origin.Add(time.Second), Kind: result.KindFault, Text: "power off"}}, origin)
	if len(got) != 4 {
		t.Fatal(len(got))
	}
	if d := got[0]; strings.Join(d.Names, ",") != "a,b" || strings.Count(string(d.SVG), `class="l `) != 2 ||
		!strings.Contains(string(d.SVG), ">power off<") || strings.Join(d.Notes, "") != "A note." || d.Problem != "" {
		t.Errorf("%+v", d)
	}
	if d := got[1]; d.Title != "One (new orders/s)" || d.Names != nil {
		t.Errorf("%+v", d)
	}
	if got[2].SVG != "" || got[2].Problem != "the query found nothing" ||
		got[3].Problem != "no value in the run's time" {
		t.Errorf("%+v %+v", got[2], got[3])
	}
}

// TestHostileDrawings: whatever names and marks say, a drawing has the elements that it has with harmless words, and
// nothing hidden.
func TestHostileDrawings(t *testing.T) {
	origin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	draw := func(text string) (elements []string) {
		t.Helper()
		panels := []result.Panel{
			{Unit: "s", Series: []result.Series{{Start: origin, Step: 1, Values: values(1, 2, 3)}, {Start: origin,
				Step: 1, Values: values(3, 2, 1)}}, Bands: []result.Band{{Lower: 0, Upper: 2}}, Notes: []string{""}},
		}
		marks := []result.Mark{{}}
		visibletest.Fill(&panels, visibletest.Always(text))
		visibletest.Fill(&marks, visibletest.Always(text))
		marks[0].Time, panels[0].Unit = origin.Add(time.Second), "s"
		d := Drawings(panels, marks, origin)[0]
		if loose := visibletest.Loose(string(d.SVG) + d.Title + strings.Join(d.Names, "") + strings.Join(d.Notes,
			"")); loose != "" {
			t.Errorf("%.50q: %s", text, loose)
		}
		for x := xml.NewDecoder(strings.NewReader(string(d.SVG))); ; {
			tok, err := x.Token()
			if errors.Is(err, io.EOF) {
				return elements
			}
			if err != nil {
				t.Errorf("%.50q: %v", text, err)
				return elements
			}
			if e, ok := tok.(xml.StartElement); ok {
				elements = append(elements, e.Name.Local)
			}
		}
	}
	want := strings.Join(draw(harmless), " ")
	for _, h := range visibletest.Texts {
		if got := strings.Join(draw(h.Text), " "); got != want {
			t.Errorf("%s: %s\nwant %s", h.Name, got, want)
		}
	}
}
