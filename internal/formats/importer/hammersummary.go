package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/kit/untyped"
	hammer "plimsoll/internal/workloads/hammerdb/tool"
)

// hammerSummary holds what HammerDB 6 gives of a job as a whole (schema hammerdb-job-report-v1). Numbers that cannot be
// read are texts in it.
type hammerSummary struct {
	Schema string `json:"schema"`
	Job    struct {
		Version   string `json:"hdb_version"`
		Timestamp string `json:"timestamp"`
	} `json:"job"`
	Config untyped.Object `json:"benchmark_config"`
	Result struct {
		Type     string `json:"type"`
		Database string `json:"database_display"`
		Users    any    `json:"active_virtual_users"`
		NOPM     any    `json:"nopm"`
		TPM      any    `json:"tpm"`
		Sets     any    `json:"query_sets"`
		Seconds  any    `json:"total_query_time_seconds"`
		Mean     any    `json:"geomean_seconds"`
	} `json:"result"`
	Counter struct {
		Series []struct {
			Database string `json:"database_display"`
			Points   []struct {
				Timestamp string `json:"timestamp"`
				Value     any    `json:"value"`
			} `json:"points"`
		} `json:"series"`
	} `json:"transaction_count"`
	Times struct {
		Rows []untyped.Object `json:"rows"`
	} `json:"response_times"`
	Queries struct {
		Rows []untyped.Object `json:"rows"`
	} `json:"query_times"`
}

const hammerSummarySchema = "hammerdb-job-report-v1"

// summary takes a job as a whole as the lines and the objects that other versions give of one. It reports false for
// what is none.
func (p *hammerParser) summary(n int, v json.RawMessage) (taken bool, lines []string, err error) {
	var s hammerSummary
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&s) != nil || s.Schema != hammerSummarySchema {
		return false, nil, nil
	}
	p.next()
	lines = []string{s.Job.Timestamp, fmt.Sprintf("HammerDB CLI %s", s.Job.Version)}
	switch r := s.Result; r.Type {
	case "tproc_c_result":
		lines = append(lines, fmt.Sprintf("Vuser 1:Timing test period of %v in minutes", s.Config["duration_minutes"]),
			fmt.Sprintf("Vuser 1:%v Active Virtual Users configured", r.Users),
			fmt.Sprintf("Vuser 1:TEST RESULT : System achieved %v NOPM from %v %s TPM", r.NOPM, r.TPM, r.Database))
	case "tproc_h_result":
		for _, row := range s.Queries.Rows {
			seconds := fmt.Sprint(row["seconds"])
			p.whole = p.whole || len(seconds) > 1 && !strings.Contains(seconds, ".")
			lines = append(lines, fmt.Sprintf("Vuser 1:query %v completed in %v seconds", row["name"], seconds))
		}
		lines = append(lines, fmt.Sprintf("Vuser 1:Completed %v query set(s) in %v seconds", r.Sets, r.Seconds),
			fmt.Sprintf("Vuser 1:Geometric mean of query times returning rows is %v", r.Mean))
	}
	for _, series := range s.Counter.Series {
		of := map[string]string{}
		for _, point := range series.Points {
			of[point.Timestamp] = fmt.Sprint(point.Value)
		}
		if err := p.object(n, series.Database+" tpm", of); err != nil {
			return true, lines, err
		}
	}
	for _, row := range s.Times.Rows {
		of := map[string]string{}
		for key, value := range row {
			of[key] = fmt.Sprint(value)
		}
		if err := p.object(n, of["name"], of); err != nil {
			return true, lines, err
		}
	}
	return true, lines, nil
}

// readHammerJSON reads what HammerDB's job commands and its web service give: a job's lines or its result as a list,
// its timing and its transaction counter as objects. What comes a second time is of a further job.
func readHammerJSON(f format, r io.Reader) (*book, error) {
	p := newHammerParser(f)
	text := newHammerParser(f)
	from, done := 0, false
	var began time.Time
	p.next = func() {
		text.closeQueries()
		text.endTest()
		p.book.stretches = append(p.book.stretches, text.book.stretches...)
		text.book.stretches = nil
		if len(p.profile.Kinds) > 0 {
			p.closeTiming()
		}
		if len(p.samples) > 0 {
			p.closeCounter()
			p.samples = nil
		}
		job := p.book.stretches[from:]
		for _, s := range job {
			if began.IsZero() {
				began = s.start
			}
		}
		for i := range job {
			if s := &job[i]; s.start.IsZero() {
				s.start, s.beside = began, i > 0
			}
		}
		from, began, done = len(p.book.stretches), time.Time{}, false
	}
	err := jsonValues(r, func(line int, v json.RawMessage) error {
		if len(p.book.stretches) > mostStretches {
			return fmt.Errorf("more than %d runs in it: split the file", mostStretches)
		}
		taken, words, err := p.summary(line, v)
		if err != nil {
			return err
		}
		text.whole = p.whole
		if taken || json.Unmarshal(v, &words) == nil {
			// The result says once more what the job's lines said; those of a further job tell its test anew.
			all := strings.Join(words, "\n")
			if done && !strings.Contains(all, "Timing test period of") && !hammerQuery.MatchString(all) {
				return nil
			}
			if done {
				p.next()
			}
			for i, w := range words {
				if at, err := time.Parse(time.DateTime, w); err == nil {
					began, p.local = at, true
				}
				if i > 0 && words[i-1] != "" && strings.Trim(words[i-1], "0123456789") == "" {
					w = hammerSaid(words[i-1], w)
				}
				for each := range strings.SplitSeq(hammerJoined.Replace(w), "\n") {
					if err := text.line(line, each, hammerdb); err != nil {
						return err
					}
				}
			}
			done = len(text.book.stretches) > 0 || text.queries.n > 0
			return nil
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(v, &object); err != nil {
			return nil // of no interest
		}
		p.secret = p.secret || hammer.Secret(string(v))
		for _, key := range slices.Sorted(maps.Keys(object)) {
			var of map[string]string
			if json.Unmarshal(object[key], &of) != nil {
				continue
			}
			if err := p.object(line, key, of); err != nil {
				return err
			}
		}
		return nil
	})
	p.next()
	p.book.tool = text.book.tool
	p.book.skipped = append(p.book.skipped, text.book.skipped...)
	p.book.lost = text.book.lost
	return &p.book, errors.Join(err, p.close(f))
}

// hammerJoined parts what a job's result has of several virtual users in one text.
var hammerJoined = strings.NewReplacer(" Geometric mean of", "\nGeometric mean of", " Completed ", "\nCompleted ")
