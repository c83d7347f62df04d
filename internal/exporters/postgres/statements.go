package postgres

import (
	"fmt"

	"plimsoll/internal/contract/exporter"
)

// installed asks in which schema of the database the extension pg_stat_statements is, if it is there.
var installed = view{name: "extensions", every: rare}

const installedQuery = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace " +
	"WHERE extname = 'pg_stat_statements'"

// mostStatements is how many statements are told of: those that took the most time.
const mostStatements = 20

// statements returns what the extension pg_stat_statements knows of the statements that took the most time. Names are
// those of the community's exporter. Texts are those that the extension has made free of constants; of statements that
// it leaves as they are, such as ALTER ROLE, only the first word is served, since they may hold a password.
func statements(schema string) view {
	const text = `CASE WHEN query ~* '^\s*(select|insert|update|delete|merge|with)\M' ` +
		`THEN left(regexp_replace(query, '\s+', ' ', 'g'), 100) ELSE upper(substring(query from '\w+')) END AS query`
	since13 := func(c column) column { return c.in(13, 0) }
	return view{
		name: "statements", every: rare,
		labels: []string{"userid::regrole AS user", "datname", "queryid", text},
		columns: []column{
			counter("stat_statements_calls_total", "calls", "Times that the statement was executed."),
			since13(seconds("stat_statements", "total_exec_time", "Time of its executions.")),
			seconds("stat_statements", "total_time", "Time of its executions.").in(0, 13),
			counter("stat_statements_rows_total", "rows", "Rows that it returned or touched."),
			counter("stat_statements_blks_hit_total", "shared_blks_hit", "Blocks that it found in memory."),
			counter("stat_statements_blks_read_total", "shared_blks_read", "Blocks that it read."),
		},
		from: fmt.Sprintf("FROM %s.pg_stat_statements JOIN pg_database ON pg_database.oid = dbid "+
			"WHERE queryid IS NOT NULL ORDER BY 6 DESC LIMIT %d", schema, mostStatements),
	}
}

// statementFamilies are the metrics of statements.
func statementFamilies() (list []exporter.Family) {
	seen := map[string]bool{}
	for _, c := range statements("").columns {
		if !seen[c.Name] {
			seen[c.Name] = true
			list = append(list, c.Family)
		}
	}
	return list
}
