package importer

import (
	"bytes"
	"fmt"
	"text/template"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/internal/workloads/command"
)

// declare has a text read by the engine of declared outputs: the layout is what an author would write for
// `generator: command`, with values of this file filled in.
func (d *Reading) declare(layout string, values any) error {
	t, err := template.New(d.As).Parse(layout)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, values); err != nil {
		return err
	}
	job, err := command.Engine{}.Command(workload.Spec{Name: d.Workload, ConfigFile: d.As, Config: b.Bytes()})
	if err != nil {
		return fmt.Errorf("its layout: %w", err)
	}
	d.Engine, d.Declared = command.Name, job.Declared
	if d.Declared.Format, err = command.OfVersions(job.Format); err != nil {
		return fmt.Errorf("its layout: %w", err)
	}
	if job.Latency != "" {
		d.Latency = job.Latency
	}
	return nil
}

// found is the first group of a pattern in a text; "" when it does not match.
func found(re *lazyregexp.Regexp, text []byte) string {
	if m := re.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
