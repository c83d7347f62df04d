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
func (p *parser) Words(text []byte) string {
	var w words
	w.add(text)
	kept := w.lines[:0]
	for _, line := range w.lines {
		if !p.words.seen[line] {
			kept = append(kept, line)
		}
	}
	w.lines = kept
	return w.String()
}

// Worked implements workload.Parser.
func (p *parser) Worked() bool {
	r := &p.order.last.report
	return r.Ops.Total()+r.Errors > 0
}
