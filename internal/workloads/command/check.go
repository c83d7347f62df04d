package command

import (
	"fmt"
	"slices"

	"plimsoll/internal/contract/target"
	"plimsoll/internal/contract/workload"
	"plimsoll/scenario"
)

var _ scenario.Generator = Engine{}

const (
	codeFile    = "command-file"
	codeDisk    = "command-disk"
	codeGroup   = "command-group"
	codePrefill = "command-prefill"
	codeRuntime = "command-runtime"
)

// Codes implements scenario.Generator.
func (Engine) Codes() []scenario.Code {
	row := func(name, doc string) scenario.Code {
		return scenario.Code{Name: name, Tolerant: scenario.Error, Strict: scenario.Error, Doc: doc}
	}
	return []scenario.Code{
		row(codeFile, "a file of the generator command that cannot be read"),
		row(codeDisk, "a program that is given a disk that the VM group does not have"),
		row(codeGroup, "a program whose servers run in a VM group that the scenario does not have"),
		row(codePrefill, "a prefill of a workload whose program cannot do that"),
		row(codeRuntime, "a start without a runtime of a program that is told its runtime"),
	}
}

// ReadConfig implements scenario.Generator.
func (Engine) ReadConfig(file string, data []byte, settings []scenario.Setting) (
	scenario.Config, []scenario.Objection) {
	c, err := parseConfig(workload.Spec{ConfigFile: file, Config: data, Settings: settings})
	if err != nil {
		return nil, c.said(codeFile)
	}
	return c, nil
}

// said are the objections so far in the words of the scenario language.
func (c *config) said(code string) (out []scenario.Objection) {
	for _, o := range c.objections {
		one := scenario.Objection{Code: code, Line: o.line, Col: o.column, Setting: o.setting, What: o.what}
		if o.setting {
			one.Code = "bounds"
		}
		out = append(out, one)
	}
	return out
}

// Fit implements scenario.Config.
func (c *config) Fit(use scenario.Use) (out []scenario.Objection) {
	if use.Prefilled {
		out = append(out, scenario.Objection{Code: codePrefill,
			Hint: "take the prefill out, or let the program fill its disks itself",
			What: fmt.Sprintf("workload %q: a program of one's own cannot be made to prefill", use.Workload)})
	}
	if s := c.server; s != nil && s.group != "" && !slices.Contains(use.Groups, s.group) {
		out = append(out, scenario.Objection{Code: codeGroup, Line: s.at.Line, Col: s.at.Column,
			What: fmt.Sprintf("workload %q: server: there is no VM group %q", use.Workload, s.group),
			Hint: suggestion(s.group, use.Groups)})
	}
	if use.Unsure || len(use.DiskBytes) > 25 { // beyond /dev/sdz, names are the plan's to give
		return out
	}
	f := c.filling(workload.Spec{Name: use.Workload, Runtime: 1, Peers: make([]workload.Peer, 1)})
	for i := range use.DiskBytes {
		f.spec.Disks = append(f.spec.Disks, target.Disk{Device: "/dev/sd" + string(rune('b'+i))})
	}
	c.objections = nil // there were none
	f.all()
	if s := c.server; s != nil && s.group == "" { // its machines are these
		c.serverFilling(f.spec).all()
	}
	out = append(out, c.said(codeDisk)...)
	c.objections = nil
	return out
}

// Start implements scenario.Config.
func (c *config) Start(start scenario.Start) []scenario.Objection {
	f := c.filling(workload.Spec{})
	f.formOnly = true
	f.all()
	if start.Runtime || !f.timed {
		return nil
	}
	return []scenario.Objection{{Code: codeRuntime, Hint: "give runtime_secs, or write the seconds into the file",
		What: fmt.Sprintf("workload %q: its program is told a runtime with {runtime}, and the step gives none",
			start.Workload)}}
}
