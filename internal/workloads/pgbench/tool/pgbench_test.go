package pgbench_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
	pgbench "plimsoll/internal/workloads/pgbench/tool"
)

func Example() {
	var text pgbench.Text
	for _, line := range []string{"progress: 1.0 s, 322.0 tps, lat 5.800 ms stddev 12.406, 2 failed",
		"number of transactions actually processed: 320", "initial connection time = 250.000 ms",
		"tps = 320.000000 (without initial connection time)"} {
		if p, ok := text.Line(line); ok {
			fmt.Println(p.Elapsed, p.TPS, p.MeanMS, p.Failed)
		}
	}
	t := text.Totals()
	fmt.Println(t.Processed, t.TPS, t.TPSWith)

	columns := pgbench.Columns{Lag: true, Retries: true}
	line, err := pgbench.ReadTransaction([]byte("3 17 1250 0 1700000000 500000 250 1"), columns)
	fmt.Printf("%+v %v\n", line, err)
	// Output:
	// 1s 322 5.8 2
	// 320 320 256
	// {Fate:0 Client:3 Number:17 Script:0 TookMicros:1250 EndedMicros:1700000000500000 LagMicros:250 Retries:1} <nil>
}

// Of several pgbenches that packages have put there it is the newest, by its version and not by its spelling.
func TestFindScript(t *testing.T) {
	root := t.TempDir()
	for _, version := range []string{"9.6", "10", "17"} {
		folder := filepath.Join(root, "usr/lib/postgresql", version, "bin")
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "pgbench"),
			[]byte("#!/bin/sh\necho 'pgbench (PostgreSQL) "+version+"'\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	debians := filepath.Join(root, "pgbench")
	if err := errors.Join(os.Symlink("pg_wrapper", debians), os.WriteFile(root+"/pg_wrapper", nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", pgbench.FindScript, "find", root)
	cmd.Env = []string{"PATH=" + root + ":/usr/bin:/bin"}
	out, err := cmd.Output()
	want := filepath.Join(root, "usr/lib/postgresql/17/bin/pgbench") + "\npgbench (PostgreSQL) 17\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

// What is printed is read of every version: both ways to write means, tps and latencies of statements.
func TestTotals(t *testing.T) {
	nan := math.NaN()
	old := pgbench.Totals{Seconds: 5, Scale: 1, Processed: 77, Failed: nan, Late: nan, Skipped: nan, Retried: nan,
		Retries: nan, MeanMS: 1108.418, LagMS: nan, LagMaxMS: nan, ConnectMS: nan, TPS: 13.062579, TPSWith: 12.580114,
		Clients: 16, PerClient: nan, Type: "TPC-B (sort of)", Mode: "simple"}
	for name, c := range map[string]struct {
		text       string
		want       pgbench.Totals
		statements []string
	}{
		"15 with everything": {`pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: multiple scripts
scaling factor: 2
maximum number of tries: 3
duration: 2 s
number of transactions per client: 200
number of transactions actually processed: 406
number of failed transactions: 3 (0.733%)
number of serialization failures: 1 (0.244%)
number of transactions retried: 5 (1.2%)
total number of retries: 7
number of transactions skipped: 4 (0.900%)
number of transactions above the 5.0 ms latency limit: 11/406 (2.709%)
latency average = 1.649 ms
latency stddev = 1.110 ms
rate limit schedule lag: avg 0.148 (max 2.821) ms
initial connection time = 11.645 ms
tps = 203.000000 (without initial connection time)
SQL script 1: <builtin: select only>
 - weight: 1 (targets 50.0% of total)
 - statement latencies in milliseconds, failures and retries:
         0.001           0           0  \set aid random(1, 100000 * :scale)
         0.213           1           2  SELECT abalance FROM pgbench_accounts WHERE aid = 1;
SQL script 2: own.sql
 - weight: 3 (targets 50.0% of total)
 - 306 transactions (75.4% of total, tps = 153.5)
 - number of failed transactions: 2 (0.5%)
 - latency average = 1.500 ms
 - statement latencies in milliseconds, failures and retries:
         0.300           0           0  select 7 7;
`, pgbench.Totals{Version: "15.18", Seconds: 2, Scale: 2, Processed: 406, Failed: 3, Late: 11, Skipped: 4, Retried: 5,
			Retries: 7, MeanMS: 1.649, LagMS: 0.148, LagMaxMS: 2.821, ConnectMS: 11.645, TPS: 203, TPSWith: 201.824875,
			Clients: nan, PerClient: 200, Type: "multiple scripts", Scripts: []pgbench.ScriptTotals{
				{"<builtin: select only>", 1, nan, nan, nan, nan}, {"own.sql", 3, 306, 2, 1.5, 153.5}}},
			[]string{`0 0.001 \set aid random(1, 100000 * :scale)`,
				"0 0.213 SELECT abalance FROM pgbench_accounts WHERE aid = 1;", "1 0.3 select 7 7;"}},
		"9.x": {corpus(t, "pgbench-9.x-statement-latencies.stdout.txt"), old, nil},
		"aborted": {"pgbench: error: client 1 script 0 aborted in command 4 query 0: ERROR:  deadlock detected\n" +
			"Run was aborted; the above results are incomplete.\n", pgbench.Totals{Seconds: nan, Clients: nan,
			PerClient: nan,
			Trouble:   "pgbench: error: client 1 script 0 aborted in command 4 query 0: ERROR:  deadlock detected", Scale: nan,
			Processed: nan, Failed: nan, Late: nan, Skipped: nan, Retried: nan, Retries: nan, MeanMS: nan, LagMS: nan,
			LagMaxMS: nan, ConnectMS: nan, TPS: nan, TPSWith: nan, Incomplete: true, Aborted: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.text == "" {
				t.Skip("the corpus is not there")
			}
			var text pgbench.Text
			for line := range strings.Lines(c.text) {
				text.Line(strings.TrimSuffix(line, "\n"))
			}
			got := text.Totals()
			var statements []string
			for _, s := range got.Statements {
				statements = append(statements, fmt.Sprint(s.Script, " ", s.MeanMS, " ", s.Text))
			}
			if c.statements != nil && !cmp.Equal(statements, c.statements) {
				t.Errorf("%q, want %q", statements, c.statements)
			}
			if name == "9.x" && (len(statements) != 14 || statements[13] != "0 37.609597 END;") {
				t.Errorf("%q", statements)
			}
			got.Statements = nil
			if d := cmp.Diff(c.want, got, cmp.Comparer(func(a, b float64) bool {
				return a == b || math.IsNaN(a) && math.IsNaN(b)
			})); d != "" {
				t.Error(d)
			}
		})
	}
}

// corpus is a text of the corpus, "" where there is none.
func corpus(t *testing.T, name string) string {
	data, err := os.ReadFile(filepath.Join(needs.Corpus(t, "pgbench"), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Options are given as a version knows them, and refused with the version that does.
func TestArguments(t *testing.T) {
	j := pgbench.Job{Scale: 10, Clients: 8, Threads: 2, Mode: "prepared", Log: true, Seconds: 60, Seed: 7, Rate: 0.5,
		LatencyLimitMS: 2.5, MaxTries: 3, Connect: true, Statements: true,
		Scripts: []pgbench.Script{{File: "Load/script-1.sql", Weight: 3}},
		Options: []string{"--exit-on-abort", "--define=a=b c"}}
	common := "--no-vacuum --progress=1 --progress-timestamp --client=8 --jobs=2 --time=60 --protocol=prepared --log " +
		"--file=Load/script-1.sql@3 --scale=10 --rate=0.5 --latency-limit=2.5 --max-tries=3 --connect -r "
	for version, want := range map[int]string{
		906:  common + "--exit-on-abort --define=a=b c",
		1300: common + "--random-seed=7 --exit-on-abort --define=a=b c",
		1700: common + "--random-seed=7 --failures-detailed --exit-on-abort --define=a=b c",
	} {
		if got := strings.Join(j.Arguments(version), " "); got != want {
			t.Errorf("%d: %q, want %q", version, got, want)
		}
	}
	for version, want := range map[int]string{
		904:  "pgbench there is 9.4: plimsoll needs pgbench 9.6; --exit-on-abort needs pgbench 17; max_tries needs pgbench 15",
		1500: "pgbench there is 15: --exit-on-abort needs pgbench 17", 1800: "",
	} {
		if err := j.Check(version); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d: %v, want %q", version, err, want)
		}
	}
	for options, want := range map[string]string{"--fillfactor=90": "--fillfactor=90 --init-steps=tgvp",
		"--init-steps=dtGp": "--init-steps=tGp"} {
		init := pgbench.Job{Initialize: true, Scale: 5, Options: []string{options}}
		if got := strings.Join(init.Arguments(1500), " "); got != "--initialize --scale=5 "+want {
			t.Errorf("%q", got)
		}
		if got := strings.Join(init.Arguments(1000), " "); got != "--initialize --scale=5 "+options {
			t.Errorf("%q", got)
		}
	}
	for text, want := range map[string]int{"pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 1500,
		"pgbench (PostgreSQL) 9.6.24": 906, "pgbench (PostgreSQL) 19devel": 1900, "bash: pgbench": 0} {
		if got, _, err := pgbench.ReadVersion(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestStatementWords(t *testing.T) {
	for script, want := range map[string]string{
		"":                                  "",
		"BEGIN;\nUPDATE a SET b = 1;\nEND;": "begin update end",
		"\\set x 1\\\n + 2\nselect ':x;' ; -- no; comment\n/* a; b */ insert into t values (';');": "select insert",
		"select $a$ ; $a$; select 1 \\gset p_\nselect 2 \\; select 3; end":                         "select select select end",
		"with a as (select \"x;y\") select 1":                                                      "with",
	} {
		if got := strings.Join(pgbench.StatementWords(script), " "); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

// Lines of the log are read whole or refused.
func TestReadTransaction(t *testing.T) {
	both := pgbench.Columns{Lag: true, Retries: true}
	for line, want := range map[string]string{
		"0 1 15988 0 1795352327 52221":            "{0 0 1 0 15988 1795352327052221 0 0}",
		"0 1 skipped 2 1795352327 52221 31":       "{1 0 1 2 0 1795352327052221 31 0}",
		"0 1 deadlock 0 1795352327 52221 0 4":     "{4 0 1 0 0 1795352327052221 0 4}",
		"0 1 other 0 1795352327 52221":            "{5 0 1 0 0 1795352327052221 0 0}",
		"0 1 late 0 1795352327 52221":             "error",
		"0 1 5 0 1795352327":                      "error",
		"0 1 5 0 1795352327 1000000":              "error",
		"0 1 5 0 99999999999 1":                   "error",
		"0 1 5.5 0 1795352327 1":                  "error",
		"0 1 99999999999999999999 0 1795352327 1": "error",
		"": "error",
	} {
		got, err := pgbench.ReadTransaction([]byte(line), both)
		text := fmt.Sprint(got)
		if err != nil {
			text = "error"
		}
		if text != want {
			t.Errorf("%q: %s (%v), want %s", line, text, err, want)
		}
	}
}

func FuzzReadTransaction(f *testing.F) {
	for _, line := range []string{"0 1 15988 0 1795352327 52221", "3 4 failed 0 1499414498 84905 9", "0 1 -5 0 1 1"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for i := range 4 {
			c := pgbench.Columns{Lag: i&1 > 0, Retries: i&2 > 0}
			x, err := pgbench.ReadTransaction(line, c)
			if err == nil && min(x.TookMicros, x.LagMicros, x.Retries, int64(x.Script), x.EndedMicros) < 0 {
				t.Errorf("%q: %+v", line, x)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("progress: 1795389835.929 s, 201.9 tps, lat 1.936 ms stddev 1.142, 0 failed, lag 0.176 ms, 0 skipped")
	f.Add("statement latencies in milliseconds and failures:\n   0.1  0 \\set\nSQL script 9999999999999999999: x\n\t1 2")
	f.Add("latency average: 1e999 ms\nduration: 5 s\ntps = 1 (including x)\nscaling factor: 0")
	f.Fuzz(func(t *testing.T, all string) {
		var text pgbench.Text
		for line := range strings.Lines(all) {
			if p, ok := text.Line(strings.TrimRight(line, "\r\n")); ok && !(p.TPS >= 0) {
				t.Errorf("%q: %+v", line, p)
			}
		}
		if o := text.Totals(); o.TPS < 0 || math.IsInf(o.TPSWith, 0) || o.Processed < 0 {
			t.Errorf("%+v", o)
		}
		pgbench.StatementWords(all)
	})
}
