package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/testkit/exportertest"
	"plimsoll/internal/testkit/golden"
	"plimsoll/internal/testkit/needs"
)

// given are the community's names that break Prometheus' conventions.
var given = []string{
	"pg_locks_count", "pg_stat_activity_count",
	"pg_stat_database_xact_commit", "pg_stat_database_xact_rollback", "pg_stat_database_blks_read",
	"pg_stat_database_blks_hit", "pg_stat_database_tup_returned", "pg_stat_database_tup_fetched",
	"pg_stat_database_tup_inserted", "pg_stat_database_tup_updated", "pg_stat_database_tup_deleted",
	"pg_stat_database_conflicts", "pg_stat_database_temp_files", "pg_stat_database_temp_bytes",
	"pg_stat_database_deadlocks", "pg_stat_database_blk_read_time", "pg_stat_database_blk_write_time",
}

// What the tests of package postgres_test use, which are with real servers.
var (
	Given = given
	Page  = page
	Names = names
)

// Version is the server's.
func (c *Collector) Version() string { return strconv.Itoa(c.version) }

// Patient has the collector wait on a machine that has much else to do.
func (c *Collector) Patient() {
	c.config.ConnectTimeout = time.Minute
	c.config.RuntimeParams["statement_timeout"] = "60000"
}

// Ask sends what the collector does not.
func (c *Collector) Ask(ctx context.Context, query string) error {
	_, err := c.server.ask(ctx, query)
	return err
}

// page returns what is served, without what the page says of itself and how long parts took.
func page(t testing.TB, c exporter.Collector) (string, error) {
	t.Helper()
	x, err := exporter.New("test", c)
	if err != nil {
		t.Fatal(err)
	}
	x.Deadline = time.Minute
	var b bytes.Buffer
	failed, err := x.Page(t.Context(), &b, exporter.Text)
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(plimsoll_exporter_|` + viewDuration + `).*\n`)
	return own.ReplaceAllString(b.String(), ""), failed
}

// names are the metrics of a page.
func names(page string) []string {
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(page, -1) {
		seen[m[1]] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// answers is a server of text: what a real one of some version answered, by query.
type answers map[string][][]*string

func (a answers) ask(_ context.Context, query string) ([]row, error) {
	recorded, ok := a[query]
	if !ok {
		return nil, fmt.Errorf("no answer is recorded to %s", query)
	}
	rows := make([]row, len(recorded))
	for i, r := range recorded {
		for _, cell := range r {
			if cell == nil {
				rows[i] = append(rows[i], nil)
			} else {
				rows[i] = append(rows[i], []byte(*cell))
			}
		}
	}
	return rows, nil
}

func (answers) lost() bool { return false }
func (answers) close()     {}

// recorder keeps what a server answers: of pg_stat_io the beginning.
type recorder struct {
	server
	into answers
}

func (r recorder) ask(ctx context.Context, query string) ([]row, error) {
	rows, err := r.server.ask(ctx, query)
	if err != nil {
		return nil, err
	}
	r.into[query] = [][]*string{}
	if strings.HasSuffix(query, "FROM pg_stat_io") {
		rows = rows[:min(len(rows), 6)]
	}
	for _, one := range rows {
		var cells []*string
		for _, cell := range one {
			var text *string
			if cell != nil {
				s := string(cell)
				text = &s
			}
			cells = append(cells, text)
		}
		r.into[query] = append(r.into[query], cells)
	}
	return rows, nil
}

// collector is one of a server of the test's own.
func collector(t testing.TB, s server) *Collector {
	t.Helper()
	c, err := New(Server{URL: "postgresql://nobody@127.0.0.1:1/none"})
	if err != nil {
		t.Fatal(err)
	}
	c.open = func(context.Context) (server, error) { return s, nil }
	return c
}

// recorded are the answers of real servers, by version: testdata/answers.json. With -update they are taken anew from
// the servers whose addresses PLIMSOLL_POSTGRES_SERVERS holds, one of each version.
func recorded(t testing.TB) map[string]answers {
	t.Helper()
	const file = "testdata/answers.json"
	all := map[string]answers{}
	if servers := strings.Fields(os.Getenv("PLIMSOLL_POSTGRES_SERVERS")); golden.Updating() && len(servers) > 0 {
		for _, url := range servers {
			c, err := New(Server{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			into := answers{}
			c.open = func(ctx context.Context) (server, error) {
				s, err := c.connect(ctx)
				return recorder{s, into}, err
			}
			if _, err := page(t, c); err != nil {
				t.Fatal(err)
			}
			all[strconv.Itoa(c.version)] = into
			c.Close()
		}
		var text bytes.Buffer
		to := json.NewEncoder(&text)
		to.SetEscapeHTML(false)
		to.SetIndent("", " ")
		if err := to.Encode(all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, shorter(text.Bytes()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// shorter writes a row of an answer on one line.
func shorter(text []byte) []byte {
	return regexp.MustCompile(`\n {4,}\s*|\n {3}(\])`).ReplaceAll(text, []byte("$1"))
}

// Servers of every version from 12 to 18: each part succeeds, and testdata/metrics.golden says which metrics each has.
// The newest one's page is a golden as a whole.
func TestVersions(t *testing.T) {
	has := map[string][]string{}
	all := recorded(t)
	for v := oldest; v <= newest; v++ {
		version := strconv.Itoa(v)
		if all[version] == nil {
			t.Fatalf("no server of version %d was recorded", v)
		}
		c := collector(t, all[version])
		got, err := page(t, c)
		if err != nil {
			t.Errorf("%s: %v", version, err)
		}
		for _, n := range names(got) {
			has[n] = append(has[n], version)
		}
		if v == newest {
			golden.Compare(t, "testdata/page.golden", []byte(got))
		}
		t.Run(version, func(t *testing.T) {
			exportertest.Run(t, exportertest.Subject{
				New:   func(t *testing.T) exporter.Collector { return collector(t, all[version]) },
				Given: given,
			})
		})
	}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(has)) {
		fmt.Fprintf(&b, "%s %s\n", n, strings.Join(has[n], " "))
	}
	golden.Compare(t, "testdata/metrics.golden", []byte(b.String()))
}

// faulty fails one query in its own way.
type faulty struct {
	answers
	match string
	fail  func() ([]row, error)
	gone  bool
}

func (f *faulty) ask(ctx context.Context, query string) ([]row, error) {
	if strings.Contains(query, f.match) {
		return f.fail()
	}
	return f.answers.ask(ctx, query)
}

func (f *faulty) lost() bool { return f.gone }

// What one part cannot give is said, and everything else is served. A server that is lost is said once, and asked for
// anew with the next page.
func TestFaults(t *testing.T) {
	sound := recorded(t)["15"]
	cell := func(texts ...string) ([]row, error) {
		var r row
		for _, s := range texts {
			r = append(r, []byte(s))
		}
		return []row{r}, nil
	}
	for _, c := range []struct {
		name, match string
		fail        func() ([]row, error)
		want        string
		up, served  bool // pg_up, and the settings, which are last
	}{
		{"refused", "pg_stat_wal", func() ([]row, error) { return nil, errors.New("permission denied") },
			"stat_wal: permission denied", true, true},
		{"no number", "pg_stat_bgwriter", func() ([]row, error) {
			return cell("1", "2", "3", "4", "many", "6", "7", "8", "9", "10")
		}, `stat_bgwriter: pg_stat_bgwriter_buffers_checkpoint_total: "many" is no number`, true, true},
		{"short row", "pg_stat_bgwriter", func() ([]row, error) { return cell("1") },
			"stat_bgwriter: a row of 1 values for 10", true, true},
		{"setting", "pg_settings WHERE", func() ([]row, error) { return cell("work_mem", "4", "furlong", "integer") },
			`settings: setting work_mem: unit "furlong" is unknown`, true, false},
		{"too old", "SHOW", func() ([]row, error) { return cell("90624") },
			"the server is PostgreSQL 9; 12 is the oldest that is known", false, false},
		{"no version", "SHOW", func() ([]row, error) { return nil, nil },
			"no answer to SHOW server_version_num", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &faulty{answers: sound, match: c.match, fail: c.fail}
			got, err := page(t, collector(t, f))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("failure %v, want %s", err, c.want)
			}
			if strings.Contains(got, "\npg_up 1\n") != c.up ||
				strings.Contains(got, "pg_settings_shared_buffers_bytes ") != c.served {
				t.Errorf("up or the settings are not as they should be:\n%s", got)
			}
		})
	}
	f := &faulty{answers: sound, match: "pg_locks"}
	f.fail = func() ([]row, error) { f.gone = true; return nil, errors.New("the server is shutting down") }
	c := collector(t, f)
	for i, want := range []string{"pg_up 0", "pg_up 1"} {
		got, err := page(t, c)
		if !strings.Contains(got, "\n"+want+"\n") || (err != nil) != (i == 0) {
			t.Errorf("page %d: %v, want %s in\n%s", i, err, want, got)
		}
		f.gone, f.match = false, "nothing"
	}
	c.Close()
	if _, err := page(t, c); err == nil {
		t.Error("a page after the end")
	}
}

func TestAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"postgresql://u:hush@h/d":             `exporter postgres: option "url": it holds a password`,
		"postgresql://h/d?password=hush":      `exporter postgres: option "url": it holds a password`,
		"postgresql://u@h/d?sslpassword=hush": `exporter postgres: option "url": it holds a password`,
		"host=h sslpassword=hush":             `exporter postgres: option "url": it holds a password`,
		"postgresql://u@h/d?password=hush":    `exporter postgres: option "url": it holds a password`,
		"host=h PASSWORD = hush":              `exporter postgres: option "url": it holds a password`,
		"host=a,b user=u":                     `exporter postgres: option "url": it names several servers (a, b)`,
		"port=many":                           `exporter postgres: option "url": cannot parse`,
		"postgresql://u@h/d":                  "",
		"host=/run/postgresql dbname=x":       "",
		"":                                    "",
	} {
		_, err := Kind().Open(target.Options{"url": url})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// Debian's promtool has nothing against the page but what the community's names do.
func TestPromtool(t *testing.T) {
	tool := needs.Promtool(t)
	got, err := page(t, collector(t, recorded(t)[strconv.Itoa(newest)]))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(got)
	out, _ := cmd.CombinedOutput() // it ends with 3 when it has remarks
	for remark := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(remark, " "); !slices.Contains(given, name) {
			t.Error(strings.TrimSpace(remark))
		}
	}
}

// Whatever a server answers, a page can be made of it.
func FuzzAnswers(f *testing.F) {
	for query, rows := range recorded(f)["18"] {
		for _, r := range rows[:min(len(rows), 1)] {
			var cells []string
			for _, c := range r {
				if c != nil {
					cells = append(cells, *c)
				}
			}
			f.Add(query, strings.Join(cells, "\x00"), len(r))
		}
	}
	sound := recorded(f)["18"]
	f.Fuzz(func(t *testing.T, query, text string, width int) {
		if width < 0 || width > 100 || query == "SHOW server_version_num" {
			return
		}
		cells := strings.Split(text, "\x00")
		var r []*string
		for i := range width {
			if i < len(cells) {
				r = append(r, &cells[i])
			} else {
				r = append(r, nil)
			}
		}
		changed := maps.Clone(sound)
		changed[query] = [][]*string{r, r}
		_, err := page(t, collector(t, changed))
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Error(err)
		}
	})
}
