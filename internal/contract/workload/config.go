package workload

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"plimsoll/internal/contract/target"
	"plimsoll/scenario"
)

// ConfigError holds what Validate objects to in a config, all at once and each with its place. Codes may be left out.
type ConfigError struct {
	File       string
	Objections []scenario.Objection
}

// Error has a line for each: "file:line:column: what".
func (e *ConfigError) Error() string {
	var lines []string
	for _, o := range e.Objections {
		switch {
		case o.Setting:
			lines = append(lines, "job_options: "+o.What)
		case o.Line > 0:
			lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", e.File, o.Line, o.Col, o.What))
		default:
			lines = append(lines, e.File+": "+o.What)
		}
	}
	return strings.Join(lines, "\n")
}

// Reader returns what scenarios are read with before there is a place: the engine itself where it is a
// scenario.Generator, else what its Validate says, first of the file alone and then with the disks of its VM group.
func Reader(e Engine) scenario.Generator {
	if g, ok := e.(scenario.Generator); ok {
		return g
	}
	return reader{e}
}

type reader struct{ engine Engine }

// Codes implements scenario.Generator: an objection without a row is an error.
func (reader) Codes() []scenario.Code { return nil }

// ReadConfig implements scenario.Generator.
func (r reader) ReadConfig(file string, data []byte, settings []scenario.Setting) (
	scenario.Config, []scenario.Objection) {
	c := &validated{r.engine, Spec{ConfigFile: file, Config: data, Settings: settings, SizeScale: 1, TimeScale: 1}}
	if objections := c.objections(c.spec); objections != nil {
		return nil, objections
	}
	return c, nil
}

// validated is a config to which Validate has no objection without disks.
type validated struct {
	engine Engine
	spec   Spec
}

func (c *validated) objections(spec Spec) []scenario.Objection {
	err := c.engine.Validate(spec)
	if err == nil {
		return nil
	}
	list := []scenario.Objection{{What: err.Error()}}
	if placed := (*ConfigError)(nil); errors.As(err, &placed) {
		list = append([]scenario.Objection{}, placed.Objections...)
	}
	for i := range list {
		list[i].Code = cmp.Or(list[i].Code, c.engine.Describe().Name+"-file")
	}
	return list
}

// Fit implements scenario.Config.
func (c *validated) Fit(use scenario.Use) []scenario.Objection {
	if use.Unsure || len(use.DiskBytes) > 25 { // beyond /dev/sdz, names are the plan's to give
		return nil
	}
	spec := c.spec
	spec.Name = use.Workload
	for i, bytes := range use.DiskBytes {
		spec.Disks = append(spec.Disks, target.Disk{Device: "/dev/sd" + string(rune('b'+i)), Bytes: bytes})
	}
	return c.objections(spec)
}

// Start implements scenario.Config: the plan has the job made, and says what is wrong with its start.
func (*validated) Start(scenario.Start) []scenario.Objection { return nil }
