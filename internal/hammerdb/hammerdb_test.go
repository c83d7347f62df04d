package hammerdb_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/hammerdb"
	"plimsoll/internal/needs"
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
