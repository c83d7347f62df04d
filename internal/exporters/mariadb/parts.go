package mariadb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/kit/lazyregexp"
)

// Names of the metrics that are no pattern.
const (
	up           = "mysql_up"
	partSuccess  = "mysql_exporter_collector_success"
	partDuration = "mysql_exporter_collector_duration_seconds"
	versionInfo  = "mysql_version_info"
	isolation    = "mysql_transaction_isolation"

	status    = "mysql_global_status_"
	variables = "mysql_global_variables_"
	innodb    = "mysql_info_schema_innodb_metrics_"
	sessions  = "mysql_info_schema_processlist_threads"
	seconds   = "mysql_info_schema_processlist_seconds"
	tableSize = "mysql_info_schema_table_size"
	tableRows = "mysql_info_schema_table_rows"
)

// grouped are numbers of SHOW GLOBAL STATUS that share a name, told apart by a label.
var grouped = map[string]struct{ name, label, help string }{
	"com":                {status + "commands_total", "command", "Statements that were run, by kind."},
	"handler":            {status + "handlers_total", "handler", "Calls of the storage engines, by kind."},
	"connection_errors":  {status + "connection_errors_total", "error", "Connections that failed, by cause."},
	"innodb_rows":        {status + "innodb_row_ops_total", "operation", "Rows that InnoDB worked on, by operation."},
	"performance_schema": {status + "performance_schema_lost_total", "instrumentation", "What could not be watched."},
}

const (
	poolPages   = status + "buffer_pool_pages"
	poolDirty   = status + "buffer_pool_dirty_pages"
	poolChanges = status + "buffer_pool_page_changes_total"
	pageRead    = innodb + "buffer_page_read_total"
	pageWritten = innodb + "buffer_page_written_total"
	metricPages = innodb + "buffer_pool_pages"
	metricDirty = innodb + "buffer_pool_dirty_pages"
)

var (
	statusGroup = lazyregexp.New(
		`^(com|handler|connection_errors|innodb_buffer_pool_pages|innodb_rows|performance_schema)_(.+)$`)
	metricName = lazyregexp.New(`^[a-z_][a-z0-9_]{0,100}$`)
)

// Describe implements exporter.Collector.
func (*Collector) Describe() exporter.Description {
	d := exporter.Description{Name: "mariadb", Help: "What a MariaDB or MySQL server says of itself.",
		Families: []exporter.Family{
			{Name: up, Type: exporter.Gauge, Help: "Whether the server answers."},
			{Name: partSuccess, Type: exporter.Gauge, Help: "Whether a part gave what it has: 1, or 0."},
			{Name: partDuration, Type: exporter.Gauge, Unit: "seconds", Help: "How long a part took."},
			{Name: versionInfo, Type: exporter.Gauge, Help: "The server's version and make; always 1."},
			{Name: isolation, Type: exporter.Gauge, Help: "The isolation of transactions by default; always 1."},
			{Name: poolPages, Type: exporter.Gauge, Help: "Pages of InnoDB's buffer pool, by state."},
			{Name: poolDirty, Type: exporter.Gauge, Help: "Pages of InnoDB's buffer pool that are to be written."},
			{Name: poolChanges, Type: exporter.Counter, Help: "Changes of pages of the buffer pool, by operation."},
			{Name: status + "*", Type: exporter.Untyped, Help: "* of SHOW GLOBAL STATUS."},
			{Name: variables + "*", Type: exporter.Gauge, Help: "* of SHOW GLOBAL VARIABLES."},
			{Name: pageRead, Type: exporter.Counter, Help: "Pages that InnoDB read, by type."},
			{Name: pageWritten, Type: exporter.Counter, Help: "Pages that InnoDB wrote, by type."},
			{Name: metricPages, Type: exporter.Gauge, Help: "Pages of InnoDB's buffer pool, by state."},
			{Name: metricDirty, Type: exporter.Gauge, Help: "Pages of InnoDB's buffer pool that are to be written."},
			{Name: innodb + "*_total", Type: exporter.Counter, Help: "* of information_schema.innodb_metrics."},
			{Name: innodb + "*", Type: exporter.Gauge, Help: "* of information_schema.innodb_metrics."},
			{Name: sessions, Type: exporter.Gauge, Help: "Sessions, by command and state."},
			{Name: seconds, Type: exporter.Gauge, Unit: "seconds", Help: "How long sessions are in their states."},
			{Name: tableSize, Type: exporter.Gauge, Help: "Bytes of a table: data, indexes, free. Of the largest 50."},
			{Name: tableRows, Type: exporter.Gauge, Help: "Rows of a table, as the server guesses. Of the largest 50."},
		}}
	for _, g := range grouped {
		d.Families = append(d.Families, exporter.Family{Name: g.name, Type: exporter.Counter, Help: g.help})
	}
	return d
}

// part is one question to the server.
type part struct {
	name  string // in mysql_exporter_collector_success
	query string
	emit  func([]map[string]string, exporter.Emit)
	every time.Duration // how long an answer is good for; 0: for one page
}

var parts = []part{
	{"global_status", "SHOW GLOBAL STATUS", emitStatus, 0},
	{"global_variables", "SHOW GLOBAL VARIABLES", emitVariables, 10 * time.Second},
	{"info_schema.innodb_metrics", "SELECT * FROM information_schema.innodb_metrics", emitInnoDB, 0},
	{"info_schema.processlist", "SELECT LOWER(COALESCE(command, '')) AS command, LOWER(COALESCE(state, '')) AS state, " +
		"COUNT(*) AS n, SUM(time) AS seconds FROM information_schema.processlist WHERE id <> CONNECTION_ID() " +
		"GROUP BY 1, 2 ORDER BY n DESC LIMIT 200", emitSessions, 0},
	// Which opens tables that are not open: seldom.
	{"info_schema.tables", "SELECT table_schema AS s, table_name AS t, table_rows AS n, data_length AS data, " +
		"index_length AS indexes, data_free AS free FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND " +
		"table_schema NOT IN ('mysql', 'performance_schema', 'information_schema', 'sys') " +
		"ORDER BY data_length + index_length DESC LIMIT 50", emitTables, time.Minute},
}

// Collect implements exporter.Collector.
func (c *Collector) Collect(ctx context.Context, emit exporter.Emit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.connected(ctx); err != nil {
		emit(up, 0)
		return err
	}
	var errs []error
	for _, p := range parts {
		began := time.Now()
		rows, err := c.answer(ctx, p)
		good := 1.0
		if err != nil {
			good = 0
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		} else {
			p.emit(rows, emit)
		}
		emit(partSuccess, good, "collector", p.name)
		emit(partDuration, time.Since(began).Seconds(), "collector", p.name)
		if err != nil && (ctx.Err() != nil || c.conn.PingContext(ctx) != nil) {
			c.drop() // the rest would only say the same
			emit(up, 0)
			return errors.Join(errs...)
		}
	}
	emit(up, 1)
	return errors.Join(errs...)
}

// answer asks, or gives again what was answered not long ago.
func (c *Collector) answer(ctx context.Context, p part) ([]map[string]string, error) {
	if k, ok := c.kept[p.name]; ok && time.Since(k.at) < p.every {
		return k.rows, nil
	}
	rows, err := c.rows(ctx, p.query)
	if err == nil && p.every > 0 {
		c.kept[p.name] = kept{rows, time.Now()}
	}
	return rows, err
}

// number reads a value as the community's exporter does: numbers, words that stand for 1 and 0, and times as seconds.
func number(text string) (float64, bool) {
	switch strings.ToLower(text) {
	case "yes", "on", "primary":
		return 1, true
	case "no", "off", "disabled", "connecting", "non-primary", "disconnected":
		return 0, true
	case "":
		return 0, false
	}
	for _, layout := range []string{"Jan _2 15:04:05 2006 MST", time.DateTime} { // of certificates, and of the server
		if t, err := time.Parse(layout, text); err == nil {
			return float64(t.Unix()), true
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// named gives the pairs of an answer of SHOW whose values are numbers and whose names metrics can have.
func named(rows []map[string]string, take func(name string, v float64)) {
	for _, r := range rows {
		name := strings.ToLower(r["variable_name"])
		if v, ok := number(r["value"]); ok && metricName.MatchString(name) {
			take(name, v)
		}
	}
}

func emitStatus(rows []map[string]string, emit exporter.Emit) {
	named(rows, func(name string, v float64) {
		m := statusGroup.FindStringSubmatch(name)
		switch {
		case m == nil:
			emit(status+name, v)
		case m[1] != "innodb_buffer_pool_pages":
			emit(grouped[m[1]].name, v, grouped[m[1]].label, m[2])
		case m[2] == "total": // the sum of the others
		case m[2] == "dirty": // which are among those with data
			emit(poolDirty, v)
		case m[2] == "data" || m[2] == "free" || m[2] == "misc" || m[2] == "old":
			emit(poolPages, v, "state", m[2])
		default:
			emit(poolChanges, v, "operation", m[2])
		}
	})
}

func emitVariables(rows []map[string]string, emit exporter.Emit) {
	words := map[string]string{}
	named(rows, func(name string, v float64) { emit(variables+name, v) })
	for _, r := range rows {
		words[strings.ToLower(r["variable_name"])] = r["value"]
	}
	emit(versionInfo, 1, "innodb_version", words["innodb_version"], "version", words["version"], "version_comment",
		words["version_comment"])
	if level := cmp.Or(words["transaction_isolation"], words["tx_isolation"]); level != "" {
		emit(isolation, 1, "level", level)
	}
}

// emitInnoDB emits the metrics that are switched on.
func emitInnoDB(rows []map[string]string, emit exporter.Emit) {
	for _, r := range rows {
		name, system := r["name"], r["subsystem"]
		v, ok := number(r["count"])
		full := system + "_" + name
		if !ok || r["status"] != "enabled" && r["enabled"] != "1" || !metricName.MatchString(full) {
			continue
		}
		read, isRead := strings.CutPrefix(name, "buffer_page_read_")
		written, isWritten := strings.CutPrefix(name, "buffer_page_written_")
		state, isState := strings.CutPrefix(name, "buffer_pool_pages_")
		switch kind := r["type"]; {
		case system == "buffer_page_io" && isRead:
			emit(pageRead, v, "type", read)
		case system == "buffer_page_io" && isWritten:
			emit(pageWritten, v, "type", written)
		case system == "buffer" && isState && state == "total":
		case system == "buffer" && isState && state == "dirty":
			emit(metricDirty, v)
		case system == "buffer" && isState:
			emit(metricPages, v, "state", state)
		case (kind == "counter" || kind == "status_counter") && v >= 0:
			emit(innodb+full+"_total", v)
		default:
			emit(innodb+full, v)
		}
	}
}

func emitSessions(rows []map[string]string, emit exporter.Emit) {
	for _, r := range rows {
		labels := []string{"command", r["command"], "state", r["state"]}
		if v, ok := number(r["n"]); ok {
			emit(sessions, v, labels...)
		}
		if v, ok := number(r["seconds"]); ok {
			emit(seconds, v, labels...)
		}
	}
}

func emitTables(rows []map[string]string, emit exporter.Emit) {
	for _, r := range rows {
		for component, key := range map[string]string{"data_length": "data", "index_length": "indexes",
			"data_free": "free"} {
			if v, ok := number(r[key]); ok {
				emit(tableSize, v, "component", component, "schema", r["s"], "table", r["t"])
			}
		}
		if v, ok := number(r["n"]); ok {
			emit(tableRows, v, "schema", r["s"], "table", r["t"])
		}
	}
}
