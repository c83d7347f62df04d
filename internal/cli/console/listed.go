package console

import (
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
)

// Listed is one entry of targets list --json and exporter list --json.
type Listed struct {
	Name    string         `json:"name"`
	Summary string         `json:"summary"`
	Options []listedOption `json:"options"`
}

func Listing(name, summary string, options []target.Option) Listed {
	l := Listed{Name: name, Summary: summary, Options: []listedOption{}}
	for _, o := range options {
		l.Options = append(l.Options, listedOption{o.Name, o.Default, string(o.Type), o.Help})
	}
	return l
}

// PrintListed prints what there is of something, each with its options.
func (c *Console) PrintListed(all []Listed) error {
	if c.JSON {
		return c.PrintJSON(all)
	}
	for _, l := range all {
		visible.Fprintf(c.Out, "%s: %s\n", l.Name, l.Summary)
		t := terminal.Table{Head: []string{"  OPTION", "DEFAULT", "MEANING"}}
		for _, o := range l.Options {
			t.Add("  "+o.Name, o.Default, o.Help)
		}
		if t.Len() > 0 {
			if err := t.Write(c.Out); err != nil {
				return err
			}
		}
	}
	return nil
}

type listedOption struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Type    string `json:"type,omitempty"`
	Help    string `json:"help"`
}
