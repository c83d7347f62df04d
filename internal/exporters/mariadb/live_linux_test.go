package mariadb_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"plimsoll/internal/contract/exporter"
	"plimsoll/internal/contract/target"
	"plimsoll/internal/exporters/mariadb"
	"plimsoll/internal/kit/secret"
	"plimsoll/internal/testkit/exportertest"
	"plimsoll/internal/testkit/mariadbtest"
	"plimsoll/internal/testkit/needs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	needs.Print(os.Stdout)
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

func collector(t *testing.T, url string) *mariadb.Collector {
	t.Helper()
	source, err := secret.ParseSource("env:PLIMSOLL_TEST_PASSWORD")
	if err != nil {
		t.Fatal(err)
	}
	c, err := mariadb.New(mariadb.Server{URL: url, Password: source})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func page(t *testing.T, c *mariadb.Collector) (string, error) {
	t.Helper()
	x, err := exporter.New("test", c)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	failed, err := x.Page(t.Context(), &b, exporter.Text)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), failed
}

// A real server is asked for what the community's dashboards look for, by port and by socket; nothing can be written,
// and who is not let in is told so without the password.
func TestRealServer(t *testing.T) {
	t.Setenv("PLIMSOLL_TEST_PASSWORD", mariadbtest.Password)
	s := mariadbtest.Start(t, "--innodb-buffer-pool-size=64M")
	url := fmt.Sprintf("mariadb://%s@127.0.0.1:%d", mariadbtest.User, s.Port)
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(127.0.0.1:%d)/", mariadbtest.User, mariadbtest.Password,
		s.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.a (b INT)",
		"INSERT INTO shop.a VALUES (1)"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	exportertest.Run(t, exportertest.Subject{
		New: func(t *testing.T) exporter.Collector { return collector(t, url) },
	})
	for _, url := range []string{url, "mysql://" + mariadbtest.User + "@localhost?socket=" + s.Socket} {
		c := collector(t, url)
		got, err := page(t, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`mysql_up 1`, `mysql_global_status_commands_total{command="insert"} \d+`,
			`mysql_global_status_threads_connected \d+`, `mysql_global_status_handlers_total{handler="write"} \d+`,
			`mysql_global_status_buffer_pool_pages{state="free"} \d+`, `mysql_global_status_buffer_pool_dirty_pages \d+`,
			`mysql_global_status_innodb_log_writes \d+`, `mysql_global_variables_innodb_buffer_pool_size 6\.?7108864(e\+07)?`,
			`mysql_global_variables_read_only 0`, `mysql_version_info{(innodb_version="[^"]*",)?version="\d[^"]*",.*} 1`,
			`mysql_info_schema_innodb_metrics_transaction_trx_rseg_history_len \d+`,
			`mysql_info_schema_innodb_metrics_change_buffer_ibuf_merges_insert_total \d+`,
			`mysql_info_schema_processlist_threads{command="sleep"} [1-9]\d*`,
			`mysql_info_schema_table_size{component="data_length",schema="shop",table="a"} 16384`,
			`mysql_exporter_collector_success{collector="global_status"} 1`} {
			if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(got) {
				t.Errorf("no line %s", want)
			}
		}
		if err := c.Ask(t.Context(), "INSERT INTO shop.a VALUES (2)"); err == nil ||
			!strings.Contains(err.Error(), "READ ONLY") {
			t.Errorf("a row could be written: %v", err)
		}
	}
	t.Setenv("PLIMSOLL_TEST_PASSWORD", "wrong horse")
	got, err := page(t, collector(t, url))
	if err == nil || !strings.Contains(err.Error(), "Access denied") || strings.Contains(err.Error(), "wrong horse") ||
		!strings.Contains(got, "mysql_up 0\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

// What is no address of one server is refused, and no password is quoted.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"mariadb://app@h:3307":                "",
		"mysql://app@localhost?socket=/run/s": "",
		"mariadb://app:hush@h":                "it has a password",
		"mariadb://h:3306":                    "want mariadb://USER@HOST:PORT",
		"postgresql://app@h/x":                "want mariadb://USER@HOST:PORT",
		"mariadb://app@h?socket=s":            "socket=s: want /PATH",
		"mariadb://app@h?tls=skip":            "tls is sslmode here",
		"mariadb://app:hush@h%zz":             "want mariadb://USER@HOST:PORT",
	} {
		_, err := mariadb.Kind().Open(target.Options{"url": url})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) ||
			strings.Contains(fmt.Sprint(err), "hush") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// What a server was given is told, and what makes its commits last in any case.
func TestSettings(t *testing.T) {
	t.Setenv("PLIMSOLL_TEST_PASSWORD", mariadbtest.Password)
	s := mariadbtest.Start(t, "--innodb-buffer-pool-size=64M", "--sync-binlog=1")
	c := collector(t, fmt.Sprintf("mariadb://%s@127.0.0.1:%d", mariadbtest.User, s.Port))
	version, settings, err := c.Settings(t.Context())
	if err != nil || !regexp.MustCompile(`^(MariaDB|MySQL) \d+\.\d+\.\d+$`).MatchString(version) {
		t.Fatalf("%q, %v", version, err)
	}
	for name, want := range map[string]string{"innodb_buffer_pool_size": "67108864", "sync_binlog": "1",
		"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON", "log_bin": "OFF",
		"innodb_log_buffer_size": ""} {
		if settings[name] != want {
			t.Errorf("%s is %q, want %q", name, settings[name], want)
		}
	}
}
