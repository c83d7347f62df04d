package importer

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/workload"
	"plimsoll/internal/kit/lazyregexp"
	"plimsoll/result"
)

const (
	goTPC     = "go-tpc"
	tpccMySQL = "tpcc-mysql"
)

var (
	goTPCRow   = lazyregexp.New(`^\[(Current|Summary)\] ([A-Z][A-Z_]*) - Takes\(s\): ([\d.]+), Count: (\d+), (.*)$`)
	goTPCAny   = lazyregexp.New(`(?m)^\[(?:Current|Summary)\] [A-Z][A-Z_]* - Takes\(s\): `)
	goTPCPart  = lazyregexp.New(`([\w.]+) *\(ms\): ([\d.]+)`)
	goTPCTotal = lazyregexp.New(`^tpmC: ([\d.]+)(?:, tpmTotal: ([\d.]+))?(?:, efficiency: ([\d.]+)%)?`)
	goTPCRate  = lazyregexp.New(`\bTPM: ([\d.]+)`)
	goTPCUsers = lazyregexp.New(`^Finished: (\d+) OLTP workers`)
	goTPCCall  = lazyregexp.New(`\b(?:go-tpc|bench) (?:tpcc|ch)\b.* run\b|\b(?:go-tpc|bench) (?:tpcc|ch) run\b`)
	goTPCAsks  = lazyregexp.New(` (?:-T|--threads)[ =]?(\d+)`)
	goTPCQuery = lazyregexp.New(`^\[Summary\] Q\d+ +- `)

	tpccMySQLAny  = lazyregexp.New(`(?m)^[ \t]*<Raw Results>|^[ \t]*\d+, (?:trx: \d+, 95%?: |\d+\(\d+\):[\d.]+\|)`)
	tpccMySQLStep = lazyregexp.New(`^\s*\d+, (?:trx: \d+, 95%?: [\d.]+, 99%?: |\d+\(\d+\):)[\d.]+`)
	tpccMySQLEach = lazyregexp.New(`^\s*(\d+),| (\d+)(?:\||\(\d+\):|, 95)`)
	tpccMySQLRaw  = lazyregexp.New(`^\s*\[(\d)\] sc: ?(\d+) +lt: ?(\d+) +rt: ?(\d+) +fl: ?(\d+)(?: +avg_rt: ?([\d.]+))?`)
	tpccMySQLOver = lazyregexp.New(`^\s*in (\d+) sec\.`)
	tpccMySQLMark = lazyregexp.New(`^\s*([\d.]+) TpmC`)
	tpccMySQLAsks = lazyregexp.New(`^\s*(?:\[connection\]: *|option c with value ')(\d+)`)
)

func tpccReaders() []reader {
	return []reader{{
		name: goTPC, holds: "what go-tpc prints of TPC-C", book: true, recognise: goTPCAny.Match,
	}, {
		name: tpccMySQL, holds: "what tpcc_start of tpcc-mysql prints", book: true, recognise: tpccMySQLAny.Match,
	}}
}

// tpccTest is a test of one of these on its way.
type tpccTest struct {
	t     *tally
	kinds map[string]bool
	tpmC  float64
	// newOrders is how many there were a minute, by their line in a summary.
	newOrders float64
	steps     int // intervals that were printed
	course    []workload.Report
	duration  time.Duration
}

// total adds the figure that a test ends with.
func (o *tpccTest) total(tool string) {
	o.t.figure(tpmC(), o.tpmC)
	o.t.notes = append(o.t.notes, tpccNote)
	if math.IsNaN(o.tpmC) {
		o.t.failure = "it ends before the tpmC of " + tool + ": the test, or the file, is cut short"
	}
}

// step takes an interval of tpcc-mysql: its number of each transaction since the one before.
func (o *tpccTest) step(text string) {
	var at time.Duration
	var did workload.Counts
	for _, m := range tpccMySQLEach.FindAllStringSubmatch(text, 8) {
		if m[1] != "" {
			at = inSeconds(decimal(m[1], ""))
			continue
		}
		did = append(did, workload.Counters{Ops: whole(decimal(m[2], ""))})
	}
	last := workload.Report{Ops: make(workload.Counts, len(tpccKinds))}
	if n := len(o.course); n > 0 {
		last = o.course[n-1]
	}
	if len(did) != len(tpccKinds) || at <= last.Elapsed || len(o.course) >= mostRows {
		return // cut, or not of the same test
	}
	for i := range did {
		did[i].Ops += last.Ops[i].Ops
	}
	o.course = append(o.course, workload.Report{Elapsed: at, Ops: did})
}

// done is the test with its course, where that is of the same transactions: those of its last interval may be more.
func (o *tpccTest) done() stretch {
	s := o.t.done()
	last := s.reports[0]
	for len(o.course) > 0 && o.course[len(o.course)-1].Elapsed >= last.Elapsed {
		o.course = o.course[:len(o.course)-1]
	}
	if n := len(o.course); n == 0 || len(last.Ops) != len(tpccKinds) {
		return s
	}
	for i, c := range o.course[len(o.course)-1].Ops {
		if c.Ops > last.Ops[i].Ops {
			s.notes = append(s.notes, "its intervals count more than its results: they are left out")
			return s
		}
	}
	for i := range o.course {
		o.course[i].Values = gaps(len(s.measures))
	}
	s.reports = append(o.course, last)
	return s
}

// tpmC is the figure that users of these tools quote.
func tpmC() result.Measure {
	return result.Measure{Name: "tpmC", Unit: "tpmC", Better: result.Higher, Kind: result.Level}
}

const tpccNote = "tpmC are new orders a minute; none of its figures is an audited result of a TPC benchmark"

// readGoTPC reads the summaries of go-tpc, one after another: its transactions by their kind, and those that failed.
func readGoTPC(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "go-tpc"}
	one, users := tpccTest{}, 0.0
	end := func() {
		switch {
		case one.t != nil && one.duration > 0:
			one.t.length, one.t.report.Elapsed, one.t.concurrency = one.duration, one.duration, users
			if math.IsNaN(one.tpmC) && one.kinds["STOCK_LEVEL"] { // with which those of older versions end
				one.tpmC = one.newOrders
			}
			one.total(b.tool)
			b.stretches = append(b.stretches, one.t.done())
		case one.steps > 0:
			b.lost = "it ends before go-tpc's summary: the test, or the file, is cut short"
		}
		one, users = tpccTest{tpmC: math.NaN(), newOrders: math.NaN(), kinds: map[string]bool{}}, 0
	}
	end()
	err := eachLine(r, func(_ int, line []byte) error {
		text := strings.TrimSpace(strings.ToValidUTF8(string(line), "?"))
		if m := goTPCTotal.FindStringSubmatch(text); m != nil && one.t != nil {
			one.tpmC = decimal(m[1], "")
			t := one.t
			end() // the figure that is quoted comes first
			if m[2] != "" {
				t.figure(result.Measure{Name: "tpmTotal", Unit: "tpm", Better: result.Higher, Kind: result.Level},
					decimal(m[2], ""))
			}
			if m[3] != "" {
				t.figure(level("efficiency", "%"), decimal(m[3], ""))
			}
			if len(b.stretches) > 0 {
				b.stretches[len(b.stretches)-1] = t.done()
			}
			return nil
		}
		if m := goTPCUsers.FindStringSubmatch(text); m != nil {
			users = decimal(m[1], "")
			return nil
		}
		if goTPCCall.MatchString(text) {
			if end(); !strings.Contains(text, " -T") && !strings.Contains(text, " --threads") {
				users = 1 // what it is where a call does not say
			} else if m := goTPCAsks.FindStringSubmatch(text); m != nil {
				users = decimal(m[1], "")
			}
			return nil
		}
		if goTPCQuery.MatchString(text) {
			b.note("its analytic queries (Q1 to Q22) are left out")
			return nil
		}
		m := goTPCRow.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		if m[1] == "Current" {
			if one.t != nil { // of a further test; the summary before has no line of tpmC
				end()
			}
			one.steps++
			return nil
		}
		if one.kinds[m[2]] {
			end()
		}
		if len(b.stretches) >= mostStretches || len(one.kinds) >= mostColumns {
			return fmt.Errorf("more than %d tests: split the file", mostStretches)
		}
		if one.t == nil {
			one.t = newTally("go-tpc", 0)
		}
		one.kinds[m[2]] = true
		one.duration = max(one.duration, inSeconds(decimal(m[3], "")))
		n := decimal(m[4], "")
		if strings.HasSuffix(m[2], "_ERR") {
			one.t.report.Errors += whole(n)
			return nil
		}
		name := strings.ToLower(m[2])
		if tpm := goTPCRate.FindStringSubmatch(m[5]); tpm != nil && name == tpccKinds[0] {
			one.newOrders = decimal(tpm[1], "")
		}
		times := map[string]float64{}
		var order []string
		for _, p := range goTPCPart.FindAllStringSubmatch(m[5], 12) {
			times[p[1]] = decimal(p[2], "")
			order = append(order, p[1])
		}
		one.t.did(result.Operation{Name: name, Noun: strings.ReplaceAll(name, "_", " ") + " transactions"}, n, 0,
			times["Sum"]/1e3/max(n, 1))
		for _, p := range order {
			if rank, ok := strings.CutSuffix(p, "th"); ok {
				one.t.figure(single(name+"_p"+rank, "ms"), times[p])
			} else if p == "Max" {
				one.t.figure(single(name+"_max", "ms"), times[p])
			}
		}
		return nil
	})
	end()
	return b, err
}

// tpccKinds are the transactions of tpcc-mysql by their number.
var tpccKinds = []string{"new_order", "payment", "order_status", "delivery", "stock_level"}

// readTPCCMySQL reads the raw results of tpcc_start, one test after another.
func readTPCCMySQL(_ format, r io.Reader) (*book, error) {
	b := &book{tool: "tpcc-mysql"}
	var one tpccTest
	var users float64
	end := func() {
		switch {
		case one.t != nil && one.duration > 0:
			one.t.length, one.t.report.Elapsed, one.t.concurrency = one.duration, one.duration, users
			one.total(b.tool)
			b.stretches = append(b.stretches, one.done())
		case one.steps > 0:
			b.lost = "it ends before tpcc-mysql's results: the test, or the file, is cut short"
		}
		one = tpccTest{tpmC: math.NaN(), kinds: map[string]bool{}}
	}
	end()
	err := eachLine(r, func(_ int, line []byte) error {
		text := lineText(line)
		if m := tpccMySQLAsks.FindStringSubmatch(text); m != nil {
			end()
			users = decimal(m[1], "")
		} else if tpccMySQLStep.MatchString(text) {
			if one.t != nil {
				end()
			}
			one.steps++
			one.step(text)
		} else if m := tpccMySQLRaw.FindStringSubmatch(text); m != nil {
			// Sums of the same by thread follow, without times.
			kind, _ := strconv.Atoi(m[1])
			if kind >= len(tpccKinds) || m[6] == "" && one.kinds[tpccKinds[kind]] {
				return nil
			}
			if one.kinds[tpccKinds[kind]] {
				end()
			}
			if len(b.stretches) >= mostStretches {
				return fmt.Errorf("more than %d tests: split the file", mostStretches)
			}
			if one.t == nil {
				one.t = newTally("tpcc-mysql", 0)
			}
			name := tpccKinds[kind]
			one.kinds[name] = true
			one.t.did(result.Operation{Name: name, Noun: strings.ReplaceAll(name, "_", " ") + " transactions"},
				decimal(m[2], "")+decimal(m[3], ""), 0, decimal(m[6], "")/1e3)
			one.t.report.Errors += whole(decimal(m[5], ""))
		} else if m := tpccMySQLOver.FindStringSubmatch(text); m != nil {
			one.duration = inSeconds(decimal(m[1], ""))
		} else if m := tpccMySQLMark.FindStringSubmatch(text); m != nil && one.t != nil {
			one.tpmC = decimal(m[1], "")
			end()
		}
		return nil
	})
	end()
	return b, err
}
