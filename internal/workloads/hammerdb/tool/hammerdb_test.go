package hammerdb_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/testkit/needs"
	hammerdb "plimsoll/internal/workloads/hammerdb/tool"
)

func Example() {
	r, ok := hammerdb.Achieved("Vuser 1:TEST RESULT : System achieved 46628 NOPM from 106540 PostgreSQL TPM")
	fmt.Println(r, ok, r.Odd() == "")
	fmt.Println(hammerdb.Counter("101832 PostgreSQL tpm"))
	// Output:
	// {46628 106540 PostgreSQL} true true
	// {101832 PostgreSQL } true
}

// What every text of the corpus says: results, figures of the counter, queries, time profiles by the sums of users,
// users that failed. Passwords are on the lines that are left out.
func TestCorpus(t *testing.T) {
	dir := needs.Corpus(t, "hammerdb")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		if f.Name() == "SOURCES.md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		var profile hammerdb.Profile
		counters, queries, failed, secrets := 0, 0, 0, 0
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			var quoted string
			if json.Unmarshal([]byte(strings.TrimSuffix(line, ",")), &quoted) == nil {
				line = quoted // of a job as JSON
			}
			if _, err := profile.Line(line); err != nil {
				t.Errorf("%s: %v", f.Name(), err)
			}
			if r, ok := hammerdb.Achieved(line); ok {
				said = append(said, fmt.Sprintf("%.0f NOPM %.0f TPM odd %t", r.NOPM, r.TPM, r.Odd() != ""))
			}
			if _, ok := hammerdb.Counter(line); ok {
				counters++
			}
			if _, ok := hammerdb.ReadQuery(line); ok {
				queries++
			}
			if hammerdb.Failed(line) {
				failed++
			}
			if hammerdb.Secret(line) {
				secrets++
			}
		}
		if t := profile.Of["neword"]; t != nil {
			said = append(said, fmt.Sprintf("%d users %.0f new orders p99 %v doubled %t", profile.Users, t.Calls,
				t.Stated["p99"], profile.Doubled() != ""))
		}
		got[f.Name()] = fmt.Sprintf("%s; %d counter, %d queries, %d failed, %d secret", strings.Join(said, ", "),
			counters, queries, failed, secrets)
	}
	want := map[string]string{
		"cli-buildschema-4wh-2vu-v4.12.txt": "; 0 counter, 0 queries, 0 failed, 4 secret",
		"cli-jobs-subcommands-2vu-v4.12.txt": "35651 NOPM 81853 TPM odd false, 35651 NOPM 81853 TPM odd false; " +
			"0 counter, 0 queries, 0 failed, 2 secret",
		"cli-run-1vu-v4.12.txt":        "35382 NOPM 80766 TPM odd false; 0 counter, 0 queries, 0 failed, 2 secret",
		"cli-run-2vu-tcount-v4.12.txt": "46628 NOPM 106540 TPM odd false; 7 counter, 0 queries, 0 failed, 2 secret",
		"cli-run-2vu-timeprofile-tcount-v4.12.txt": "35651 NOPM 81853 TPM odd false; " +
			"7 counter, 0 queries, 0 failed, 2 secret",
		"cli-run-4vu-v4.12.txt":              "56867 NOPM 130190 TPM odd false; 0 counter, 0 queries, 0 failed, 2 secret",
		"cli-testdriver-output-on-v4.12.txt": "; 0 counter, 0 queries, 0 failed, 2 secret",
		"hammerdb-cli-4.3-tpcc-timeprofile.log": "8 users 322104 new orders p99 14.197 doubled false; " +
			"0 counter, 0 queries, 0 failed, 0 secret",
		"hammerdb-cli-4.x-tpcc-mysql.log":           "8153 NOPM 24772 TPM odd true; 0 counter, 0 queries, 0 failed, 1 secret",
		"hammerdb-cli-tpcc-mysql-virtualclient.log": "11 NOPM 25 TPM odd false; 0 counter, 0 queries, 0 failed, 1 secret",
		"hammerdb-cli-tpch.log":                     "; 0 counter, 22 queries, 0 failed, 1 secret",
		"log-tcount-timestamps-v4.12.txt":           "; 7 counter, 0 queries, 0 failed, 0 secret",
		"log-virtualuser-timestamps-v4.12.txt":      "35651 NOPM 81853 TPM odd false; 0 counter, 0 queries, 0 failed, 0 secret",
		"log-xtprof-timeprofile-2vu-v4.12.txt": "2 users 35756 new orders p99 7.929 doubled true; " +
			"0 counter, 0 queries, 0 failed, 0 secret",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A call that failed and whose user went on is told by words of each database; what ends a user is another thing, and
// what a driver prints of what it does is none.
func TestSwallowed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"Vuser 2:New Order Procedure Error set RAISEERROR for Details":                      "swallowed",
		"Vuser 3:Deadlock found when trying to get lock; try restarting transaction":        "swallowed",
		"Vuser 3:ORA-00060: deadlock detected while waiting for resource":                   "swallowed",
		"Vuser 4:Error in tpcc1 Order Status : ORA-01013: user requested cancel":            "swallowed",
		"Vuser 2:New Order Bind/Exec : [Microsoft][ODBC Driver 17 for SQL Server]chosen":    "swallowed",
		"Vuser 2:Stock Level Fetch in client7 : no connection":                              "swallowed",
		"Vuser 2:SQL0911N  The current transaction has been rolled back":                    "swallowed",
		"Vuser 5:Query Failed : select 1 : ERROR:  canceling statement due to user request": "swallowed",
		"Error in Virtual User 3: New Order : Deadlock found when trying to get lock":       "trouble",
		"Vuser 1:ERROR:Timing Gather Timed Out before any Virtual User Reported":            "trouble",
		"Vuser 2:New Order: 1 4 7 1203 9 0 done":                                            "",
		"Vuser 2:Processing 10000000 transactions with output suppressed...":                "",
		"ORA-06512: at line 40": "",
		"Vuser 1:TEST RESULT : System achieved 600 NOPM from 1380 PostgreSQL TPM": "",
	} {
		got := ""
		switch {
		case hammerdb.Swallowed(line) && hammerdb.Trouble(line):
			got = "both"
		case hammerdb.Swallowed(line):
			got = "swallowed"
		case hammerdb.Trouble(line):
			got = "trouble"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// A zone is a name that may mean several, or an offset that says what it means.
func TestDate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Tue Mar  4 10:00:00 UTC 2025":   "2025-03-04 10:00:00 +0000 UTC  true",
		"Tue Mar 04 10:00:00 CET 2025":   "2025-03-04 10:00:00 +0000 UTC CET true",
		"Tue Mar 04 10:00:00 -03 2025":   "2025-03-04 13:00:00 +0000 UTC  true",
		"Tue Mar 04 10:00:00 +0545 2025": "2025-03-04 04:15:00 +0000 UTC  true",
		"Tue Mar 04 10:00:00 +9999 2025": "0001-01-01 00:00:00 +0000 UTC  false",
		"Di Mär 04 10:00:00 CET 2025":    "0001-01-01 00:00:00 +0000 UTC  false",
	} {
		at, zone, ok := hammerdb.Date(text)
		if got := fmt.Sprint(at, " ", zone, " ", ok); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func FuzzProfile(f *testing.F) {
	f.Add(">>>>> VIRTUAL USER 2 : ELAPSED TIME : 60077ms\n>>>>> PROC: NEWORD\nCALLS: 18022\tMIN: 0.333ms\tTOTAL: 26615.575ms")
	f.Add(">>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 1ms\n>>>>> PROC: A\nP99.9: 1...1 CALLS: 99999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		var p hammerdb.Profile
		for line := range strings.Lines(text) {
			if _, err := p.Line(strings.TrimSpace(line)); err != nil && err.Error() == "" {
				t.Error("an error without words")
			}
		}
		if len(p.Kinds) > 32 || len(p.Of) != len(p.Kinds) {
			t.Errorf("%d kinds, %d", len(p.Kinds), len(p.Of))
		}
		p.Doubled()
	})
}
