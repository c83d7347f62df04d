package answer

import (
	"strings"
	"testing"
	"time"

	"plimsoll/internal/analysis/view"
	"plimsoll/result"
)

func number(v float64) *float64 { return &v }

// TestOf: what each sort of run is asked comes first, with its number and interval or why there is none, whatever else
// was found.
func TestOf(t *testing.T) {
	t.Parallel()
	windows := func(subject string, low, high float64, severity result.Severity) result.Finding {
		harm := max(0, -high)
		return result.Finding{Check: "windows", Subject: subject, Severity: severity, Unit: "ratio", Value: number(1),
			Low: number(1 + low), High: number(1 + high), Confidence: 0.95, Harm: &harm,
			Sentence: subject + `: 100 IOPS alone, 90 with "B; C" (−10 %); read p50 unchanged. More.`}
	}
	recovery := result.Finding{Check: "recovery", Subject: "OLTP", Severity: result.Info, Unit: "s",
		Value: number(30), Low: number(25), High: number(30), Confidence: 1,
		Sentence: "OLTP back at 90 % after 30 s; no errors reported."}
	after := func(subject string, value *float64) result.Finding {
		f := recovery
		f.Subject, f.Value, f.Sentence = subject, value, subject+" back."
		return f
	}
	keptRate := result.Finding{Check: "recovery", Subject: "OLTP", Severity: result.Passed, Unit: "s", Value: number(0),
		NoInterval: "nothing was lost", Sentence: "OLTP kept its rate."}
	keptToo := keptRate
	keptToo.Subject = "DB"
	lost := result.Finding{Check: "lost-writes", Subject: "Check", Severity: result.Passed, Value: number(0), N: 500,
		NoInterval: "every block was read", Sentence: "Check: every acknowledged write was there, in all 500 blocks."}
	boots := result.Finding{Check: "boots", Subject: "Desktops", Severity: result.Info, Value: number(41),
		NoInterval: "every machine of it, each once",
		Sentence:   "321 VMs were switched on: half answered within 41 s, the slowest after 90 s; all answered."}
	flat := func(subject string) result.Finding {
		return result.Finding{Check: "steady-state", Subject: subject, Severity: result.Passed, Unit: "ops/s",
			Value: number(500), Low: number(490), High: number(510), Confidence: 0.95,
			Sentence: subject + " was steady: 500 IOPS (95 %: 490 to 510)."}
	}
	ingest := func(subject string) result.Finding {
		return result.Finding{Check: "ingest", Subject: subject, Severity: result.Info, Value: number(60), Unit: "s",
			NoInterval: "one ingest", Sentence: subject + " wrote 1 TiB in 1 min: 17 GiB/s."}
	}
	turn := func(metric string) result.Finding {
		return result.Finding{Check: "in-turn", Subject: "B", Metric: metric, Severity: result.Passed, Unit: "ratio",
			Value: number(1), Low: number(0.9), High: number(1.1), Sentence: "With x 2 instead of 1, B did 5 " +
				"IOPS: ×1 (95 %: ×0.9 to ×1.1), and the p99 latency was 1 ms. They ran in turn."}
	}
	loads := []Load{{Name: "A", Does: []string{"read"}, Did: "read 500 IOPS"},
		{Name: "B", Does: []string{"read"}, Did: "read 500 IOPS"}}
	mixed := []Load{loads[0], {Name: "B", Does: []string{"write"}, Did: "write 500 IOPS"}}
	orders := []Load{{Name: "Users", Does: []string{"new_order"}, Did: "NOPM 1,200", Wants: true}}
	held := []Load{loads[0]}
	held[0].Held = ", held to the 500 IOPS its job asks for"
	drift := windows("Steady", -0.12, -0.08, result.Info)
	drift.Sentence = strings.Replace(drift.Sentence, ". More", "; it moved so by itself, so it is not told apart from "+
		"drift. More", 1)
	short := flat("A")
	short.Low, short.High, short.NoInterval = nil, nil, "it has 16 points"
	levels := result.Finding{Check: "steady-state", Subject: "A", NoInterval: "no steady state was reached",
		Evidence: []result.Evidence{{Name: view.LevelUntil + "2:00", Value: 20000, Unit: "ops/s"},
			{Name: view.LevelUntil + "3:00", Value: 9000, Unit: "ops/s"},
			{Name: view.LevelFrom + "3:00", Value: 15000, Unit: "ops/s"}}}
	for name, c := range map[string]struct {
		run  Run
		want string
		said int
	}{
		"three levels": {Run{Findings: []result.Finding{levels}, Loads: held},
			"A: 20,000 IOPS until 2:00, then 9,000 IOPS until 3:00, then 15,000 IOPS from 3:00 on; over all of it, at no time its " +
				"rate, read 500 IOPS, held to the 500 IOPS its job asks for.", 1},
		"nothing": {Run{}, "", 0},
		"a question that one NUMA node cannot answer": {Run{Loads: loads[:1], Findings: []result.Finding{
			{Check: result.AssertCheck, Subject: "several", Severity: result.Warning, Value: number(1),
				Sentence: `Assert "several" does not hold: the query's answer is 1, and must be at least 2.`},
			{Check: result.AssertCheck, Subject: "even", Severity: result.Warning, Metric: "findings",
				Sentence: `Assert "even" cannot be judged: the run has no finding of check "c".`}}},
			`Whether "even" holds cannot be told (the run has no finding of check "c"), and "several" does not hold: the ` +
				"query's answer is 1, and must be at least 2; A: read 500 IOPS (no interval of its rate: too little was reported).", 2},
		"a condition that does not hold is told elsewhere": {Run{Loads: loads[:1], Findings: []result.Finding{
			{Check: result.AssertCheck, Subject: "fast", Severity: result.Warning, Value: number(1), Sentence: "No."}}},
			"A: read 500 IOPS (no interval of its rate: too little was reported).", 0},
		"large operations": {Run{Loads: []Load{{Name: "A", Did: "read 500 IOPS", Size: 1 << 20}},
			Findings: []result.Finding{flat("A")}}, "A was steady: 500 IOPS (95 %: 490 to 510), 500 MiB/s.", 1},
		"more loads than are told, of which results name some": {Run{Loads: append([]Load{{Name: "A warm"}, {Name: "C"},
			{Name: "D"}}, loads...), Results: []string{"A rate: Median 7", "B rate: Median 8"},
			Findings: []result.Finding{flat("A"), flat("B"), flat("C")}},
			"A was steady: 500 IOPS (95 %: 490 to 510); B was steady: 500 IOPS (95 %: 490 to 510).", 2},
		"who was there before who came": {Run{Loads: []Load{{Name: "A", Began: time.Unix(60, 0)},
			{Name: "B", Began: time.Unix(0, 0)}}, Findings: []result.Finding{
			windows("A", -0.3, -0.2, result.Info), windows("B", -0.12, -0.08, result.Info)}},
			"Of 2 workloads that were set against others the one that was there first is B: " +
				`100 IOPS alone, 90 with "B; C" (−10 %; 95 %: −12 % to −8 %); read p50 unchanged.`, 1},
		"nobody changed": {Run{Loads: []Load{{Name: "A", Began: time.Unix(60, 0)}, {Name: "B", Began: time.Unix(0, 0)}},
			Findings: []result.Finding{windows("A", -0.01, 0.01, result.Passed),
				windows("B", -0.02, 0.02, result.Passed)}},
			"Of 2 workloads that were set against others none changed for sure; B: " +
				`100 IOPS alone, 90 with "B; C" (−10 %; 95 %: −2 % to +2 %); read p50 unchanged.`, 1},
		"a loss of power with writes read back": {
			Run{Findings: []result.Finding{recovery, lost, flat("A")}, Loads: loads},
			"Check: every acknowledged write was there, in all 500 blocks (every block was read); OLTP back at 90 % after 30 " +
				"s (between 25 s and 30 s).", 2},
		"a loss of power where nothing is read back": {
			Run{Findings: []result.Finding{recovery}, Unread: "whether is not known"},
			"OLTP back at 90 % after 30 s (between 25 s and 30 s); whether is not known.", 1},
		"two things that are not known": {
			Run{Findings: []result.Finding{after("OLTP", nil)}, Unread: "whether is not known"},
			"Whether is not known; OLTP back (between 25 s and 30 s).", 1},
		"a boot storm": {Run{Findings: []result.Finding{windows("Steady", -0.12, -0.08, result.Info), boots}},
			"321 VMs were switched on: half answered within 41 s, the slowest after 90 s (every machine of it, each once); Steady: " +
				`100 IOPS alone, 90 with "B; C" (−10 %; 95 %: −12 % to −8 %).`, 2},
		"a boot storm while a load drifts": {Run{Findings: []result.Finding{drift, boots}},
			"321 VMs were switched on: half answered within 41 s, the slowest after 90 s (every machine of it, each once); Steady: " +
				`100 IOPS alone, 90 with "B; C" (−10 %; 95 %: −12 % to −8 %); it moved so by itself, so it is not told apart ` +
				"from drift.", 2},
		"a check that did not come to its end": {Run{Findings: []result.Finding{{Check: "lost-writes", Subject: "C",
			NoInterval: "every block was read", Sentence: "C did not end, so it is not known."}}},
			"C did not end, so it is not known.", 1},
		"a boot storm that nobody timed": {Run{Findings: []result.Finding{windows("Steady", -0.12, -0.08, result.Info),
			{Check: "boots", NoInterval: "nothing was timed", Sentence: "How long 12 VMs took to boot is not known."}}},
			`Steady: 100 IOPS alone, 90 with "B; C" (−10 %; 95 %: −12 % to −8 %); read p50 unchanged; how long 12 VMs took ` +
				"to boot is not known.", 2},
		"neighbours, of whom one changed": {Run{Findings: []result.Finding{keptRate,
			windows("A", -0.01, 0.01, result.Passed), windows("B", -0.12, -0.08, result.Info)}}, "Of 2 workloads that were set against others the one that changed most is B: " +
			`100 IOPS alone, 90 with "B; C" (−10 %; 95 %: −12 % to −8 %); read p50 unchanged.`, 1},
		"a fault that nobody noticed": {Run{Findings: []result.Finding{keptRate}},
			"OLTP kept its rate (nothing was lost).", 1},
		"groups that a fault struck": {
			Run{Findings: []result.Finding{recovery, after("B", number(90)), after("C", number(60)), keptRate}},
			"Of 3 groups that a fault struck this one was back last: B back (between 25 s and 30 s).", 1},
		"groups of which one was not back": {
			Run{Findings: []result.Finding{recovery, after("B", number(90)), after("C", nil)}},
			"Of 3 groups that a fault struck 1 had not come back; C back (between 25 s and 30 s).", 1},
		"groups that nobody noticed a fault in": {Run{Findings: []result.Finding{keptRate, keptToo}},
			"OLTP kept its rate (nothing was lost); 1 more like it.", 1},
		"more verifications than are told": {Run{Findings: []result.Finding{lost, lost, lost, lost, lost, lost}},
			strings.Repeat("Check: every acknowledged write was there, in all 500 blocks (every block was read); ", 4) +
				"2 more like these.", 4},
		"two of one sort in turn": {
			Run{Findings: []result.Finding{turn("rate B / A"), turn("rate A / B")}, Loads: loads},
			"With x 2 instead of 1, B did 5 IOPS: ×1 (95 %: ×0.9 to ×1.1), and the p99 latency was 1 ms; " +
				"with x 2 instead of 1, B did 5 IOPS: ×1 (95 %: ×0.9 to ×1.1), and the p99 latency was 1 ms.", 2},
		"loads of one sort in turn": {Run{Findings: []result.Finding{turn("rate B / A")}, Loads: loads},
			"With x 2 instead of 1, B did 5 IOPS: ×1 (95 %: ×0.9 to ×1.1), and the p99 latency was 1 ms.", 1},
		"reads and writes in turn": {
			Run{Findings: []result.Finding{turn("rate B / A"), flat("A"), flat("B")}, Loads: mixed},
			"A was steady: 500 IOPS (95 %: 490 to 510); B was steady: 500 IOPS (95 %: 490 to 510).", 2},
		"a load of data": {Run{Findings: []result.Finding{ingest("A"), flat("A")}, Loads: loads[:1]},
			"A wrote 1 TiB in 1 min: 17 GiB/s (when steady 500 IOPS, 95 %: 490 to 510; one ingest).", 1},
		"a write before what is read": {Run{Findings: []result.Finding{ingest("A"), flat("B")}, Loads: loads},
			"A: read 500 IOPS (no interval of its rate: too little was reported); B was steady: 500 IOPS (95 %: 490 to 510).",
			1},
		"orders": {Run{Findings: []result.Finding{flat("Users")}, Loads: orders},
			"Users: NOPM 1,200 (Users was steady: 500 IOPS (95 %: 490 to 510)).", 1},
		"too short": {Run{Findings: []result.Finding{short}, Loads: loads[:1]},
			"A: read 500 IOPS (no interval of its rate: it has 16 points).", 1},
		"steady at its own rate": {Run{Findings: []result.Finding{flat("A")}, Loads: held},
			"A was steady: 500 IOPS (95 %: 490 to 510), held to the 500 IOPS its job asks for.", 1},
		"writes at its own rate": {Run{Findings: []result.Finding{ingest("A")}, Loads: held},
			"A wrote 1 TiB in 1 min: 17 GiB/s (one ingest), held to the 500 IOPS its job asks for.", 1},
		"only results": {Run{Results: []string{"busy: Max 7"}},
			"Busy: Max 7; no interval: only repeats show how these vary.", 0},
		"a load whose name begins small": {Run{Loads: []Load{{Name: "rd", Did: "read 5 IOPS"}}},
			"rd: read 5 IOPS (no interval of its rate: too little was reported).", 0},
		"several reasons": {Run{Findings: []result.Finding{short}, Loads: loads},
			"A: read 500 IOPS; B: read 500 IOPS; no rate has an interval: 16 points (A); too little was reported (B).",
			1},
	} {
		got, said := Of(c.run)
		if got != c.want || len(said) != c.said {
			t.Errorf("%s: of %d findings\n%s\nwant of %d\n%s", name, len(said), got, c.said, c.want)
		}
	}
}

// An interval stands behind the value that it is of, and nothing behind what was never regained.
func TestIntervalsBehindTheirValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    result.Finding
		want string
	}{
		{result.Finding{Unit: "s", Value: number(344.0), Low: number(329.0), High: number(374.0), Confidence: 0.95,
			Sentence: "A: 9,248 to 244,276 IOPS; data resident on the fast tier after 5 min 44 s of 9 min 55 s."},
			"A: 9,248 to 244,276 IOPS; data resident on the fast tier after 5 min 44 s (95 %: 5 min 29 s to 6 min 14 s) " +
				"of 9 min 55 s"},
		{result.Finding{Unit: "s", Value: number(12.0), Low: number(10.0), High: number(14.0), Confidence: 0.95,
			Sentence: "A back after 12 s; no errors reported."},
			"A back after 12 s (95 %: 10 s to 14 s); no errors reported"},
		{result.Finding{Check: "recovery", Unit: "s", NoInterval: "90 % was not regained within 239 s",
			Sentence: "A not back by 10:00 (lowest 12,600 IOPS); no errors reported."},
			"A not back by 10:00 (lowest 12,600 IOPS); no errors reported"},
	} {
		if got := Clause(c.f, true); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
