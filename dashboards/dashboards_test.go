package dashboards_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll/dashboards"
	"plimsoll/internal/testkit/golden"
)

func Example() {
	for _, d := range dashboards.All() {
		if d.Name == "run" {
			text, err := d.JSON()
			fmt.Println(d.Title, err, json.Valid(text))
		}
	}
	// Output: Run overview <nil> true
}

// TestFiles: the files of this folder are what the program writes, and there are no others.
func TestFiles(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for _, d := range dashboards.All() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		want[d.Name+".json"] = true
		golden.Compare(t, d.Name+".json", text)
	}
	there, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if !want[name] {
			t.Errorf("%s: no dashboard is called so", name)
		}
	}
}

// units are those of Grafana that are used here, by its own identifiers.
var units = map[string]bool{
	"short":       true,
	"ops":         true,
	"iops":        true,
	"reqps":       true,
	"binBps":      true,
	"bytes":       true,
	"s":           true,
	"percent":     true,
	"percentunit": true,
}

type grafana struct {
	UID, Title, Description string
	Templating              struct {
		List []struct{ Name, Type, Label string }
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Datasource               struct{ UID string }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct {
			Expr, LegendFormat string
			Datasource         struct{ UID string }
		}
	}
}

// TestShape: what Grafana's import and a reader want of each: identities that differ, panels that neither overlap nor
// leave the grid, units that Grafana knows, a description of every panel, no variable that is not there.
func TestShape(t *testing.T) {
	t.Parallel()
	used := regexp.MustCompile(`\$\{?(\w+)`)
	uids := map[string]bool{}
	for _, d := range dashboards.All() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var g grafana
		if err := json.Unmarshal(text, &g); err != nil {
			t.Fatal(err)
		}
		if uids[g.UID] || len(g.UID) > 40 || g.Title == "" || g.Description == "" {
			t.Errorf("%s: uid %q, title %q, description %q", d.Name, g.UID, g.Title, g.Description)
		}
		uids[g.UID] = true
		known := map[string]bool{"__rate_interval": true}
		for _, v := range g.Templating.List {
			if known[v.Name] = true; v.Label == "" {
				t.Errorf("%s: variable %s has no label", d.Name, v.Name)
			}
		}
		for _, name := range used.FindAllStringSubmatch(string(text), -1) {
			if !known[name[1]] && name[1] != "__all" {
				t.Errorf("%s: no variable is called %s", d.Name, name[1])
			}
		}
		taken, ids, titles := map[[2]int]string{}, map[int]bool{}, map[string]bool{}
		for _, p := range g.Panels {
			if ids[p.ID] || titles[p.Title] || p.Title == "" {
				t.Errorf("%s: panel %d %q: the number or the title is there twice, or none", d.Name, p.ID, p.Title)
			}
			ids[p.ID], titles[p.Title] = true, true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if taken[at] != "" || at[0] >= 24 {
						t.Fatalf("%s: panel %q is outside or over %q", d.Name, p.Title, taken[at])
					}
					taken[at] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || !units[p.FieldConfig.Defaults.Unit] || len(p.Targets) == 0 ||
				p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: panel %q has no description, unit, question or data source", d.Name, p.Title)
			}
			for _, q := range p.Targets {
				if (q.LegendFormat == "") != (p.Type == "stat") || q.Datasource.UID != "${datasource}" ||
					strings.Contains(q.Expr, "\n") {
					t.Errorf("%s: panel %q: question %q with legend %q", d.Name, p.Title, q.Expr, q.LegendFormat)
				}
			}
		}
	}
}
