package fio

import (
	"context"

	"plimsoll/internal/workload"
)

var _ workload.Parser = (*parser)(nil)

// Run implements workload.Engine.
func (e Engine) Run(ctx context.Context, env workload.Env, job workload.Job) (workload.Outcome, error) {
	return workload.Follow(ctx, env, job, newParser(env.Sink), workload.Words{Name: "fio", Hint: hint})
}

// Words implements workload.Parser: errors stand in fio's output file as well.
func (p *parser) Words(text []byte) string { return p.words.Beyond(text) }

// Worked implements workload.Parser.
func (p *parser) Worked() bool {
	r := &p.order.last.report
	return r.Ops.Total()+r.Errors > 0
}
