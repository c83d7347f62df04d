package fio

import (
	"context"
	"encoding/json"

	"plimsoll/internal/contract/workload"
)

var _ workload.Parser = (*parser)(nil)

// Run implements workload.Engine.
func (e Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	words := workload.Words{Name: "fio", Hint: hint}
	return workload.Follow(ctx, env, job, newParser(env.Sink, job.Declared), words)
}

// sectionsOf are the author's names for the sections of our own, as Command declared them; none of output made
// elsewhere.
func sectionsOf(d workload.Declared) (names []string) {
	if json.Unmarshal(d.Format, &names) != nil {
		return nil
	}
	return names
}

// Words implements workload.Parser: errors stand in fio's output file as well.
func (p *parser) Words(text []byte) string { return p.words.Beyond(text) }

// Worked implements workload.Parser.
func (p *parser) Worked() bool {
	r := &p.order.last.report
	return r.Ops.Total()+r.Errors > 0
}
