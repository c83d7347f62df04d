package drivers

import (
	"testing"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/kit/clock"
)

func TestEveryDriverIsFoundByItsOwnName(t *testing.T) {
	all := All()
	for _, p := range all.Targets {
		found, ok := all.Target(p.Name())
		if !ok || found.Name() != p.Name() {
			t.Errorf("target %q is not found by its name", p.Name())
		}
		if p.Summary() == "" {
			t.Errorf("target %q has no summary", p.Name())
		}
		for _, o := range p.Options() {
			if o.Name == "" || o.Help == "" {
				t.Errorf("target %q has an option without a name or help: %+v", p.Name(), o)
			}
		}
		if _, err := p.New(target.Config{Clock: clock.Real{}}); err != nil {
			t.Errorf("target %q does not work without options: %v", p.Name(), err)
		}
	}
	if n := len(all.ByName()); n != len(all.Engines) || all.ByName()[""] != nil {
		t.Errorf("%d engines have %d names, none of which may be empty", len(all.Engines), n)
	}
	seen := map[string]bool{"list": true} // a command of its own
	for _, k := range all.Exporters {
		if seen[k.Name] || k.Name == "" || k.Summary == "" {
			t.Errorf("exporter %q: a name that is taken, or no summary", k.Name)
		}
		seen[k.Name] = true
		for _, o := range k.Options {
			if o.Name == "" || o.Help == "" {
				t.Errorf("exporter %q has an option without a name or help: %+v", k.Name, o)
			}
		}
		c, err := k.Open(nil)
		if err == nil {
			_, err = exporter.New("test", c)
		}
		if err != nil {
			t.Errorf("exporter %q does not work without options: %v", k.Name, err)
		}
	}
	if _, ok := all.Target("moon"); ok {
		t.Error("a target that does not exist was found")
	}
}
