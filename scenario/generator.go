package scenario

import (
	"fmt"
	"maps"
	"slices"

	"plimsoll/scenario/jinja"
)

// Generator reads the config files of one load generator. Engines bring it: the language itself knows none.
type Generator interface {
	// ReadConfig reads a config file with a workload's settings on top of what it says, and returns all objections; a
	// nil Config when it cannot be used at all. It opens nothing.
	ReadConfig(file string, data []byte, settings []Setting) (Config, []Objection)
	// Codes are the kinds of objection it makes.
	Codes() []Code
}

// Config is a config file that was read.
type Config interface {
	// Fit compares it with where it is to run.
	Fit(Use) []Objection
	// Start compares it with a step that starts it; the objections are shown at the step.
	Start(Start) []Objection
}

// Setting is an option of a workload (job_options) for its config, as text.
type Setting struct{ Key, Value string }

// Use is where a config is to run.
type Use struct {
	Workload  string
	Group     string
	DiskBytes []int64 // of the group's data disks, /dev/sdb onward
	Unsure    bool    // the disks were refused, so nothing is said of them
	Prefilled bool
	Groups    []string // all there are
}

// Start is how a step starts a workload.
type Start struct {
	Step, Workload string
	Runtime        bool // it gives one
}

// Objection holds what a generator has to say of a config. Its weight is that of its code.
type Objection struct {
	Code       string
	Line, Col  int  // in the config file; 0 for none
	Setting    bool // it is about one of the workload's settings, and shown where they stand
	What, Hint string
}

// fit holds what a comparison of a config with its VM group depends on.
type fit struct {
	config Config
	disks  string
	use    string
}

// readConfig has the workload's generator read its config file, once however many workloads use it as it is.
func (d *document) readConfig(w *Workload, f fields, of string) {
	settings := d.settings(f, of)
	w.Settings = settings
	if w.Config == nil || d.opts.Generators == nil {
		return
	}
	g, known := d.opts.Generators[w.Generator]
	if !known {
		d.say("generator", f.where("generator"), fmt.Sprintf("%s: unknown generator %q", of, w.Generator),
			didYouMean(w.Generator, slices.Sorted(maps.Keys(d.opts.Generators))))
		return
	}
	key := w.Generator + "\x00" + w.ConfigFile
	if c, read := d.plain[key]; read && len(settings) == 0 {
		d.read[w.Name] = c
		return
	}
	c, objections := g.ReadConfig(w.ConfigFile, w.Config, settings)
	for _, o := range objections {
		at := Pos{File: w.ConfigFile, Line: o.Line, Col: o.Col}
		if o.Setting {
			at, o.What = f.where("job_options"), of+": job_options: "+o.What
		}
		d.say(o.Code, at, o.What, o.Hint)
	}
	if len(settings) == 0 {
		d.plain[key] = c
	}
	d.read[w.Name] = c
}

// settings are the options of a workload, by name.
func (d *document) settings(f fields, of string) []Setting {
	options := f.Args.Map("job_options")
	var out []Setting
	for _, key := range slices.Sorted(maps.Keys(options)) {
		value, ok := settingText(options[key])
		if !ok {
			d.say("bounds", f.where("job_options"), fmt.Sprintf("%s: job_options: %q cannot be %s", of, key,
				jinja.Describe(options[key])), "write a number, a text or True")
			continue
		}
		out = append(out, Setting{key, value})
	}
	return out
}

func settingText(v any) (string, bool) {
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "1", false: "0"}[v], true
	case float64:
		return plainNumber(v), true
	case int64:
		return fmt.Sprint(v), true
	case string:
		return v, v != ""
	}
	return "", false
}

// checkFit compares the config of a workload that runs with its VM group. One that fits is not looked at again for a
// like group.
func (d *document) checkFit(w Workload, g Group, prefilled bool) {
	c := d.read[w.Name]
	if c == nil {
		return
	}
	key := fit{config: c, disks: fmt.Sprint(g.DiskBytes), use: fmt.Sprint(prefilled)}
	if d.fits[key] {
		return
	}
	groups := make([]string, len(d.sc.Groups))
	for i, g := range d.sc.Groups {
		groups[i] = g.Name
	}
	objections := c.Fit(Use{Workload: w.Name, Group: g.Name, DiskBytes: g.DiskBytes, Unsure: d.unsureDisks[g.Name],
		Prefilled: prefilled, Groups: groups})
	for _, o := range objections {
		d.say(o.Code, Pos{File: w.ConfigFile, Line: o.Line, Col: o.Col}, o.What, o.Hint)
	}
	d.fits[key] = len(objections) == 0 && !d.unsureDisks[g.Name]
}
