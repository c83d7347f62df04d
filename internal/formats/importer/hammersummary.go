package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"plimsoll/internal/kit/untyped"
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
