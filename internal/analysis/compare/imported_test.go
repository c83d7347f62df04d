package compare

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/result"
)

// What imported outputs did tells them apart where their files do not say what was asked; names that only tell how many
// were at work are no difference of their own; sides with nothing in common are not compared.
func TestImportedUnlike(t *testing.T) {
	type of struct {
		name, latency string
		reads, writes uint64
		size          uint64
		facts         []string // name, value
	}
	run := func(loads ...of) Run {
		r := Run{Manifest: result.Manifest{Target: result.ImportTarget}, Data: &result.Data{}}
		for _, l := range loads {
			w := result.Workload{Name: l.name, Phase: "run", Latency: l.latency, Operations: result.BlockOperations()}
			for i, n := range []uint64{l.reads, l.writes} {
				w.Ops = append(w.Ops, result.OpTotals{Op: w.Operations[i].Name, Count: n, Bytes: n * l.size})
			}
			r.Data.Workloads = append(r.Data.Workloads, w)
			for pair := range slices.Chunk(l.facts, 2) {
				r.Manifest.Environment = append(r.Manifest.Environment,
					result.Fact{Group: l.name, Name: pair[0], Value: pair[1], Across: result.MustAgree})
			}
		}
		return r
	}
	plain := of{name: "a", reads: 1000, size: 4096}
	for name, c := range map[string]struct {
		a, b []of
		vary []string
		want []string // facts that refuse
	}{
		"alike":       {[]of{plain}, []of{{name: "a", reads: 900, size: 4100}}, nil, nil},
		"size":        {[]of{plain}, []of{{name: "a", reads: 900, size: 16384}}, nil, []string{"a size of a read"}},
		"size varied": {[]of{plain}, []of{{name: "a", reads: 900, size: 16384}}, []string{"size of a read"}, nil},
		"size is said": {[]of{{name: "a", reads: 9, size: 4096, facts: []string{"block size", "4k"}}},
			[]of{{name: "a", reads: 9, size: 8192, facts: []string{"block size", "8k"}}}, nil,
			[]string{"a block size"}},
		"mixed": {[]of{plain}, []of{{name: "a", reads: 500, writes: 500, size: 4096}}, nil, []string{"a operations"}},
		"mix": {[]of{{name: "a", reads: 704, writes: 296, facts: []string{"pattern", "randrw"}}},
			[]of{{name: "a", reads: 508, writes: 492, facts: []string{"pattern", "randrw"}}}, nil, []string{"a mix"}},
		"same mix": {[]of{{name: "a", reads: 704, writes: 296, facts: []string{"pattern", "randrw"}}},
			[]of{{name: "a", reads: 691, writes: 309, facts: []string{"pattern", "randrw"}}}, nil, nil},
		"times": {[]of{{name: "a", latency: "service time"}}, []of{{name: "a", latency: "response time"}}, nil,
			[]string{"a times"}},
		"clients": {[]of{{name: "pgbench 1 client", facts: []string{"concurrency", "1"}}},
			[]of{{name: "pgbench 8 clients", facts: []string{"concurrency", "8"}}}, nil,
			[]string{"pgbench concurrency"}},
		"clients varied": {[]of{{name: "TPROC-C 1 VU", facts: []string{"concurrency", "1"}}},
			[]of{{name: "TPROC-C 4 VU", facts: []string{"concurrency", "4"}}}, []string{"concurrency"}, nil},
		"several of clients": {[]of{{name: "pgbench 1 client"}, {name: "pgbench 2 clients"}},
			[]of{{name: "pgbench 2 clients"}, {name: "pgbench 4 clients"}}, nil, nil},
		"nothing in common": {[]of{{name: "dd"}, {name: "fio"}}, []of{{name: "sysbench"}}, nil, []string{"workloads"}},
	} {
		_, err := Of([]Side{{Name: "A", Runs: []Run{run(c.a...)}}, {Name: "B", Runs: []Run{run(c.b...)}}},
			Options{Vary: c.vary})
		var refusal *Refusal
		var got []string
		if errors.As(err, &refusal) {
			for _, f := range refusal.Facts {
				got = append(got, f.Name)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	d, err := Of([]Side{{Name: "A", Runs: []Run{run(of{name: "dd"})}}, {Name: "B", Runs: []Run{run(of{name: "fio"})}}},
		Options{Anyway: true})
	const none = "B against A: there is nothing that both have, so nothing is compared." +
		" This holds for these runs only: each side is a single run."
	if err != nil || d.Sentence != none || d.Verdict != Inconclusive {
		t.Errorf("anyway: %v, %q, %s", err, d.Sentence, d.Verdict)
	}
}
